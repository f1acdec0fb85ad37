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
from operator import ne, sub
from typing import NamedTuple, TypeVar

from peakline.compare.state import SPECIAL, Kind
from peakline.memory.signatures import dimensions, scope_of

_MOST = 200
"""Of one op (or stem) so many kinds are paired, the first by name; the others stay new and gone."""
_HIGHEST_RANK = 254
"""That of TensorFlow's tensors; shapes with more dimensions than that are equal or not."""

_DEVICES = (
    ("host", re.compile(r"(gpu|cuda|hip|xpu|tpu)_host|pinned|(^|[_:/])host([_:]|$)")),
    ("CPU", re.compile(r"cpu")),
    ("TPU", re.compile(r"tpu")),
    ("XPU", re.compile(r"xpu")),
    ("GPU", re.compile(r"gpu|cuda|hip|rocm")),
)
_TASK = re.compile(r"(?:/?job:[^/]{0,200}+/replica:\d+/task:\d+/)")
_INDEX = re.compile(r"[a-z][:_](\d+)")
_NUMBER = re.compile(r"_\d+(?=/|$)")
_LINE = re.compile(r":\d+(?=\s|$)")


_T = TypeVar("_T")


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
        for old, new in _alone(
            keyed(left, lambda place, key=key: key(before[place])),  # type: ignore[misc]
            keyed(right, lambda place, key=key: key(after[place])),  # type: ignore[misc]
        ):
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


def keyed(items: Iterable[_T], key: Callable[[_T], Hashable]) -> dict[Hashable, list[_T]]:
    """The items by key, without those that have none."""
    result: dict[Hashable, list[_T]] = {}
    for item in items:
        value = key(item)
        if value is not None:
            result.setdefault(value, []).append(item)
    return result


def _alone(old: dict[Hashable, list[_T]], new: dict[Hashable, list[_T]]) -> list[tuple[_T, _T]]:
    """Items that have a key to themselves on either side."""
    return [
        (ours[0], new[key][0])
        for key, ours in old.items()
        if len(ours) == len(new.get(key, ())) == 1
    ]


def _device(name: str) -> tuple[str, str] | None:
    """The kind of device and its number (none: the first): ``("GPU", "0")``; None: unknown."""
    text = _TASK.sub("", name.lower())
    kind = next((kind for kind, pattern in _DEVICES if pattern.search(text)), None)
    if kind is None:
        return None
    indices = _INDEX.findall(text)
    return kind, indices[-1] if indices else "0"


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
    for name in (lambda op: op, stem_of):
        pairs += _take(old, new, _nearest(_by_name(old, name), _by_name(new, name)))
    for part in (scope_of, lambda op: op.rpartition("/")[2]):
        pairs += _take(old, new, _alone(_by_part(old, part), _by_part(new, part)))
    pairs += [KindPair(kind, None) for kind in old]
    pairs += [KindPair(None, kind) for kind in new]
    return tuple(sorted(pairs, key=_place))


def _place(pair: KindPair) -> tuple[Kind, ...]:
    """What pairs are sorted by: their kinds in order, so that swapping them changes nothing."""
    one, other = pair
    if one is None or other is None:
        return tuple(kind for kind in pair if kind is not None)
    return (one, other) if one <= other else (other, one)


def _take(old: set[Kind], new: set[Kind], result: Iterable[tuple[Kind, Kind]]) -> list[KindPair]:
    """The pairs ``result``, whose kinds leave ``old`` and ``new``."""
    pairs = [KindPair(one, other) for one, other in result]
    old.difference_update(pair.before for pair in pairs if pair.before is not None)
    new.difference_update(pair.after for pair in pairs if pair.after is not None)
    return pairs


def _by_name(kinds: Iterable[Kind], name: Callable[[str], str]) -> dict[Hashable, list[Kind]]:
    """Kinds by what ``name`` makes of their op."""
    return keyed(sorted(kinds), lambda kind: None if kind.op in SPECIAL else name(kind.op) or None)


def _by_part(kinds: Iterable[Kind], part: Callable[[str], str]) -> dict[Hashable, list[Kind]]:
    """Kinds in a scope by a part of their op's name, without numbers, and their other columns."""
    return keyed(
        sorted(kinds),
        lambda kind: (
            (stem_of(part(kind.op)), *kind[1:]) if kind.scope and kind.op not in SPECIAL else None
        ),
    )


def _nearest(
    old: dict[Hashable, list[Kind]], new: dict[Hashable, list[Kind]]
) -> list[tuple[Kind, Kind]]:
    """Kinds of equal keys, the least different first, each in one pair."""
    result: list[tuple[Kind, Kind]] = []
    for key, ours in old.items():
        near: list[tuple[tuple[int, ...], Kind, Kind, Kind, Kind]] = []
        sized = (
            [(kind, dimensions(kind.shape)) for kind in kinds[:_MOST]]
            for kinds in (ours, new.get(key, []))
        )
        for (one, mine), (other, theirs) in product(*sized):
            distance = _distance(one, other, mine, theirs)
            if distance is not None:
                # The two in order of name, so that swapping the sides changes nothing.
                near.append((distance, min(one, other), max(one, other), one, other))
        taken: set[Kind] = set()
        for *_, one, other in sorted(near):
            if one not in taken and other not in taken:
                taken |= {one, other}
                result.append((one, other))
    return result


def _distance(
    one: Kind, other: Kind, mine: tuple[int, ...] | None, theirs: tuple[int, ...] | None
) -> tuple[int, ...] | None:
    """How many columns differ, how many dimensions, and by how much; None for another rank."""
    if mine is None or theirs is None or len(mine) > _HIGHEST_RANK:
        if one.shape != other.shape:
            return None
        mine = theirs = ()
    elif len(mine) != len(theirs):
        return None
    columns = sum(map(ne, one, other))
    apart = list(map(abs, map(sub, mine, theirs)))
    return columns, len(apart) - apart.count(0), sum(apart)
