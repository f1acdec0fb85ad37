-- Which steps took more than a tenth longer than the median step, and which part of them grew
-- most. Steps that the record cuts off are left out.
-- Units: times are picoseconds.
-- Tables: step_breakdown
-- column: step_id int64: the step
-- column: name string: its name
-- column: device string?: the device; null for the host of a profile without one
-- column: wall_ps int64: how long it took
-- column: median_ps int64: how long the median step of the device took
-- column: beyond_ps int64: wall_ps - median_ps
-- column: cause string: the part that is farthest above its own median, as in step_breakdown
-- column: cause_ps int64: how far
with whole as (
    select *, median(wall_ps) over (partition by device) as median_ps
    from step_breakdown
    where not is_cut_off
), parts as (
    select step_id, device,
        unnest([
            'compute', 'communication', 'device_to_device', 'device_to_host',
            'host_to_device', 'input_wait', 'compile', 'launch', 'host_compute', 'idle',
            'unknown'
        ]) as part,
        unnest([
            compute_ps, communication_ps, device_to_device_ps, device_to_host_ps,
            host_to_device_ps, input_wait_ps, compile_ps, launch_ps, host_compute_ps,
            idle_ps, unknown_ps
        ]) as part_ps
    from whole
), grown as (
    select step_id, device, part,
        part_ps - median(part_ps) over (partition by device, part) as beyond_ps
    from parts
)
select w.step_id, w.name, w.device, w.wall_ps, w.median_ps::bigint as median_ps,
    w.wall_ps - w.median_ps::bigint as beyond_ps, arg_max(g.part, g.beyond_ps) as cause,
    max(g.beyond_ps)::bigint as cause_ps
from whole w join grown g on g.step_id = w.step_id and g.device is not distinct from w.device
where w.wall_ps > 1.1 * w.median_ps
group by w.step_id, w.name, w.device, w.wall_ps, w.median_ps
order by beyond_ps desc, w.step_id, w.device
