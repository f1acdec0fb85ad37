-- Which GPU kernels could use tensor cores, by their op, and do not.
-- Units: times are picoseconds, occupancy percent.
-- Tables: kernels
-- column: kernel string: name of the kernel
-- column: op string?: the op that launched it
-- column: occurrences int64: how often it ran
-- column: total_ps int64: how long all runs took
-- column: occupancy_percent float64: theoretical occupancy
select kernel, op, occurrences, total_ps, occupancy_percent
from kernels
where could_use_tensor_cores and not uses_tensor_cores
order by total_ps desc, kernel, op
