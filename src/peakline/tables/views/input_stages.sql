-- Which stages of the input pipelines take the time, and which hold the others up.
-- Units: times are picoseconds, shares percent.
-- Tables: input_pipeline
-- column: stage string: the stage
-- column: category string: source, preprocessing, enqueue or other
-- column: occurrences int64: how often it was called
-- column: self_ps int64: how long it took itself
-- column: mean_self_ps int64: per call
-- column: percent float64?: its share of the self time of all stages; null where that is 0
-- column: wait_ps int64: how long the consumer above had to wait for it
-- column: is_bottleneck bool: whether it holds the others up
select stage, category, occurrences, self_ps, self_ps // greatest(occurrences, 1) as mean_self_ps,
    round(100e0 * self_ps / nullif(sum(self_ps) over (), 0), 2) as percent, wait_ps, is_bottleneck
from input_pipeline
order by self_ps desc, stage
