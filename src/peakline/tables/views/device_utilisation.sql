-- How busy every device was, and with what, between its first and its last work.
-- Units: times are picoseconds, shares percent.
-- Tables: device_time
-- column: device string: the device
-- column: span_ps int64: from the first start of work to the last end
-- column: busy_ps int64: time with work of any kind
-- column: longest_idle_ps int64: the longest time without work
-- column: busy_percent float64?: busy_ps of span_ps; null where that is 0
-- column: compute_percent float64?: time with computation, of span_ps
-- column: communication_percent float64?: time with collectives, of span_ps
-- column: copy_percent float64?: time with copies, of span_ps
select device, end_ps - start_ps as span_ps, busy_ps, longest_idle_ps,
    round(100e0 * busy_ps / nullif(end_ps - start_ps, 0), 2) as busy_percent,
    round(100e0 * compute_ps / nullif(end_ps - start_ps, 0), 2) as compute_percent,
    round(100e0 * communication_ps / nullif(end_ps - start_ps, 0), 2) as communication_percent,
    round(100e0 * copy_ps / nullif(end_ps - start_ps, 0), 2) as copy_percent
from device_time
order by busy_ps desc, device
