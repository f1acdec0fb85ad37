"""Tables on a terminal: one line per row, columns fitted to the width, long names elided."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain

from peakline.render.terminal.layout import PROSE, Line, begin_of, cut, end_of, width_of, wrapped
from peakline.safe_text import one_line

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
    result: list[str] = []
    for name in names:
        own = name[start : len(name) - back]
        before, after = name[:start], name[len(name) - back :] if back else ""
        left = room - width_of(own) - 2
        if left < 2:
            result.append(f"…{cut(own, room - 2)}…" if start else cut(name, room))
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
        result.append(f"{head}{own}{tail}")
    shown = dict(zip(names, result, strict=True))
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


GAP = "  "
_NAME, _TEXT, _WHOLE = 24, 18, 32
"""A name, or another text, is not cut shorter than this while a column may be left out; no text
shorter than the third while one of the least is there.
"""
_SHARE = 1 / 3
"""So much of the width is for names, before columns that are named as least are left out."""
_LABEL = 1 / 3


@dataclass(frozen=True)
class Head:
    """A column: ``number`` is never cut and set to the right, ``name`` is what rows are about,
    ``text`` is beside it, ``bar`` draws a share.
    """

    label: str
    kind: str = "text"


@dataclass(frozen=True)
class Grid:
    """Rows of texts under headings. Columns without content are left out; on a terminal that is too
    narrow, those of ``least`` next, in that order, then others from the right; names are cut last.

    ``styles``: the style of cells with that text.
    """

    heads: Sequence[Head]
    rows: Sequence[Sequence[str]]
    least: Sequence[str] = ()
    styles: Mapping[str, str] = field(default_factory=dict)

    @cached_property
    def _cells(self) -> list[list[str]]:
        return [[one_line(cell) for cell in row] for row in self.rows]

    @cached_property
    def _columns(self) -> list[int]:
        """The places of the columns that say something."""
        places = range(len(self.heads))
        if not self._cells:
            return [*places]
        return [place for place in places if any(row[place].strip() for row in self._cells)]

    def _label(self, place: int) -> str:
        return one_line(self.heads[place].label)

    def _natural(self, place: int) -> int:
        cells = (width_of(row[place]) for row in self._cells)
        return max([width_of(self._label(place)), *cells])

    def _floor(self, place: int, name: int, text: int = _TEXT) -> int:
        """The least room of a column: ``name`` for what rows are about, ``text`` for others."""
        natural, kind = self._natural(place), self.heads[place].kind
        if kind not in {"name", "text"}:
            return natural
        floor = max(name if kind == "name" else text, width_of(self._label(place)))
        if natural <= floor:
            return natural
        return min(floor, widest((row[place] for row in self._cells), floor))

    def fits(self, width: int | None) -> bool:
        """Whether all columns have room without names cut very short."""
        return width is None or self._taken(self._columns, self._wanted_name(width)) <= width

    def _wanted_name(self, width: int) -> int:
        return max(_NAME, int(width * _SHARE))

    def _taken(self, places: Sequence[int], name: int, text: int = _TEXT) -> int:
        return sum(self._floor(n, name, text) for n in places) + len(GAP) * (len(places) - 1)

    def _shown(self, width: int | None) -> list[int]:
        """The columns for which ``width`` has room."""
        places = list(self._columns)
        if width is None:
            return places
        wanted = self._wanted_name(width)
        by_label = {self.heads[place].label.lower(): place for place in places}
        for label in self.least:
            if self._taken(places, wanted, _WHOLE) <= width:
                return places
            if (place := by_label.get(label.lower())) is not None and len(places) > 1:
                places.remove(place)
        for place in self._droppable(places):
            if self._taken(places, _NAME) <= width:
                break
            places.remove(place)
        return places

    def _droppable(self, places: Sequence[int]) -> list[int]:
        """Bars, then columns from the right, but for the first number and what rows are about."""
        kinds = {place: self.heads[place].kind for place in places}
        essential = {next((n for n in places if kinds[n] == "number"), -1)}
        names = [n for n in places if kinds[n] == "name"]
        texts = [n for n in places if kinds[n] == "text"]
        essential.add((names or texts or [-1])[0])
        others = [n for n in reversed(places) if n not in essential]
        return sorted(others, key=lambda n: kinds[n] != "bar")

    def left_out(self, width: int | None) -> Sequence[str]:
        """The headings of columns for which ``width`` has no room."""
        shown = self._shown(width)
        return [self._label(place) for place in self._columns if place not in shown]

    def lines(self, width: int | None) -> Iterator[Line]:
        """The headings, where there are any, and a line for each row."""
        places = self._shown(width)
        widths = self._widths(places, width)
        columns = [self._fitted(place, room) for place, room in zip(places, widths, strict=True)]
        # What names have in common may have been left out.
        widths = [
            min(room, max([width_of(self._label(place)), *map(width_of, cells)]))
            for place, room, cells in zip(places, widths, columns, strict=True)
        ]
        if any(self._label(place) for place in places):
            labels = [cut(self._label(n), room) for n, room in zip(places, widths, strict=True)]
            yield self._line(labels, places, widths, lambda _: "bold")
        for row in zip(*columns, strict=True):
            yield self._line(row, places, widths, lambda text: self.styles.get(text, ""))

    def _widths(self, places: Sequence[int], width: int | None) -> list[int]:
        natural = [self._natural(place) for place in places]
        gaps = len(GAP) * (len(places) - 1)
        if width is None or sum(natural) + gaps <= width:
            return natural
        result = [self._floor(place, _NAME) for place in places]
        spare = width - gaps - sum(result)
        while spare > 0 and (room := [n for n, most in enumerate(natural) if result[n] < most]):
            for n in room[:spare]:
                result[n] += 1
            spare -= len(room[:spare])
        while spare < 0:
            # Nothing more can be left out: the widest text is cut.
            texts = [n for n, p in enumerate(places) if self.heads[p].kind in {"name", "text"}]
            if not texts or result[most := max(texts, key=result.__getitem__)] <= 3:
                break
            result[most] -= 1
            spare += 1
        return result

    def _fitted(self, place: int, room: int) -> list[str]:
        cells = [row[place] for row in self._cells]
        if self.heads[place].kind == "bar":
            return [cell[:room] for cell in cells]
        return elided(cells, room) if self.heads[place].kind != "number" else cells

    def _line(
        self,
        cells: Sequence[str],
        places: Sequence[int],
        widths: Sequence[int],
        style_of: Callable[[str], str],
    ) -> Line:
        line: Line = []
        for cell, place, room in zip(cells, places, widths, strict=True):
            blanks = " " * max(room - width_of(cell), 0)
            gap = GAP if line else ""
            is_right = self.heads[place].kind == "number"
            line += [(gap + blanks if is_right else gap, ""), (cell, style_of(cell))]
            line += [] if is_right else [(blanks, "")]
        return line


@dataclass(frozen=True)
class Choice:
    """The first of several tables, each narrower than the one before, that has room; else the
    last, fitted.
    """

    grids: Sequence[Grid]

    def _chosen(self, width: int | None) -> Grid:
        return next((grid for grid in self.grids if grid.fits(width)), self.grids[-1])

    def lines(self, width: int | None) -> Iterator[Line]:
        """The lines of the table that has room."""
        return self._chosen(width).lines(width)

    def left_out(self, width: int | None) -> Sequence[str]:
        """What the first table has and the shown one lacks."""
        grid = self._chosen(width)
        missing = {one.label for one in self.grids[0].heads} - {one.label for one in grid.heads}
        first = [one.label for one in self.grids[0].heads if one.label in missing]
        return [*map(one_line, first), *grid.left_out(width)]


@dataclass(frozen=True)
class Labelled:
    """Lines of labels and a text, which is wrapped beside them: the last cell of each row."""

    rows: Sequence[Sequence[str]]
    style: str = ""
    is_prose: bool = True

    def lines(self, width: int | None) -> Iterator[Line]:
        """A row, and the rest of its text below its begin."""
        rows = [[one_line(cell) for cell in row] for row in self.rows]
        labels = [list(column) for column in zip(*rows, strict=True)][:-1]
        for column in labels:
            if width is not None:
                column[:] = elided(column, int(width * _LABEL))
        rooms = [max(map(width_of, column)) for column in labels]
        begin = sum(room + len(GAP) for room in rooms if room)
        for place, row in enumerate(rows):
            heads = [
                (f"{column[place]}{' ' * (room - width_of(column[place]))}{GAP}", self.style)
                for column, room in zip(labels, rooms, strict=True)
                if room
            ]
            room = None if width is None else min(width, PROSE) - begin
            for number, text in enumerate(wrapped(row[-1], room)):
                yield [*heads, (text, "")] if not number else [(" " * begin, ""), (text, "")]

    def left_out(self, width: int | None) -> Sequence[str]:  # noqa: ARG002  (as a `Part`)
        """Nothing."""
        return ()


def plain_grid(
    columns: Sequence[str],
    rows: Iterable[Sequence[str]],
    *,
    right: Iterable[str] = (),
    names: Iterable[str] = (),
    least: Sequence[str] = (),
    styles: Mapping[str, str] | None = None,
) -> Grid:
    """A table of texts; ``right`` names columns of numbers, ``names`` those that rows are about."""
    numbers, about = set(right), set(names)
    heads = [
        Head(label, "number" if label in numbers else "name" if label in about else "text")
        for label in columns
    ]
    return Grid(heads, [*rows], least, styles or {})
