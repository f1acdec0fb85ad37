"""The rows of a difference: kinds of buffers at two peaks, and bytes per step of a kind."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from peakline.compare.matching import KindPair
from peakline.compare.state import NO_PURPOSE, SPECIAL, AllocatorState, Group, Kind, Purpose, Rate
from peakline.memory.signatures import dimensions
from peakline.shown import Brief
from peakline.text import size_text, time_text

NEW, GONE = "new", "gone"
ARRIVED, LEFT = "now at the peak", "no longer at the peak"
RENAMED, SHAPE, DATA_TYPE, REGION = "renamed", "shape", "data type", "region"
COUNT, PIECES, BYTES = "count", "pieces", "bytes"


@dataclass(frozen=True, repr=False)
class GroupDiff(Brief):
    """One kind of buffers at the two peaks. Sizes are bytes.

    ``kind`` is that of the later profile, or of the earlier one where it is gone; ``was`` the
    earlier one where it differs. ``change`` is one of ``new`` and ``gone`` (nowhere in the other
    profile, as far as that says), ``now at the peak`` and ``no longer at the peak``, ``renamed``,
    ``shape``, ``data type``, ``region``, ``count`` (more or fewer buffers), ``pieces`` (the same
    buffers, handed out in pieces of another size), ``bytes``. ``purpose`` is that of the later
    profile, or of the earlier one where the later has none.
    """

    kind: Kind
    was: Kind | None
    change: str
    before_bytes: int
    after_bytes: int
    before_count: int
    after_count: int
    purpose: Purpose = NO_PURPOSE

    @property
    def delta_bytes(self) -> int:
        """After less before."""
        return self.after_bytes - self.before_bytes

    @property
    def text(self) -> str:
        """What happened to it, in a few words."""
        was = self.was
        if self.change == COUNT:
            return f"{self.before_count:,} -> {self.after_count:,} buffers"
        if self.change == PIECES:
            size = "larger" if self.delta_bytes > 0 else "smaller"
            return f"the same buffers in {size} pieces"
        if was is None:
            return "" if self.change == BYTES else self.change
        return _moved(was, self.kind)

    def as_json(self) -> dict[str, object]:
        """The shape of ``groups`` in ``peakline diff --json``."""
        return {
            **self.kind.as_json(),
            "before_bytes": self.before_bytes,
            "after_bytes": self.after_bytes,
            "delta_bytes": self.delta_bytes,
            "before_count": self.before_count,
            "after_count": self.after_count,
            "change": self.change,
            "was": None if self.was is None else self.was.as_json(),
            "text": self.text,
            **{name: text for name, text in self.purpose._asdict().items() if text},
        }


@dataclass(frozen=True, repr=False)
class RateDiff(Brief):
    """One kind per step in the two profiles: bytes, and how many allocations (0: not counted).

    ``was`` as in `GroupDiff`.
    """

    kind: Kind
    was: Kind | None
    before: Rate | None
    after: Rate | None

    @property
    def before_bytes(self) -> float:
        """Bytes per step in the earlier profile."""
        return 0 if self.before is None else self.before.bytes_per_step

    @property
    def after_bytes(self) -> float:
        """Bytes per step in the later profile."""
        return 0 if self.after is None else self.after.bytes_per_step

    @property
    def delta_bytes(self) -> float:
        """After less before."""
        return self.after_bytes - self.before_bytes

    @property
    def text(self) -> str:
        """How the kind itself changed, in a few words; empty where it did not."""
        return "" if self.was is None else _moved(self.was, self.kind)

    @property
    def is_pieces(self) -> bool:
        """Whether a step makes the same allocations, which only got pieces of another size."""
        one, other = self.before, self.after
        if one is None or other is None or self.was is not None or not self.kind.shape:
            return False
        return one.count_per_step == other.count_per_step > 0

    def as_json(self) -> dict[str, object]:
        """One of the rows of ``growth`` and ``churn`` in ``peakline diff --json``."""
        return {
            **self.kind.as_json(),
            "before_bytes_per_step": round(self.before_bytes),
            "after_bytes_per_step": round(self.after_bytes),
            "delta_bytes_per_step": round(self.delta_bytes),
            "was": None if self.was is None else self.was.as_json(),
        }


def _moved(was: Kind, now: Kind) -> str:
    """``same op, [32, 128] -> [64, 128]``."""
    parts = [
        f"{old or 'unknown'} -> {new or 'unknown'}"
        for old, new in (
            (was.shape, now.shape),
            (was.data_type, now.data_type),
            (was.region_type, now.region_type),
        )
        if old != new
    ]
    return ", ".join(["same op" if was.op == now.op else f"renamed from {was.op}", *parts])


def group_rows(
    before: AllocatorState | None, after: AllocatorState | None, pairs: Iterable[KindPair]
) -> tuple[GroupDiff, ...]:
    """The kinds of ``pairs`` that changed at the peak, those that changed most first."""
    old = {} if before is None else {group.kind: group for group in before.groups}
    new = {} if after is None else {group.kind: group for group in after.groups}
    all_told = all(state is None or state.kinds is not None for state in (before, after))
    result = []
    for one, other in pairs:
        kind = one if other is None else other
        if kind is None:
            continue
        was = old.get(one) if one is not None else None
        now = new.get(other) if other is not None else None
        row = GroupDiff(
            kind,
            one if other is not None and one != other else None,
            _change(kind, KindPair(one, other), was, now, all_told=all_told),
            0 if was is None else was.bytes,
            0 if now is None else now.bytes,
            0 if was is None else was.count,
            0 if now is None else now.count,
            _purpose(after, other) or _purpose(before, one) or NO_PURPOSE,
        )
        if (was or now) and (row.delta_bytes or row.was or row.before_count != row.after_count):
            result.append(row)
    return tuple(sorted(result, key=lambda row: (-abs(row.delta_bytes), row.kind)))


def _purpose(state: AllocatorState | None, kind: Kind | None) -> Purpose | None:
    return None if state is None or kind is None else state.purposes.get(kind)


def _change(
    kind: Kind, pair: KindPair, was: Group | None, now: Group | None, *, all_told: bool
) -> str:
    one, other = pair
    if kind.op in SPECIAL:
        return BYTES
    if one is None or other is None:
        if all_told:
            return NEW if one is None else GONE
        # A baseline in a file has the kinds at its peak only.
        return ARRIVED if one is None else LEFT
    if one != other:
        if one.op != other.op:
            return RENAMED
        if one.shape != other.shape:
            return SHAPE
        return DATA_TYPE if one.data_type != other.data_type else REGION
    if was is None or now is None:
        return ARRIVED if was is None else LEFT
    if was.count != now.count:
        return COUNT
    return PIECES if one.shape else BYTES


def rate_rows(
    before: Iterable[Rate], after: Iterable[Rate], pairs: Iterable[KindPair]
) -> tuple[RateDiff, ...]:
    """The kinds of ``pairs`` whose bytes per step changed, those that changed most first."""
    old = {rate.kind: rate for rate in before}
    new = {rate.kind: rate for rate in after}
    result = []
    for one, other in pairs:
        kind = one if other is None else other
        if kind is not None:
            row = RateDiff(
                kind,
                one if other is not None and one != other else None,
                None if one is None else old.get(one),
                None if other is None else new.get(other),
            )
            result += [row] if row.delta_bytes else []
    return tuple(sorted(result, key=lambda row: (-abs(row.delta_bytes), row.kind)))


_PIECES = 0.1
"""Pieces of another size are worth a word from this share of what changed on."""
_LIKE = 2
"""A dimension that changed in the same way in so many groups explains them together."""


def notes_on(
    before: AllocatorState, after: AllocatorState, groups: Sequence[GroupDiff]
) -> tuple[str, ...]:
    """The notes on two states of one allocator and what changed at its peak."""
    return (*resized(groups), *_pieces(groups), *_measures(before, after))


def resized(groups: Iterable[GroupDiff]) -> list[str]:
    """Dimensions that changed in the same way in several groups, such as a doubled batch."""
    result: dict[tuple[int, int], list[GroupDiff]] = {}
    for group in groups:
        if group.was is None:
            continue
        old, new = dimensions(group.was.shape) or (), dimensions(group.kind.shape) or ()
        if len(old) == len(new):
            steps = {(one, other) for one, other in zip(old, new, strict=True) if one != other}
            if len(steps) == 1:
                result.setdefault(steps.pop(), []).append(group)
    answer = [
        (sum(group.delta_bytes for group in members), step, len(members))
        for step, members in result.items()
        if len(members) >= _LIKE
    ]
    return [
        f"a dimension of {old} became {new} in {count} groups of buffers: {signed_size(delta)}"
        for delta, (old, new), count in sorted(answer, key=lambda one: (-abs(one[0]), one[1]))
    ]


def _pieces(groups: Sequence[GroupDiff]) -> list[str]:
    pieces = sum(group.delta_bytes for group in groups if group.change == PIECES)
    whole = sum(group.delta_bytes for group in groups)
    result = (
        f"{signed_size(pieces)} is the same buffers in pieces of another size: what an allocator "
        "hands out depends on what it has at hand"
    )
    return [result] if pieces and abs(pieces) >= _PIECES * abs(whole) else []


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
