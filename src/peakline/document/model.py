"""What an answer is made of when it is shown: facts and tables, with labels and units.

Terminal, report and notebook draw these and add nothing: which rows there are, how they are called
and when they are worth showing is said where the document is made. Labels are as in the middle of
a sentence; a face writes them large where it does so.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from peakline.text import counted, short_time_text, size_text, time_text

Value = str | int | float | None
"""A cell; None is not known."""
Row = Sequence[Value]


@dataclass(frozen=True)
class Column:
    """``unit`` is that of `peakline.findings.kind.Column`, ``count``, ``run_ps`` (short times); of
    texts ``name`` (an op), ``form`` (a type, a shape), ``remark`` or empty.
    """

    label: str
    unit: str = ""

    @property
    def is_number(self) -> bool:
        """Whether it is set to the right."""
        return self.unit in _TEXTS and self.unit != "bar"


@dataclass(frozen=True)
class Fact:
    """One number or text about something; ``note`` goes on in the same line."""

    label: str
    value: Value
    unit: str = ""
    note: str = ""

    @property
    def text(self) -> str:
        """The value and the note in one line."""
        return f"{text_of(self.value, self.unit)}{self.note}"


@dataclass(frozen=True)
class Table:
    """Rows under a title; ``rest`` sums up those that are left out, how many there are first."""

    title: str
    columns: Sequence[Column]
    rows: Sequence[Row]
    rest: Row = ()

    def without_empty(self) -> Table:
        """The table without the columns that have nothing in any row."""
        some = [n for n in range(len(self.columns)) if any(row[n] != "" for row in self.rows)]
        return self.only(some)

    def trimmed(self) -> Table:
        """The table without its last column where that is for remarks and no row has one."""
        is_remark = self.columns[-1].unit == "remark"
        return (
            self
            if not is_remark or any(row[-1] for row in self.rows)
            else self.only(range(len(self.columns) - 1))
        )

    def numbers_first(self) -> Table:
        """The table as narrow faces have it: names, which may be long, come last."""
        places = range(len(self.columns))
        return self.only(sorted(places, key=lambda n: not self.columns[n].is_number))

    def only(self, places: Sequence[int]) -> Table:
        """The table with the columns at ``places``, in that order."""
        rows = [[row[n] for n in places] for row in self.rows]
        # Where it is a row of its own: some only count.
        rest = self.rest
        if len(rest) == len(self.columns):
            rest = [rest[n] for n in places]
        return replace(self, columns=[self.columns[n] for n in places], rows=rows, rest=rest)


_COMMON = {"op": "name", "size": "bytes", "share": "share", "count": "count"}
_COMMON |= {"region": "form", "type": "form", "shape": "form"}


def columns_of(*common: str, **others: str) -> tuple[Column, ...]:
    """Columns by their labels: ``common`` ones, then ``others`` with their units, whose blanks are
    written as underscores.
    """
    units = {label: _COMMON.get(label, "") for label in common} | others
    return tuple(Column(label.replace("_", " "), unit) for label, unit in units.items())


def text_of(value: Value, unit: str) -> str:
    """A value as plain text; texts as they are."""
    if value is None:
        return "not known" if unit else ""
    if isinstance(value, str):
        return value
    return _TEXTS.get(unit, _count)(value)


def value_of(value: object) -> Value:
    """A value of a row of evidence as a cell; what is no number is text."""
    return value if value is None or isinstance(value, str | int | float) else str(value)


def capital(text: str) -> str:
    """``text`` as the begin of a sentence."""
    return f"{text[:1].upper()}{text[1:]}"


def _count(value: float) -> str:
    return f"{value:,.0f}" if float(value).is_integer() else f"{value:,.1f}"


_TEXTS: dict[str, Callable[[float], str]] = {
    "bytes": size_text,
    "ps": lambda value: time_text(round(value)),
    "run_ps": lambda value: short_time_text(round(value)),
    "share": lambda value: f"{value:.1%}",
    "count": _count,
    "signed": _count,
    "figure": _count,
    "bar": lambda value: "█" * round(value * 30),
}
"""``bar`` draws a share. ``signed`` is a difference, written with its sign where it is made, and
``figure`` a number written where it is made, since its unit is not that of the whole column.
"""


def more_text(left: int, what: str = "", where: str = "") -> str:
    """How many are left out, and ``where`` they are: ``and 3 more findings: to_pandas()``; empty
    for none.

    >>> more_text(3, "finding")
    'and 3 more findings'
    """
    if left <= 0:
        return ""
    return f"and {counted(left, f'more {what}') if what else f'{left:,} more'}{where}"


def rest_text(table: Table, what: str, *sizes: str) -> str:
    """How many rows of ``what`` are left out: ``and 3 more values, 1.2 MiB``; empty for none.

    ``sizes`` are the units of the sums that `Table.rest` has after the count, or the name of the
    thing, such as ``node``, that a sum counts.
    """
    if not table.rest:
        return ""
    count, *sums = table.rest
    more = [more_text(int(count or 0), what)]
    for value, unit in zip(sums, sizes, strict=False):
        is_thing = unit not in _TEXTS
        more.append(counted(int(value or 0), unit) if is_thing else text_of(value or 0, unit))
    return ", ".join(more)
