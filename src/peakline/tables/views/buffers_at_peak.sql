-- Which buffers were live when the buffers of their allocator took the most.
-- Units: times are picoseconds, sizes bytes. Shares are percent.
-- Tables: buffers
-- column: allocator string: the allocator or memory
-- column: peak_ps int64: when its buffers took the most, for the first time
-- column: buffer_id int64: the buffer
-- column: op string?: the op that allocated it
-- column: region_type string?: output, temp, persist, dynamic, ...
-- column: data_type string?: element type
-- column: shape string?: shape
-- column: bytes int64: its size
-- column: percent float64?: its share of the peak; null where that is 0
-- column: start_ps int64?: when it was allocated; null when it was there before the profile
-- column: end_ps int64?: when it was deallocated; null while live at the end
with changes as (
    select allocator, coalesce(start_ps, 0) as time_ps,
        coalesce(allocated_bytes, requested_bytes, 0) as bytes
    from buffers
    union all
    select allocator, end_ps, -coalesce(allocated_bytes, requested_bytes, 0)
    from buffers
    where end_ps is not null
), moments as (
    select allocator, time_ps, sum(bytes) as bytes
    from changes
    group by allocator, time_ps
), live as (
    select allocator, time_ps,
        sum(bytes) over (partition by allocator order by time_ps)::bigint as live_bytes
    from moments
), ranked as (
    select *, row_number() over (partition by allocator order by live_bytes desc, time_ps) as rank
    from live
), peaks as (
    select allocator, time_ps as peak_ps, live_bytes as peak_bytes
    from ranked
    where rank = 1
)
select allocator, p.peak_ps, b.buffer_id, b.op, b.region_type, b.data_type, b.shape,
    coalesce(allocated_bytes, requested_bytes, 0) as bytes,
    round(100e0 * coalesce(allocated_bytes, requested_bytes, 0)
        / nullif(p.peak_bytes, 0), 2) as percent,
    b.start_ps, b.end_ps
from buffers b join peaks p using (allocator)
where coalesce(b.start_ps, 0) <= p.peak_ps and (b.end_ps is null or b.end_ps > p.peak_ps)
order by allocator, bytes desc, b.buffer_id
