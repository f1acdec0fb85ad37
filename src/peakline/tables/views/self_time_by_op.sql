-- Which ops take the time themselves, without what they call: the ops of a host and of a device.
-- Units: times are picoseconds, shares percent.
-- Tables: op_stats
-- column: side string: host or device
-- column: op string: name of the op
-- column: op_type string?: its type
-- column: occurrences int64: how often it ran
-- column: total_ps int64: how long, what it called included
-- column: self_ps int64: how long itself
-- column: percent float64?: its share of the self time of its side; null where that is 0
select side, op, op_type, occurrences, total_ps, self_ps,
    round(100e0 * self_ps / nullif(sum(self_ps) over (partition by side), 0), 2) as percent
from op_stats
order by self_ps desc, side, op
