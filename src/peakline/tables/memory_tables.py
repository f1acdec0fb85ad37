"""Tables of memory: what allocators did, buffers, reports of failed allocations."""

from __future__ import annotations

from peakline.tables.definition import parse_tables

DEFINITIONS = parse_tables("""
allocator_events: One row per activity of an allocator (allocation, deallocation, ...),
in time order.
    time_ps int64 when it happened
    sequence int64 its place in the file; (time_ps, sequence) is the order of replay
    allocator string the allocator or memory it belongs to, empty when not named
    activity string allocation, deallocation, reservation or expansion
    address uint64? address of the buffer
    allocation_id int64? the allocator's number for the buffer
    requested_bytes int64? what was requested
    allocated_bytes int64? what was allocated
    op string? the op that requested it, null when not known
    region_type string? output, temp, persist, dynamic, ...
    data_type string? element type
    shape string? shape as the runtime spells it, such as [3, 3, 512, 512]
    step_id int64? the step it belongs to; null when it belongs to none
    in_use_bytes int64? bytes in use after it, as the allocator reported
    reserved_bytes int64? bytes reserved outside the heap (stack), as reported
    free_bytes int64? bytes that its allocator can still give out, as reported
    pool_bytes int64? bytes that its pool has taken from the device, in use or free, as reported
    capacity_bytes int64? bytes that the device of its memory has in all, where the file says so
    fragmentation float64? 0 to 1, as reported; NaN when nothing is free
    peak_bytes int64? the allocator's lifetime peak so far, as reported
    deferred bool? a deallocation that was requested here and takes effect later
    returned_sequence int64? the sequence at which a deferred deallocation took effect
    stream int64? the stream whose memory it is
    stack_id int64? the call stack, see stacks
    line_id int64? the line of the thread that recorded it, see lines
    is_before bool? whether the buffer was there before the profile: no record of the file
    count int64? how many buffers the row stands for, where the format gives only sums

buffers: One row per buffer: from its allocation to its deallocation.
    buffer_id int64 row number
    allocator string the allocator or memory it belongs to, empty when not named
    address uint64? its address
    allocation_id int64? the allocator's number for it
    op string? the op that requested it, null when not known
    region_type string? output, temp, persist, dynamic, ...
    data_type string? element type
    shape string? shape, such as [3, 3, 512, 512]
    requested_bytes int64? what was requested
    allocated_bytes int64? what was allocated
    start_ps int64? when it was allocated; null when it was there before the profile
    end_ps int64? when it was deallocated; null while live at the end
    start_step int64? the step of its allocation
    end_step int64? the step of its deallocation
    stream int64? the stream whose memory it is
    stack_id int64? the call stack of its allocation, see stacks
    count int64? how many buffers the row stands for, where the format gives only sums

memory_snapshots: One row per MemoryProfileSnapshot, read by the rules of the memory_profile tool.
    memory_id string the allocator or memory, empty when not named
    time_offset_ps int64 offset on its own line, not on the common clock
    activity int32 MemoryActivity: 1 allocation, 2 deallocation
    stack_reserved_bytes int64 bytes reserved outside the heap
    heap_allocated_bytes int64 bytes in use
    free_memory_bytes int64 bytes available
    fragmentation float64 0 to 1
    peak_bytes_in_use int64 lifetime peak so far
    requested_bytes int64 what was requested
    allocation_bytes int64 what was allocated
    address uint64 address of the buffer
    tf_op_name string the op, empty when not given
    step_id int64 group of the event as the runtime groups it (steps.md), -1 when it has none
    region_type string region, empty when not given
    data_type string element type, empty when not given
    tensor_shape string shape, empty when not given

tensor_outputs: One row per tensor an op put out, as a memory log records it.
    sequence int64 place of the record in the log
    time_ps int64 when it was logged
    step_id int64 the step as logged; -1 to -6 are the special ones
    op string the op
    output_index int64 which output of the op
    data_type string? element type
    shape string? shape, such as [3, 3, 512, 512]
    requested_bytes int64? what was requested
    allocated_bytes int64? what was allocated
    allocator string? the allocator
    allocation_id int64? the allocator's number for the buffer
    address uint64? address of the buffer
    has_single_reference bool whether nobody else held the buffer
    is_shared bool whether the buffer was live already: a view or a forwarded input

log_records: One row per record of a memory log, as logged.
    sequence int64 place of the record in the log
    message string the message, such as MemoryLogTensorAllocation
    time_ps int64 when it was logged
    time_ns int64? nanoseconds since the epoch; since the year or day began where no date is given
    thread int64? the thread that logged it
    step_id int64? the step as logged; -1 to -6 are the special ones
    handle string? feeds, fetches and targets of a step
    op string? kernel_name or operation
    output_index int64? which output of the op
    data_type string? element type
    shape string? shape, such as [3, 3, 512, 512]
    requested_bytes int64? what was requested
    allocated_bytes int64? what was allocated
    allocator string? the allocator as logged
    allocation_id int64? the allocator's number for the buffer
    address uint64? address of the buffer
    has_single_reference bool? whether nobody else held the buffer
    deferred bool? a deallocation that takes effect later
    completes int64? the sequence of the deferred deallocation that it is the second record of

stacks: One row per frame of a call stack.
    stack_id int64 the stack
    depth int64 0 is the innermost frame
    function string function, empty when not known
    file string source file, empty when not known
    line int64 line, 0 when not known

segments: One row per segment an allocator took from the device.
    segment_id int64 row number
    allocator string the allocator
    address uint64 address of its first byte
    total_bytes int64 its size; the sum is what the allocator has reserved
    allocated_bytes int64 bytes of blocks in use
    active_bytes int64 bytes in use or waiting for another stream
    requested_bytes int64 bytes that were requested
    stream int64 the stream whose memory it is
    segment_type string large or small
    pool string the private pool, empty for the common one
    is_expandable bool whether it can grow

blocks: One row per block or chunk of a segment or region, in address order.
    segment_id int64 the segment, or the number of the region in its report
    report_id int64? the out-of-memory report it stands in
    address uint64 address of its first byte
    bytes int64 its size
    requested_bytes int64? what was requested
    state string in_use, awaiting_free or free
    stack_id int64? the call stack of its allocation

oom_reports: One row per report of a failed allocation.
    report_id int64 row number
    time_ps int64 when, where the log says it, else 0
    allocator string the allocator that failed
    requested_bytes int64? what was requested
    rounded_bytes int64? what the allocator would have allocated
    op string? the op that requested it
    device string? the device
    data_type string? element type of the tensor
    shape string? shape of the tensor
    limit_bytes int64? the most the allocator may take
    pool_bytes int64? what it had taken from the device
    in_use_bytes int64? bytes in use
    peak_bytes int64? the allocator's lifetime peak
    free_bytes int64? free bytes in its pool
    largest_free_bytes int64? the largest free chunk
    fragmentation float64? (free - largest free) / free; null when nothing is free
    device_free_bytes int64? what was free outside its pool, where the report says it
    capacity_bytes int64? what the device has in all
    kind string? what failed, where it is no allocator's request: program, driver, library, ...
    source string? the line of the program that requested it
    message string? the text, of reports that have few numbers
    is_complete bool whether the report was there from its first to its last line

oom_parts: What else a report of a failed allocation gives in bytes: who holds the memory, what a
program needs.
    report_id int64 row of oom_reports
    part string what it is, a fixed word: process, private_pools, temporaries, padding, ...
    subject string? which one: a process, a device, a buffer
    bytes int64 how much
""")
