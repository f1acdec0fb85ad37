"""What changed between two profiles as rows of one table."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from peakline.compare.comparison import Comparison

_NAMES = (
    "about", "where", "name", "data_type", "shape", "change", "before", "after", "delta", "unit",
)  # fmt: skip


def changes_of(found: Comparison) -> list[dict[str, Any]]:
    """A row for each kind of buffers that changed at a peak (bytes), part of the mean step and op
    (ps); all have the same keys.
    """
    return [dict(zip(_NAMES, row, strict=True)) for row in _rows(found)]


def _rows(found: Comparison) -> Iterator[tuple[Any, ...]]:
    for diff in found.memory.allocators:
        for group in diff.groups:
            kind = group.kind
            sizes = group.before_bytes, group.after_bytes, group.delta_bytes
            form = kind.op, kind.data_type, kind.shape
            yield "peak", diff.allocator, *form, group.change, *sizes, "bytes"
    if found.time is None:
        return
    for part in found.time.parts:
        times = part.before_ps, part.after_ps, part.delta_ps
        yield "part", "", part.words, "", "", "", *times, "ps"
    for op in found.time.ops:
        times = op.before_ps, op.after_ps, op.delta_ps
        yield "op", op.side, op.op, "", "", op.change, *times, "ps"
