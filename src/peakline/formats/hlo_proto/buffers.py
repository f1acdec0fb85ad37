"""Tables of a program's memory: its buffer assignment and the heap that placed its temporaries."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from peakline.arrays import AnyArray, BoolArray, Int64Array
from peakline.formats.hlo_proto.shapes import Shape
from peakline.formats.hlo_proto.source import (
    ALLOCATIONS,
    ASSIGNED,
    ASSIGNMENT,
    INSTRUCTIONS,
    VALUES,
    ProgramSource,
)
from peakline.kernels.heap_trace import replay
from peakline.tables.columns import Column, Columns, Names
from peakline.wire import Decoded, WireTable

PARAMETER, OUTPUT, THREAD_LOCAL, CONSTANT, TEMPORARY = range(5)
KINDS = ("parameter", "output", "thread-local", "constant", "temporary")
"""What an allocation is for: the first that fits, in the order in which XProf looks
(``hlo_proto_to_memory_visualization_utils.cc``)."""
_HOST_SPACE = 5
"""The memory space of the host (``Layout::kHostMemorySpace`` in ``xla/layout.h``)."""
_TRACES = f"{ASSIGNMENT}.heap_simulator_traces"
_EVENTS = f"{_TRACES}.events"
_EVENT_KINDS = ("allocation", "deallocation", "share")
_MOST_BYTES = 2**62


class Assignment:
    """The buffer assignment of one program, as columns.

    Values (``LogicalBufferProto``) are those that have a place in an allocation; of a value that
    has several the last counts, as in XProf.
    """

    __retained__ = (
        "_decoded number _counts size space is_live_out is_donated kind parameter values "
        "instruction indices index_texts"
    )

    def __init__(self, source: ProgramSource) -> None:
        self._source, self._decoded = source, source.places
        allocations = self._decoded[ALLOCATIONS]
        self.number = allocations.array("index").astype(np.int64)
        # Of several with one number the last counts, as in XProf.
        self._counts = RowsByNumber(self.number).rows_of(self.number) == np.arange(self.number.size)
        size = np.clip(allocations.array("size").astype(np.int64), 0, _MOST_BYTES)
        self.size = np.where(self._counts, size, 0)
        self.space = allocations.array("color").astype(np.int64)
        self.is_live_out = flag_of(allocations, "maybe_live_out")
        self.kind = kinds_of(allocations)
        aliased = flag_of(allocations, "is_parameter_aliased_with_output")
        self.is_donated = (self.kind == PARAMETER) & aliased
        self.parameter = allocations.array("parameter_number").astype(np.int64)

    def sums(self) -> dict[str, int]:
        """Bytes of the allocations: what XLA's ``CompiledMemoryStats`` says of the device's memory.

        A parameter that an output takes over counts as an argument, as an output and as an alias
        (``PopulateBufferStatsFromAllocations`` in ``xla/pjrt/pjrt_executable.cc``).
        """
        on_device = self.space != _HOST_SPACE
        parts = {
            "argument": on_device & (self.kind == PARAMETER),
            "output": on_device & self.is_live_out,
            "alias": on_device & self.is_donated,
            "temporary": on_device & (self.kind == TEMPORARY),
            "constant": on_device & (self.kind == CONSTANT),
            "thread_local": on_device & (self.kind == THREAD_LOCAL),
            "host": ~on_device & (self.kind != THREAD_LOCAL),
        }
        return {f"{name}_bytes": total_bytes(self.size[rows]) for name, rows in parts.items()}

    def buffers(self) -> Columns:
        """Table ``hlo_buffers``."""
        assigned = self._decoded[ASSIGNED]
        row = self.values.rows_of(assigned.array("logical_buffer_id"))
        at = np.flatnonzero((row >= 0) & self._counts[assigned.parent])
        if (np.diff(self.number) < 0).any():
            at = at[np.argsort(self.number[assigned.parent[at]], kind="stable")]
        at = at[::-1][np.unique(row[at[::-1]], return_index=True)[1]]
        at.sort()
        self._source.losses["hlo_reference", "values"] = int((row < 0).sum())
        row, of = row[at], assigned.parent[at].astype(np.int64)
        instruction = self.instruction[row]
        shape, sizes = self._shapes(row, instruction)
        index = self.index_texts.take(row)
        data: dict[str, Column] = {
            "buffer_id": np.arange(at.size),
            "native_id": self.values.number[row],
            "allocation": self.number[of],
            "offset_bytes": assigned.array("offset").astype(np.int64)[at],
            "bytes": np.clip(self.value_bytes.astype(np.int64)[row], 0, _MOST_BYTES),
            "unpadded_bytes": sizes,
            "allocation_bytes": self.size[of],
            "memory_space": self.space[of],
            "kind": Names(self.kind[of].astype(np.int32), KINDS),
            "is_live_out": self.is_live_out[of],
            "is_donated": self.is_donated[of],
            "parameter_number": self.parameter[of],
            "instruction_id": instruction,
            "shape_index": index,
            "shape": shape,
        }
        valid = {
            "unpadded_bytes": shape.codes >= 0,
            "parameter_number": self.kind[of] == PARAMETER,
            "instruction_id": instruction >= 0,
        }
        return Columns(data, valid)

    # Values.

    @cached_property
    def values(self) -> RowsByNumber:
        """The values by their number."""
        return RowsByNumber(self._decoded[VALUES].array("id").astype(np.int64))

    @property
    def value_bytes(self) -> AnyArray:
        """The size that the file says of each value."""
        return self._decoded[VALUES].array("size")

    @cached_property
    def instruction(self) -> Int64Array:
        """The instruction that defines each value, -1 where it names none.

        It is named by its number, in files of before 2022 by its name.
        """
        places = self._decoded[f"{VALUES}.defined_at"]
        result = np.full(self.values.number.size, -1, np.int64)
        ids = places.array("instruction_id").astype(np.int64)
        rows = self._source.ids.anywhere(ids)
        named = (rows < 0) & (places.spans("instruction_name").length > 0)
        if named.any():
            listed = self._source.decode(f"{INSTRUCTIONS}.name")[INSTRUCTIONS].spans("name")
            known = dict(zip(reversed(listed.texts(self._source.buffer)),
                             range(len(listed) - 1, -1, -1), strict=True))  # fmt: skip
            names = places.spans("instruction_name").take(named).texts(self._source.buffer)
            rows[named] = [known.get(name, -1) for name in names]
        result[places.parent] = rows
        return result

    @cached_property
    def indices(self) -> dict[int, tuple[int, ...]]:
        """The place in its instruction's result of each value that is not the whole of it."""
        return indices_of(self._decoded)

    @cached_property
    def index_texts(self) -> Names:
        """The same as text, per value."""
        texts = Names.encode(["", *(index_text(index) for index in self.indices.values())])
        codes = np.zeros(self.values.number.size, np.int32)
        codes[list(self.indices)] = texts.codes[1:]
        return Names(codes, texts.values)

    def _shapes(self, row: Int64Array, instruction: Int64Array) -> tuple[Names, Int64Array]:
        """Text and bytes of each value's shape."""
        known = self._source.strings.shapes
        of = np.full(row.size, -1, np.int64)
        defined = instruction >= 0
        of[defined] = self._source.shapes[instruction[defined]]
        places: list[Shape | None] = list(known.shapes)
        code: dict[tuple[int, tuple[int, ...]], int] = {}
        inside = np.isin(row, np.fromiter(self.indices, np.int64, len(self.indices)))
        for at in np.flatnonzero(inside & defined).tolist():
            key = int(of[at]), self.indices[int(row[at])]
            if key not in code:
                code[key] = len(places)
                places.append(known.shapes[key[0]].at(key[1]))
            of[at] = code[key]
        texts = Names.encode([None if shape is None else shape.text for shape in places])
        sizes = np.array([*(0 if shape is None else shape.bytes for shape in places), 0], np.int64)
        codes = np.append(texts.codes, np.int32(-1))[of]
        return Names(codes, texts.values), sizes[of]


def total_bytes(sizes: Int64Array) -> int:
    """The sum of sizes; no sum counts for more than 2^62 either."""
    total: int = sum(sizes.tolist())
    return min(total, _MOST_BYTES)


def index_text(index: tuple[int, ...]) -> str:
    """A place in a tuple as XLA writes it: ``{1,0}``, empty for the whole."""
    return f"{{{','.join(map(str, index))}}}" if index else ""


class RowsByNumber:
    """Rows by number; of two with one number the last counts."""

    __retained__ = "number _order _sorted"

    def __init__(self, number: Int64Array) -> None:
        self.number = number
        self._order = np.argsort(number, kind="stable")
        self._sorted = number[self._order]

    def rows_of(self, wanted: AnyArray) -> Int64Array:
        """The row of each number, -1 where there is none."""
        if not self.number.size:
            return np.full(wanted.size, -1, np.int64)
        at = np.maximum(np.searchsorted(self._sorted, wanted, side="right") - 1, 0)
        return np.where(self._sorted[at] == wanted, self._order[at], -1)


def read_heap_events(source: ProgramSource) -> Columns:
    """Table ``hlo_heap_events`` of one program."""
    fields = "kind buffer_id computation_name instruction_name share_with_canonical_id"
    events = source.decode(*(f"{_EVENTS}.{name}" for name in fields.split()))[_EVENTS]
    assignment = source.once(Assignment)
    numbers = assignment.values
    trace = events.parent.astype(np.int64)
    given = events.array("kind")
    kind = np.where((given >= 0) & (given < len(_EVENT_KINDS)), given, 3).astype(np.uint8)
    buffer = events.array("buffer_id").astype(np.int64)
    shared = events.array("share_with_canonical_id").astype(np.int64)
    live, strange = live_bytes(
        trace, kind, numbers.rows_of(buffer), numbers.rows_of(shared), assignment.value_bytes
    )
    source.losses["hlo_heap", "events"] = strange
    return Columns(
        {
            "trace": trace,
            "sequence": np.arange(events.rows) - np.searchsorted(trace, trace),
            "kind": Names(np.where(kind < 3, kind.astype(np.int32), -1), _EVENT_KINDS),
            "buffer": buffer,
            "shared_with": shared,
            "computation": source.names(
                "computation", events.spans("computation_name"), empty=False
            ),
            "instruction": source.names("name", events.spans("instruction_name"), empty=False),
            "live_bytes": live,
        },
        {"shared_with": kind == 2},
    )


def live_bytes(
    trace: Int64Array, kind: AnyArray, value: Int64Array, shared: Int64Array, size: AnyArray
) -> tuple[Int64Array, int]:
    """What is live after each event of each heap, in bytes, and how many events fit none before.

    ``value`` and ``shared`` are rows of ``size``, -1 for none; ``kind`` is 3 for what is none. Each
    heap begins empty.
    """
    value = np.where(kind < len(_EVENT_KINDS), value, -1)
    most = _MOST_BYTES // max(kind.size, 1)
    sizes = np.append(np.clip(size.astype(np.int64), 0, most), 0)
    live = np.zeros(kind.size, np.int64)
    strange = 0
    begins = np.flatnonzero(np.append(True, trace[1:] != trace[:-1])[: trace.size])
    for begin, end in zip(
        begins.tolist(), np.append(begins[1:], trace.size).tolist(), strict=False
    ):
        some, code = np.unique(
            np.concatenate([[-1], value[begin:end], shared[begin:end]]), return_inverse=True
        )
        uses, holder = np.zeros(some.size, np.int64), np.arange(some.size)
        # The first one is that of nothing.
        code = code[1:].reshape(2, -1) - 1
        strange += replay(
            np.ascontiguousarray(kind[begin:end]), code[0], code[1], sizes[some[1:]],
            uses, holder, live[begin:end],
        )  # fmt: skip
    return live, strange


def flag_of(allocations: WireTable, name: str) -> BoolArray:
    """A flag of each allocation."""
    return allocations.array(name).astype(np.bool_)


def kinds_of(allocations: WireTable) -> Int64Array:
    """What each allocation is for, a place in `KINDS`."""
    names = "is_entry_computation_parameter", "maybe_live_out", "is_thread_local", "is_constant"
    flags = [flag_of(allocations, name) for name in names]
    return np.select(flags, [PARAMETER, OUTPUT, THREAD_LOCAL, CONSTANT], TEMPORARY)


def indices_of(decoded: Decoded) -> dict[int, tuple[int, ...]]:
    """The place in its instruction's result of each value that is not the whole of it, by row."""
    places = decoded[f"{VALUES}.defined_at"]
    listed = decoded[f"{VALUES}.defined_at.shape_index"]
    result: dict[int, list[int]] = {}
    rows = places.parent[listed.parent].tolist()
    for row, place in zip(rows, listed.array("value").tolist(), strict=True):
        result.setdefault(row, []).append(place)
    return {row: tuple(index) for row, index in result.items()}
