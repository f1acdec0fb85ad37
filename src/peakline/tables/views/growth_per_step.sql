-- How much memory each step left behind: what it allocated, less what was freed in it.
-- Units: sizes are bytes.
-- Tables: buffers, steps
-- column: step_id int64: the step
-- column: name string: its name
-- column: allocator string: the allocator or memory
-- column: allocated_bytes int64: allocated in the step
-- column: freed_bytes int64: freed in the step, whenever allocated
-- column: growth_bytes int64: allocated_bytes - freed_bytes
-- column: total_growth_bytes int64: the sum of growth_bytes up to this step
with changes as (
    select start_step as step_id, allocator,
        coalesce(allocated_bytes, requested_bytes, 0) as allocated, 0 as freed
    from buffers
    union all
    select end_step, allocator, 0, coalesce(allocated_bytes, requested_bytes, 0)
    from buffers
), summed as (
    select step_id, allocator, sum(allocated)::bigint as allocated_bytes,
        sum(freed)::bigint as freed_bytes
    from changes
    where step_id is not null
    group by step_id, allocator
)
select m.step_id, s.name, m.allocator, m.allocated_bytes, m.freed_bytes,
    m.allocated_bytes - m.freed_bytes as growth_bytes,
    (sum(m.allocated_bytes - m.freed_bytes) over so_far)::bigint as total_growth_bytes
from summed m join steps s on s.step_id = m.step_id
window so_far as (partition by m.allocator order by m.step_id)
order by m.allocator, m.step_id
