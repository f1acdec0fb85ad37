"""Compiled programs made by hand, with the places of their values."""

from math import prod

from tests.timing.programs import Maker, f32

PARAMETER, OUTPUT, TEMPORARY = "parameter", "output", "temporary"


def value(kind, op_name, sizes, line=None, file="/home/me/model.py"):
    """A value of a program: what it is, its op, its shape, the line that made it."""
    return kind, op_name, tuple(sizes), file if line else "", line


def program(name, *values, number=1):
    """A serialized HloProto whose values of float32 are all live at the end."""
    maker = Maker(name)
    maker.proto.hlo_module.id = number
    main = maker.computation("main")
    assignment = maker.proto.buffer_assignment
    trace = assignment.heap_simulator_traces.add()
    heap, parameters = None, 0
    made = []
    for kind, op_name, sizes, file, line in values:
        parameter = {"parameter_number": parameters} if kind == PARAMETER else {}
        parameters += kind == PARAMETER
        one = maker.add(main, "parameter" if parameter else "negate", f32(*sizes), **parameter)
        one.metadata.op_name = op_name
        if line:
            one.metadata.source_file, one.metadata.source_line = file, line
        size = 4 * prod(sizes)
        buffer = assignment.logical_buffers.add(id=len(made), size=size)
        buffer.defined_at.instruction_id = one.id
        offset = 0
        if kind == TEMPORARY:
            if heap is None:
                heap = assignment.buffer_allocations.add(index=len(made))
            offset = heap.size
            heap.size += size
            place = heap
            trace.events.add(kind=0, buffer_id=buffer.id, computation_name="main",
                             instruction_name=one.name)  # fmt: skip
        else:
            place = assignment.buffer_allocations.add(
                index=len(made), size=size, maybe_live_out=kind == OUTPUT,
                is_entry_computation_parameter=kind == PARAMETER, **parameter,
            )  # fmt: skip
        place.assigned.add(logical_buffer_id=buffer.id, offset=offset, size=size)
        made.append(one)
    order = maker.proto.hlo_module.schedule.sequences[main.id]
    order.instruction_ids.extend(one.id for one in made)
    return maker.data


def dump(folder, *programs):
    """A directory of dumps with these programs; gives its path."""
    from peakline.schema import HloProto

    folder.mkdir(parents=True, exist_ok=True)
    for data in programs:
        module = HloProto.FromString(data).hlo_module
        name = f"module_{module.id:04}.{module.name}.cpu_after_optimizations.hlo.pb"
        (folder / name).write_bytes(data)
    return folder
