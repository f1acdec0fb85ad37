-- What the time of hosts and devices goes to: self time of the events by what goes on while they
-- run.
-- Units: times are picoseconds, shares percent.
-- Tables: events, lines, planes
-- column: side string: kind of plane: host, device or other
-- column: activity string: compute, communication, input_wait, ... as in events
-- column: events int64: how many events
-- column: self_ps int64: the sum of their self time
-- column: percent float64?: their share of the self time of the side; null where that is 0
select side, activity, events, self_ps,
    round(100e0 * self_ps / nullif(sum(self_ps) over (partition by side), 0), 2) as percent
from (
    select p.kind as side, e.activity, count(*) as events, sum(e.self_ps)::bigint as self_ps
    from events e join lines l using (line_id) join planes p using (plane_id)
    where e.activity is not null
    group by p.kind, e.activity
)
order by side, self_ps desc, activity
