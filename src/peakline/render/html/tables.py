"""Tables that a screen reader can walk and a printer does not cut."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from types import MappingProxyType

from peakline.findings.kind import Column as Heading
from peakline.findings.kind import heading_of
from peakline.render.html.html import Child, Markup, join, tag
from peakline.render.html.words import Steps, value_of

__all__ = ["Column", "Table", "Tables", "evidence_table", "fact_table"]


@dataclass(frozen=True)
class Column:
    """One column: its heading, and whether it holds numbers (set to the right)."""

    title: str
    is_number: bool = False


@dataclass(frozen=True)
class Table:
    """Rows under a caption; the cell at ``head`` names its row, ``foot`` sums them up."""

    caption: Child
    columns: Sequence[Column]
    rows: Sequence[Sequence[Child]]
    head: int = 0
    foot: Sequence[Child] | None = None
    is_facts: bool = False
    """Whether its columns need no headings but for those who cannot see them."""


class Tables:
    """Writes tables with ids that are used once in a page."""

    def __init__(self) -> None:
        self._numbers = itertools.count(1)

    def write(self, table: Table) -> Markup:
        """The table in a group that can be scrolled with the keyboard where it is too wide."""
        name = f"table-{next(self._numbers)}"
        titles = [
            tag("span", column.title, class_="unseen") if table.is_facts else column.title
            for column in table.columns
        ]
        heads = tag(
            "tr",
            *(
                tag("th", title, scope="col", class_="number" if column.is_number else None)
                for title, column in zip(titles, table.columns, strict=True)
            ),
        )
        body = tag("tbody", *(_row(table, row) for row in table.rows))
        foot = None if table.foot is None else tag("tfoot", _row(table, table.foot))
        return tag(
            "div",
            tag(
                "table",
                tag("caption", tag("span", table.caption), id=name),
                tag("thead", heads),
                body,
                foot,
            ),
            class_="scroll facts" if table.is_facts else "scroll",
            role="group",
            aria_labelledby=name,
            tabindex="0",
        )


def _row(table: Table, cells: Sequence[Child]) -> Markup:
    told = []
    for place, (column, cell) in enumerate(zip(table.columns, cells, strict=True)):
        style = "number" if column.is_number else None
        if place == table.head:
            told.append(tag("th", cell, scope="row", class_=style))
        else:
            told.append(tag("td", cell, class_=style))
    return join([tag("tr", *told)])


def fact_table(caption: Child, facts: Sequence[tuple[Child, Child]]) -> Table:
    """Facts, one per row: what it is and how much."""
    return Table(caption, (Column("Fact"), Column("Value")), facts, is_facts=True)


_SAID_ELSEWHERE = {"scope"}
"""The op's name begins with its scope."""
_TELLS_NOTHING = {"forms": (1,)}


def evidence_table(
    caption: Child,
    rows: Sequence[Mapping[str, object]],
    steps: Steps,
    declared: Mapping[str, Heading] = MappingProxyType({}),
    without: AbstractSet[str] = frozenset(),
) -> Table:
    """Rows of evidence as a table, but for the columns ``without`` and those that say nothing.

    ``declared`` are the columns of the kind of finding that they are of.
    """
    names = [
        name
        for name in rows[0]
        if name not in _SAID_ELSEWHERE | without
        and any(row[name] not in _TELLS_NOTHING.get(name, (None, "")) for row in rows)
        and any(value_of(name, row[name], steps) for row in rows)
    ]
    columns = [
        Column(heading_of(name, declared), all(isinstance(row[name], (int, float)) for row in rows))
        for name in names
    ]
    told = [[value_of(name, row[name], steps) for name in names] for row in rows]
    return Table(caption, columns, told)
