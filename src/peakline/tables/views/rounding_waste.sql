-- How many bytes the allocator rounds away, by op: allocated beyond what was requested.
-- Units: sizes are bytes, shares percent.
-- Tables: buffers
-- column: op string?: the op; null where it is not known
-- column: buffers int64: how many buffers have both sizes
-- column: requested_bytes int64: what was requested
-- column: allocated_bytes int64: what was allocated
-- column: waste_bytes int64: the difference
-- column: percent float64: waste_bytes of allocated_bytes
select op, sum(coalesce(count, 1))::bigint as buffers,
    sum(requested_bytes)::bigint as requested_bytes,
    sum(allocated_bytes)::bigint as allocated_bytes,
    sum(allocated_bytes - requested_bytes)::bigint as waste_bytes,
    round(100e0 * sum(allocated_bytes - requested_bytes) / sum(allocated_bytes), 2) as percent
from buffers
where requested_bytes is not null and allocated_bytes is not null
group by op
having sum(allocated_bytes - requested_bytes) > 0
order by waste_bytes desc, op
