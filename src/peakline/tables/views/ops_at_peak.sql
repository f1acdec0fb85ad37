-- Which ops had allocated what was live when the buffers of an allocator took the most.
-- Units: times are picoseconds, sizes bytes. Shares are percent.
-- Tables: buffers
-- column: allocator string: the allocator or memory
-- column: peak_ps int64: when its buffers took the most, for the first time
-- column: op string?: the op; null where it is not known
-- column: buffers int64: how many of its buffers were live
-- column: bytes int64: their size
-- column: percent float64?: their share of the peak; null where that is 0
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
select allocator, p.peak_ps, b.op, sum(coalesce(b.count, 1))::bigint as buffers,
    sum(coalesce(allocated_bytes, requested_bytes, 0))::bigint as bytes,
    round(100e0 * sum(coalesce(allocated_bytes, requested_bytes, 0))
        / nullif(p.peak_bytes, 0), 2) as percent
from buffers b join peaks p using (allocator)
where coalesce(b.start_ps, 0) <= p.peak_ps and (b.end_ps is null or b.end_ps > p.peak_ps)
group by allocator, p.peak_ps, p.peak_bytes, b.op
order by allocator, bytes desc, b.op
