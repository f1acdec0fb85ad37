-- What threads waited for longest: events that only wait, for a device, a thread or input.
-- Units: times are picoseconds.
-- Tables: events, lines
-- column: thread string: the thread that waited
-- column: name string: name of the event
-- column: activity string: wait, or input_wait
-- column: start_ps int64: when it began
-- column: duration_ps int64: how long it waited
-- column: waiter string?: name of the event that encloses it; null where none does
-- column: step_id int64?: the step
-- column: event_id int64: the event
select l.name as thread, e.name, e.activity, e.start_ps, e.duration_ps, above.name as waiter,
    e.step_id, e.event_id
from events e join lines l using (line_id) left join events above on above.event_id = e.parent_id
where e.activity in ('wait', 'input_wait')
order by e.duration_ps desc, e.event_id
