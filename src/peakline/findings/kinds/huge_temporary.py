"""One kind of short-lived buffer makes the peak."""

from __future__ import annotations

from typing import TYPE_CHECKING

from peakline.findings.kind import SIGNATURE, Kind, columns
from peakline.text import allocator_text, size_text

if TYPE_CHECKING:
    from peakline.findings.context import Findings, MemoryContext
    from peakline.memory.savings import Saving

KIND = Kind(
    "huge_temporary",
    __doc__,
    about="memory",
    phrase="one kind of temporary makes the peak",
    severity="warning",
    section="peak",
    columns=columns(
        *SIGNATURE, "scope", "bytes", "count", "since_ps", "peak_bytes",
        saved_bytes="Saves",
        peak_after_bytes="Peak without it",
    ),
    saves="saved_bytes",
)  # fmt: skip

HUGE = 0.5
"""One kind of temporary makes the peak when the peak would be lower by this share without it."""
HUGE_BYTES = 64 * 1024
"""... and that is worth a word only from so many bytes on."""


def find(context: MemoryContext) -> Findings:
    """Of each allocator the first such saving."""
    for one in context.allocators:
        saving = next(filter(_is_huge, one.savings), None)
        if saving is None:
            continue
        before = saving.bytes + saving.peak_after
        # The op that made the first and largest of them is the one to change.
        row = saving.rows[0]
        are = "are" if sum(int(str(row["count"])) for row in saving.rows) > 1 else "is"
        yield KIND.finding(
            f"{allocator_text(saving.allocator)}: without {saving.title}, which {are} freed at "
            f"once, the peak would be {size_text(saving.peak_after)} instead of "
            f"{size_text(before)}",
            {
                "allocator": saving.allocator,
                **{name: row[name] for name in SIGNATURE[1:]},
                "bytes": row["bytes"],
                "saved_bytes": saving.bytes,
                "peak_bytes": before,
                "peak_after_bytes": saving.peak_after,
            },
            saving.suggestion,
            saving.rows,
        )


def _is_huge(saving: Saving) -> bool:
    least = max(HUGE * (saving.bytes + saving.peak_after), HUGE_BYTES)
    return saving.kind in {"temporary", "program"} and saving.bytes >= least
