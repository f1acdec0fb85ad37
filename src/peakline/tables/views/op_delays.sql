-- How long ops that were ready waited for the executor to start them.
-- Units: times are picoseconds.
-- Tables: op_runs
-- column: op_type string?: type of the op; null where it is not known
-- column: device string: the device
-- column: runs int64: how many executions say when they were ready
-- column: delay_ps int64: from ready to start, the sum
-- column: median_delay_ps int64: the median
-- column: max_delay_ps int64: the longest
select op_type, device, count(*) as runs, sum(start_ps - scheduled_ps)::bigint as delay_ps,
    median(start_ps - scheduled_ps)::bigint as median_delay_ps,
    max(start_ps - scheduled_ps) as max_delay_ps
from op_runs
where scheduled_ps is not null and not is_duplicate
group by op_type, device
order by delay_ps desc, op_type, device
