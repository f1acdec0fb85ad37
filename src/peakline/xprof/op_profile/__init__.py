"""The ``op_profile`` tool with XProf's numbers (``convert/op_stats_to_op_profile.cc``)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeVar

from peakline import hlo, timing
from peakline.toolbox.written import compact_json
from peakline.tools import op_profile as ours
from peakline.xprof import rules

if TYPE_CHECKING:
    from peakline.tables import Profile
    from peakline.xprof.rules.hlo_host import HloHost

__all__ = ["TOOL", "HostProfile"]


_Item = TypeVar("_Item")


def largest(items: list[_Item], count: int, key: Callable[[_Item], float]) -> list[_Item]:
    """The ``count`` items with the largest keys, those first; made in time n log n.

    XProf sorts with ``std::partial_sort`` of libstdc++, which makes a heap of the first ones,
    exchanges its top for what comes before it, and takes the heap apart. Equal ones are in no order
    of their own then, but always in the same.
    """
    heap = [(key(item), item) for item in items]
    size = min(count, len(heap))
    if not size:
        return []
    for parent in range((size - 2) // 2, -1, -1) if size > 1 else ():
        _sift(heap, parent, size, heap[parent])
    for place in range(size, len(heap)):
        if heap[place][0] > heap[0][0]:
            value, heap[place] = heap[place], heap[0]
            _sift(heap, 0, size, value)
    for last in range(size - 1, 0, -1):
        value, heap[last] = heap[last], heap[0]
        _sift(heap, 0, last, value)
    return [item for _, item in heap[:size]]


def _sift(
    heap: list[tuple[float, _Item]], hole: int, size: int, value: tuple[float, _Item]
) -> None:
    """Put ``value`` where the hole ends up that moves down to a leaf, then up again."""
    top = child = hole
    while child < (size - 1) // 2:
        child = 2 * (child + 1)
        if heap[child][0] > heap[child - 1][0]:
            child -= 1
        heap[hole] = heap[child]
        hole = child
    if size % 2 == 0 and child == (size - 2) // 2:
        child = 2 * (child + 1)
        heap[hole] = heap[child - 1]
        hole = child - 1
    parent = (hole - 1) // 2
    while hole > top and heap[parent][0] > value[0]:
        heap[hole] = heap[parent]
        hole = parent
        parent = (hole - 1) // 2
    heap[hole] = value


_KINDS = (("GPU", "GPU"), ("TPU", "TPU"))


@dataclass(frozen=True)
class HostProfile:
    """What one host contributes: its ops, and the names of its programs by id."""

    host: HloHost
    programs: Mapping[int, str]


def _partial(profile: Profile, _parameters: ours.OpProfileParameters) -> HostProfile:
    names: dict[int, str] = {}
    for module in hlo.modules_of(profile):
        if module.program_id is not None:
            names.setdefault(module.program_id, module.name)
    return HostProfile(rules.hlo_of_host(profile), names)


def _combine(
    parts: Sequence[tuple[str, HostProfile]], parameters: ours.OpProfileParameters, _format: str
) -> bytes:
    from peakline.tools.op_profile.tree import as_json, build_tree

    host = rules.combine_hlo_hosts([part.host for _, part in parts])
    names: dict[int, str] = {}
    for _, part in parts:
        names = {**part.programs, **names}
    table, group_by = host.table, parameters.group_by
    trees = [
        as_json(build_tree(table, names, group_by, with_idle=with_idle, take=largest), host.peaks)
        for with_idle in (True, False)
    ]
    device = host.environment.device_type
    kind = "CPU_ONLY" if device == "CPU" else "UNKNOWN_HARDWARE"
    kind = next((kind for word, kind in _KINDS if word in device), kind)
    return compact_json(
        {
            ours.NAMES[group_by]: trees[0],
            "deviceType": kind,
            f"{ours.NAMES[group_by]}ExcludeIdle": trees[1],
            "aggDvfsTimeScaleMultiplier": timing.ratio(table.normalized_ps, table.op_ps),
        },
        ascii_only=False,
    )


TOOL = replace(ours.TOOL, partial=_partial, combine=_combine)
