-- How much of what PyTorch's allocator took from the device is in use, by pool and kind of
-- segment.
-- Units: sizes are bytes, shares percent.
-- Tables: segments
-- column: allocator string: the allocator
-- column: pool string: the private pool, empty for the common one
-- column: segment_type string: large or small
-- column: segments int64: how many segments
-- column: reserved_bytes int64: what was taken from the device
-- column: allocated_bytes int64: what blocks in use take
-- column: unused_bytes int64: the difference
-- column: used_percent float64?: allocated_bytes of reserved_bytes; null where that is 0
select allocator, pool, segment_type, count(*) as segments,
    sum(total_bytes)::bigint as reserved_bytes, sum(allocated_bytes)::bigint as allocated_bytes,
    sum(total_bytes - allocated_bytes)::bigint as unused_bytes,
    round(100e0 * sum(allocated_bytes) / nullif(sum(total_bytes), 0), 2) as used_percent
from segments
group by allocator, pool, segment_type
order by reserved_bytes desc, allocator, pool, segment_type
