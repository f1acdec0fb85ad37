"""What is known of each op of a host or a device, and how that of several is put together.

The shape and the rules of combination are those of XProf's ``OpMetricsDb``
(``xprof/convert/op_metrics_db_combiner.cc`` in openxla/xprof).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from peakline.arrays import AnyArray
from peakline.tables.joins import summed
from peakline.timing.device_programs import Key
from peakline.timing.op_names import IDLE, parse_op_name

_MODULUS = 2**64
_UNKNOWN = "Unknown"


@dataclass(slots=True)
class OpMetrics:
    """One op: times in ps, ``flops`` and ``bytes_accessed`` of all its runs together.

    ``flops`` are as the device does them, ``model_flops`` as the model needs them. On a device
    ``provenance`` is the framework's op that it was made for, as its full name.
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

    @property
    def is_idle(self) -> bool:
        """Whether this is time without an op."""
        return self.name == IDLE and self.op_type == IDLE

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


@dataclass
class OpTable:
    """The ops of one or several hosts or devices, in the order in which they were found.

    ``op_ps`` is the self time of all ops, ``total_ps`` that and the time without one. Sums are
    modulo 2^64, as XProf's: it has times that are less than their parts, and shows what that gives.
    """

    ops: dict[Key, OpMetrics] = field(default_factory=dict)
    op_ps: int = 0
    total_ps: int = 0

    def add(self, key: Key, found: OpMetrics) -> None:
        """Count an op, and its self time."""
        self.merge(key, found)
        self.op_ps = (self.op_ps + found.self_ps) % _MODULUS

    def merge(self, key: Key, found: OpMetrics) -> None:
        """Count an op whose time is counted already."""
        if key in self.ops:
            self.ops[key].add(found)
        else:
            self.ops[key] = replace(found)

    def close(self, total_ps: int) -> None:
        """Set how long it was altogether; what is not an op's is an op of its own, IDLE.

        It is never shorter than the ops.
        """
        self.total_ps = max(self.op_ps, total_ps % _MODULUS)
        idle = self.total_ps - self.op_ps
        self.merge((0, IDLE), OpMetrics(IDLE, IDLE, total_ps=idle, self_ps=idle))


def fill_table(
    table: OpTable,
    ops: Sequence[tuple[Key, OpMetrics]],
    op: AnyArray,
    length: AnyArray,
    own: AnyArray,
    order: AnyArray | None = None,
) -> None:
    """Count executions: of which of ``ops``, how long each took and that without what lay in it, in
    ps.

    ``ops`` have the flops and bytes of one run. They are counted in the order in which they first
    ran, or in ``order``.
    """
    count = len(ops)
    runs = np.bincount(op, minlength=count).tolist()
    total_ps, self_ps = summed(op, length, count).tolist(), summed(op, own, count).tolist()
    if order is None:
        used, first = np.unique(op, return_index=True)
        order = used[np.argsort(first)]
    for number in order.tolist():
        key, one = ops[number]
        table.add(
            key,
            replace(
                one, occurrences=runs[number], total_ps=total_ps[number] % _MODULUS,
                self_ps=self_ps[number] % _MODULUS, flops=one.flops * runs[number],
                model_flops=one.model_flops * runs[number],
                bytes_accessed=one.bytes_accessed * runs[number],
            ),
        )  # fmt: skip


def combine_tables(tables: Iterable[OpTable]) -> OpTable:
    """One table of several: ops with one key are one."""
    joined = OpTable()
    for table in tables:
        for key, found in table.ops.items():
            joined.merge(key, found)
        joined.op_ps = (joined.op_ps + table.op_ps) % _MODULUS
        joined.total_ps = (joined.total_ps + table.total_ps) % _MODULUS
    return joined


def framework_ops(device: OpTable) -> OpTable:
    """The framework's ops that a device's ops were made for.

    An op of which several device ops were made ran as often as the most frequent of them.
    """
    found: dict[Key, OpMetrics] = {}
    for op in device.ops.values():
        if op.is_idle:
            name, op_type = IDLE, IDLE
        elif not op.provenance:
            name, op_type = op.name, ""
        else:
            parsed = parse_op_name(op.provenance)
            name, op_type = parsed.name, parsed.op_type
        one = found.setdefault((0, name), OpMetrics(name))
        before = one.occurrences
        is_eager = op.is_eager
        one.add(replace(op, op_type=op_type or _UNKNOWN, provenance=""))
        one.occurrences = max(before, op.occurrences)
        one.is_eager = is_eager
    return OpTable(found, device.op_ps, device.total_ps)
