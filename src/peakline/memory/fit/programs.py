"""In how much memory compiled programs run: what XLA assigned before they did."""

from __future__ import annotations

from peakline.deadline import checked
from peakline.hlo.memory import ProgramMemory
from peakline.hlo.packing import packed_heaps
from peakline.memory.fit.model import Fit, Limits, Proof, UnderLimit
from peakline.memory.fit.question import Question
from peakline.replay.requests import MIB
from peakline.tables import Profile

NAME = "xla"
_MOST = 20
"""So many programs are said, those that need most."""


def program_fits(profile: Profile, question: Question) -> list[Fit]:
    """The programs of a profile that has any, those that need most first.

    A program needs what its buffer assignment says, always and exactly: its temporaries are packed
    by XLA's heap simulator (`peakline.replay.xla_heap`), which is replayed. Raises as
    `check_deadline`.
    """
    programs = profile.programs()
    if not programs:
        return []
    known = [ProgramMemory(programs, number) for number in checked(range(len(programs)))]
    known = [one for one in known if one.is_known and one.peak_bytes]
    known.sort(key=lambda one: -one.peak_bytes)
    return [_fit(one, programs.label(one.number), question) for one in known[:_MOST]]


def _fit(memory: ProgramMemory, label: str, question: Question) -> Fit:
    heaps = packed_heaps(memory)
    values = sum(int((one.trace.piece >= 0).sum()) for one in heaps)
    is_same = all(one.is_same for one in heaps)
    peak, packing = memory.peak_bytes, memory.packing
    smallest = -(-peak // MIB) * MIB
    fits = ((smallest, None),)
    reason = ""
    if not memory.is_assigned:
        reason = "the file has no buffer assignment, and the need is computed"
    elif not is_same:
        reason = "the recorded places of its temporaries do not come out again"
    return Fit(
        allocator=label,
        model=NAME,
        settings={},
        proof=Proof(values, values if is_same else 0, not reason, reason),
        recorded_peak_bytes=peak,
        live_peak_bytes=peak - max(packing.heap_bytes - packing.live_bytes, 0),
        threads=0,
        limits=Limits(fits, fits, smallest, is_whole=True),
        exact=not reason,
        reason=reason,
        deciding=None,
        under=tuple(UnderLimit(limit, limit >= peak, peak, peak) for limit in question.limits),
    )
