-- How busy every thread of the host was between its first and its last event.
-- Units: times are picoseconds, shares percent.
-- Tables: thread_time
-- column: thread string: the thread
-- column: line_id int64: its line
-- column: span_ps int64: from its first event to the end of its last
-- column: busy_ps int64: time with an event
-- column: wait_ps int64: time in events that only wait
-- column: busy_percent float64?: busy_ps of span_ps; null for a thread of instants
-- column: working_percent float64?: busy_ps without wait_ps, of span_ps
-- column: longest_op string?: the name with the most self time
select thread, line_id, busy_ps + idle_ps as span_ps, busy_ps, wait_ps,
    round(100e0 * busy_ps / nullif(busy_ps + idle_ps, 0), 2) as busy_percent,
    round(100e0 * (busy_ps - wait_ps) / nullif(busy_ps + idle_ps, 0), 2) as working_percent,
    longest_op
from thread_time
order by busy_ps desc, line_id
