-- What each allocator did: how often, how much, and the most it reported to be in use.
-- Units: times are picoseconds, sizes bytes.
-- Tables: allocator_events
-- column: allocator string: the allocator or memory
-- column: allocations int64: how many allocations are in the record
-- column: deallocations int64: how many deallocations
-- column: allocated_bytes int64: what was allocated
-- column: freed_bytes int64: what came back, as far as the deallocations say
-- column: largest_bytes int64?: the largest allocation
-- column: most_in_use_bytes int64?: the most bytes in use that it reported within the record
-- column: peak_bytes int64?: its lifetime peak, as reported; it may lie before the record
-- column: first_ps int64: its first event
-- column: last_ps int64: its last event
select allocator,
    coalesce(sum(coalesce(count, 1)) filter (where activity = 'allocation'), 0)::bigint
        as allocations,
    coalesce(sum(coalesce(count, 1)) filter (where activity = 'deallocation'), 0)::bigint
        as deallocations,
    coalesce(sum(allocated_bytes) filter (where activity = 'allocation'), 0)::bigint
        as allocated_bytes,
    coalesce(sum(allocated_bytes) filter (where activity = 'deallocation'), 0)::bigint
        as freed_bytes,
    max(allocated_bytes) filter (where activity = 'allocation') as largest_bytes,
    max(in_use_bytes) as most_in_use_bytes, max(peak_bytes) as peak_bytes,
    min(time_ps) as first_ps, max(time_ps) as last_ps
from allocator_events
group by allocator
order by allocated_bytes desc, allocator
