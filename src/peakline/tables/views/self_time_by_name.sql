-- Which events take the time themselves, without the events inside them, by name and kind of
-- plane.
-- Units: times are picoseconds, shares percent.
-- Tables: events, lines, planes
-- column: side string: kind of plane: host, device or other
-- column: name string: name of the events
-- column: activity string?: what goes on while they run, as in events
-- column: events int64: how many have a time
-- column: total_ps int64: the sum of their durations; one inside another of its name counts in both
-- column: self_ps int64: the sum of their self time
-- column: max_self_ps int64: the most self time of one
select p.kind as side, e.name, e.activity, count(*) as events,
    sum(e.duration_ps)::bigint as total_ps, sum(e.self_ps)::bigint as self_ps,
    max(e.self_ps) as max_self_ps
from events e join lines l using (line_id) join planes p using (plane_id)
where e.start_ps is not null
group by p.kind, e.name, e.activity
order by self_ps desc, side, e.name
