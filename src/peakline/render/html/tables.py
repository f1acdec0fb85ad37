"""Tables that a screen reader can walk and a printer does not cut, and their cells."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence

from peakline.document.model import Column, Fact, Row, Table, Value, capital, text_of
from peakline.render.html.html import Child, Markup, clip, code, join, tag
from peakline.render.html.svg.paint import box
from peakline.text import allocator_text

_SHORT = 28
_BAR = 56


def size(value: float | None) -> Markup:
    """A size with its unit; the exact bytes are its value and what the pointer shows."""
    return _exact(value, "bytes", "bytes")


def time(picoseconds: int | None) -> Markup:
    """A time on the profile's clock; the exact picoseconds are its value."""
    return _exact(picoseconds, "ps", "ps")


def _exact(value: float | None, unit: str, name: str) -> Markup:
    if value is None:
        return tag("span", "not known", class_="unknown")
    exact = round(value)
    return tag("data", text_of(value, unit), value=exact, title=f"{exact:,} {name}")


def named(allocator: str) -> str:
    """An allocator's name, also where it has none."""
    return allocator_text(clip(allocator))


def cell(value: Value, unit: str) -> Child:
    """A cell of a document's table, or a fact's value: what its ``unit`` makes of it."""
    if isinstance(value, Markup):
        return value
    if isinstance(value, str):
        if unit == "share":
            return _share_bar(value)
        if unit == "form":
            text = clip(value)
            # A type or a shape is not broken where it is short.
            return tag("span", text, class_="whole" if len(text) <= _SHORT else None)
        return code(value) if unit == "name" else clip(value)
    if value is None or unit in {"bytes", "ps"}:
        return _exact(value, unit, unit)
    return text_of(value, unit)


def _share_bar(text: str) -> Markup:
    """A share with a bar behind it, which says nothing the number does not."""
    width = float(text.removesuffix("%") or 0) / 100 * _BAR
    marks = (
        tag("path", d=box(0, 0, _BAR, 9), class_="whole-bar"),
        tag("path", d=box(0, 0, min(width, _BAR), 9), class_="part-bar"),
    )
    bar = tag("svg", *marks, viewBox=f"0 0 {_BAR} 9", aria_hidden="true")
    return tag("span", bar, text, class_="share")


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
