-- How long the buffers of each op live.
-- Units: times are picoseconds, sizes bytes.
-- Tables: buffers
-- column: op string?: the op; null where it is not known
-- column: buffers int64: how many have their allocation in the record
-- column: live_at_end int64: how many of them were still live at its end
-- column: bytes int64: the sum of their sizes
-- column: min_ps int64?: the shortest life; null where none ended
-- column: median_ps int64?: the median life of those that ended
-- column: max_ps int64?: the longest
select op, sum(coalesce(count, 1))::bigint as buffers,
    coalesce(sum(coalesce(count, 1)) filter (where end_ps is null), 0)::bigint as live_at_end,
    sum(coalesce(allocated_bytes, requested_bytes, 0))::bigint as bytes,
    min(end_ps - start_ps) as min_ps, median(end_ps - start_ps)::bigint as median_ps,
    max(end_ps - start_ps) as max_ps
from buffers
where start_ps is not null
group by op
order by median_ps desc nulls last, op
