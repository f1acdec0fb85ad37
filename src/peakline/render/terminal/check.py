"""The outcome of a check as a person reads it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.text import Text

from peakline.compare.notes import signed_size
from peakline.memory.allocator_names import shown_names
from peakline.render.terminal.screen import indented, plain_table, show
from peakline.text import one_line, size_text

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rich.console import RenderableType

    from peakline.api import Profile
    from peakline.check.verdict import Check

_COLUMNS = ("RESULT", "LIMIT", "ALLOCATOR", "MEASURED", "ALLOWED")
_WHAT = {"op": "OP", "region_type": "REGION", "data_type": "TYPE", "shape": "SHAPE"}
_OTHER = {
    "bytes": "SIZE",
    "count": "COUNT",
    "bytes_per_step": "PER STEP",
    "before_bytes": "BASELINE",
    "after_bytes": "NOW",
    "delta_bytes": "CHANGE",
    "before_bytes_per_step": "BASELINE",
    "after_bytes_per_step": "NOW",
    "what": "WHAT HAPPENED",
}


def print_checks(profile: Profile, checks: Sequence[Check], baseline: str | None) -> None:
    """Print every check, then why each broken one is, and what is behind it."""
    names = shown_names(profile)
    against = "" if baseline is None else f", baseline {baseline}"
    parts: list[RenderableType] = [
        Text(one_line(f"{profile.path} ({profile.format}){against}")),
        "",
        plain_table(
            _COLUMNS,
            (
                (
                    check.verdict,
                    check.name,
                    names.get(check.allocator, check.allocator) or "(unnamed allocator)",
                    check.measured_text,
                    check.limit_text,
                )
                for check in checks
            ),
            right=_COLUMNS[3:],
        ),
    ]
    for check in checks:
        if check.verdict != "kept":
            style = "bold red" if check.verdict == "broken" else "bold"
            name = names.get(check.allocator, check.allocator) or "(unnamed allocator)"
            line = f"{check.verdict}: {name}: {check.name}: {check.reason}"
            parts += ["", Text(one_line(line), style=style)]
            parts += [indented(_rows(check.rows))] if check.rows else []
    show(parts)


def _rows(rows: Sequence[Mapping[str, object]]) -> RenderableType:
    names = [name for name in rows[0] if name not in _WHAT and name != "what"]
    names.sort(key=lambda name: not name.startswith("delta"))
    right = [_OTHER[name] for name in names]
    last = ["what"] if "what" in rows[0] else []
    order = [*names, *_WHAT, *last]
    titles = [(_WHAT | _OTHER)[name] for name in order]
    return plain_table(
        titles, ([_cell(name, row[name]) for name in order] for row in rows), right=right
    )


def _cell(name: str, value: object) -> str:
    if name == "op":
        return str(value or "(no op)")
    if not isinstance(value, int | float):
        return str(value)
    if name == "count":
        return f"{value:,}" if value else ""
    return signed_size(value) if name.startswith("delta") else size_text(value)
