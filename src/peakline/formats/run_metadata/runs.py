"""Where the runs of a file lie, and how their parts are decoded.

A file holds one run (``RunMetadata`` or ``StepStats``) or several (an events file has one per
tag). Every table is read by a plan of its own with what the table needs; rows of all
tables refer to executions by one numbering, whatever else was damaged.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import cached_property

import numpy as np

from peakline import schema
from peakline.arrays import AnyArray, Int32Array, Int64Array
from peakline.formats.graph_def.source import submessages
from peakline.tables.columns import Names
from peakline.wire import Buffer, Damage, Decoded, Plan, Spans, WireTable, decode
from peakline.wire.strings import Interner


def same(*columns: AnyArray) -> Int64Array:
    """A number per row, equal where all columns are; from 0, without gaps."""
    rows = columns[0].size
    order = np.lexsort(columns[::-1])
    new = np.zeros(rows, np.bool_)
    for column in columns:
        sorted_ = column[order]
        new[1:] |= sorted_[1:] != sorted_[:-1]
    numbers = np.empty(rows, np.int64)
    numbers[order] = np.cumsum(new)
    return numbers


def place_in_group(group: AnyArray) -> Int64Array:
    """How many rows before each one have its group."""
    order = np.argsort(group, kind="stable")
    sorted_ = group[order]
    new = np.ones(group.size, np.bool_)
    new[1:] = sorted_[1:] != sorted_[:-1]
    at = np.arange(group.size, dtype=np.int64)
    place = np.empty(group.size, np.int64)
    place[order] = at - np.maximum.accumulate(np.where(new, at, 0))
    return place


DEVICES = "dev_stats"
NODES = f"{DEVICES}.node_stats"
OUTPUT = f"{NODES}.output"
TENSOR = f"{OUTPUT}.tensor_description"
BUFFER = f"{TENSOR}.allocation_description"
MEMORY = f"{NODES}.memory"
RECORDS = f"{MEMORY}.allocation_records"
STATS = f"{NODES}.memory_stats"
PERSISTENT = f"{STATS}.persistent_tensor_alloc_ids"
ON_DEVICE = f"{STATS}.device_persistent_tensor_alloc_ids"
"""Where the parts of an execution stand below StepStats: paths for plans."""

_MOST_NS = (2**63 - 1) // 1000
_COMMON = (
    f"{DEVICES}.device",
    *(
        f"{NODES}.{field}"
        for field in (
            "node_name",
            "timeline_label",
            "all_start_micros",
            "all_start_nanos",
            "all_end_rel_micros",
            "all_end_rel_nanos",
        )
    ),
)
"""What most tables are made from: decoded once for all of them."""


@dataclass(frozen=True)
class Run:
    """One traced run: the bytes of its message, and the number and name of its step.

    ``wall_time_s`` and ``event_step`` are what its event says, in a file of events.
    """

    name: str
    step_id: int
    start: int
    length: int
    wall_time_s: float | None = None
    event_step: int | None = None


@dataclass(frozen=True)
class Clock:
    """The profile's clock: zero is ``zero_ns`` nanoseconds since the epoch."""

    zero_ns: int

    def at(self, micros: AnyArray, nanos: AnyArray | None = None) -> Int64Array:
        """Picoseconds on the clock; nanoseconds count where there are some, and 0 is no time.

        Microseconds are cut from nanoseconds, so the latter are the better ones. What has no
        time stands at 0, and what is out of all range at the end of it.
        """
        when = nanoseconds(micros, nanos)
        since = np.clip(when - np.int64(self.zero_ns), -_MOST_NS, _MOST_NS) * 1000
        return np.where(when == 0, 0, since)


def nanoseconds(micros: AnyArray, nanos: AnyArray | None = None) -> Int64Array:
    """int64 nanoseconds: ``nanos``, or ``micros`` where that is 0."""
    whole = np.clip(micros.astype(np.int64), -_MOST_NS, _MOST_NS) * 1000
    return whole if nanos is None else np.where(nanos != 0, nanos, whole).astype(np.int64)


def picoseconds(micros: Int32Array, nanos: Int32Array) -> Int64Array:
    """A length of time in int64 picoseconds, saturating."""
    return np.clip(nanoseconds(micros, nanos), -_MOST_NS, _MOST_NS) * 1000


def names_of(buffer: Buffer, spans: Spans) -> Names:
    """A string column: the distinct strings once, a code per row."""
    interner = Interner()
    return Names(interner.add(buffer, spans), interner.values)


class Part(Enum):
    """A part of a run that is decoded by itself: the message, and its field in RunMetadata.

    They hold nothing but repeated fields, so a part that occurs twice need not be merged.
    """

    STEPS = "tensorflow.StepStats", 1
    COSTS = "tensorflow.CostGraphDef", 2


class Runs:
    """The runs of one file and their decoding; ``form`` says which message each is."""

    __retained__ = "buffer runs spans damage _common clock"

    OUTLINE = "outline"
    """What `damage` calls the messages of the runs themselves."""

    def __init__(self, buffer: Buffer, runs: Sequence[Run], form: str = "run_metadata") -> None:
        self.buffer = buffer
        self.runs = tuple(runs)
        self.spans = Spans(
            np.array([run.start for run in runs], np.int64),
            np.array([run.length for run in runs], np.int64),
        )
        self._is_bare = form == "step_stats"
        self.damage: dict[str, tuple[Damage, int]] = {}
        """By part, of the decoding that met the most; and where the last such part ends."""
        outline = (
            Plan(schema.shape("tensorflow.StepStats"), [])
            if self._is_bare
            else Plan(schema.shape("tensorflow.RunMetadata"), ["session_metadata"])
        )
        self._note(self.OUTLINE, decode(buffer, outline, self.spans).damage, self.spans)

    @property
    def step_ids(self) -> Int64Array:
        """The number of each run's step."""
        return np.array([run.step_id for run in self.runs], np.int64)

    def fields(self, number: int) -> tuple[Int64Array, Spans]:
        """Run and place of each field of RunMetadata of this number; one may be cut short."""
        if self._is_bare:
            none = np.zeros(0, np.int64)
            return none, Spans(none, none)
        run, spans, _ = submessages(self.buffer, self.spans.start, self.spans.length, number)
        return run, spans

    def parts(self, part: Part) -> tuple[Int64Array, Spans]:
        """Run and place of each part of this kind."""
        if self._is_bare and part is Part.STEPS:
            return np.arange(len(self.runs)), self.spans
        return self.fields(part.value[1])

    def decode(
        self, part: Part, paths: Iterable[str], containers: Sequence[str] = ()
    ) -> tuple[Decoded, Int64Array]:
        """Decode ``paths`` of all parts of this kind; with the run that each root belongs to."""
        plan = Plan(schema.shape(part.value[0]), paths, containers=("", *containers))
        run, spans = self.parts(part)
        decoded = decode(self.buffer, plan, spans)
        self._note(part.name, decoded.damage, spans)
        return decoded, run

    def _note(self, part: str, damage: Damage, spans: Spans) -> None:
        before, _ = self.damage.get(part, (Damage(), 0))
        if damage.places > before.places:
            self.damage[part] = damage, int((spans.start + spans.length).max())

    def steps(self, *paths: str) -> StepTables:
        """Decode ``paths`` below StepStats, each device entry and execution with its place."""
        return self._common if {*paths} <= {*_COMMON} else self._steps(paths)

    @cached_property
    def _common(self) -> StepTables:
        return self._steps(_COMMON)

    def _steps(self, paths: Sequence[str]) -> StepTables:
        wanted = (f"{DEVICES}.@", f"{NODES}.@span", *paths)
        return StepTables(self, *self.decode(Part.STEPS, wanted, [DEVICES]))

    @cached_property
    def places(self) -> AnyArray:
        """Where each execution begins in the file: the row is its op_run_id.

        A plan that looks deeper may meet damage for which it drops an execution; its rows are
        found here.
        """
        return self._steps(()).nodes.spans("@span").start

    @cached_property
    def clock(self) -> Clock:
        """Zero is the earliest all_start of all runs."""
        read = self.steps(f"{NODES}.all_start_micros", f"{NODES}.all_start_nanos").nodes
        return clock_of(read)


def clock_of(nodes: WireTable) -> Clock:
    """The clock that the executions' all_start columns make; rows without one do not count."""
    when = nanoseconds(nodes.array("all_start_micros"), nodes.array("all_start_nanos"))
    known = when[when != 0]
    return Clock(int(known.min()) if known.size else 0)


class StepTables:
    """Decoded parts of StepStats."""

    __retained__ = "_runs _decoded _run_of_root devices nodes op_run_ids run_of_device run_of_node"

    def __init__(self, runs: Runs, decoded: Decoded, run_of_root: Int64Array) -> None:
        self._runs, self._decoded, self._run_of_root = runs, decoded, run_of_root
        self.devices = self[DEVICES]
        self.nodes = self[NODES]

    def __getitem__(self, path: str) -> WireTable:
        return self._decoded[path]

    @cached_property
    def op_run_ids(self) -> Int64Array:
        """The op_run_id of each row of `nodes`, ascending."""
        if not self._decoded.damage:
            return np.arange(self.nodes.rows, dtype=np.int64)
        # A cut or broken part never moves where an execution begins.
        ids: AnyArray = np.searchsorted(self._runs.places, self.nodes.spans("@span").start)
        return ids.astype(np.int64)

    @cached_property
    def run_of_device(self) -> Int64Array:
        """The run (its place in the list) of each row of `devices`."""
        return self._run_of_root[self.devices.parent]

    @cached_property
    def run_of_node(self) -> Int64Array:
        """The run (its place in the list) of each row of `nodes`."""
        return self.run_of_device[self.nodes.parent]

    def device_names(self) -> Names:
        """The name of each device entry; its path must have been decoded."""
        return names_of(self._runs.buffer, self.devices.spans("device"))
