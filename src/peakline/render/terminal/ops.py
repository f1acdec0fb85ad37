"""Ops and kernels as a person reads them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from peakline.document import limits
from peakline.document.headline import rows_headline
from peakline.document.model import Table, rest_text
from peakline.document.ops import (
    NARROW_WITHOUT,
    RUNS,
    by_function_tables,
    by_module_tables,
    by_shape_tables,
    by_type_tables,
    kernels_table,
    ops_tables,
    printed_tables,
    to_place,
)
from peakline.render.terminal.screen import Shown, Text, drawn, headed, indented, profile_line, show

if TYPE_CHECKING:
    from peakline.api import Profile
    from peakline.tables.columns import Columns
    from peakline.timing.ops.places import By

_COLUMN = {"total": "total", "count": "runs", "median": "median", "max": "max"}
"""What the column is called by which rows are ordered, if it is not the self time."""


def print_ops(profile: Profile, table: Columns | None, top: int | None, sort: str = "self") -> None:
    """Print the ops of the devices, then those of the host; ``table`` is in the order ``sort``."""
    sides = {} if table is None else ops_tables(table, top or limits.OPS.terminal)
    by = _COLUMN.get(sort, "")
    parts = headed(rows_headline(sides, "op", by), profile)
    for one in sides.values():
        parts += _table(one, "op", [*NARROW_WITHOUT, "total"], by)
    if "device" in sides:
        parts += ["", Text(RUNS)]
    if not sides and "printed_ops" in profile.tables:
        for one in printed_tables(profile, top or limits.OPS.terminal).values():
            parts += _table(one, "line", [*NARROW_WITHOUT, "total"], "")
    elif not sides:
        rest = "; its events are in peakline trace" if profile.has_rows("events") else ""
        parts += ["", Text(f"no ops in this profile{rest}")]
    show([*parts, *_to_record(profile)])


def print_ops_by(
    profile: Profile, rows: list[dict[str, Any]], by: By, top: int | None, sort: str = "self"
) -> None:
    """Print the time of ops by module, function, type or shapes; ``rows`` are in order."""
    tables_of = {
        "function": by_function_tables, "module": by_module_tables, "shape": by_shape_tables,
        "type": by_type_tables,
    }[by]  # fmt: skip
    tables = tables_of(rows, top or limits.OPS.terminal)
    column = _COLUMN.get(sort, "")
    parts = headed(rows_headline(tables, by, column), profile)
    for one in tables.values():
        # Two columns of names need the room of the numbers.
        more = ["total", "median"] if by == "shape" else []
        what = "row" if by == "shape" else by
        parts += _table(one, what, [*NARROW_WITHOUT, *more], column)
    if not tables:
        none = {
            "function": "functions of yours", "module": "modules of ops", "type": "ops",
            "shape": "shapes of inputs of ops",
        }[by]  # fmt: skip
        parts += ["", Text(f"no {none} in this profile")]
    show([*parts, *_to_record(profile, by)])


def _to_record(profile: Profile, by: By | None = None) -> list[Shown]:
    lines = to_place(profile, by)
    return ["", *(Text(line) for line in lines)] if lines else []


def print_kernels(
    profile: Profile, table: Columns | None, top: int | None, sort: str = "self"
) -> None:
    """Print the GPU kernels; ``table`` is in the order ``sort``."""
    if table is None:
        show([profile_line(profile), "", "no GPU kernels in this profile"])
        return
    shown = kernels_table(table, top or limits.OPS.terminal)
    # A kernel calls nothing: all its time is its own.
    by = "" if sort == "total" else _COLUMN.get(sort, "")
    parts = headed(rows_headline({"kernels": shown}, "kernel", by), profile)
    show([*parts, *_table(shown, "kernel", [*NARROW_WITHOUT, "tensor cores", "op"], by)])


def _table(table: Table, what: str, least: Sequence[str], by: str) -> list[Shown]:
    """A table under its title, first the column ``by`` which rows are ordered; a narrow terminal
    has fewer others, without ``least`` first.
    """
    columns = table.columns
    table = table.only(sorted(range(len(columns)), key=lambda n: columns[n].label != by))
    least = [one for one in least if one != by]
    parts: list[Shown] = ["", Text(table.title, "bold"), drawn(table, least=least)]
    if table.rest:
        parts.append(indented(Text(rest_text(table, what))))
    return parts
