"""Tables of compiled programs: what XLA made of a function (``xla/service/hlo.proto``)."""

from __future__ import annotations

from peakline.tables.definition import parse_tables

DEFINITIONS = parse_tables("""
hlo_modules: One row per program that XLA compiled (an HLO module).
Sizes are those of its buffer assignment: of all memory spaces but the host's, null without one.
    module_id int64 row number
    name string name of the module, such as jit_train_step
    program_id uint64? the number by which events name the program, where the profile gives it
    backend string? cpu, gpu or tpu, where the file says so
    entry string name of the computation that the program begins with
    computations int64 number of computations
    instructions int64 number of instructions in all of them
    is_scheduled bool whether the order is given in which the instructions run
    peak_bytes int64? the most main memory (space 0) that it needs at one time
    peak_found_by string? heap trace, no temporaries, schedule (computed) or allocations (at most)
    argument_bytes int64? allocations of the parameters of the entry computation
    output_bytes int64? allocations of what the program returns, those that are parameters included
    alias_bytes int64? of the parameters' allocations, those that an output takes over (donated)
    temporary_bytes int64? allocations that only the program itself uses
    constant_bytes int64? allocations of constants
    thread_local_bytes int64? allocations of single threads, which are no part of the peak
    generated_code_bytes int64? size of the generated code, where its instructions give it
    host_bytes int64? allocations in the host's memory (memory space 5)
    flops float64? operations of one run; of a loop those of one turn, as XLA counts them
    transcendentals float64? exponentials, logarithms, roots and the like of one run
    bytes_accessed float64? bytes that one run reads and writes
    runs int64? how often the profile saw it run, on all devices; null where it records no runs
    run_ps int64? time of these runs

hlo_computations: One row per computation of a program.
    computation_id int64 row number
    module_id int64 the program
    native_id int64 the number the program itself gives it
    name string its name
    is_entry bool whether the program begins with it
    is_fusion bool whether it is the inside of a fusion
    instructions int64 number of instructions
    root_id int64? the instruction that is its result
    is_scheduled bool whether the order is given in which its instructions run

hlo_instructions: One row per instruction of a program, in the order of the file.
    instruction_id int64 row number
    module_id int64 the program
    computation_id int64 the computation it stands in
    native_id int64 the number the program itself gives it
    name string its name, which events bear
    opcode string what it is, such as fusion or dot
    category string the kind of work, in XLA's words
    fusion_kind string? of a fusion: kLoop, kInput, kOutput or kCustom
    called string? names of the computations that it calls, separated by commas
    target string? of a custom call what is called
    op_name string? what the framework calls it: its scopes and its op
    op_type string? the framework's op
    source_file string? the file of the line of the user's program that it comes from
    source_line int64? that line
    stack_id int64? its call stack in hlo_frames, where the program holds it
    shape string type and dimensions of the result, such as f32[8,16]
    layout string? how the result lies in memory, such as {1,0:T(8,128)}; null for tuples
    bytes int64 size of the result without padding; of a tuple that of its table of pointers
    parameter_number int64? of a parameter its place
    tuple_index int64? of a get-tuple-element which part it gets
    is_root bool whether it is its computation's result
    schedule_index int64? its place in the order in which its computation runs, from 0 on
    flops float64? operations of one execution
    transcendentals float64? exponentials, logarithms, roots and the like of one execution
    bytes_accessed float64? bytes that one execution reads and writes

hlo_operands: One row per operand of an instruction, and per instruction that must run before it.
    instruction_id int64 the instruction
    place int64 the operand's number, from 0 on
    operand_id int64 the instruction whose result it is
    is_control bool whether it only orders

hlo_frames: One row per frame of the call stacks that instructions come from.
    stack_id int64 the stack
    depth int64 0 is the innermost frame
    function string function, empty when not known
    file string source file, empty when not known
    line int64 line, 0 when not known

hlo_calls: One row per computation that an instruction calls.
    instruction_id int64 the instruction
    place int64 number of the call, from 0 on; of a loop 0 is the body and 1 the condition
    computation_id int64 the computation

hlo_buffers: One row per value that has a place in memory, by the buffer assignment of its program.
    buffer_id int64 row number
    module_id int64 the program
    native_id int64 the number the program itself gives it
    allocation int64 number of the allocation it lies in
    offset_bytes int64 where in the allocation it begins
    bytes int64 its size, padding included
    unpadded_bytes int64? its size without padding, by its shape
    allocation_bytes int64 size of the allocation
    memory_space int64 where it lies, such as 0 (the device's main memory) or 5 (the host)
    kind string parameter, output, thread-local, constant or temporary: what the allocation is
    is_live_out bool whether the allocation may hold a result of the program
    is_donated bool whether the allocation is a parameter that an output takes over
    parameter_number int64? of a parameter's allocation its number
    instruction_id int64? the instruction that defines the value
    shape_index string where in the instruction's result, such as {1,0}; empty for all of it
    shape string? type and dimensions of the value
    start int64? place of the first instruction that needs it, in the order of the whole program
    end int64? place of the last one
    is_live_at_peak bool? whether it holds memory when the program needs most

hlo_heap_events: One row per event of the simulated heap by which temporaries were placed.
    module_id int64 the program
    trace int64 number of the heap in its program
    sequence int64 number of the event in its heap
    kind string? allocation, deallocation or share; null for what is none of them
    buffer int64 native_id of the value
    shared_with int64? of a share: native_id of the value whose memory it uses
    computation string? the computation
    instruction string? the instruction
    live_bytes int64 bytes in use after it
""")
PROGRAM_TABLES = frozenset(definition.name for definition in DEFINITIONS)
"""What any source with programs can fill."""
