-- How long each step waited for its input.
-- Units: times are picoseconds, shares percent.
-- Tables: step_breakdown
-- column: step_id int64: the step
-- column: name string: its name
-- column: device string?: the device; null for the host of a profile without one
-- column: input_wait_ps int64: time in which it waited for input and did nothing else
-- column: wall_ps int64: how long it took
-- column: percent float64?: input_wait_ps of wall_ps; null where that is 0
select step_id, name, device, input_wait_ps, wall_ps,
    round(100e0 * input_wait_ps / nullif(wall_ps, 0), 2) as percent
from step_breakdown
where input_wait_ps > 0
order by input_wait_ps desc, step_id, device
