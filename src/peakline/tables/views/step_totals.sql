-- How long each step took, and how many events and how much self time belong to it.
-- Units: times are picoseconds.
-- Tables: steps, events
-- column: step_id int64: the step
-- column: name string: its name
-- column: start_ps int64: its start
-- column: wall_ps int64: its length
-- column: events int64: how many events belong to it, those without a time included
-- column: self_ps int64: the sum of their self time, on all threads and devices
select s.step_id, s.name, s.start_ps, s.end_ps - s.start_ps as wall_ps,
    count(e.step_id) as events, coalesce(sum(e.self_ps), 0)::bigint as self_ps
from steps s left join events e on e.step_id = s.step_id
group by s.step_id, s.name, s.start_ps, s.end_ps
order by s.step_id
