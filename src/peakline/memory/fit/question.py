"""A question about a recording: limits, settings, a batch size."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from peakline.errors import UsageError
from peakline.text import whole_number

MOST_LIMITS = 64
"""So many limits may be given at a time."""
_SETTING = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)=(.*)", re.DOTALL)
_LARGEST_BATCH = 1 << 24


@dataclass(frozen=True)
class Question:
    """``limits`` in bytes, ``settings`` as names and texts, a recorded ``batch`` size and a wanted
    one (None: the largest that fits under the first limit, or under what the allocator has).
    """

    limits: tuple[int, ...] = ()
    settings: tuple[tuple[str, str], ...] = ()
    batch: int | None = None
    wanted_batch: int | None = None


def question_of(limits: Sequence[int], settings: Sequence[str], batch: str | None) -> Question:
    """A question as callers write it: ``NAME=VALUE`` for a setting, ``32`` or ``32:64`` for a
    batch. Raises UsageError for anything else.
    """
    if len(limits) > MOST_LIMITS:
        raise UsageError(f"--limit: {len(limits)} limits; give at most {MOST_LIMITS}")
    pairs: dict[str, str] = {}
    for text in settings:
        match = _SETTING.fullmatch(text)
        if match is None:
            raise UsageError(f"--set {text}: write NAME=VALUE")
        pairs[match[1]] = match[2]
    recorded = wanted = None
    if batch is not None:
        first, colon, second = batch.partition(":")
        recorded = whole_number(first, 9)
        wanted = whole_number(second, 9) if colon else None
        if not recorded or (colon and not wanted) or (wanted or 0) > _LARGEST_BATCH:
            raise UsageError(
                f"--batch {batch}: write the recorded size, or that and another: 32:64"
            )
    return Question(tuple(limits), tuple(pairs.items()), recorded, wanted)
