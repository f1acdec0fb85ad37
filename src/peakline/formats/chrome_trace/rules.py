"""What the events of a Chrome trace are, beyond what its tables say.

PyTorch's profiler (Kineto) writes categories and stats of its own; what JAX and TensorFlow export
has those of the profile that it was made of, and TensorFlow's timeline names ops by arguments.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from peakline.arrays import UInt8Array
from peakline.formats.chrome_trace import kineto
from peakline.formats.chrome_trace.traced_devices import note_kinds
from peakline.formats.common.annotations import CORRELATION, OF_TPUS, dim, real, unsigned
from peakline.tables.event_rules import (
    CACHING,
    MALLOC,
    CollectiveStats,
    EventRules,
    InputStats,
    LaunchParameters,
    LaunchStats,
    LinkStats,
    StatedOps,
)
from peakline.tables.table_source import TableSource


def _parse_launch(texts: Sequence[str]) -> LaunchParameters:
    grid, block, registers, shared, _, occupancy = texts
    return LaunchParameters(
        dim(grid.strip("[]")), dim(block.strip("[]")), unsigned(registers) or 0, 0,
        unsigned(shared) or 0, real(occupancy),
    )  # fmt: skip


def _kinds_of(profile: TableSource) -> UInt8Array:
    kinds = kineto.kinds_of(profile)
    note_kinds(profile, kinds)
    return kinds


def _ops_of(profile: TableSource) -> StatedOps | None:
    stated = kineto.ops_of(profile)
    return _timeline_ops(profile) if stated is None else stated


def _timeline_ops(profile: TableSource) -> StatedOps | None:
    """Of TensorFlow's own timeline the ops by the arguments ``name`` and ``op``; None for another.

    The event itself is called by the op's type, which no other writer's events with such
    arguments are. Source: ``tensorflow/python/client/timeline.py``, ``_emit_op``.
    """
    stats = profile.columns("event_stats")
    names, values = stats.names("name"), stats.names("value")
    called = profile.columns("events", frozenset(("name",))).names("name")
    event = stats.array("event_id")
    texts = np.full((2, called.codes.size), -1, np.int64)
    for code, key in zip(texts, ("name", "op"), strict=True):
        mine = names.codes == names.code_of(key)
        code[event[mine]] = values.codes[mine]
    name, kind = texts
    value_of = {text: code for code, text in enumerate(values.values)}
    same = {(code, value_of.get(text)) for code, text in enumerate(called.values)}
    op = np.full(called.codes.size, -1, np.int32)
    ops: dict[tuple[str, str], int] = {}
    for row in np.flatnonzero((name >= 0) & (kind >= 0)).tolist():
        if (int(called.codes[row]), int(kind[row])) in same:
            stated = values.values[int(name[row])], values.values[int(kind[row])]
            op[row] = ops.setdefault(stated, len(ops))
    return StatedOps(op, list(ops), calls=False) if ops else None


def _allocator_of(name: str) -> str:
    return MALLOC if name == "CPU" else CACHING


RULES = EventRules(
    kinds=_kinds_of,
    ops=_ops_of,
    links=(CORRELATION, LinkStats("correlation", ("correlation",), ("correlation",)), *OF_TPUS),
    launches=LaunchStats(
        (
            "grid", "block", "registers per thread", "shared memory", "warps per SM",
            "est. achieved occupancy %",
        ),
        _parse_launch,
    ),
    collectives=CollectiveStats(
        record="record_param_comms",
        name="Collective name",
        group="Process Group Name",
        ranks="Process Group Ranks",
        sequence="Seq",
        elements_in="In msg nelems",
        elements_out="Out msg nelems",
        data_type="dtype",
    ),
    inputs=InputStats("Input Dims", "Input Strides", "Input type"),
    gradient_number="Sequence number",
    allocator_of=_allocator_of,
    recorders=frozenset(("PyTorch",)),
)  # fmt: skip
