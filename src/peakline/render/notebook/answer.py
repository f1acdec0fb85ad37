"""What a notebook shows of a tool's answer: the first rows of its table, else how it begins."""

from __future__ import annotations

from peakline.document import limits
from peakline.errors import PeaklineError
from peakline.render.notebook.pieces import headed, line, rows_table, shown
from peakline.shown import headline_of
from peakline.toolbox.answer_rows import ToolAnswer

_BEGIN = 2000
_LARGE = 32 << 20
"""A longer answer is not parsed for a look at it."""


def parts(answer: ToolAnswer) -> list[str]:
    """What `Profile.tool` and `Session.tool` return."""
    found = [headed("Answer", headline_of(answer))]
    notes = getattr(answer, "notes", ())
    found += [line(note) for note in notes[: limits.NOTES.notebook]]
    if len(answer.content) <= _LARGE and answer.format in {"json", "csv"}:
        try:
            rows = answer.to_arrow()
        except (PeaklineError, ValueError):
            rows = None
        if rows is not None and rows.num_columns:
            return [*found, *rows_table(rows)]
    text = answer.content[:_BEGIN].decode("utf-8", "replace")
    if "\x00" in text:
        return [*found, line("bytes, in content", quiet=True)]
    return [*found, line("it begins", quiet=True), f"<div>{shown(text, _BEGIN // 2)}</div>"]
