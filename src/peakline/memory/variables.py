"""Which buffers at a peak are the content of variables, so that savings advise what can be done.

A variable's new value takes the place of the old one while it is updated: then both are in memory,
and neither can be dropped or be elsewhere. The records do not say what a variable is. It shows in
two ways: the same number of its signature's buffers lives at the end of every step, or the op that
made them is one that updates variables.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np

from peakline.arrays import Int64Array
from peakline.kernels.memory_layout import ALLOCATION
from peakline.memory.crossings import find_crossing
from peakline.memory.marks import Marks
from peakline.memory.signatures import History

_ENDS = 2
"""At one end of a step alone everything is the same."""

_UPDATE = re.compile(
    r"(?:^|/)(?:Assign|(?:Resource)?(?:Sparse)?Apply[A-Z]|ResourceScatter)|optimizer", re.IGNORECASE
)


def updates_variables(op: str) -> bool:
    """Whether an op's name is that of an update: ``Assign...``, ``...Apply...``, an optimizer's."""
    return _UPDATE.search(op) is not None


@dataclass(frozen=True)
class Variables:
    """Which of some signatures are variables' content, by their numbers.

    ``states`` are all of them; of ``replaced`` a new buffer took an old one's place in the profile,
    so that the program works with them.
    """

    states: frozenset[int] = frozenset()
    replaced: frozenset[int] = frozenset()


def find_variables(
    history: History, allocator: int, marks: Marks | None, codes: list[int]
) -> Variables:
    """Which of the signatures ``codes`` are variables' content.

    The same number of buffers, one or more, is live at every end of a step from the first one on
    at which any is; or their op updates variables.
    """
    signatures = history.signatures
    named = {code for code in codes if updates_variables(signatures[code].op)}
    place_of = np.full(len(signatures), -1, np.int64)
    place_of[codes] = np.arange(len(codes))
    own = history.rows_of(allocator)
    begun = own[history.lifetimes.kind[own] == ALLOCATION]
    places = place_of[signatures.codes[begun]]
    made = np.bincount(places[places >= 0], minlength=len(codes)).tolist()
    same: dict[int, int] = {}
    if marks is not None and len(marks) >= _ENDS:
        crossing = find_crossing(history, allocator, marks.rows)
        live = crossing.live_at_marks(
            place_of[signatures.codes[crossing.rows]],
            len(codes),
            np.ones(crossing.rows.size, np.int64),
        )
        same = {code: count for code, row in zip(codes, live, strict=True) if (count := _same(row))}
    states = named | set(same)
    counts = dict(zip(codes, made, strict=True))
    return Variables(
        frozenset(states),
        frozenset(code for code in states if code in named or counts[code] > same[code]),
    )


def _same(live: Int64Array) -> int:
    """How many live at every end of a step since the first that has any; 0 where that differs."""
    since = live[int((live > 0).argmax()) :]
    return int(since[0]) if since.size >= _ENDS and (since == since[0]).all() else 0
