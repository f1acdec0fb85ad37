-- Which allocations failed, how much was free then, and whether it lay in pieces.
-- Units: times are picoseconds, sizes bytes.
-- Tables: oom_reports
-- column: report_id int64: the report
-- column: time_ps int64: when, where the log says so, else 0
-- column: allocator string: the allocator
-- column: op string?: the op that requested the memory
-- column: requested_bytes int64?: what was requested
-- column: in_use_bytes int64?: what was in use
-- column: free_bytes int64?: what was free in the pool of the allocator
-- column: largest_free_bytes int64?: the largest free chunk
-- column: is_fragmented bool?: whether enough was free and no chunk was large enough
select report_id, time_ps, allocator, op, requested_bytes, in_use_bytes, free_bytes,
    largest_free_bytes,
    free_bytes >= requested_bytes and largest_free_bytes < requested_bytes as is_fragmented
from oom_reports
order by time_ps, report_id
