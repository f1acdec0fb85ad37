"""Long names in little room, so that what sets the names of a column apart stays readable."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain

from peakline.render.terminal.layout import begin_of, cut, end_of, width_of

_MARKS = ("/", " [", ".", "::", ":", ";", "(", " ")
_SHORTEST_TAIL = 10
_WORTH, _ROUNDS = 6, 3
"""A begin that all names share is left out if it takes so many columns."""
_PARTS = re.compile(r"::|[/.:;]")


def elided(names: Sequence[str], room: int) -> list[str]:
    """``names``, each in at most ``room`` columns, with ``…`` for what is left out of longer ones.

    Left out is first the begin that the longer names share, then the middle between the begin and
    the last parts of a name. Names that would be alike after that are cut where they are.
    """
    long = list(dict.fromkeys(name for name in names if width_of(name) > room))
    if not long:
        return list(names)
    shared = _shared_begin(long)
    shown = {name: _cut(name, shared, room) for name in long}
    for place in range(_ROUNDS):
        every = _alike({name: shown.get(name, name) for name in names})
        groups = [alike for alike in every if len(alike) > 1]
        # What sets one group apart may be what sets another apart too: then all are one.
        for group in groups if not place else [[*chain.from_iterable(groups)]]:
            shown.update(zip(group, _where_they_differ(group, room), strict=True))
    return [shown.get(name, name) for name in names]


def widest(names: Iterable[str], room: int) -> int:
    """The columns that names take at most if those above ``room`` leave out what all share."""
    shown = elided_begin([*names], room)
    return max(map(width_of, shown), default=0)


def elided_begin(names: Sequence[str], room: int) -> list[str]:
    """``names`` without the begin that those above ``room`` share."""
    long = list(dict.fromkeys(name for name in names if width_of(name) > room))
    shared = _shared_begin(long)
    return [f"…{name[shared:]}" if shared and width_of(name) > room else name for name in names]


def _common(names: Sequence[str]) -> int:
    """How many characters all ``names`` begin with."""
    low, high = min(names), max(names)
    pairs = zip(low, high, strict=False)
    same = next((place for place, (one, other) in enumerate(pairs) if one != other), None)
    return min(len(low), len(high)) if same is None else same


def _shared_begin(names: Sequence[str]) -> int:
    """How many characters all ``names`` begin with, up to a mark between two parts; 0 if few."""
    if len(names) < 2:
        return 0
    prefix = names[0][: _common(names)]
    marks = [match.start() for match in _PARTS.finditer(prefix)]
    # The mark stays, as the begin of the next part.
    at = marks[-1] if marks else 0
    return at if width_of(prefix[:at]) >= _WORTH else 0


def _cut(name: str, shared: int, room: int) -> str:
    if shared:
        short = f"…{name[shared:]}"
        if width_of(short) <= room:
            return short
        rest = _cut_middle(name[shared:], room - 1)
        return rest if rest.startswith("…") else f"…{rest}"
    return _cut_middle(name, room)


def _cut_middle(name: str, room: int) -> str:
    """The begin, and the last parts of the name."""
    room = max(room, 3)
    tail = name[_tail_at(name, room - 2 - room // 4) :]
    if not tail:
        return cut(name, room)
    return f"{begin_of(name, room - 1 - width_of(tail))}…{tail}"


def _tail_at(name: str, most: int) -> int:
    """Where the end begins that is shown, of at most ``most`` columns: at the last part, with the
    one before it where that is short, such as ``/MatMul_1``. The name's length where no part is so
    short.
    """
    for mark in _MARKS:
        at = name.rfind(mark)
        while at > 0 and len(name) - at < _SHORTEST_TAIL:
            at = name.rfind(mark, 0, at)
        if at > 0 and width_of(name[at:]) <= most:
            return at
    return len(name)


def _where_they_differ(names: Sequence[str], room: int) -> list[str]:
    """Names that differ in little: each around what it has for itself."""
    if not names:
        return []
    start = _common(names)
    back = _common([name[start:][::-1] for name in names])
    found: list[str] = []
    for name in names:
        own = name[start : len(name) - back]
        before, after = name[:start], name[len(name) - back :] if back else ""
        left = room - width_of(own) - 2
        if left < 2:
            found.append(f"…{cut(own, room - 2)}…" if start else cut(name, room))
            continue
        behind = min(width_of(after), left // 2)
        ahead = min(width_of(before), left - behind)
        head = before
        if ahead < width_of(before):
            head = end_of(before, ahead)
            # From the begin of a part on, where one begins early enough.
            mark = head.find("/", 0, ahead // 2 + 1)
            head = f"…{head[max(mark, 0) :]}"
            ahead = width_of(head) - 1
        behind = min(width_of(after), left - ahead)
        tail = after if behind >= width_of(after) else f"{begin_of(after, behind)}…"
        found.append(f"{head}{own}{tail}")
    shown = dict(zip(names, found, strict=True))
    for group in _alike(shown):
        # Fewer names have more in common.
        if 1 < len(group) < len(names):
            shown.update(zip(group, _where_they_differ(group, room), strict=True))
    return [shown[name] for name in names]


def _alike(shown: Mapping[str, str]) -> list[list[str]]:
    """The names, together where they are shown alike."""
    groups: dict[str, list[str]] = {}
    for name, text in shown.items():
        groups.setdefault(text, []).append(name)
    return [*groups.values()]
