-- How much of the communication of each step nothing else hid.
-- Units: times are picoseconds, shares percent.
-- Tables: step_breakdown
-- column: step_id int64: the step
-- column: name string: its name
-- column: device string?: the device; null for the host of a profile without one
-- column: total_ps int64: collectives and messages
-- column: exposed_ps int64: those while nothing was computed
-- column: hidden_percent float64: the share that computation hid
-- column: exposed_percent float64?: exposed_ps of the step's wall time; null where that is 0
select step_id, name, device, communication_total_ps as total_ps, communication_ps as exposed_ps,
    round(100e0 * (communication_total_ps - communication_ps) / communication_total_ps, 2)
        as hidden_percent,
    round(100e0 * communication_ps / nullif(wall_ps, 0), 2) as exposed_percent
from step_breakdown
where communication_total_ps > 0
order by exposed_ps desc, step_id, device
