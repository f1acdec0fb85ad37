"""Which allocators and which kinds of buffers of two profiles are the same.

Kinds are the same where op, region, element type and shape are equal. What is left is paired by
what a change of code leaves alone: the op (its shape, type or region changed), the op's name
without the numbers that a runtime or a line of code adds, the scope, or the last part of the name.
Swapping the two profiles gives the same pairs.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Iterable, Sequence
from itertools import product
from typing import NamedTuple

from peakline.compare.state import SPECIAL, Kind
from peakline.memory.signatures import dimensions

_MOST = 200
"""Of one op (or stem) so many kinds are paired, the first by name; the others stay new and gone."""

_DEVICES = (
    ("host", re.compile(r"(gpu|cuda|hip|xpu|tpu)_host|pinned|(^|[_:/])host([_:]|$)")),
    ("CPU", re.compile(r"cpu")),
    ("TPU", re.compile(r"tpu")),
    ("XPU", re.compile(r"xpu")),
    ("GPU", re.compile(r"gpu|cuda|hip|rocm")),
)
_TASK = re.compile(r"(?:/?job:[^/]*/replica:\d+/task:\d+/)")
_INDEX = re.compile(r"[a-z][:_](\d+)(?!.*[a-z][:_]\d)")
_NUMBER = re.compile(r"_\d+(?=/|$)")
_LINE = re.compile(r":\d+(?=\s|$)")


_Measure = Callable[[Kind, Kind], tuple[int, ...] | None]
"""How far apart two kinds with the same key are; None where they are not the same at all."""


class AllocatorPair(NamedTuple):
    """Places of the same allocator in two lists, None where there is none.

    ``note`` says why two of different names are taken as one.
    """

    before: int | None
    after: int | None
    note: str = ""


class KindPair(NamedTuple):
    """The same kind in two profiles, None where it is in one only."""

    before: Kind | None
    after: Kind | None


def match_allocators(before: Sequence[str], after: Sequence[str]) -> tuple[AllocatorPair, ...]:
    """Pair allocators by name, then by task and device, by device, and by the kind of device.

    Two of different names are paired only where no other one could be meant. The pairs are in the
    order of ``after``; those that are only in ``before`` come last.
    """
    partner: dict[int, tuple[int, str]] = {}
    left = [place for place, name in enumerate(before) if name not in after]
    for place, name in enumerate(after):
        if name in before:
            partner[place] = (before.index(name), "")
    for key in (_task_device, _device, _device_kind):
        right = [place for place in range(len(after)) if place not in partner]
        for old, new in _unique(left, right, before, after, key):
            partner[new] = (old, f"both are {_spelled(before[old], after[new])}")
            left.remove(old)
    if len(before) == len(after) == 1 and left and None in (_device(before[0]), _device(after[0])):
        partner[0] = (0, "it is the only one in either profile")
        left = []
    pairs = [AllocatorPair(partner.get(n, (None,))[0], n, "") for n in range(len(after))]
    for place, (old, why) in partner.items():
        if why:
            note = f"{before[old]!r} before and {after[place]!r} after are taken as one: {why}"
            pairs[place] = AllocatorPair(old, place, note)
    return (*pairs, *(AllocatorPair(place, None) for place in left))


def _unique(
    left: Iterable[int],
    right: Iterable[int],
    before: Sequence[str],
    after: Sequence[str],
    key: Callable[[str], Hashable],
) -> list[tuple[int, int]]:
    """Places whose keys are equal and occur once on either side."""
    sides: list[dict[Hashable, list[int]]] = []
    for places, names in ((left, before), (right, after)):
        side: dict[Hashable, list[int]] = {}
        for place in places:
            found = key(names[place])
            if found is not None:
                side.setdefault(found, []).append(place)
        sides.append(side)
    return [
        (olds[0], sides[1][found][0])
        for found, olds in sides[0].items()
        if len(olds) == 1 and len(sides[1].get(found, ())) == 1
    ]


def _device(name: str) -> tuple[str, str] | None:
    """The kind of device and its number (none: the first): ``("GPU", "0")``; None: not told."""
    text = _TASK.sub("", name.lower())
    kind = next((kind for kind, pattern in _DEVICES if pattern.search(text)), None)
    if kind is None:
        return None
    index = _INDEX.search(text)
    return kind, index[1] if index else "0"


def _task_device(name: str) -> tuple[str, tuple[str, str]] | None:
    task, device = _TASK.match(name.lower()), _device(name)
    return None if device is None else ("" if task is None else task[0], device)


def _device_kind(name: str) -> str | None:
    device = _device(name)
    return None if device is None else device[0]


def _spelled(old: str, new: str) -> str:
    """``GPU 0`` where both say so, else ``the only GPU memory``."""
    one, other = _device(old), _device(new)
    if one is not None and one == other:
        return " ".join(one)
    return f"the only {_device_kind(new)} memory that has no namesake"


def stem_of(op: str) -> str:
    """An op's name without the numbers that its occurrence adds.

    ``dense_1/MatMul_2`` is ``dense/MatMul``, and ``forward model.py:39`` is ``forward model.py``.
    """
    return _LINE.sub("", _NUMBER.sub("", op))


def match_kinds(before: Iterable[Kind], after: Iterable[Kind]) -> tuple[KindPair, ...]:
    """Pair the kinds of two profiles; every one of them is in exactly one pair."""
    old, new = set(before), set(after)
    pairs = [KindPair(kind, kind) for kind in old & new]
    old, new = old - new, new - old
    for key in (_same_op, _same_stem):
        pairs += _take(old, new, _nearest(old, new, key, _distance))
    for key in (_same_scope, _same_leaf):
        pairs += _take(old, new, _only(old, new, key))
    pairs += [KindPair(kind, None) for kind in old]
    pairs += [KindPair(None, kind) for kind in new]
    return tuple(sorted(pairs, key=_place))


def _place(pair: KindPair) -> tuple[Kind, ...]:
    """What pairs are sorted by: their kinds in order, so that swapping them changes nothing."""
    one, other = pair
    if one is None or other is None:
        return tuple(kind for kind in pair if kind is not None)
    return (one, other) if one <= other else (other, one)


def _same_op(kind: Kind) -> Hashable:
    return kind.op or None


def _same_stem(kind: Kind) -> Hashable:
    return stem_of(kind.op) or None


def _same_scope(kind: Kind) -> Hashable:
    if not kind.scope:
        return None
    return stem_of(kind.scope), kind.region_type, kind.data_type, kind.shape


def _same_leaf(kind: Kind) -> Hashable:
    if not kind.scope:
        return None
    leaf = kind.op.rpartition("/")[2]
    return stem_of(leaf), kind.region_type, kind.data_type, kind.shape


def _take(old: set[Kind], new: set[Kind], found: Iterable[tuple[Kind, Kind]]) -> list[KindPair]:
    """The pairs ``found``, whose kinds leave ``old`` and ``new``."""
    pairs = [KindPair(one, other) for one, other in found]
    old.difference_update(pair.before for pair in pairs if pair.before is not None)
    new.difference_update(pair.after for pair in pairs if pair.after is not None)
    return pairs


def _keyed(kinds: Iterable[Kind], key: Callable[[Kind], Hashable]) -> dict[Hashable, list[Kind]]:
    found: dict[Hashable, list[Kind]] = {}
    for kind in sorted(kinds):
        value = None if kind.op in SPECIAL else key(kind)
        if value is not None:
            found.setdefault(value, []).append(kind)
    return found


def _only(
    old: set[Kind], new: set[Kind], key: Callable[[Kind], Hashable]
) -> list[tuple[Kind, Kind]]:
    """Kinds that have a key to themselves on either side."""
    theirs = _keyed(new, key)
    return [
        (ours[0], theirs[value][0])
        for value, ours in _keyed(old, key).items()
        if len(ours) == len(theirs.get(value, ())) == 1
    ]


def _nearest(
    old: set[Kind], new: set[Kind], key: Callable[[Kind], Hashable], measure: _Measure
) -> list[tuple[Kind, Kind]]:
    """Kinds of equal keys, the least different first, each in one pair."""
    theirs = _keyed(new, key)
    found: list[tuple[Kind, Kind]] = []
    for value, ours in _keyed(old, key).items():
        near: list[tuple[tuple[int, ...], Kind, Kind, Kind, Kind]] = []
        for one, other in product(ours[:_MOST], theirs.get(value, ())[:_MOST]):
            distance = measure(one, other)
            if distance is not None:
                # The two in order of name, so that swapping the sides changes nothing.
                near.append((distance, min(one, other), max(one, other), one, other))
        taken: set[Kind] = set()
        for *_, one, other in sorted(near):
            if one not in taken and other not in taken:
                taken |= {one, other}
                found.append((one, other))
    return found


def _distance(one: Kind, other: Kind) -> tuple[int, ...] | None:
    """How many columns differ, how many dimensions, and by how much; None for another rank."""
    columns = sum(
        mine != theirs
        for mine, theirs in (
            (one.op, other.op),
            (one.region_type, other.region_type),
            (one.data_type, other.data_type),
            (one.shape, other.shape),
        )
    )
    mine, theirs = dimensions(one.shape), dimensions(other.shape)
    if mine is None or theirs is None:
        return (columns, 0, 0) if one.shape == other.shape else None
    if len(mine) != len(theirs):
        return None
    apart = [abs(size - least) for size, least in zip(mine, theirs, strict=True)]
    return columns, sum(step > 0 for step in apart), sum(apart)
