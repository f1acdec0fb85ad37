"""A profile of memory from JAX's heaps and its compiled programs, where no allocator reports.

XLA describes a program: what running it takes beside what is live already.
"""

from __future__ import annotations

import gzip
import tempfile
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from peakline.errors import InputError
from peakline.formats.common.files import SourceFile
from peakline.formats.pprof.reader import PprofReader
from peakline.schema import (
    BufferAllocationProto,
    HloInstructionProto,
    HloProto,
    LogicalBufferProto,
    XSpace,
)
from peakline.tables.reader import Warnings

_DATA_TYPES = {
    1: 10, 2: 6, 3: 5, 4: 3, 5: 9, 6: 4, 7: 17, 8: 22, 9: 23, 10: 19, 11: 1, 12: 2, 15: 8, 16: 14,
    18: 18,
}  # fmt: skip
"""PrimitiveType of XLA to DataType of TensorFlow, where both have the type."""


@dataclass(frozen=True)
class Piece:
    """Part of a program's temporary memory: the largest buffer that lies there at any time.

    ``data_type`` is a number of TensorFlow's DataType, 0 where it is not known; ``shape`` is
    spelled ``[3,4]``, empty where it is not known.
    """

    op: str
    data_type: int
    shape: str
    bytes: int


@dataclass(frozen=True)
class Program:
    """A compiled program. ``held_bytes`` are its arguments and results, each once,
    ``result_bytes`` the results that have memory of their own; ``pieces`` together are the
    temporary memory that it takes while it runs.
    """

    name: str
    held_bytes: int
    result_bytes: int
    pieces: tuple[Piece, ...]


def read_program(data: bytes) -> Program | None:
    """The program of a serialized HloProto; None without an assignment of its buffers.

    Raises ``google.protobuf.message.DecodeError`` for other bytes.
    """
    proto = HloProto.FromString(data)
    if not proto.HasField("buffer_assignment"):
        return None
    module = proto.hlo_module
    instructions = {i.id: i for c in module.computations for i in c.instructions}
    buffers = {buffer.id: buffer for buffer in proto.buffer_assignment.logical_buffers}
    held = made = 0
    pieces: list[Piece] = []
    for allocation in proto.buffer_assignment.buffer_allocations:
        if allocation.is_thread_local or allocation.is_constant:
            continue
        if allocation.is_entry_computation_parameter or allocation.maybe_live_out:
            held += allocation.size
            made += 0 if allocation.is_entry_computation_parameter else allocation.size
        else:
            pieces += _pieces(allocation, buffers, instructions, module.name)
    return Program(module.name, held, made, tuple(pieces))


def _pieces(
    allocation: BufferAllocationProto,
    buffers: dict[int, LogicalBufferProto],
    instructions: dict[int, HloInstructionProto],
    module: str,
) -> list[Piece]:
    """The pieces of one allocation: the largest buffers first, each where none lies yet."""
    taken: list[tuple[int, int]] = []
    pieces = []
    for part in sorted(allocation.assigned, key=lambda part: (-part.size, part.offset)):
        start, end = part.offset, part.offset + part.size
        buffer = buffers.get(part.logical_buffer_id)
        if buffer is None or any(start < last and first < end for first, last in taken):
            continue
        taken.append((start, end))
        place = buffer.defined_at
        made_by = instructions.get(place.instruction_id)
        if made_by is None:
            pieces.append(Piece(module, 0, "", part.size))
            continue
        op = made_by.metadata.op_name or f"{module}/{made_by.name}"
        # A part of a tuple has a shape of its own, which is not looked for.
        whole = not place.shape_index and made_by.shape.element_type in _DATA_TYPES
        kind = _DATA_TYPES[made_by.shape.element_type] if whole else 0
        shape = f"[{','.join(map(str, made_by.shape.dimensions))}]" if whole else ""
        pieces.append(Piece(op, kind, shape, part.size))
    rest = allocation.size - sum(piece.bytes for piece in pieces)
    if rest > 0:
        pieces.append(Piece(f"{module} (other temporaries)", 0, "", rest))
    return pieces


MOMENT = "peakline_moment_"
"""The annotation around each reading of the heap, its number behind."""

_ALLOCATION, _DEALLOCATION = "MemoryAllocation", "MemoryDeallocation"


@dataclass(frozen=True)
class _Kind:
    """Buffers that are alike; ``data_type`` and ``shape`` as in `Piece`."""

    allocator: str
    op: str
    region: str
    bytes: int
    data_type: int = 0
    shape: str = ""


@dataclass(frozen=True, order=True)
class _Runs:
    """The runs of a program on a device between two moments: when the first began, how many."""

    time_ps: int
    device: int
    program: int
    count: int


def add_heaps(space: bytes, heaps: list[bytes]) -> tuple[bytes, Mapping[str, int]]:
    """The XSpace ``space`` with allocator events made from ``heaps`` (pprof, one per moment).

    What was there before the first step is that of a step of its own, ``setup``. One run of each
    program between two moments is shown. Beside it, by allocator, the most bytes
    that can have been in use if nothing was copied to the device and dropped again between two
    moments. Where an allocator reported, ``space`` is unchanged, and the other empty. Raises
    InputError where the moments cannot be found.
    """
    result = XSpace.FromString(space)
    if any(_reports(plane) for plane in result.planes):
        return space, {}
    plane, line, moments = _moments(result, len(heaps))
    bounds = _step_bounds(plane, line)
    programs = _programs(result)
    runs = _runs(result, programs, [start for start, _ in moments])
    writer = _Writer(plane, line)
    if bounds:
        writer.add_step("setup", moments[0][0] - 1, min(bounds))
    states = _read_heaps(heaps)
    platform = next((kind.allocator for state in states for kind in state), "cpu:0").split(":")[0]
    at_most: Counter[str] = Counter()
    before: Counter[_Kind] = Counter()
    for number, (state, (start, end)) in enumerate(zip(states, moments, strict=True)):
        at_most |= _most(before, runs.get(number, ()), programs, platform)
        # What is gone after the test's body went with its variables.
        gone = before - state if number + 1 < len(moments) else Counter[_Kind]()
        for kind, count in sorted(gone.items(), key=repr):
            writer.free(kind, count)
        for run in runs.get(number, ()):
            writer.run(programs[run.program], f"{platform}:{run.device}", run.time_ps)
        writer.now = max(writer.now, start)
        for kind, count in sorted((state - before).items(), key=repr):
            writer.allocate(kind, count)
        # What is freed from here on is freed after the step that ends, or in the one that begins.
        next_start = moments[number + 1][0] if number + 1 < len(moments) else end
        after = [bound for bound in bounds if end <= bound < next_start]
        writer.now = max(writer.now, end, *after)
        before = state
    at_most |= _most(before, (), programs, platform)
    writer.finish()
    return bytes(result.SerializeToString()), dict(at_most)


def _most(
    before: Counter[_Kind], runs: Iterable[_Runs], programs: dict[int, Program], platform: str
) -> Counter[str]:
    """What was live, all that the programs made since, and the temporaries of each once."""
    most: Counter[str] = Counter()
    for kind, count in before.items():
        most[kind.allocator] += kind.bytes * count
    for run in runs:
        program = programs[run.program]
        size = program.result_bytes * run.count + sum(piece.bytes for piece in program.pieces)
        most[f"{platform}:{run.device}"] += size
    return most


class _Writer:
    """Adds events to a line, in order of time, and knows what lives."""

    def __init__(self, plane: Any, line: Any) -> None:
        self._plane, self._line = plane, line
        self._base = line.timestamp_ns * 1000
        self._events = {metadata.name: key for key, metadata in plane.event_metadata.items()}
        self._stats = {metadata.name: key for key, metadata in plane.stat_metadata.items()}
        self._live: dict[_Kind, list[int]] = {}
        self._used: Counter[str] = Counter()
        self._next = 0
        self.now = 0

    def allocate(self, kind: _Kind, count: int = 1) -> None:
        """``count`` buffers begin."""
        for _ in range(count):
            self._next += 1
            self._live.setdefault(kind, []).append(self._next)
            self._used[kind.allocator] += kind.bytes
            self._write(_ALLOCATION, kind, self._next)

    def free(self, kind: _Kind, count: int = 1) -> None:
        """The oldest ``count`` buffers of a kind end: which of them do is not known."""
        for _ in range(count):
            place = self._live[kind].pop(0)
            self._used[kind.allocator] -= kind.bytes
            self._write(_DEALLOCATION, kind, place)

    def run(self, program: Program, allocator: str, time_ps: int) -> None:
        """A program's buffers begin and end."""
        self.now = max(self.now, time_ps)
        held = program.held_bytes - self._used[allocator]
        kinds = [
            _Kind(allocator, piece.op, "temp", piece.bytes, piece.data_type, piece.shape)
            for piece in program.pieces
        ]
        if held > 0:
            op = f"{program.name} (arguments and results)"
            kinds.append(_Kind(allocator, op, "buffer", held))
        for kind in kinds:
            self.allocate(kind)
        for kind in kinds:
            self.free(kind)

    def add_step(self, name: str, start_ps: int, end_ps: int) -> None:
        """A step, number 0."""
        event = self._line.events.add(
            metadata_id=self._event(name),
            offset_ps=start_ps - self._base,
            duration_ps=max(end_ps - start_ps - 1, 0),
        )
        event.stats.add(metadata_id=self._stat("_r"), int64_value=1)
        event.stats.add(metadata_id=self._stat("step_num"), int64_value=0)

    def finish(self) -> None:
        """Put the line's events in order of time."""
        events = sorted(self._line.events, key=lambda e: (e.offset_ps, -e.duration_ps))
        copies = [type(event).FromString(event.SerializeToString()) for event in events]
        del self._line.events[:]
        self._line.events.extend(copies)

    def _write(self, name: str, kind: _Kind, place: int) -> None:
        self.now += 1
        event = self._line.events.add(
            metadata_id=self._event(name), offset_ps=self.now - self._base
        )
        texts = {"allocator_name": kind.allocator, "tf_op": kind.op, "region_type": kind.region}
        if kind.shape:
            texts["shape"] = kind.shape
        for stat, text in texts.items():
            event.stats.add(metadata_id=self._stat(stat), ref_value=self._stat(text))
        for stat, number in (
            ("bytes_reserved", 0),
            ("bytes_allocated", self._used[kind.allocator]),
            ("requested_bytes", kind.bytes),
            ("allocation_bytes", kind.bytes),
            # Not an address, but as good as one: each buffer has its own.
            ("addr", place),
            ("data_type", kind.data_type),
        ):
            event.stats.add(metadata_id=self._stat(stat), int64_value=number)

    def _event(self, name: str) -> int:
        return _number(self._events, name, self._plane.event_metadata)

    def _stat(self, name: str) -> int:
        return _number(self._stats, name, self._plane.stat_metadata)


def _number(known: dict[str, int], name: str, metadata: Any) -> int:
    """The number of a name in the plane's table, which gets it where it lacks it."""
    if name not in known:
        known[name] = max(known.values(), default=0) + 1
        metadata[known[name]].id = known[name]
        metadata[known[name]].name = name
    return known[name]


def _reports(plane: Any) -> bool:
    known = {key for key, m in plane.event_metadata.items() if m.name == _ALLOCATION}
    return any(event.metadata_id in known for line in plane.lines for event in line.events)


def _moments(space: Any, count: int) -> tuple[Any, Any, list[tuple[int, int]]]:
    """Where the moments are, and when each begins and ends."""
    for plane in space.planes:
        names = plane.event_metadata
        for line in plane.lines:
            times = {}
            for event in line.events:
                name = names[event.metadata_id].name
                if name.startswith(MOMENT):
                    times[int(name.removeprefix(MOMENT))] = _bounds(line, event)
            if times:
                if len(times) != count:
                    raise InputError(
                        f"the profile shows {len(times)} of {count} readings of memory"
                    )
                return plane, line, [times[number] for number in range(count)]
    raise InputError("the profile shows no reading of the memory")


def _step_bounds(plane: Any, line: Any) -> list[int]:
    """When the steps of the line begin and end."""
    names = _stat_names(plane)
    steps = (event for event in line.events if "step_num" in _stats_of(event, names))
    return [bound for event in steps for bound in _bounds(line, event)]


def _bounds(line: Any, event: Any) -> tuple[int, int]:
    """When an event begins and ends, in ps."""
    start = line.timestamp_ns * 1000 + event.offset_ps
    return start, start + event.duration_ps


def _stat_names(plane: Any) -> dict[int, str]:
    return {key: metadata.name for key, metadata in plane.stat_metadata.items()}


def _stats_of(owner: Any, names: Mapping[int, str]) -> dict[str | None, Any]:
    """The stats of an event, or of its metadata, by name."""
    return {names.get(stat.metadata_id): stat for stat in owner.stats}


def _programs(space: Any) -> dict[int, Program]:
    """The compiled programs that the profile describes, by id."""
    from google.protobuf.message import DecodeError

    programs = {}
    for plane in space.planes:
        names = _stat_names(plane)
        for metadata in plane.event_metadata.values():
            stats = _stats_of(metadata, names)
            if "Hlo Proto" not in stats or "program_id" not in stats:
                continue
            try:
                program = read_program(stats["Hlo Proto"].bytes_value)
            except DecodeError:
                raise InputError("a compiled program in the profile cannot be read") from None
            if program is not None:
                programs[_whole(stats["program_id"])] = program
    return programs


def _runs(space: Any, programs: Iterable[int], moments: list[int]) -> dict[int, list[_Runs]]:
    """By the number of the moment that follows, the programs that ran before it."""
    known = frozenset(programs)
    result: dict[tuple[int, int, int], dict[int, int]] = {}
    for plane in space.planes:
        names = _stat_names(plane)
        for line in plane.lines:
            for event in line.events:
                stats = _stats_of(event, names)
                if "program_id" not in stats or _whole(stats["program_id"]) not in known:
                    continue
                time, _ = _bounds(line, event)
                ordinal = _whole(stats["device_ordinal"]) if "device_ordinal" in stats else 0
                one = _whole(stats["run_id"]) if "run_id" in stats else time
                key = (bisect_right(moments, time), ordinal, _whole(stats["program_id"]))
                times = result.setdefault(key, {})
                times[one] = min(times.get(one, time), time)
    runs: dict[int, list[_Runs]] = {}
    for (number, device, program), times in result.items():
        runs.setdefault(number, []).append(_Runs(min(times.values()), device, program, len(times)))
    return {number: sorted(some) for number, some in runs.items()}


def _whole(stat: Any) -> int:
    return int(getattr(stat, stat.WhichOneof("value")))


def _read_heaps(heaps: list[bytes]) -> list[Counter[_Kind]]:
    """The buffers at each moment: how many there are of each kind."""
    states: list[Counter[_Kind]] = []
    with tempfile.TemporaryDirectory(prefix="peakline-") as folder:
        for number, heap in enumerate(heaps):
            file = Path(folder) / str(number)
            file.write_bytes(gzip.decompress(heap))
            reader = PprofReader(SourceFile(str(file)))
            buffers = reader.read("buffers", Warnings())
            state: Counter[_Kind] = Counter()
            columns = [buffers.names(name).to_list() for name in ("allocator", "op", "region_type")]
            sizes, counts = buffers.array("allocated_bytes"), buffers.array("count")
            for device, op, region, size, count in zip(
                *columns, sizes.tolist(), counts.tolist(), strict=True
            ):
                # Compiled programs are in the heap too, with a size that is not the device's.
                if region == "buffer" and count and size:
                    state[_Kind(device or "", op or "(unknown)", region, size // count)] += count
            reader.close()
            states.append(state)
    return states
