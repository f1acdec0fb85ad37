-- Which ops launch the GPU kernels that take the time.
-- Units: times are picoseconds, shares percent.
-- Tables: kernels
-- column: op string?: the op that launched them; null where it is not known
-- column: kernels int64: how many different kernels
-- column: occurrences int64: how often they ran
-- column: total_ps int64: how long all runs took
-- column: percent float64?: their share of the time of all kernels; null where that is 0
-- column: longest_kernel string: the kernel with the most time
-- column: tensor_core_percent float64?: the share of total_ps in kernels that use tensor cores
select op, count(distinct kernel) as kernels, sum(occurrences)::bigint as occurrences,
    sum(total_ps)::bigint as total_ps,
    round(100e0 * sum(total_ps) / nullif(sum(sum(total_ps)) over (), 0), 2) as percent,
    arg_max(kernel, total_ps) as longest_kernel,
    round(100e0 * coalesce(sum(total_ps) filter (where uses_tensor_cores), 0)
        / nullif(sum(total_ps), 0), 2) as tensor_core_percent
from kernels
group by op
order by total_ps desc, op
