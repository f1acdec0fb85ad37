"""The sessions of a log directory as a table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from peakline.document.model import Table, columns_of

_NAMES = 4
"""So many hosts, or tools, are named; of more all but the last of these."""


def sessions_table(rows: Sequence[Mapping[str, Any]]) -> Table:
    """The sessions of ``peakline sessions --json``."""
    cells = [
        (
            row["session_id"],
            _first_few(row["hosts"]),
            "" if row["bytes"] is None else row["bytes"],
            row["modified"] or "",
            _first_few(row["tools"]),
        )
        for row in rows
    ]
    columns = columns_of(session="name", hosts="", size="bytes", modified="", tools="")
    return Table("sessions", columns, cells)


def _first_few(names: Sequence[str]) -> str:
    """The names, the first few where there are many."""
    if len(names) <= _NAMES:
        return ", ".join(names)
    shown = _NAMES - 1
    return f"{', '.join(names[:shown])} and {len(names) - shown} more"
