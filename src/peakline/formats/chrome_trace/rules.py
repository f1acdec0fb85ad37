"""What the events of a Chrome trace are, beyond what its tables say.

PyTorch's profiler (Kineto) writes categories and stats of its own; what JAX and TensorFlow export
has those of the profile that it was made of, and TensorFlow's timeline names ops by arguments.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from peakline.arrays import UInt8Array
from peakline.formats.chrome_trace import kineto
from peakline.formats.chrome_trace import stated as stated_ops
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
    stated_ops.note_kinds(profile, kinds)
    return kinds


def _ops_of(profile: TableSource) -> StatedOps | None:
    stated = kineto.ops_of(profile)
    return stated_ops.ops_of(profile) if stated is None else stated


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
        size="Group size",
        first_rank="Global rank start",
        rank_stride="Global rank stride",
        sequence="Seq",
        identity="Comms Id",
        elements_in="In msg nelems",
        elements_out="Out msg nelems",
        data_type="dtype",
        source="Src Rank",
        target="Dst Rank",
        arguments="Concrete Inputs",
        peer_argument=2,
        call=re.compile(r"c10d::\w+"),
        work=kineto.BACKENDS,
        waits=re.compile(r"_?c10d(?:_functional(?:_autograd)?)?::\w+"),
    ),
    inputs=InputStats("Input Dims", "Input Strides", "Input type"),
    gradient_number="Sequence number",
    nested_devices=stated_ops.ON_DEVICE,
    allocator_of=_allocator_of,
    recorders=frozenset(("PyTorch",)),
)  # fmt: skip
