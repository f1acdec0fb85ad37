-- Which ops allocate what the end of their step does not free: what may leak, and what is a state.
-- Units: sizes are bytes.
-- Tables: buffers
-- column: op string?: the op; null where it is not known
-- column: region_type string?: output, temp, persist, dynamic, ...
-- column: freed_later int64: buffers that a later step freed
-- column: never_freed int64: buffers that were live at the end of the record
-- column: bytes int64: the size of both together
-- column: mean_steps float64?: after how many steps the freed ones went; null where none did
select op, region_type,
    coalesce(sum(coalesce(count, 1)) filter (where end_step > start_step), 0)::bigint
        as freed_later,
    coalesce(sum(coalesce(count, 1)) filter (where end_ps is null), 0)::bigint as never_freed,
    sum(coalesce(allocated_bytes, requested_bytes, 0))::bigint as bytes,
    avg(end_step - start_step) as mean_steps
from buffers
where start_step is not null and (end_ps is null or end_step > start_step)
group by op, region_type
order by bytes desc, op, region_type
