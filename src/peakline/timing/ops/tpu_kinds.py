"""What the kinds of a TPU's events (their metadata) say of the ops that they are
(``SetOpMetadataFromHloEventMetadata`` in XProf's ``utils/op_metrics_db_utils.cc``).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from functools import cache

import numpy as np

from peakline.arrays import Int64Array
from peakline.schema.shapes import shape
from peakline.tables import Profile
from peakline.tables.once import once
from peakline.timing.ops.metrics import OpFacts, OpMetrics, Place, Source
from peakline.timing.ops.tpu import type_number, type_stats_of
from peakline.timing.programs.device import Key
from peakline.wire import Plan, as_buffer, decode

_COSTS = ("flops", "model_flops", "bytes_accessed")
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
    flops, model, moved = (type_number(stats, cost) for cost in _COSTS)
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
        found = []
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
            found.append(replace(one, occurrences=1, facts=facts))
        return tuple(found)

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
    found: dict[Place, int] = {}
    for space, direction, size in zip(spaces, directions, sizes, strict=True):
        found[space, direction] = found.get((space, direction), 0) + size
    return found


@cache
def _plan() -> Plan:
    return Plan(shape("tensorflow.profiler.MemoryAccessBreakdown"), ("memory_accessed.*",))
