"""Ops and kernels as a person reads them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from rich.text import Text

from peakline.render.terminal.memory import heading
from peakline.render.terminal.screen import indented, plain_table, show
from peakline.render.terminal.time_parts import cut_middle, screen_width
from peakline.text import counted, shares_text, time_text

if TYPE_CHECKING:
    from rich.console import RenderableType

    from peakline.api import Profile
    from peakline.tables.columns import Columns

_ROWS = 20
_NAME, _SHORTEST = 72, 16
_NARROW = 120
"""Below so many columns some numbers are left out, so that names have room."""
_GAP, _INDENT = 2, 2
_OPS = ("SELF TIME", "SHARE", "TOTAL", "RUNS", "MEDIAN", "P95", "MAX")
_KERNELS = ("TOTAL", "SHARE", "RUNS", "MEDIAN", "P95", "MAX", "OCCUPANCY")
_LEFT_OUT = frozenset(("P95", "MAX", "TYPE", "OCCUPANCY", "GRID", "BLOCK"))
_SUMMED = {
    "device": "summed over devices and their streams",
    "host": "summed over threads",
}
_RUNS = "RUNS of an op on a device: the kernels that one run of it launched count as one, if known"


def print_ops(profile: Profile, table: Columns | None, top: int | None) -> None:
    """Print the ops of the devices, then those of the host; ``table`` stands in order."""
    parts: list[RenderableType] = [heading(profile, moment=not profile.duration_ps)]
    if table is None:
        parts += ["", Text("no ops in this profile")]
    else:
        side = table.names("side")
        for name in ("device", "host"):
            rows = np.flatnonzero(side.codes == side.code_of(name))
            if rows.size:
                parts += ["", *_side(name, table.take(rows), top or _ROWS)]
        if side.code_of("device") >= 0:
            parts += ["", Text(_RUNS)]
    show(parts)


def _side(side: str, table: Columns, most: int) -> list[RenderableType]:
    whole = int(table.array("self_ps").sum())
    title = f"{side}: {counted(table.rows, 'op')}, {_time(whole)} of self time, {_SUMMED[side]}"
    shares = _shares(table, "self_ps", most)
    rows = [
        {
            "SELF TIME": _time(row["self_ps"]),
            "SHARE": share,
            "TOTAL": _time(row["total_ps"]),
            **_spread(row),
            "TYPE": cut_middle(row["op_type"] or "", _NAME),
            "OP": row["op"],
        }
        for row, share in zip(_first(table, most), shares, strict=True)
    ]
    return [
        Text(title, style="bold"),
        _table((*_OPS, "TYPE", "OP"), rows, right=_OPS, leave=_LEFT_OUT | {"TOTAL"}),
        *_rest(table, most, "op"),
    ]


def print_kernels(profile: Profile, table: Columns | None, top: int | None) -> None:
    """Print the GPU kernels; ``table`` stands in order."""
    parts: list[RenderableType] = [heading(profile, moment=not profile.duration_ps)]
    if table is None:
        parts += ["", Text("no GPU kernels in this profile")]
        show(parts)
        return
    whole, most = int(table.array("total_ps").sum()), top or _ROWS
    shares = _shares(table, "total_ps", most)
    rows = [
        {
            "TOTAL": _time(row["total_ps"]),
            "SHARE": share,
            **_spread(row),
            "OCCUPANCY": f"{row['occupancy_percent']:.0f}%" if row["occupancy_percent"] else "",
            "TENSOR CORES": _tensor_cores(row["uses_tensor_cores"], row["could_use_tensor_cores"]),
            "GRID": row["grid"],
            "BLOCK": row["block"],
            "OP": row["op"] or "",
            "KERNEL": row["kernel"],
        }
        for row, share in zip(_first(table, most), shares, strict=True)
    ]
    columns = (*_KERNELS, "TENSOR CORES", "GRID", "BLOCK", "OP", "KERNEL")
    title = f"{counted(table.rows, 'kernel')}, {_time(whole)}, {_SUMMED['device']}"
    parts += ["", Text(title, style="bold")]
    parts.append(_table(columns, rows, right=_KERNELS, leave=_LEFT_OUT | {"TENSOR CORES", "OP"}))
    show(parts + _rest(table, most, "kernel"))


def _shares(table: Columns, column: str, most: int) -> list[str]:
    """What share of all each of the first rows has; with that of the rest they add up."""
    sizes = table.array(column)
    shown = sizes[:most].tolist()
    return shares_text([*shown, int(sizes.sum()) - sum(shown)])[: len(shown)]


def _spread(row: dict[str, Any]) -> dict[str, str]:
    times = {"MEDIAN": "median_ps", "P95": "p95_ps", "MAX": "max_ps"}
    return {
        "RUNS": f"{row['occurrences']:,}",
        **{label: _time(row[name]) for label, name in times.items()},
    }


def _table(
    columns: Sequence[str],
    rows: list[dict[str, str]],
    *,
    right: Sequence[str],
    leave: frozenset[str],
) -> RenderableType:
    """The last column, names, has the room that is left; on a narrow terminal without ``leave``."""
    width = screen_width() or 0
    if 0 < width < _NARROW:
        columns = [column for column in columns if column not in leave]
    *numbers, name = columns
    for row in rows:
        for column in numbers:
            row[column] = cut_middle(row[column], _NAME)
    used = sum(max(len(c), *(len(row[c]) for row in rows)) + _GAP for c in numbers) + _INDENT
    room = max(_SHORTEST, min(_NAME, width - used)) if width else _NAME
    cells = [(*(row[column] for column in numbers), cut_middle(row[name], room)) for row in rows]
    return indented(plain_table(columns, cells, right=right))


def _time(picoseconds: int) -> str:
    """In milliseconds, or in the unit in which a short time has digits."""
    if 10**6 <= abs(picoseconds) < 10**8:
        return f"{picoseconds / 10**6:.3f} us"
    return time_text(picoseconds)


def _tensor_cores(uses: bool, could: bool) -> str:
    return "used" if uses else "not used" if could else ""


def _first(table: Columns, most: int) -> list[dict[str, Any]]:
    return table.take(np.arange(min(most, table.rows))).to_pylist()


def _rest(table: Columns, most: int, what: str) -> list[RenderableType]:
    hidden = table.rows - most
    return [indented(Text(f"and {counted(hidden, f'more {what}')}"))] if hidden > 0 else []
