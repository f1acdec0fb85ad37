"""Tables that a screen reader can walk and a printer does not cut."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence

from peakline.document.model import Column, Fact, Row, Table, capital
from peakline.render.html.html import Child, Markup, join, tag
from peakline.render.html.values import cell


class Tables:
    """Writes tables with ids that are used once in a page."""

    def __init__(self) -> None:
        self._numbers = itertools.count(1)

    def write(
        self, table: Table, *, foot: Row | None = None, head: int = 0, is_facts: bool = False
    ) -> Markup:
        """The table in a group that can be scrolled with the keyboard where it is too wide.

        The cell at ``head`` names its row, ``foot`` sums them up. ``is_facts``: its columns need no
        headings but for those who cannot see them.
        """
        name = f"table-{next(self._numbers)}"
        titles = [capital(column.label) for column in table.columns]
        heads = tag(
            "tr",
            *(
                tag(
                    "th",
                    tag("span", title, class_="unseen") if is_facts else title,
                    scope="col",
                    class_="number" if column.is_number else None,
                )
                for title, column in zip(titles, table.columns, strict=True)
            ),
        )
        rows = [*table.rows, table.rest] if table.rest else table.rows
        return tag(
            "div",
            tag(
                "table",
                tag("caption", tag("span", capital(table.title)), id=name),
                tag("thead", heads),
                tag("tbody", *(_row(table.columns, row, head) for row in rows)),
                None if foot is None else tag("tfoot", _row(table.columns, foot, head)),
            ),
            class_="scroll facts" if is_facts else "scroll",
            role="group",
            aria_labelledby=name,
            tabindex="0",
        )

    def facts(self, title: str, facts: Iterable[Fact]) -> Markup:
        """Facts, one per row: what it is and how much."""
        rows = [
            (capital(fact.label), join([cell(fact.value, fact.unit), fact.note])) for fact in facts
        ]
        return self.write(Table(title, (Column("fact"), Column("value")), rows), is_facts=True)


def _row(columns: Sequence[Column], cells: Row, head: int) -> Markup:
    text: list[Child] = []
    for place, (column, value) in enumerate(zip(columns, cells, strict=True)):
        shown = cell(value, column.unit)
        style = "number" if column.is_number else None
        if place == head:
            text.append(tag("th", shown, scope="row", class_=style))
        else:
            text.append(tag("td", shown, class_=style))
    return tag("tr", *text)
