-- How much memory was live over time, per allocator: a row per moment at which it changed. A
-- buffer whose allocation is not in the record is live from 0 on.
-- Units: times are picoseconds, sizes bytes.
-- Tables: buffers
-- column: allocator string: the allocator or memory
-- column: time_ps int64: the moment
-- column: live_bytes int64: bytes of the buffers that are live from then on
-- column: buffers int64: how many those are
-- column: change_bytes int64: by how much live_bytes changed at the moment
with changes as (
    select allocator, coalesce(start_ps, 0) as time_ps,
        coalesce(allocated_bytes, requested_bytes, 0) as bytes, coalesce(count, 1) as buffers
    from buffers
    union all
    select allocator, end_ps, -coalesce(allocated_bytes, requested_bytes, 0), -coalesce(count, 1)
    from buffers
    where end_ps is not null
), moments as (
    select allocator, time_ps, sum(bytes) as bytes, sum(buffers) as buffers
    from changes
    group by allocator, time_ps
)
select allocator, time_ps, (sum(bytes) over running)::bigint as live_bytes,
    (sum(buffers) over running)::bigint as buffers, bytes::bigint as change_bytes
from moments
window running as (partition by allocator order by time_ps)
order by allocator, time_ps
