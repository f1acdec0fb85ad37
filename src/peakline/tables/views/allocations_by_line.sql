-- Which lines of Python source allocate: the innermost frame of a call stack in a .py file.
-- Units: sizes are bytes.
-- Tables: buffers, stacks
-- column: file string?: the file; null for stacks without such a frame
-- column: line int64?: the line
-- column: function string?: the function
-- column: buffers int64: how many buffers
-- column: allocated_bytes int64: the sum of their sizes, live at a time or not
-- column: live_bytes int64: what of that was still live at the end
with frames as (
    select stack_id, arg_min(file, depth) as file, arg_min(line, depth) as line,
        arg_min(function, depth) as function
    from stacks
    where file like '%.py'
    group by stack_id
)
select f.file, f.line, f.function, sum(coalesce(b.count, 1))::bigint as buffers,
    sum(coalesce(allocated_bytes, requested_bytes, 0))::bigint as allocated_bytes,
    coalesce(
        sum(coalesce(allocated_bytes, requested_bytes, 0)) filter (where end_ps is null), 0
    )::bigint as live_bytes
from buffers b left join frames f using (stack_id)
where b.stack_id is not null
group by f.file, f.line, f.function
order by allocated_bytes desc, f.file, f.line
