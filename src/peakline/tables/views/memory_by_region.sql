-- What kinds of memory the buffers are: outputs, temporaries, state, by element type.
-- Units: sizes are bytes.
-- Tables: buffers
-- column: allocator string: the allocator or memory
-- column: region_type string?: output, temp, persist, dynamic, ...
-- column: data_type string?: element type
-- column: buffers int64: how many buffers
-- column: bytes int64: the sum of their sizes, live at a time or not
-- column: largest_bytes int64: the largest of them
select allocator, region_type, data_type, sum(coalesce(count, 1))::bigint as buffers,
    sum(coalesce(allocated_bytes, requested_bytes, 0))::bigint as bytes,
    max(coalesce(allocated_bytes, requested_bytes, 0)) as largest_bytes
from buffers
group by allocator, region_type, data_type
order by bytes desc, allocator, region_type, data_type
