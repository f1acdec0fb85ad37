"""The ops of a TPU: what the metadata of its events, and of their kinds, says.

Sources: ``op_metrics_db_utils.cc`` in XProf, and ``SetOpMetadataFromHloEventMetadata`` there.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from functools import cache

import numpy as np

from peakline.arrays import Int32Array, Int64Array
from peakline.schema.shapes import shape
from peakline.tables import Profile
from peakline.tables.once import once
from peakline.timing.ops.metrics import OpFacts, OpMetrics, Place, Source
from peakline.timing.programs.device import DeviceOp, Key
from peakline.wire import Plan, as_buffer, decode

_OP_LINE = "XLA Ops"
_WANTED = frozenset(
    (
        "program_id", "symbol_id", "tf_op", "flops", "model_flops", "bytes_accessed",
        "hlo_category", "deduplicated_name", "source", "source_stack",
    )
)  # fmt: skip
_COSTS = ("flops", "bytes_accessed", "model_flops")


def is_op_line(plane: str, line: str) -> bool:
    """Whether a line of a TPU's plane shows which ops its TensorCore ran."""
    return line == _OP_LINE and "SparseCore" not in plane


def tpu_ops(profile: Profile, rows: Int64Array) -> tuple[list[DeviceOp], Int32Array]:
    """The ops of events by the stats of their metadata; -1 for one that names no instruction.

    An instruction without a number (``symbol_id`` 0) is the program as a whole, and no op.
    """
    types = profile.columns("event_types")
    said, known = type_stats_of(profile), types_of(profile, rows)
    names, shown = types.names("name"), types.names("display_name")
    ops: list[DeviceOp] = []
    of_type = np.full(types.rows + 1, -1, np.int32)
    for kind in np.unique(known).tolist():
        stats = said.get(kind, {})
        if kind < 0 or symbol_of(stats) is None:
            continue
        name = shown[kind] or names[kind] or ""
        flops, moved, model = (type_number(stats, name) for name in _COSTS)
        of_type[kind] = len(ops)
        ops.append(
            DeviceOp(
                (type_number(stats, "program_id"), name), name, "", stats.get("tf_op") or "",
                float(flops), float(model or flops), float(moved), stats.get("hlo_category") or "",
            )
        )  # fmt: skip
    return ops, of_type[known]


def types_of(profile: Profile, rows: Int64Array) -> Int64Array:
    """The row of ``event_types`` that each event belongs to, -1 for none."""
    events = profile.columns("events", frozenset(("type_id",)))
    return np.where(events.is_valid("type_id")[rows], events.array("type_id")[rows], -1)


def symbol_of(stats: Mapping[str, str]) -> tuple[int, int] | None:
    """The program and the number of the instruction that a kind of event stands for."""
    program, symbol = _number(stats.get("program_id")), _number(stats.get("symbol_id"))
    return None if program is None or not symbol else (program, symbol)


def type_number(stats: Mapping[str, str], name: str) -> int:
    """A stat of a kind of event as an unsigned number, 0 for none."""
    return _number(stats.get(name)) or 0


@once
def type_stats_of(profile: Profile) -> dict[int, dict[str, str]]:
    """The stats of each kind of event, as texts; made once."""
    stats = profile.columns("event_type_stats")
    names = stats.names("name")
    codes = [code for code, text in enumerate(names.values) if text in _WANTED]
    rows = np.flatnonzero(np.isin(names.codes, codes))
    result: dict[int, dict[str, str]] = {}
    owner, value = stats.array("type_id")[rows].tolist(), stats.names("value").take(rows).to_list()
    for kind, name, text in zip(owner, names.take(rows).to_list(), value, strict=True):
        if name is not None and text is not None:
            result.setdefault(kind, {})[name] = text
    return result


def _number(text: str | None) -> int | None:
    """The number that a text is, unsigned; 0 for any other text."""
    if text is None:
        return None
    try:
        return int(text) % 2**64
    except ValueError:
        return 0


_KIND_COSTS = ("flops", "model_flops", "bytes_accessed")
_DEEPEST, _MOST_PARTS = 16, 100_000
_LINE = re.compile(r"\s*([+-]?\d{1,10})\s*")
_INT32 = 2**31


def op_of_kind(profile: Profile, kind: int, core: str) -> tuple[Key, OpMetrics]:
    """The op that a kind of event is, with the cost of one run."""
    key, one = _said(profile, kind, core)
    one = replace(one, model_flops=one.model_flops or one.flops)
    parts = _parts(profile, kind)
    return key, replace(one, facts=replace(one.facts, children=parts)) if parts else one


def over_order(end: Int64Array) -> Int64Array:
    """For each op, in order of their begins, how many were over before it: an op is over when one
    follows that does not lie in it, those in it first.
    """
    place, count = np.zeros(end.size, np.int64), 0
    stack: list[int] = []
    ends = end.tolist()
    for number, until in enumerate([*ends, None]):
        while stack and (until is None or ends[stack[-1]] < until):
            place[stack.pop()] = count
            count += 1
        stack.append(number)
    return place


def _said(profile: Profile, kind: int, core: str) -> tuple[Key, OpMetrics]:
    types = profile.columns("event_types")
    stats = type_stats_of(profile).get(kind, {})
    name, shown = types.names("name")[kind] or "", types.names("display_name")[kind] or ""
    facts = OpFacts(
        stats.get("hlo_category", ""), name if shown else "", stats.get("deduplicated_name", ""),
        _source(stats), core,
    )  # fmt: skip
    flops, model, moved = (type_number(stats, cost) for cost in _KIND_COSTS)
    program = type_number(stats, "program_id")
    one = OpMetrics(
        shown or name, "", stats.get("tf_op", ""), flops=float(flops), model_flops=float(model),
        bytes_accessed=moved, moved=_breakdowns(profile).get(kind, {}), program=program,
        facts=facts,
    )  # fmt: skip
    return (program, one.name), one


def _source(stats: Mapping[str, str]) -> Source | None:
    if "source" not in stats and "source_stack" not in stats:
        return None
    file, colon, text = stats.get("source", "").partition(":")
    line = _LINE.fullmatch(text)
    stack = stats.get("source_stack", "")
    if not colon or line is None or not -_INT32 <= int(line[1]) < _INT32:
        return Source(stack=stack)
    return Source(file, int(line[1]), stack)


def _parts(profile: Profile, kind: int) -> tuple[OpMetrics, ...]:
    """The ops that a kind consists of, each once; those of a ring, or too deep, are left out."""
    children = profile_children(profile)
    if kind not in children:
        return ()
    left = _MOST_PARTS

    def parts(number: int, above: tuple[int, ...]) -> tuple[OpMetrics, ...]:
        nonlocal left
        result = []
        for child in children.get(number, ()):
            if child in above or len(above) >= _DEEPEST or left <= 0:
                profile.warn(
                    "op_parts", "parts of ops that hold themselves, or are too many or too deep"
                )
                continue
            left -= 1
            _, one = _said(profile, child, "")
            inner = parts(child, (*above, child))
            facts = replace(one.facts, children=inner or None)
            result.append(replace(one, occurrences=1, facts=facts))
        return tuple(result)

    return parts(kind, (kind,))


@once
def profile_children(profile: Profile) -> dict[int, tuple[int, ...]]:
    """By kind of event the kinds it consists of, read once."""
    return profile.type_children()


@once
def _breakdowns(profile: Profile) -> dict[int, dict[Place, int]]:
    """By kind of event the bytes it moves by memory space, where it says so (the message
    ``MemoryAccessBreakdown`` of XProf's ``op_metrics.proto``).
    """
    return {
        kind: _breakdown(data)
        for kind, data in profile.type_bytes("memory_access_breakdown").items()
    }


def _breakdown(data: bytes) -> dict[Place, int]:
    buffer = as_buffer(data)
    accessed = decode(buffer, _plan())["memory_accessed"]
    spaces, directions, sizes = (
        accessed.array(name).tolist()
        for name in ("memory_space", "operation_type", "bytes_accessed")
    )
    result: dict[Place, int] = {}
    for space, direction, size in zip(spaces, directions, sizes, strict=True):
        result[space, direction] = result.get((space, direction), 0) + size
    return result


@cache
def _plan() -> Plan:
    return Plan(shape("tensorflow.profiler.MemoryAccessBreakdown"), ("memory_accessed.*",))
