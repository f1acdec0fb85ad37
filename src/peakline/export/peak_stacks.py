"""Memory at the peak of every allocator, as stacks: by the scope of the op, or by the call stack
where the profile has one.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from peakline.findings.memory_answer import answer_memory
from peakline.memory.lifetimes import Lifetimes
from peakline.memory.origins.stacks import frames_of
from peakline.memory.peak.explained import BEFORE_PROFILE, RESERVED, UNATTRIBUTED
from peakline.memory.usage import buffer_bytes, measure
from peakline.tables import Profile
from peakline.tables.columns import Columns


@dataclass(frozen=True)
class Frame:
    """One level of a stack; ``file`` and ``line`` are those of a function, else empty and 0."""

    name: str
    file: str = ""
    line: int = 0


@dataclass(frozen=True)
class StackRow:
    """Buffers of one stack: ``frames`` from the outermost in; ``bytes`` may be negative for
    ``(unattributed)``, ``count`` is 0 for rows without a real op.
    """

    frames: tuple[Frame, ...]
    bytes: int
    count: int
    region_type: str


@dataclass(frozen=True)
class AllocatorStacks:
    """One allocator at its peak: the ``rows`` add up to ``peak_bytes`` exactly."""

    allocator: str
    peak_bytes: int
    peak_time_ps: int
    rows: tuple[StackRow, ...]


def peak_stacks(profile: Profile, allocator: str | None) -> tuple[AllocatorStacks, ...]:
    """What every allocator (or the named one) held at its peak, most bytes first.

    The last frame is the op's own name with type and shape; with a call stack it is what the
    record has besides it. What had to be guessed is counted in ``profile.warnings``, as by
    ``peakline memory``. Raises NotFoundError for an unknown allocator.
    """
    answer = answer_memory(profile, allocator=allocator)
    if answer.history is None:
        return ()
    live = _live_rows(profile, answer.history.events, answer.history.lifetimes)
    result = []
    for peak in answer.allocators:
        rows = list(live.get(peak.allocator, ()))
        rows += [
            StackRow((Frame(buffer.op),), buffer.bytes, 0, "")
            for buffer in peak.peak_buffers
            if buffer.op in {BEFORE_PROFILE, RESERVED, UNATTRIBUTED}
        ]
        rows.sort(key=lambda row: (-row.bytes, [frame.name for frame in row.frames]))
        result.append(
            AllocatorStacks(peak.allocator, peak.peak_bytes, peak.peak_time_ps, tuple(rows))
        )
    return tuple(result)


def _live_rows(
    profile: Profile, events: Columns, lifetimes: Lifetimes
) -> dict[str, list[StackRow]]:
    """By allocator, the buffers live at its peak but for those from before the profile."""
    usages = measure(events, lifetimes)
    rows = lifetimes.live_after(np.array([usage.peak_row for usage in usages], np.int64))
    labels = [events.names(name) for name in ("op", "region_type", "data_type", "shape")]
    rows = rows[labels[0].codes[rows] != labels[0].code_of(BEFORE_PROFILE)]
    stack = np.where(events.is_valid("stack_id")[rows], events.array("stack_id")[rows], -1)
    keys = np.stack([lifetimes.allocator[rows], stack, *(label.codes[rows] for label in labels)])
    distinct, place = np.unique(keys, axis=1, return_inverse=True)
    place = place.reshape(-1)
    size, count = (np.zeros(distinct.shape[1], np.int64) for _ in range(2))
    np.add.at(size, place, buffer_bytes(events, rows))
    summed = events.is_valid("count")[rows]
    np.add.at(count, place, np.where(summed, events.array("count")[rows], 1))
    known = profile.columns_or_empty("stacks")
    frames = {
        number: tuple(Frame(name or file or "(unknown)", file, line) for name, file, line in frames)
        for number, frames in frames_of(known, stack[stack >= 0]).items()
    }
    result: dict[str, list[StackRow]] = {}
    for (owner, number, *codes), bytes_, many in zip(
        distinct.T.tolist(), size.tolist(), count.tolist(), strict=True
    ):
        op, region, *what = (
            label.values[code] if code >= 0 else ""
            for label, code in zip(labels, codes, strict=True)
        )
        what_else = " ".join(part for part in what if part)
        path = frames.get(number, ())
        if path:
            path = (*path, Frame(what_else)) if what_else else path
        else:
            *scope, last = op.split("/") if op else ["(no op)"]
            path = (*map(Frame, scope), Frame(f"{last} {what_else}".strip()))
        row = StackRow(path, bytes_, many, region)
        result.setdefault(lifetimes.allocators[owner], []).append(row)
    return result
