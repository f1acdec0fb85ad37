-- Which ops allocate and free the most: work for the allocator, whatever is live at a time.
-- Units: sizes are bytes.
-- Tables: buffers
-- column: op string?: the op; null where it is not known
-- column: allocations int64: how many allocations are in the record
-- column: allocated_bytes int64: what they were handed
-- column: freed_bytes int64: what of that was freed within the record
-- column: live_bytes int64: what was still live at its end
-- column: mean_bytes int64: the mean allocation
with own as (
    select op, coalesce(count, 1) as buffers,
        coalesce(allocated_bytes, requested_bytes, 0) as bytes, end_ps
    from buffers
    where start_ps is not null
)
select op, sum(buffers)::bigint as allocations, sum(bytes)::bigint as allocated_bytes,
    coalesce(sum(bytes) filter (where end_ps is not null), 0)::bigint as freed_bytes,
    coalesce(sum(bytes) filter (where end_ps is null), 0)::bigint as live_bytes,
    (sum(bytes) // sum(buffers))::bigint as mean_bytes
from own
group by op
order by allocated_bytes desc, op
