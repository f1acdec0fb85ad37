-- Which single events took longest, and how much of that themselves.
-- Units: times are picoseconds.
-- Tables: events, lines, planes
-- column: plane string: the device, or the threads of a host
-- column: line string: the thread or the stream
-- column: name string: name of the event
-- column: activity string: what goes on while it runs
-- column: start_ps int64: when it began
-- column: duration_ps int64: how long it took
-- column: self_ps int64: its self time
-- column: depth int32: how many events enclose it
-- column: step_id int64?: the step
-- column: event_id int64: the event
select p.name as plane, l.name as line, e.name, e.activity, e.start_ps, e.duration_ps, e.self_ps,
    e.depth, e.step_id, e.event_id
from events e join lines l using (line_id) join planes p using (plane_id)
where e.start_ps is not null
order by e.duration_ps desc, e.event_id
