-- How many events each category has, and how much of the time.
-- Units: times are picoseconds.
-- Tables: events
-- column: category string?: the category; null for events without one
-- column: events int64: how many
-- column: names int64: how many different names they have
-- column: total_ps int64: the sum of their durations, those inside others included
-- column: self_ps int64: the sum of their self time
select category, count(*) as events, count(distinct name) as names,
    sum(duration_ps)::bigint as total_ps, coalesce(sum(self_ps), 0)::bigint as self_ps
from events
group by category
order by self_ps desc, category
