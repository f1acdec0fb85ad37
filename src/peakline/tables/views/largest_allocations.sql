-- Which buffers are the largest, and how long they lived.
-- Units: times are picoseconds, sizes bytes.
-- Tables: buffers
-- column: allocator string: the allocator or memory
-- column: op string?: the op that allocated it
-- column: region_type string?: output, temp, persist, dynamic, ...
-- column: data_type string?: element type
-- column: shape string?: shape
-- column: bytes int64: its size
-- column: start_ps int64?: when it was allocated; null when it was there before the profile
-- column: lifetime_ps int64?: until it was deallocated; null where either end is not in the record
-- column: start_step int64?: the step of its allocation
-- column: buffer_id int64: the buffer
select allocator, op, region_type, data_type, shape,
    coalesce(allocated_bytes, requested_bytes, 0) as bytes, start_ps,
    end_ps - start_ps as lifetime_ps, start_step, buffer_id
from buffers
order by bytes desc, buffer_id
