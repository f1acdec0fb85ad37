"""What would lower the peak, how far, and the buffers that say so.

Every saving is worked out over the whole profile: it is the peak less the largest memory in use
that would be left at *any* time, not only at the moment of the peak. A second moment that is
almost as full bounds it.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace

import numpy as np

from peakline.arrays import BoolArray, Int64Array
from peakline.deadline import check_deadline, checked
from peakline.kernels.memory_layout import ALL, ALL_BUT_ONE, FROM_BEFORE, OF_THE_STEP
from peakline.kernels.savings import peaks_without
from peakline.memory.fit.without import ReplayedPeaks
from peakline.memory.fragmentation.holes import Fragmentation
from peakline.memory.marks import Marks
from peakline.memory.peak.buffers import AtPeak
from peakline.memory.savings.candidates import Candidate, find_candidates
from peakline.memory.savings.op_use import OpUse
from peakline.memory.signatures import History
from peakline.shown import Brief
from peakline.text import size_text

WORTH = 0.05
"""A saving of less than this share of the peak is left out."""

_ROWS = 8
"""So many rows stand behind a saving."""

_SUGGESTIONS = {
    "temporary": (
        "Compute it in pieces, or in a form that needs no such intermediate (a fused op, a matrix "
        "product in place of broadcasting)."
    ),
    "program": (
        "It belongs to a compiled XLA program as a whole, which no record takes apart: look at the "
        "program's own buffer assignment (XLA_FLAGS=--xla_dump_to=DIR). Donate what is not needed "
        "after the call (donate_argnums), recompute (jax.checkpoint), or make the batch smaller."
    ),
    "recompute": (
        "Made early in the step and held across the peak: recompute it where it is needed "
        "(tf.recompute_grad, jax.checkpoint, torch.utils.checkpoint)."
    ),
    "offload": (
        "Held across the peak from an earlier step: move it to the host while it is not needed, "
        "shard it, or keep it in a smaller type."
    ),
    "older_copy": (
        "The newest of these was made while older ones of the same op and shape were still held: "
        "drop the reference to the old one before the new one is made."
    ),
    "smaller_batch": (
        "These buffers share their leading dimension, and shrink with it: half the batch, with "
        "the gradients of two of them added up, needs so much less."
    ),
    "fragmentation": (
        "Free the small buffers that lie between the holes, or make them before the large ones."
    ),
}


@dataclass(frozen=True, repr=False)
class Saving(Brief):
    """One way to lower an allocator's peak. Sizes are bytes.

    ``kind`` is ``temporary`` (short-lived buffers that make the peak), ``program`` (those of a
    compiled program as a whole), ``recompute`` or ``offload`` (buffers held across it),
    ``older_copy`` (several of one producer and size at once), ``smaller_batch`` (half of a shared
    leading dimension) or ``fragmentation`` (memory touched only because of where buffers lay: it
    lowers what the allocator takes, not the peak in use). ``bytes`` is how much, at most what the
    buffers under the peak hold, ``peak_after`` the peak that would be left. ``rows`` are
    the buffers at the peak behind it, by signature. ``cost_ps`` is what making them again takes,
    None where the profile does not time ops. What comes true lies between ``lower_bytes`` and
    ``bytes``: a part of what goes may be needed in smaller pieces. ``codes`` are the signatures.
    ``is_replayed``: the requests without what goes were replayed by a model of the allocator that
    the recording proves, so that ``bytes`` is what it would be, and not a sum.
    """

    kind: str
    allocator: str
    bytes: int
    peak_after: int
    title: str
    rows: tuple[Mapping[str, object], ...]
    suggestion: str
    cost_ps: int | None = None
    lower_bytes: int = 0
    codes: tuple[int, ...] = ()
    is_replayed: bool = False


def find_savings(
    history: History,
    allocator: int,
    marks: Marks | None,
    fragmentation: Fragmentation | None = None,
    *,
    counted: BoolArray,
    found: AtPeak | None,
    ops: OpUse | None = None,
    programs: Collection[str] = (),
    replayed: ReplayedPeaks | None = None,
) -> tuple[Saving, ...]:
    """What would lower the peak of ``history.lifetimes.allocators[allocator]``, most bytes first.

    ``found`` are the buffers at the peak, ``counted`` marks the records that can be the peak.
    ``ops`` says how long ops take and when what they made was read; without it a buffer counts as
    unused from its beginning to its end. Signatures that have a finding of growth, which says what
    to do about them, are no saving.
    ``programs`` are the names of the compiled programs that the file holds, ``replayed`` the replay
    of the recording where it is proved. Nothing that saves less than 5 % of the peak is given, nor
    ``fragmentation`` that is not harmful.
    """
    if found is None or not found.rows.size:
        return ()
    uses = ops or OpUse()
    candidates = find_candidates(history, found, marks, uses, programs)
    savings = [
        _replayed(saving, candidate, replayed)
        for candidate, saving in zip(
            candidates, _work_out(history, allocator, found, candidates, counted, uses), strict=True
        )
    ]
    if fragmentation is not None and fragmentation.pins is not None and fragmentation.is_harmful:
        size = fragmentation.recoverable_bytes
        lost = None if replayed is None else replayed.lost_bytes()
        size = size if lost is None else lost
        savings.append(
            Saving(
                "fragmentation",
                fragmentation.allocator,
                size,
                found.peak,
                f"{size_text(size)} of the pool, needed only because what was free lay in pieces",
                tuple(
                    pin.signature.as_row() | {"bytes": pin.bytes, "count": pin.count}
                    for pin in fragmentation.pins.pins[:_ROWS]
                ),
                _SUGGESTIONS["fragmentation"],
                lower_bytes=size,
                is_replayed=lost is not None,
            )
        )
    worth = [saving for saving in savings if saving.bytes >= max(WORTH * found.peak, 1)]
    return tuple(sorted(worth, key=lambda saving: (-saving.bytes, saving.kind, saving.title)))


def _replayed(saving: Saving, candidate: Candidate, replayed: ReplayedPeaks | None) -> Saving:
    """What the replay says, of buffers that shrink at all times."""
    if replayed is None or candidate.which != ALL or candidate.since:
        return saving
    result = replayed.without(candidate.codes, candidate.numerator, candidate.denominator)
    if result is None:
        return saving
    before, after = result
    saved = max(before - after, 0)
    return replace(
        saving,
        bytes=saved,
        peak_after=before - saved,
        lower_bytes=max(saved - candidate.remains, 0),
        is_replayed=True,
    )


def _work_out(
    history: History,
    allocator: int,
    result: AtPeak,
    candidates: list[Candidate],
    counted: BoolArray,
    ops: OpUse,
) -> list[Saving]:
    if not candidates:
        return []
    peaks = np.zeros(len(candidates), np.int64)
    for since in sorted({candidate.since for candidate in candidates}):
        places = [k for k, candidate in enumerate(candidates) if candidate.since == since]
        later = counted & (np.arange(counted.size) >= since) if since else counted
        chosen = [candidates[k] for k in places]
        peaks[places] = _peaks(history, allocator, result, chosen, later)
    savings = []
    for candidate, after in zip(checked(candidates, 4), peaks.tolist(), strict=True):
        mine = _buffers(history, result, candidate)
        # Records that do not agree with each other save no more than what lies under the peak.
        saved = min(result.peak - after, _most(result, candidate, mine))
        count, cost = int(mine.sum()), None
        title = candidate.title
        if count > 1 and not candidate.has_count:
            title = f"{count} x {title}"
        if candidate.kind == "recompute":
            costs = [ops.costs.get(history.signatures[code].op) for code in candidate.codes]
            cost = None if None in costs else sum(one or 0 for one in costs)
            if cost is not None and len(candidate.codes) == 1:
                cost *= count
        savings.append(
            Saving(
                candidate.kind,
                history.lifetimes.allocators[allocator],
                saved,
                result.peak - saved,
                title,
                _rows(history, result, mine),
                _SUGGESTIONS[candidate.kind],
                cost,
                max(saved - candidate.remains, 0),
                candidate.codes,
            )
        )
    return savings


def _peaks(
    history: History,
    allocator: int,
    result: AtPeak,
    candidates: list[Candidate],
    counted: BoolArray,
) -> Int64Array:
    """The largest memory in use that would be left without what each candidate names."""
    lifetimes = history.lifetimes
    in_group = np.zeros((len(history.signatures), len(candidates)), np.bool_)
    for place, candidate in enumerate(candidates):
        in_group[list(candidate.codes), place] = True
    peaks = np.zeros(len(candidates), np.int64)
    check_deadline()
    peaks_without(
        history.rows_of(allocator),
        lifetimes.kind,
        lifetimes.begin,
        history.signatures.codes,
        history.allocated,
        history.used,
        history.was_there,
        result.starts,
        counted,
        in_group,
        np.array([candidate.numerator for candidate in candidates], np.int64),
        np.array([candidate.denominator for candidate in candidates], np.int64),
        np.array([candidate.which for candidate in candidates], np.int8),
        peaks,
        *np.zeros((3, len(candidates)), np.int64),
    )
    return peaks


def _buffers(history: History, result: AtPeak, candidate: Candidate) -> BoolArray:
    """Which buffers at the peak the candidate is about."""
    mine: BoolArray = np.isin(result.codes, np.array(candidate.codes))
    is_new = (result.step == result.own_step) & ~history.was_there[result.rows]
    if candidate.which == OF_THE_STEP:
        mine &= is_new
    elif candidate.which == FROM_BEFORE:
        mine &= ~is_new
    return mine


def _most(result: AtPeak, candidate: Candidate, mine: BoolArray) -> int:
    """What the buffers ``mine`` at the peak could free at the most."""
    sizes = result.bytes[mine]
    whole = int(sizes.sum())
    if candidate.which == ALL_BUT_ONE:
        # The newest stays.
        return whole - int(sizes[result.rows[mine].argmax()]) if sizes.size else 0
    return -(-whole * candidate.numerator // candidate.denominator)


def _rows(history: History, result: AtPeak, chosen: BoolArray) -> tuple[Mapping[str, object], ...]:
    """The ``chosen`` buffers at the peak, by signature, most bytes first."""
    times = history.events.array("time_ps")
    codes, totals = result.by_code(chosen)
    rows: list[dict[str, object]] = []
    for place in np.argsort(-totals, kind="stable")[:_ROWS].tolist():
        mine = chosen & (result.codes == codes[place])
        rows.append(
            history.signatures[int(codes[place])].as_row()
            | {
                "bytes": int(totals[place]),
                "count": int(mine.sum()),
                "since_ps": int(times[result.rows[mine]].min()),
            }
        )
    return tuple(rows)
