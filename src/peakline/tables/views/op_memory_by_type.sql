-- How much memory the types of ops of a TensorFlow step take while they run, and how long they
-- compute.
-- Units: times are picoseconds, sizes bytes.
-- Tables: op_runs, op_memory
-- column: op_type string?: type of the op; null where it is not known
-- column: runs int64: how many executions have memory
-- column: total_bytes int64: allocated while they ran, whatever was freed
-- column: peak_bytes int64: the most one of them had in use
-- column: live_bytes int64: still in use when they ended
-- column: compute_ps int64: how long they computed
with used as (
    select op_run_id, sum(total_bytes) as total, sum(peak_bytes) as peak, sum(live_bytes) as live
    from op_memory
    group by op_run_id
)
select r.op_type, count(*) as runs, sum(u.total)::bigint as total_bytes,
    max(u.peak)::bigint as peak_bytes, sum(u.live)::bigint as live_bytes,
    coalesce(sum(r.compute_ps), 0)::bigint as compute_ps
from op_runs r join used u using (op_run_id)
where not r.is_duplicate
group by r.op_type
order by total_bytes desc, r.op_type
