-- When a thread or a stream did nothing: the stretches between events of a line in which none ran.
-- Units: times are picoseconds.
-- Tables: events, lines, planes
-- column: plane string: the device, or the threads of a host
-- column: line string: the thread or the stream
-- column: line_id int64: its line
-- column: start_ps int64: when the event before ended
-- column: end_ps int64: when the next began
-- column: gap_ps int64: end_ps - start_ps
-- column: event_before string: name of the event that ended last
-- column: event_after string: name of the next
with outermost as (
    select event_id, line_id, name, start_ps, start_ps + duration_ps as end_ps
    from events
    where depth = 0 and duration_ps > 0
), followed as (
    select line_id, start_ps, name as event_after,
        max(end_ps) over earlier as covered_ps, arg_max(name, end_ps) over earlier as event_before
    from outermost
    window earlier as (
        partition by line_id order by start_ps, event_id
        rows between unbounded preceding and 1 preceding
    )
)
select p.name as plane, l.name as line, f.line_id, f.covered_ps as start_ps, f.start_ps as end_ps,
    f.start_ps - f.covered_ps as gap_ps, f.event_before, f.event_after
from followed f join lines l using (line_id) join planes p using (plane_id)
where f.start_ps > f.covered_ps
order by gap_ps desc, f.line_id, f.covered_ps
