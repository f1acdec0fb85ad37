-- How long collectives and messages took, by name and device; those inside another one are left
-- out.
-- Units: times are picoseconds.
-- Tables: events, lines, planes
-- column: plane string: the device, or the threads of a host
-- column: name string: name of the collective
-- column: occurrences int64: how often it ran
-- column: total_ps int64: how long all runs took
-- column: mean_ps int64: the mean run
-- column: max_ps int64: the longest run
select p.name as plane, e.name, count(*) as occurrences, sum(e.duration_ps)::bigint as total_ps,
    (sum(e.duration_ps) // count(*))::bigint as mean_ps, max(e.duration_ps) as max_ps
from events e join lines l using (line_id) join planes p using (plane_id)
    left join events above on above.event_id = e.parent_id
where e.activity = 'communication' and above.activity is distinct from 'communication'
group by p.plane_id, p.name, e.name
order by total_ps desc, plane, e.name
