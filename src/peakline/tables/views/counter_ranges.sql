-- Between which values every counter of the profile moved.
-- Units: times are picoseconds; values as the profiler wrote them.
-- Tables: counters
-- column: plane_id int64: the plane
-- column: name string: name of the counter
-- column: series string: which of its values
-- column: samples int64: how many values
-- column: min_value float64: the least
-- column: mean_value float64: the mean of the samples
-- column: max_value float64: the greatest
-- column: max_at_ps int64: when it was that great for the first time
-- column: last_value float64: the last
select plane_id, name, series, count(*) as samples, min(value) as min_value,
    avg(value) as mean_value, max(value) as max_value,
    arg_max(time_ps, (value, -time_ps)) as max_at_ps,
    arg_max(value, time_ps) as last_value
from counters
group by plane_id, name, series
order by plane_id, name, series
