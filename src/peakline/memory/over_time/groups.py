"""Buffers of an allocator in groups: by op, scope, type, call stack, and how these grow and shrink.

A group is a text that some records of allocations share.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from peakline.arrays import AnyArray, BoolArray, Int64Array, IntpArray
from peakline.memory.origins.behind import described_records
from peakline.memory.origins.programs import programs_of
from peakline.memory.origins.stacks import frames_of
from peakline.memory.over_time.live import MemoryRecords, live_bytes, memory_records
from peakline.memory.peak.explained import BEFORE_PROFILE, DESCRIBED
from peakline.memory.signatures import normal_shape, scope_of
from peakline.tables import Profile
from peakline.tables.columns import Names
from peakline.tables.once import once
from peakline.text import population_of

GROUPS = (
    "op", "scope", "region_type", "data_type", "shape", *DESCRIBED, "stack", "step", "program",
)  # fmt: skip


@dataclass(frozen=True, eq=False)
class Labels:
    """A text per buffer: ``texts[codes]``, in order of their first buffer. ``texts`` are distinct.

    ``special`` is the code of what was there before the profile without an op, -1 without any.
    """

    codes: Int64Array
    texts: Sequence[str]
    special: int


@once
def grouped_buffers(profile: Profile, number: int, group: str) -> Labels:
    """The group, of `GROUPS`, of each buffer of `peakline.memory.over_time.live.live_bytes`; made
    once for each. Raises ValueError for a profile without records.
    """
    records = memory_records(profile)
    if records is None:
        raise ValueError("a profile without records of memory has no buffers to group")
    return labels_of(profile, records, live_bytes(profile, number).rows, group)


def numbered(names: Names, change: Callable[[str], str] = str) -> tuple[Int64Array, list[str]]:
    """As `Names.grouped`, in time linear in the rows; texts are in the order of the column's."""
    occurs = np.zeros(len(names.values) + 1, np.bool_)
    occurs[names.codes] = True  # the null code -1 is the last place
    numbers: dict[str, int] = {}
    of = np.zeros(occurs.size, np.int64)
    for code in np.flatnonzero(occurs).tolist():
        text = change(names.values[code]) if code < len(names.values) else ""
        of[code] = numbers.setdefault(text, len(numbers))
    return of[names.codes], list(numbers) or [""]


def labels_of(profile: Profile, records: MemoryRecords, rows: IntpArray, group: str) -> Labels:
    """The group of each of the buffers that records ``rows`` begin; ``group`` is of `GROUPS`."""
    codes, texts = _texts_of(profile, records, rows, group)
    special = _is_before(records, rows)
    codes = np.where(special, len(texts), codes)
    every = [*texts, BEFORE_PROFILE]
    # Of several, the last one written stays: the first.
    first = np.full(len(every), -1, np.int64)
    first[codes[::-1]] = np.arange(codes.size)[::-1]
    seen = np.flatnonzero(first >= 0)
    numbers: dict[str, int] = {}
    of = np.zeros(len(every), np.int64)
    # Several codes may have one text: a dictionary may repeat strings.
    for code in seen[np.argsort(first[seen], kind="stable")].tolist():
        of[code] = numbers.setdefault(every[code], len(numbers))
    return Labels(of[codes], list(numbers), numbers.get(BEFORE_PROFILE, -1))


def _is_before(records: MemoryRecords, rows: IntpArray) -> BoolArray:
    """Which buffers stand for what was there before the profile, of no op."""
    op = records.events.names("op")
    result: BoolArray = op.per_row(BEFORE_PROFILE.__eq__, np.bool_)[rows]
    return result


def _texts_of(
    profile: Profile, records: MemoryRecords, rows: IntpArray, group: str
) -> tuple[AnyArray, Sequence[str]]:
    """A number per row, and what each number means."""
    events = records.events
    if group in {"op", "scope"}:
        return numbered(events.names("op").take(rows), scope_of if group == "scope" else str)
    if group == "shape":
        return numbered(events.names("shape").take(rows), normal_shape)
    if group in {"region_type", "data_type"}:
        return numbered(events.names(group).take(rows))
    if group in DESCRIBED:
        descriptions = described_records(profile)
        if descriptions is None:
            return np.zeros(rows.size, np.int64), [""]
        return descriptions.of(rows)[DESCRIBED.index(group)]
    if group == "stack":
        return _stacks(profile, records, rows)
    if group == "program" and (programs := programs_of(profile, records, rows)) is not None:
        code, names, _ = programs
        return numbered(Names(code.astype(np.int32), list(names)))
    known = events.is_valid("step_id")[rows]
    steps = np.where(known, events.array("step_id")[rows], -1)
    ids, codes = np.unique(steps, return_inverse=True)
    table = profile.columns_or_empty("steps")
    called = dict(table.each("step_id", "name")) if table.rows else {}
    if group == "step":
        return codes, ["" if one < 0 else called.get(one) or str(one) for one in ids.tolist()]
    texts = [population_of(called.get(one) or "") for one in ids.tolist()]
    return numbered(Names(codes.astype(np.int32), texts))


def _stacks(
    profile: Profile, records: MemoryRecords, rows: IntpArray
) -> tuple[AnyArray, list[str]]:
    """The innermost frame of each buffer's call stack."""
    ids, codes = stack_ids(records, rows)
    frames = stack_frames(profile, ids)
    return codes, [frames[one][-1] if frames.get(one) else "" for one in ids.tolist()]


def stack_ids(records: MemoryRecords, rows: IntpArray) -> tuple[AnyArray, AnyArray]:
    """The distinct ids of call stacks, -1 for none, and per row which of them it has."""
    events = records.events
    own = np.where(events.is_valid("stack_id")[rows], events.array("stack_id")[rows], -1)
    ids, codes = np.unique(own, return_inverse=True)
    return ids, codes


def stack_frames(profile: Profile, ids: AnyArray) -> dict[int, list[str]]:
    """Of each call stack the titles of its frames, ``forward train.py:12``, the outermost first."""
    if "stacks" not in profile.tables:
        return {}
    result = frames_of(profile.columns("stacks"), ids)
    return {one: [_title(*frame) for frame in frames] for one, frames in result.items()}


def _title(function: str, file: str, line: int) -> str:
    place = re.split(r"[\\/]", file)[-1]
    if place and line:
        place = f"{place}:{line}"
    return " ".join(filter(None, (function or "?", place)))
