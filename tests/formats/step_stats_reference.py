"""The allocator events of one traced run, slowly and from message objects: the reference.

It follows the rules that `peakline.formats.run_metadata` documents, by other means: lists and
dictionaries of objects, one buffer after the other. Runs in which an allocator numbers its ids
anew for every execution, or in which one execution makes a buffer that another shows, are not in
its reach.
"""

import re
from collections import defaultdict
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

from peakline import schema
from peakline.formats.common.files import SourceFile
from peakline.formats.run_metadata.reader import RunMetadataReader
from peakline.tables import Profile
from reference.data_types import data_type_name


@dataclass(frozen=True, order=True)
class Event:
    """One row of ``allocator_events``, without its sequence and the ids given while reading."""

    time_ps: int
    allocator: str
    activity: str
    bytes: int
    op: str
    allocation_id: int
    address: int
    region_type: str
    data_type: str
    shape: str
    step_id: int


@dataclass
class _Buffer:
    node: int
    allocator: str
    size: int
    start: int
    end: int | None = None
    output: object | None = None
    region: str = ""


def _shape(shape):
    if shape.unknown_rank:
        return "<unknown>"
    return "[" + ", ".join("?" if dim.size < 0 else str(dim.size) for dim in shape.dim) + "]"


def _start_ns(node):
    return node.all_start_nanos or node.all_start_micros * 1000


def _end_ns(node):
    return _start_ns(node) + (node.all_end_rel_nanos or node.all_end_rel_micros * 1000)


def allocator_events(step_stats) -> list[Event]:
    """The events of one run, sorted."""
    nodes = [(device.device, node) for device in step_stats.dev_stats for node in device.node_stats]
    zero = min((_start_ns(node) for _, node in nodes if _start_ns(node)), default=0)
    tasks = {re.match(r"(/job:[^/]*/replica:[^/]*/task:[^/]*)?", d)[0] for d, n in nodes
             if n.memory or any(o.tensor_description.HasField("allocation_description")
                                for o in n.output)}  # fmt: skip

    def memory_name(number, allocator):
        task = re.match(r"(/job:[^/]*/replica:[^/]*/task:[^/]*)?", nodes[number][0])[0]
        return f"{task}/{allocator}" if len(tasks) > 1 and task else allocator

    buffers = _recorded(nodes, memory_name, zero)
    shown = defaultdict(list)
    order = sorted(range(len(nodes)), key=lambda n: (_start_ns(nodes[n][1]), n))
    for number in order:
        for output in nodes[number][1].output:
            held = output.tensor_description.allocation_description
            if held.allocation_id > 0 or held.ptr:
                key = memory_name(number, held.allocator_name), held.allocation_id, held.ptr
                shown[key].append((number, output))
    owned = _claim(buffers, shown)
    for buffer in buffers:
        if buffer.output is not None:
            buffer.region = "output"
        elif nodes[buffer.node][1].memory_stats.temp_memory_size or (
            buffer.end is not None and buffer.end <= (_end_ns(nodes[buffer.node][1]) - zero) * 1000
        ):
            buffer.region = "temp"
    events = []
    for buffer in buffers:
        for time, activity in ((buffer.start, "allocation"), (buffer.end, "deallocation")):
            if time is not None:
                events.append(_event(time, activity, buffer, nodes, 0))
    earliest = min([0, *(buffer.start for buffer in buffers)])
    names = {node.node_name for _, node in nodes}
    for key, places in shown.items():
        if key in owned:
            continue
        number, output = places[0]
        held = output.tensor_description.allocation_description
        label = re.match(r"(.*) = (.*)\((.*)\)", nodes[number][1].timeline_label)
        inputs = [i.split(":")[0] for i in label[3].split(", ") if i and i[0] != "^"]
        received = any(name not in names for name in inputs)
        start = (_start_ns(nodes[number][1]) - zero) * 1000 if received else earliest
        buffer = _Buffer(number, key[0], held.allocated_bytes, start, None, output)
        buffer.region = "output" if received else "persist"
        events.append(_event(start, "allocation", buffer, nodes, 0 if received else -1))
    for number in order:
        if "= _Arg(" in nodes[number][1].timeline_label:
            for output in nodes[number][1].output[:1]:
                held = output.tensor_description.allocation_description
                if not held.allocation_id and not held.ptr and held.requested_bytes:
                    name = memory_name(number, held.allocator_name)
                    buffer = _Buffer(number, name, held.requested_bytes, earliest, None, output)
                    buffer.region = "output"
                    events.append(_event(earliest, "allocation", buffer, nodes, -1))
    return sorted(events + _unnamed(nodes, events, memory_name, zero, earliest))


def _unnamed(nodes, events, memory_name, zero, earliest):
    """Per allocator what it had in use beyond the buffers found: parts that were freed, in rows."""
    rests = defaultdict(list)
    for number, (_, node) in enumerate(nodes):
        end = (_end_ns(node) - zero) * 1000
        for memory in node.memory:
            if memory.allocator_bytes_in_use > 0:
                name = memory_name(number, memory.allocator_name)
                live = sum(
                    event.bytes if event.activity == "allocation" else -event.bytes
                    for event in events
                    if event.allocator == name and event.time_ps <= end
                )
                rests[name].append((end, memory.allocator_bytes_in_use - live))

    def event(time, name, activity, size):
        return Event(time, name, activity, size, "(before profile)", 0, 0, "", "", "", -1)

    made = []
    for name, reports in rests.items():
        reports.sort(key=lambda one: one[0])
        levels = levels_of([max(rest, 0) for _, rest in reports])
        made.append(event(earliest, name, "allocation", levels[-1]))
        for number in range(1, len(levels)):
            size = levels[number - 1] - levels[number]
            made.append(event(earliest, name, "allocation", size))
            made.append(event(reports[number - 1][0], name, "deallocation", size))
    return [one for one in made if one.bytes]


def levels_of(rests):
    """How much of what was there before is left at each report: less than before it where no five
    later ones in a row come up to all before again.
    """
    cuts = [0]
    for number in range(1, len(rests) - 4):
        windows = [min(rests[at : at + 5]) for at in range(number, len(rests) - 4)]
        if max(windows) < min(rests[:number]):
            cuts.append(number)
    levels = []
    for begin, end in pairwise([*cuts, len(rests)]):
        least = min(rests[begin:end])
        levels += [min([least, *levels[-1:]])] * (end - begin)
    return levels


def _recorded(nodes, memory_name, zero):
    buffers = []
    for number, (_, node) in enumerate(nodes):
        for memory in node.memory:
            waiting = defaultdict(list)
            for record in memory.allocation_records:
                time = (record.alloc_micros * 1000 - zero) * 1000
                if record.alloc_bytes > 0:
                    name = memory_name(number, memory.allocator_name)
                    buffers.append(_Buffer(number, name, record.alloc_bytes, time))
                    waiting[record.alloc_bytes].append(buffers[-1])
                else:
                    waiting[-record.alloc_bytes].pop(0).end = time
    return buffers


def _claim(buffers, shown):
    groups = defaultdict(list)
    for buffer in buffers:
        groups[buffer.node, buffer.allocator, buffer.size].append(buffer)
    wanting = defaultdict(list)
    for key, places in shown.items():
        number, output = places[0]
        size = output.tensor_description.allocation_description.allocated_bytes
        wanting[number, key[0], size].append((key[1], key, output))
    owned = set()
    for group, wants in wanting.items():
        made = groups.get(group, [])
        wants.sort(key=lambda want: want[0])
        for buffer, (_, key, output) in zip(reversed(made), reversed(wants), strict=False):
            buffer.output = output
            owned.add(key)
    return owned


def _event(time, activity, buffer, nodes, step):
    number, address, kind, shape = 0, 0, "", ""
    if buffer.output is not None:
        tensor = buffer.output.tensor_description
        number = tensor.allocation_description.allocation_id
        address = tensor.allocation_description.ptr
        kind, shape = data_type_name(tensor.dtype), _shape(tensor.shape)
    name = nodes[buffer.node][1].node_name
    return Event(time, buffer.allocator, activity, buffer.size, name, number, address,
                 buffer.region, kind, shape, step)  # fmt: skip


CPU = "/job:localhost/replica:0/task:0/device:CPU:0"
ZERO = 1_700_000_000_000_000
"""The first start of an execution, in microseconds since the epoch."""


def run_metadata() -> Any:
    """An empty RunMetadata."""
    return schema.message("tensorflow.RunMetadata")()


def open_run(folder: Path, message: Any, form: str = "run_metadata") -> Profile:
    """A profile of the message, or of bytes."""
    path = folder / "run.pb"
    path.write_bytes(message if isinstance(message, bytes) else message.SerializeToString())
    return Profile(RunMetadataReader(SourceFile(str(path)), form))


def add_device(run: Any, name: str = CPU) -> Any:
    """A new device entry."""
    return run.step_stats.dev_stats.add(device=name)


def add_node(
    device: Any, name: str, start: int = 0, length: int = 10, label: str | None = None
) -> Any:
    """An execution ``start`` microseconds after `ZERO`, of ``length`` microseconds.

    ``label`` defaults to ``name = Op()``.
    """
    return device.node_stats.add(
        node_name=name,
        all_start_micros=ZERO + start,
        all_end_rel_micros=length,
        timeline_label=f"{name} = Op()" if label is None else label,
    )


def add_memory(node: Any, records: list[tuple[int, int]], allocator: str = "bfc") -> Any:
    """Allocation records: microseconds after `ZERO` and bytes."""
    memory = node.memory.add(allocator_name=allocator)
    for time, size in records:
        memory.allocation_records.add(alloc_micros=ZERO + time, alloc_bytes=size)
    return memory


def add_output(node: Any, size: int, number: int, address: int = 0, allocator: str = "bfc") -> Any:
    """An output of ``size`` bytes whose buffer has this id, at an address made from it."""
    output = node.output.add(slot=len(node.output))
    tensor = output.tensor_description
    tensor.dtype = 1
    tensor.shape.dim.add(size=size // 4)
    buffer = tensor.allocation_description
    buffer.requested_bytes = buffer.allocated_bytes = size
    buffer.allocator_name, buffer.allocation_id = allocator, number
    buffer.ptr = address or 4096 * number
    return output
