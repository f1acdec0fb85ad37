"""Cells and tables of Markdown."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

NOTHING = ""
"""In a cell whose number was not measured."""

_UNITS = {"s": "{:,.3f} s", "ms": "{:,.0f} ms", "1/s": "{:,.0f} a second"}


def number(value: float | None, form: str = "{:,.2f}") -> str:
    """A number in the form of `str.format`."""
    return NOTHING if value is None else form.format(value)


def mb(size: float | None) -> str:
    """Bytes in megabytes."""
    return NOTHING if size is None else f"{size / 1e6:,.0f} MB"


def table(words: Sequence[str], numbers: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """Lines of a table: columns of words to the left, then columns of numbers to the right."""
    aligned = ["---"] * len(words) + ["---:"] * len(numbers)
    return ["| " + " | ".join(line) + " |" for line in ([*words, *numbers], aligned, *rows)]


def figures(rows: Sequence[dict[str, Any]], subject: str) -> list[str]:
    """A table of rows that have ``subject``, program, unit, runs, median, least and most."""

    def cell(value: float | None, unit: str) -> str:
        return mb(value) if unit == "bytes" else number(value, _UNITS[unit])

    return table(
        [subject, "program"],
        ["runs", "median", "least", "most"],
        [
            [row[subject], row["program"], str(row["runs"])]
            + [cell(row[figure], row["unit"]) for figure in ("median", "least", "most")]
            for row in rows
        ],
    )
