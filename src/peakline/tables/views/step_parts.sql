-- What the wall time of the steps goes to, per device: the parts add up to the whole.
-- Units: times are picoseconds, shares percent.
-- Tables: step_breakdown
-- column: device string?: the device; null for the host of a profile without one
-- column: part string: compute, communication, input_wait, launch, idle, ... as in step_breakdown
-- column: total_ps int64: the sum over all steps
-- column: mean_ps int64: per step
-- column: percent float64?: its share of the wall time of all steps; null where that is 0
with parts as (
    select device,
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
    from step_breakdown
)
select device, part, sum(part_ps)::bigint as total_ps,
    (sum(part_ps) // count(*))::bigint as mean_ps,
    round(100e0 * sum(part_ps) / nullif(sum(sum(part_ps)) over (partition by device), 0), 2)
        as percent
from parts
group by device, part
order by device, total_ps desc, part
