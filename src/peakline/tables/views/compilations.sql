-- When the host traced, lowered or compiled a program, and for how long; outermost events only.
-- Units: times are picoseconds.
-- Tables: events, lines
-- column: thread string: the thread
-- column: name string: name of the event
-- column: start_ps int64: when it began
-- column: duration_ps int64: how long it took
-- column: step_id int64?: the step
-- column: event_id int64: the event
select l.name as thread, e.name, e.start_ps, e.duration_ps, e.step_id, e.event_id
from events e join lines l using (line_id) left join events above on above.event_id = e.parent_id
where e.activity = 'compile' and above.activity is distinct from 'compile'
order by e.duration_ps desc, e.event_id
