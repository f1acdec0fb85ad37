"""What a run of a compiled program costs, its loops included.

XLA's own count takes one turn of a loop. Where the compiler knew how many there are, it says so in
the loop's configuration (``known_trip_count`` of ``WhileLoopBackendConfig``, xla/xla_data.proto).
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

from peakline.hlo.program import Made, Program, Sum
from peakline.hlo.row_costs import Counting
from peakline.tables.once import once

if TYPE_CHECKING:
    from peakline.tables import Profile

_MOST_TURNS = 2**40


@dataclass(frozen=True)
class ExecutedCost:
    """``flops`` and ``bytes_accessed`` of a run; ``is_least`` where it has a loop of which nothing
    says how many turns it takes: one counts.
    """

    flops: float
    bytes_accessed: float
    is_least: bool


class _Executed(Counting):
    """Counts each turn of a loop."""

    is_least = False

    def count(self, made: Made, program: Program, computation: int) -> None:
        """As the others, but for loops."""
        super().count(made, program, computation)
        if made.opcode == "while":
            turns = _turns(made)
            self.is_least |= turns is None
            if turns is not None and turns != 1:
                more = Sum()
                more.add(made, turns)
                made.flops, made.transcendentals = more.flops, more.transcendentals
                made.bytes, made.read, made.out = more.bytes, more.read, more.out


def _turns(made: Made) -> int | None:
    """How many turns a loop takes; None where it does not say."""
    try:
        config = json.loads(made.proto.backend_config or b"{}")
        known = config.get("known_trip_count") or {}
        turns = known.get("n")
        return None if turns is None else min(max(int(turns), 0), _MOST_TURNS)
    except (ValueError, AttributeError, TypeError, RecursionError):
        return None


@once
def executed_cost(profile: Profile, number: int) -> ExecutedCost:
    """What a run of a program of the profile costs."""
    programs = profile.programs()
    if programs is None:
        raise IndexError(number)
    counting = _Executed(programs, number)
    total = counting.counted_rows().total
    return ExecutedCost(total.flops, total.bytes_accessed, counting.is_least)
