"""Tables of where time goes, made from the events of a profile or its executions of ops."""

from __future__ import annotations

from peakline.tables.definition import parse_tables

DEFINITIONS = parse_tables("""
step_breakdown: One row per step and device: what its wall time went to.
The parts add up to wall_ps.
    step_id int64 the step
    name string the step's name
    is_cut_off bool whether the record begins or ends in the middle of it
    found_by string? how the step was found, as in the table steps
    device string? the device; null where the profile has none: then the row is of the host
    start_ps int64 begin of the step's window
    end_ps int64 end of the step's window
    wall_ps int64 end_ps - start_ps
    gap_before_ps int64 since the end of the step before, 0 for the first
    compute_ps int64 the device computed
    communication_ps int64 collectives and messages while nothing was computed
    device_to_device_ps int64 copies within a device or to another, with none of the above
    device_to_host_ps int64 copies to the host, with none of the above
    host_to_device_ps int64 copies to the device, with none of the above
    input_wait_ps int64 the host or the device waited for input, with none of the above
    compile_ps int64 the host compiled, with none of the above
    launch_ps int64 the host launched work, with none of the above
    host_compute_ps int64 the host computed, with none of the above
    idle_ps int64 there is a device, and nothing explains what was waited for
    unknown_ps int64 no event shows what happened
    communication_total_ps int64 collectives and messages, those behind computation included

collectives: One row per collective and participant in this process, on a device or its host.
Where several of its devices took part in one, their rows share an id, and it is known who was late.
    collective_id int64 the same for the devices that took part in one collective
    device string? the device; null for the host (gloo and the like)
    kind string all-reduce, all-gather, send, ...; collective where it is not recorded which
    group_name string? the group of processes by its name, where recorded
    group_ranks string? the numbers of its members in the job, such as [0, 1], where recorded
    group_size int64? how many they are
    peer int64? of a message the number of the other process in the job
    sequence int64? the number of the collective in its group, where recorded
    size_bytes int64? bytes of the whole buffer, as nccl-tests counts them
    data_type string? the type of its elements
    launch_ps int64? when the host enqueued it
    arrive_ps int64 when the device, or the host's thread that does it, began it
    end_ps int64 when it was done there
    late_ps int64? arrive_ps less the median of the other devices'
    wait_ps int64? from arrive_ps to the last of all devices'
    transfer_ps int64? what remained when the last had arrived
    step_id int64? the step it belongs to
    event_id int64? its row in events

device_time: One row per device: how long it was busy.
    plane_id int64 the device's plane
    device string its name
    start_ps int64 the first start of work on it
    end_ps int64 the last end
    busy_ps int64 time with work of any kind
    idle_ps int64 time without, between start_ps and end_ps
    compute_ps int64 time with computation
    communication_ps int64 time with collectives
    copy_ps int64 time with copies
    longest_idle_ps int64 the longest time without work

thread_time: One row per thread of a host: what it did.
    line_id int64 its line
    plane_id int64 its plane
    thread string its name
    events int64 how many events it has
    busy_ps int64 time with an event
    idle_ps int64 time without, between its first and its last event
    wait_ps int64 time in events that only wait
    longest_op string? the event name with the most self time
    longest_op_ps int64 the self time of that name

op_stats: One row per op of a host or a device: how often it ran, and for how long.
    side string host or device
    op string name of the op
    op_type string? its type
    occurrences int64 how often it ran; on a device how many instructions or kernels of it did
    total_ps int64 how long, what it called included
    self_ps int64 how long itself
    min_ps int64 the shortest run
    median_ps int64 the median run
    p95_ps int64 of 20 runs 19 took no longer
    max_ps int64 the longest run
    flops float64? floating-point operations of all runs, where the profile says it
    bytes_accessed float64? bytes read and written by all runs, where the profile says it
    is_eager bool? whether it was run one by one instead of as part of a function

function_time: One row per function of the program's own, with its time on the host or its devices.
Of PyTorch with with_stack=True, of JAX with the Python tracer, and where programs of XLA say it.
    side string host or device
    function string? its name; null where only file and line are known, and for what runs in none
    file string? the file it is in, as the profile has it; null for what runs in none
    line int64 on which it begins; if only programs of XLA name it, where most of its time is from
    occurrences int64 calls of it; on a device, or of a program's, how many ops ran in it
    total_ps int64 how long, other functions of the program that it called included
    self_ps int64 self time: in it and in the libraries that it called

module_time: One row per module (nn.Module) whose ops ran, of a host or its devices.
Only traces of PyTorch with with_stack=True have any; the gradient of an op is of its op's module.
    side string host or device
    module string? the innermost module around an op, such as Linear_0; null for ops in none
    occurrences int64 how many ops ran in the module itself
    total_ps int64 the self time of its ops, those of the modules in it included
    self_ps int64 the self time of its ops

shape_time: One row per op of a host or its devices with inputs of the same shapes.
Only traces of PyTorch with record_shapes=True have any.
    side string host or device
    op string name of the op
    input_shape string? the shapes of its inputs, such as [8, 64], [64, 4]; null where not recorded
    occurrences int64 how often it ran
    total_ps int64 how long, what it called included
    self_ps int64 how long itself
    median_ps int64 the median run
    p95_ps int64 of 20 runs 19 took no longer
    max_ps int64 the longest run

kernels: One row per GPU kernel, its launch dimensions and its op.
    kernel string name of the kernel
    op string? the op that launched it
    grid string grid dimensions, such as 128,1,1
    block string block dimensions
    registers_per_thread int64 registers per thread
    static_shared_bytes int64 static shared memory of a block
    dynamic_shared_bytes int64 dynamic shared memory of a block
    occupancy_percent float64 theoretical occupancy
    uses_tensor_cores bool whether its name is that of one that uses tensor cores
    could_use_tensor_cores bool whether its op could, and it is no transpose, copy or the like
    occurrences int64 how often it ran
    total_ps int64 how long all runs took
    min_ps int64 the shortest run
    median_ps int64 the median run
    p95_ps int64 of 20 runs 19 took no longer
    max_ps int64 the longest run

input_pipeline: One row per stage of an input pipeline (a tf.data iterator, an infeed,
a data loader).
    stage string name, such as Iterator::Root::Prefetch::BatchV2
    parent string? the stage that takes its elements
    category string source, preprocessing, enqueue or other
    occurrences int64 how often it was called
    total_ps int64 how long it took, the stages below included
    self_ps int64 how long itself
    wait_ps int64 how long the consumer above had to wait for it
    min_ps int64 the shortest
    median_ps int64 the median
    p95_ps int64 of 20 times 19 took no longer
    max_ps int64 the longest
    is_bottleneck bool whether it holds the others up
""")
