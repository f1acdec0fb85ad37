"""Tables of what each op did in a step (step_stats.proto) and its cost (cost_graph.proto)."""

from __future__ import annotations

from peakline.tables.definition import parse_tables

DEFINITIONS = parse_tables("""
traced_runs: One row per traced run of the file (RunMetadata).
    step_id int64 the step it is
    name string its tag in an events file, else run 0
    session_name string? name of the session's model (session_metadata)
    session_version int64? version of the session's model
    wall_time_s float64? when its event was written, seconds since the epoch
    event_step int64? the step that its event names

op_devices: One row per DeviceStepStats of the file, in its order.
    device_entry int64 row number
    device string the device, as the runtime names it
    step_id int64? the step
    nodes int64 how many executions it holds

op_runs: One row per execution of an op (NodeExecStats).
    op_run_id int64 row number
    device string the device, as the runtime names it
    name string name of the node
    op_type string? type of the op: from the label, null where it does not say
    start_ps int64 when the executor started the node
    duration_ps int64 until the node ended, bookkeeping included (all_end_rel)
    scheduled_ps int64? when the node became ready
    thread int64? the thread
    step_id int64? the step
    compute_start_ps int64? when its computation began (op_start_rel)
    compute_ps int64? how long it computed (op_end_rel - op_start_rel)
    label string? timeline_label
    kind string executor, stream, stream_all, memcpy, sync or rpc
    is_duplicate bool whether another row is of the same work: a sum must leave it out
    device_entry int64 row number of its DeviceStepStats in the file

op_times: One row per execution of an op: the times as written (NodeExecStats).
    op_run_id int64 the execution
    all_start_micros int64 microseconds since the epoch
    op_start_rel_micros int64 from all_start
    op_end_rel_micros int64 from all_start
    all_end_rel_micros int64 from all_start
    scheduled_micros int64 microseconds since the epoch
    all_start_nanos int64 nanoseconds since the epoch
    op_start_rel_nanos int64 from all_start
    op_end_rel_nanos int64 from all_start
    all_end_rel_nanos int64 from all_start
    scheduled_nanos int64 nanoseconds since the epoch
    thread_id int64 the thread, 0 when not written

op_outputs: One row per output of an execution (NodeOutput).
    op_run_id int64 the execution
    position int64 place in the list of outputs
    slot int64 which output of the op
    data_type string? element type, null without a tensor description
    shape string? shape, such as [3, 3, 512, 512]
    requested_bytes int64? what was requested
    allocated_bytes int64? what was allocated
    allocator string? the allocator
    allocation_id int64? the allocator's number for the buffer
    address uint64? address of the buffer
    has_single_reference bool whether nobody else held the buffer
    has_description bool whether there is a tensor description
    has_allocation bool whether there is an allocation description

op_references: One row per tensor an execution referred to (referenced_tensor).
    op_run_id int64 the execution
    requested_bytes int64 what was requested
    allocated_bytes int64 what was allocated
    allocator string the allocator
    allocation_id int64 the allocator's number for the buffer
    has_single_reference bool whether nobody else held the buffer
    address uint64 address of the buffer

op_memory: One row per execution and allocator (AllocatorMemoryUsed).
    op_run_id int64 the execution
    allocator string the allocator
    total_bytes int64 allocated while the op ran; what was freed is not subtracted
    peak_bytes int64 most in use while the op ran
    live_bytes int64 still in use when the op ended
    allocator_bytes_in_use int64 in use in the whole allocator when the op ended

op_allocations: One row per allocation or deallocation of an execution (AllocationRecord).
    op_run_id int64 the execution
    allocator string the allocator
    time_ps int64 when
    bytes int64 allocated; negative for a deallocation

op_memory_stats: One row per execution that has memory_stats (MemoryStats).
    op_run_id int64 the execution
    temp_bytes int64 temporary memory
    persistent_bytes int64 memory held between steps
    device_temp_bytes int64 deprecated field
    device_persistent_bytes int64 deprecated field

op_persistent: One row per buffer that an execution holds between steps.
    op_run_id int64 the execution
    allocation_id int64 the allocator's number for the buffer
    is_device bool whether it stands in the deprecated device field

thread_names: One row per named thread of a device (DeviceStepStats.thread_names).
    device_entry int64 row number of the DeviceStepStats in the file
    device string the device
    thread_id int64 the thread
    name string its name

cost_nodes: One row per node of a cost graph (CostGraphDef.Node).
    step_id int64? the step
    name string name of the node
    device string the device
    cost_id int64 number of the node in its cost graph
    is_final bool whether it is fetched
    is_inaccurate bool whether the costs are estimates
    compute_micros int64 compute cost
    compute_time int64 estimated compute time
    memory_time int64 estimated time of memory accesses
    temporary_bytes int64 temporary memory
    persistent_bytes int64 memory held between steps
    host_temp_bytes int64 deprecated field
    device_temp_bytes int64 deprecated field
    device_persistent_bytes int64 deprecated field

cost_edges: One row per input of a node of a cost graph.
    step_id int64? the step
    cost_id int64 the node
    source_cost_id int64 the node before it
    source_port int64? which output; null for a control input

cost_outputs: One row per output of a node of a cost graph.
    step_id int64? the step
    cost_id int64 the node
    port int64 which output
    bytes int64 its size
    alias_input_port int64 the input it shares memory with, -1 for none
    data_type string element type
    shape string? shape

cost_totals: One row per total of a cost graph (AggregatedCost).
    step_id int64? the step
    dimension string what was added up
    cost float64 the sum

printed_ops: One row per line of a table of times that a profiler printed for people.
    source string torch.profiler, Lightning or cProfile
    op string the op, action or function, as printed: long names are cut there
    part string? of several tables of cProfile what this one is about
    occurrences int64? how often it ran
    self_ps int64? how long itself, on the host
    total_ps int64? how long on the host, what it called included
    device string? the device of the next columns, such as cuda
    device_self_ps int64? how long its own kernels ran
    device_total_ps int64? how long kernels ran, those of what it called included
    self_bytes int64? host memory that it allocated and did not free
    device_self_bytes int64? memory of the device that it allocated and did not free
    flops float64? floating-point operations of all runs
    input_shape string? the shapes of its inputs
    whole_ps int64? what the table says of all of its ops together, on the host
    device_whole_ps int64? what it says of all of its ops together, on the device
""")
