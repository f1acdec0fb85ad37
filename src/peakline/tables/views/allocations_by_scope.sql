-- Which scopes of names allocate: a scope is the name of an op up to its last slash.
-- Units: sizes are bytes.
-- Tables: buffers
-- column: scope string?: the scope, empty for ops outside any; null where the op is not known
-- column: ops int64: how many ops of it allocate
-- column: buffers int64: how many buffers
-- column: allocated_bytes int64: the sum of their sizes, live at a time or not
-- column: largest_bytes int64: the largest of them
select regexp_replace(op, '/?[^/]*$', '') as scope, count(distinct op) as ops,
    sum(coalesce(count, 1))::bigint as buffers,
    sum(coalesce(allocated_bytes, requested_bytes, 0))::bigint as allocated_bytes,
    max(coalesce(allocated_bytes, requested_bytes, 0)) as largest_bytes
from buffers
group by scope
order by allocated_bytes desc, scope
