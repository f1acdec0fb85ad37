"""What to bear in mind about a comparison: one line each."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from peakline.compare.rows import PIECES, GroupDiff
from peakline.compare.state import AllocatorState
from peakline.memory.signatures import dimensions
from peakline.text import size_text, time_text

_PIECES = 0.1
"""Pieces of another size are worth a word from this share of what changed on."""
_LIKE = 2
"""A dimension that changed in the same way in so many groups explains them together."""


def notes_on(
    before: AllocatorState, after: AllocatorState, groups: Sequence[GroupDiff]
) -> tuple[str, ...]:
    """The notes on two states of one allocator and what changed at its peak."""
    return (*_resized(groups), *_pieces(groups), *_measures(before, after))


def _resized(groups: Iterable[GroupDiff]) -> list[str]:
    """Dimensions that changed in the same way in several groups, such as a doubled batch."""
    found: dict[tuple[int, int], list[GroupDiff]] = {}
    for group in groups:
        if group.was is None:
            continue
        old, new = dimensions(group.was.shape) or (), dimensions(group.kind.shape) or ()
        if len(old) == len(new):
            steps = {(one, other) for one, other in zip(old, new, strict=True) if one != other}
            if len(steps) == 1:
                found.setdefault(steps.pop(), []).append(group)
    told = [
        (sum(group.delta_bytes for group in members), step, len(members))
        for step, members in found.items()
        if len(members) >= _LIKE
    ]
    return [
        f"a dimension of {old} became {new} in {count} groups of buffers: {signed_size(delta)}"
        for delta, (old, new), count in sorted(told, key=lambda one: (-abs(one[0]), one[1]))
    ]


def _pieces(groups: Sequence[GroupDiff]) -> list[str]:
    pieces = sum(group.delta_bytes for group in groups if group.change == PIECES)
    whole = sum(group.delta_bytes for group in groups)
    told = (
        f"{signed_size(pieces)} is the same buffers in pieces of another size: what an allocator "
        "hands out depends on what it has at hand"
    )
    return [told] if pieces and abs(pieces) >= _PIECES * abs(whole) else []


def _measures(before: AllocatorState, after: AllocatorState) -> list[str]:
    notes = [
        f"the peak of the {side} profile is not known: {state.peak_unknown}"
        for state, side in ((before, "earlier"), (after, "later"))
        if state.peak_unknown
    ]
    if {before.reported, after.reported} == {True, False}:
        side = "later" if before.reported else "earlier"
        notes.append(
            f"the allocator reported its bytes in use in one profile only; in the {side} one the "
            "buffers found are added up, which may be less"
        )
    leaks = before.leaks or after.leaks
    if leaks and before.steps and after.steps and before.steps != after.steps:
        notes.append(
            f"{before.steps} steps before, {after.steps} after: with a leak, the peak depends on "
            "how long the profile is"
        )
    return notes


def signed_size(size: float) -> str:
    """A difference as a person reads it: ``+8.6 MiB``."""
    return f"{'+' if size > 0 else ''}{size_text(size)}"


def signed_time(picoseconds: int) -> str:
    """A difference as a person reads it: ``+1.204 ms``."""
    return f"{'+' if picoseconds > 0 else ''}{time_text(picoseconds)}"
