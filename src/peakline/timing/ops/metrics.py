"""What is known of each op of a host or a device, and how that of several is put together.

The shape and the rules of combination are those of XProf's ``OpMetricsDb``
(``xprof/convert/op_metrics_db_combiner.cc`` in openxla/xprof).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np

from peakline.arrays import AnyArray
from peakline.tables.joins import summed
from peakline.timing.ops.names import IDLE, parse_op_name
from peakline.timing.programs.device import Key

_MODULUS = 2**64
_UNKNOWN = "Unknown"
HBM, CMEM, VMEM = 1, 2, 3
"""Memory spaces of a device (``MemoryAccessed`` in XProf's ``op_metrics.proto``)."""
READ, WRITE = 1, 2
Place = tuple[int, int]
"""A memory space, and whether it is read or written."""


class Source(NamedTuple):
    """The line of a program that an op was made for, and the calls that led there, one a line."""

    file: str = ""
    line: int = 0
    stack: str = ""


@dataclass(frozen=True, slots=True)
class OpFacts:
    """What is the same for all runs of a device's op.

    ``long_name`` is the text of the instruction, ``core`` the kind of a TPU's core. ``children``
    are the parts of a fusion, or what a SparseCore did meanwhile in ``children_ps``; None where
    nothing is said of parts.
    """

    category: str = ""
    long_name: str = ""
    deduplicated_name: str = ""
    source: Source | None = None
    core: str = ""
    children: tuple[OpMetrics, ...] | None = None
    children_ps: int = 0

    def filled(self, other: OpFacts) -> OpFacts:
        """What is empty here is taken from ``other``."""
        if self is other or self == other:
            return self
        parts, parts_ps = self.children, self.children_ps
        if parts is None:
            parts, parts_ps = other.children, other.children_ps
        return OpFacts(
            self.category or other.category, self.long_name or other.long_name,
            self.deduplicated_name or other.deduplicated_name,
            other.source if self.source is None else self.source, self.core or other.core,
            parts, parts_ps,
        )  # fmt: skip


_NO_FACTS = OpFacts()
_IDLE_FACTS = OpFacts(category=IDLE)


@dataclass(slots=True)
class OpMetrics:
    """One op: times in ps, ``flops`` and ``bytes_accessed`` of all its runs together.

    ``flops`` are as the device does them, ``model_flops`` as the model needs them. On a device
    ``provenance`` is the framework's op that it was made for, as its full name; ``normalized_ps``
    is how long it would take at the usual clock rate, ``stall_ps`` how long it waited for copies,
    ``energy_j`` what it took in joules, ``moved`` the bytes by memory space where that is known,
    ``program`` the id of the compiled program, ``span_ps`` how long the bytes took where that is
    more than the self time of the op.
    """

    name: str
    op_type: str = ""
    provenance: str = ""
    is_eager: bool = False
    occurrences: int = 0
    total_ps: int = 0
    self_ps: int = 0
    flops: float = 0.0
    model_flops: float = 0.0
    bytes_accessed: int = 0
    normalized_ps: int = 0
    stall_ps: int = 0
    energy_j: float = 0.0
    moved: Mapping[Place, int] = field(default_factory=dict)
    program: int = 0
    span_ps: int = 0
    facts: OpFacts = _NO_FACTS

    @property
    def is_idle(self) -> bool:
        """Whether this is time without an op."""
        return self.name == IDLE and self.op_type == IDLE

    def times(self, runs: int, total_ps: int, self_ps: int) -> OpMetrics:
        """As many runs as this, which is one, took these times together."""
        return replace(
            self, occurrences=runs, total_ps=total_ps % _MODULUS, self_ps=self_ps % _MODULUS,
            flops=self.flops * runs, model_flops=self.model_flops * runs,
            bytes_accessed=self.bytes_accessed * runs,
            moved={place: size * runs for place, size in self.moved.items()},
        )  # fmt: skip

    def add(self, other: OpMetrics) -> None:
        """Count the runs of ``other`` too; what is empty here is taken from there."""
        self.op_type = self.op_type or other.op_type
        self.provenance = self.provenance or other.provenance
        self.is_eager |= other.is_eager
        self.occurrences += other.occurrences
        self.total_ps = (self.total_ps + other.total_ps) % _MODULUS
        self.self_ps = (self.self_ps + other.self_ps) % _MODULUS
        self.flops += other.flops
        self.model_flops += other.model_flops
        self.bytes_accessed += other.bytes_accessed
        self.normalized_ps += other.normalized_ps
        self.stall_ps += other.stall_ps
        self.energy_j += other.energy_j
        self.span_ps += other.span_ps
        self.moved = added(self.moved, other.moved)
        self.facts = self.facts.filled(other.facts)


def added(one: Mapping[Place, int], other: Mapping[Place, int]) -> Mapping[Place, int]:
    """The bytes of both, by place."""
    if not (one and other):
        return one or other
    return {place: one.get(place, 0) + other.get(place, 0) for place in (*one, *other)}


@dataclass
class OpTable:
    """The ops of one or several hosts or devices, in the order in which they were found.

    ``op_ps`` is the self time of all ops, ``total_ps`` that and the time without one,
    ``normalized_ps`` the self time at the usual clock rate. Sums are modulo 2^64, as XProf's: it
    has times that are less than their parts, and shows what that gives.
    """

    ops: dict[Key, OpMetrics] = field(default_factory=dict)
    op_ps: int = 0
    total_ps: int = 0
    normalized_ps: int = 0

    def add(self, key: Key, result: OpMetrics) -> None:
        """Count an op, and its self time."""
        self.merge(key, result)
        self.op_ps = (self.op_ps + result.self_ps) % _MODULUS

    def merge(self, key: Key, result: OpMetrics) -> None:
        """Count an op whose time is counted already."""
        if key in self.ops:
            self.ops[key].add(result)
        else:
            self.ops[key] = replace(result)

    def close(self, total_ps: int) -> None:
        """Set how long it was altogether; what is not an op's is an op of its own, IDLE.

        It is never shorter than the ops.
        """
        self.total_ps = max(self.op_ps, total_ps % _MODULUS)
        idle = self.total_ps - self.op_ps
        self.merge((0, IDLE), OpMetrics(IDLE, IDLE, total_ps=idle, self_ps=idle, facts=_IDLE_FACTS))


def fill_table(
    table: OpTable,
    ops: Sequence[tuple[Key, OpMetrics]],
    op: AnyArray,
    length: AnyArray,
    own: AnyArray,
    order: AnyArray | None = None,
    **more: AnyArray,
) -> None:
    """Count executions: of which of ``ops``, how long each took and that without what lay in it, in
    ps.

    ``ops`` have the flops and bytes of one run. They are counted in the order in which they first
    ran, or in ``order``. ``more`` are numbers of the executions, added to the members of these
    names.
    """
    used, first, op = np.unique(op, return_index=True, return_inverse=True)
    count = used.size
    runs = np.bincount(op, minlength=count).tolist()
    total_ps, self_ps = summed(op, length, count).tolist(), summed(op, own, count).tolist()
    extra = {name: _sums(op, values, count) for name, values in more.items()}
    places = np.argsort(first) if order is None else np.searchsorted(used, order)
    for place, number in zip(places.tolist(), used[places].tolist(), strict=True):
        key, one = ops[number]
        result = one.times(runs[place], total_ps[place], self_ps[place])
        for name, sums in extra.items():
            setattr(result, name, getattr(result, name) + sums[place])
        table.add(key, result)


def _sums(op: AnyArray, values: AnyArray, count: int) -> list[int] | list[float]:
    if values.dtype == np.float64:
        real: list[float] = np.bincount(op, values, count).tolist()
        return real
    whole: list[int] = summed(op, values, count).tolist()
    return whole


def combine_tables(tables: Iterable[OpTable]) -> OpTable:
    """One table of several: ops with one key are one."""
    joined = OpTable()
    for table in tables:
        for key, result in table.ops.items():
            joined.merge(key, result)
        joined.op_ps = (joined.op_ps + table.op_ps) % _MODULUS
        joined.total_ps = (joined.total_ps + table.total_ps) % _MODULUS
        joined.normalized_ps += table.normalized_ps
    return joined


def framework_ops(device: OpTable) -> OpTable:
    """The framework's ops that a device's ops were made for.

    An op of which several device ops were made ran as often as the most frequent of them.
    """
    result: dict[Key, OpMetrics] = {}
    for op in device.ops.values():
        if op.is_idle:
            name, op_type = IDLE, IDLE
        elif not op.provenance:
            name, op_type = op.name, ""
        else:
            parsed = parse_op_name(op.provenance)
            name, op_type = parsed.name, parsed.op_type
        one = result.setdefault((0, name), OpMetrics(name))
        before = one.occurrences
        is_eager = op.is_eager
        one.add(replace(op, op_type=op_type or _UNKNOWN, provenance=""))
        one.occurrences = max(before, op.occurrences)
        one.is_eager = is_eager
    return OpTable(result, device.op_ps, device.total_ps)


def sorted_ops(ops: Sequence[OpMetrics]) -> list[OpMetrics]:
    """Those that took longest by themselves first, of equal ones by name."""
    return sorted(ops, key=lambda op: (-op.self_ps, op.name.encode("utf-8", "replace")))
