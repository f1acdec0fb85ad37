-- How many bytes the devices copied, within them, to others and from and to the host, and how
-- fast. Where the profiler wrote no size of a copy, its bytes are unknown and its time counts.
-- Units: times are picoseconds, sizes bytes, the rate GB per second.
-- Tables: events, event_stats
-- column: kind string: host_to_device, device_to_host or device_to_device
-- column: copies int64: how many
-- column: sized int64: how many of them have a size
-- column: bytes int64?: the sum of the sizes; null where no copy has one
-- column: total_ps int64: how long all took
-- column: gb_per_second float64?: bytes over the time of the copies that have a size
with sizes as (
    select event_id, max(coalesce(
        try_cast(value as bigint), try_cast(regexp_extract(value, 'size:(\d+)', 1) as bigint)
    )) as bytes
    from event_stats
    where name in ('bytes', 'memcpy_details')
    group by event_id
)
select e.activity as kind, count(*) as copies, count(s.bytes) as sized,
    sum(s.bytes)::bigint as bytes, sum(e.duration_ps)::bigint as total_ps,
    round(1e3 * sum(s.bytes) / nullif(sum(e.duration_ps) filter (where s.bytes is not null), 0), 3)
        as gb_per_second
from events e left join sizes s using (event_id)
where e.activity in ('host_to_device', 'device_to_host', 'device_to_device')
group by e.activity
order by total_ps desc, kind
