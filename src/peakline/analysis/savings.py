"""What would lower the peak, how far, and the buffers that say so.

Every saving is worked out over the whole profile: it is the peak less the largest memory in use
that would be left at *any* time, not only at the moment of the peak. A second moment that is
almost as full bounds it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from peakline.analysis.findings import size_text
from peakline.analysis.fragmentation import Fragmentation
from peakline.analysis.marks import Marks
from peakline.analysis.op_use import OpUse
from peakline.analysis.peak import BEFORE_PROFILE
from peakline.analysis.savings_kernels import peaks_without
from peakline.analysis.signatures import History, dimensions

__all__ = ["Saving", "find_savings"]

WORTH = 0.05
"""A saving of less than this share of the peak is not told."""

SHORT = 0.15
"""A temporary is freed within this share of the records of a step, ..."""
SHORT_RECORDS = 8
"""... or within so many records, where that is at most half of the step."""

IDLE = 0.2
"""A buffer lives across the peak when it was made this share of a step's records before it, and is
freed so much after it."""

SHARED = 0.25
"""A leading dimension is that of the batch when buffers with it take this share of the peak."""
SHARED_OPS = 3
"""... made by so many ops, with other dimensions that differ."""

_EACH = 6
"""So many candidates of each kind are worked out."""
_ROWS = 8
"""So many rows stand behind a saving."""

_SUGGESTIONS = {
    "temporary": (
        "Compute it in pieces, or in a form that needs no such intermediate (a fused op, a matrix "
        "product in place of broadcasting)."
    ),
    "recompute": (
        "Made early in the step and kept across the peak: recompute it where it is needed "
        "(tf.recompute_grad, jax.checkpoint, torch.utils.checkpoint)."
    ),
    "offload": (
        "Kept across the peak from an earlier step: move it to the host while it is not needed, "
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


@dataclass(frozen=True)
class Saving:
    """One way to lower an allocator's peak. Sizes are bytes.

    ``kind`` is ``temporary`` (short-lived buffers that make the peak), ``recompute`` or
    ``offload`` (buffers held across it), ``older_copy`` (several of one producer and size at
    once), ``smaller_batch`` (half of a shared leading dimension) or ``fragmentation`` (memory
    touched only because of where buffers lay: it lowers what the allocator takes, not the
    peak in use). ``bytes`` is how much, ``peak_after`` the peak that would be left. ``rows`` are
    the buffers at the peak behind it, by signature. ``cost_ps`` is what making them again takes,
    None where the profile does not time ops.
    """

    kind: str
    allocator: str
    bytes: int
    peak_after: int
    title: str
    rows: tuple[Mapping[str, object], ...]
    suggestion: str
    cost_ps: int | None = None


@dataclass(frozen=True, eq=False)
class _AtPeak:
    """The buffers at the peak: rows of their allocations, sorted out by signature."""

    row: int
    peak: int
    rows: npt.NDArray[np.int64]
    bytes: npt.NDArray[np.int64]
    codes: npt.NDArray[np.int32]
    age: npt.NDArray[np.int64]
    left: npt.NDArray[np.int64]
    step: npt.NDArray[np.int64]
    is_freed: npt.NDArray[np.bool_]
    own_step: int
    has_ends: bool


@dataclass(frozen=True)
class _Candidate:
    kind: str
    codes: tuple[int, ...]
    title: str
    numerator: int = 1
    denominator: int = 1
    only_older: bool = False


def find_savings(
    history: History,
    allocator: int,
    marks: Marks | None,
    fragmentation: Fragmentation | None = None,
    *,
    ops: OpUse | None = None,
    eligible: npt.NDArray[np.bool_] | None = None,
) -> tuple[Saving, ...]:
    """What would lower the peak of ``history.lifetimes.allocators[allocator]``, most bytes first.

    ``eligible`` marks the records that can be the peak (default: all). ``ops`` tells how long ops
    take and when what they made was read; without it a buffer counts as unused from its beginning
    to its end. Nothing that saves less than 5 % of the peak is told.
    """
    counted = history.measured if eligible is None else history.measured & eligible
    found = _at_peak(history, allocator, marks, counted)
    if found is None or not found.rows.size:
        return ()
    candidates = _batch(history, found)
    if found.has_ends:
        # Where nothing is ever freed, the file tells of one moment, and of no time before or after.
        candidates += _temporaries(history, found, marks)
        candidates += _held(history, found, marks, ops or OpUse())
        candidates += _older(history, found)
    savings = _work_out(history, allocator, found, candidates, counted, ops or OpUse())
    if fragmentation is not None and fragmentation.pins is not None:
        size = fragmentation.recoverable_bytes
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
            )
        )
    worth = [saving for saving in savings if saving.bytes >= max(WORTH * found.peak, 1)]
    return tuple(sorted(worth, key=lambda saving: (-saving.bytes, saving.kind, saving.title)))


def _at_peak(
    history: History,
    allocator: int,
    marks: Marks | None,
    counted: npt.NDArray[np.bool_],
) -> _AtPeak | None:
    lifetimes = history.lifetimes
    own_rows = history.rows_of(allocator)
    mine = counted[own_rows]
    if not mine.any():
        return None
    ordinal = int(np.where(mine, history.used[own_rows], -1).argmax())
    row = int(own_rows[ordinal])
    moments = np.full(len(lifetimes.allocators), -1, np.int64)
    moments[allocator] = row
    rows = lifetimes.live_after(moments)
    ends = lifetimes.end[rows].astype(np.int64)
    is_freed = ends >= 0
    ends = np.where(is_freed, ends, history.rows)
    starts = np.zeros(0, np.int64) if marks is None else np.append(marks.start, marks.rows)

    def step_of(at: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        return np.searchsorted(starts, at, "right") - 1

    # Ages are in the allocator's own records: others' are no measure of its time.
    return _AtPeak(
        row=row,
        peak=int(history.used[row]),
        rows=rows,
        bytes=history.allocated[rows],
        codes=history.signatures.codes[rows],
        age=ordinal - np.searchsorted(own_rows, rows),
        left=np.searchsorted(own_rows, ends) - ordinal,
        step=step_of(rows),
        is_freed=is_freed,
        own_step=int(step_of(np.array([row]))[0]),
        has_ends=bool((lifetimes.begin[own_rows] >= 0).any()),
    )


def _records_per_step(history: History, found: _AtPeak, marks: Marks | None) -> int:
    """How many records of the allocator a step has: the median; without steps a tenth of all."""
    own = history.rows_of(int(history.lifetimes.allocator[found.row]))
    if marks is None:
        return max(own.size // 10, 1)
    bounds = np.searchsorted(own, np.append(marks.start, marks.rows))
    return max(int(np.median(np.diff(bounds))), 1)


def _temporaries(history: History, found: _AtPeak, marks: Marks | None) -> list[_Candidate]:
    """Short-lived buffers at the peak: each signature, and all that share type and shape."""
    records = _records_per_step(history, found, marks)
    brief = found.age + found.left <= max(SHORT * records, min(SHORT_RECORDS, 0.5 * records))
    brief &= found.is_freed
    # A signature of which some buffer lives on is no temporary.
    brief &= ~np.isin(found.codes, found.codes[~brief])
    candidates = [
        _Candidate("temporary", (code,), history.signatures[code].title)
        for code in _largest(found, brief)
    ]
    forms: dict[tuple[int, int], set[int]] = {}
    signatures = history.signatures
    for code in set(found.codes[brief].tolist()):
        if signatures.shape[code]:
            form = (int(signatures.data_type[code]), int(signatures.shape[code]))
            forms.setdefault(form, set()).add(code)
    for codes in forms.values():
        if len(codes) > 1:
            one = signatures[min(codes)]
            title = f"{len(codes)} ops' {one.data_type} {one.shape}"
            candidates.append(_Candidate("temporary", tuple(sorted(codes)), title))
    return candidates


def _held(history: History, found: _AtPeak, marks: Marks | None, ops: OpUse) -> list[_Candidate]:
    """Buffers that were made, or last read, well before the peak and are needed well after it."""
    gap = max(IDLE * _records_per_step(history, found, marks), 1)
    before, after = _unused(history, found, ops)
    across = (before >= gap) & (after >= gap)
    events = history.events
    was_there = (events.array("is_before") & events.is_valid("is_before"))[found.rows]
    candidates = []
    for code in _largest(found, across):
        mine = across & (found.codes == code)
        signature = history.signatures[code]
        kept = was_there[mine] | signature.region_type.startswith("persist")
        if marks is not None:
            kept |= found.step[mine] < found.own_step
        kind = "offload" if bool(kept.all()) or not signature.op else "recompute"
        if signature.op != BEFORE_PROFILE:
            candidates.append(_Candidate(kind, (code,), signature.title))
    return candidates


def _unused(
    history: History, found: _AtPeak, ops: OpUse
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Per buffer at the peak, records since its last use before it, and to the next after it.

    Its beginning and its end count as uses.
    """
    before, after = found.age.copy(), found.left.copy()
    own = history.rows_of(int(history.lifetimes.allocator[found.row]))
    times = history.events.array("time_ps")
    peak_time, ordinal = int(times[found.row]), int(np.searchsorted(own, found.row))
    own_times = times[own]
    for code in np.unique(found.codes).tolist():
        uses = ops.uses.get(history.signatures[code].op)
        if uses is None:
            continue
        mine = found.codes == code
        place = int(np.searchsorted(uses, peak_time, "right"))
        if place:
            last = int(np.searchsorted(own_times, uses[place - 1], "right")) - 1
            before[mine] = np.minimum(before[mine], max(ordinal - last, 0))
        if place < uses.size:
            following = int(np.searchsorted(own_times, uses[place], "left"))
            after[mine] = np.minimum(after[mine], max(following - ordinal, 0))
    return before, after


def _older(history: History, found: _AtPeak) -> list[_Candidate]:
    """Signatures with an op of which several live at the peak, made in different steps."""
    candidates = []
    for code in _largest(found, np.ones(found.rows.size, np.bool_)):
        mine = found.codes == code
        if history.signatures[code].op and np.unique(found.step[mine]).size > 1:
            title = f"{int(mine.sum())} x {history.signatures[code].title}"
            candidates.append(_Candidate("older_copy", (code,), title, only_older=True))
    return candidates


def _batch(history: History, found: _AtPeak) -> list[_Candidate]:
    """The leading dimension that most bytes at the peak share."""
    signatures = history.signatures
    leading: dict[int, set[int]] = {}
    shapes: dict[int, tuple[int, ...]] = {}
    for code in np.unique(found.codes).tolist():
        sizes = dimensions(signatures.shapes[signatures.shape[code]])
        if sizes and sizes[0] > 1:
            leading.setdefault(sizes[0], set()).add(code)
            shapes[code] = sizes
    totals = dict.fromkeys(leading, 0)
    for code, size in zip(found.codes.tolist(), found.bytes.tolist(), strict=True):
        if code in shapes:
            totals[shapes[code][0]] += size
    for size in sorted(totals, key=lambda one: -totals[one]):
        codes = leading[size]
        ops = {int(signatures.op[code]) for code in codes}
        others = {shapes[code][1:] for code in codes}
        if len(ops) >= SHARED_OPS and len(others) > 1 and totals[size] >= SHARED * found.peak:
            title = f"half of the leading dimension {size}"
            return [_Candidate("smaller_batch", tuple(sorted(codes)), title, 1, 2)]
    return []


def _largest(found: _AtPeak, chosen: npt.NDArray[np.bool_]) -> list[int]:
    """The signatures of the chosen buffers that have most bytes."""
    codes, place = np.unique(found.codes[chosen], return_inverse=True)
    totals = np.zeros(codes.size, np.int64)
    np.add.at(totals, place, found.bytes[chosen])
    order = np.argsort(-totals, kind="stable")[:_EACH]
    return [int(code) for code in codes[order] if totals[order[0]] > 0]


def _work_out(
    history: History,
    allocator: int,
    found: _AtPeak,
    candidates: list[_Candidate],
    counted: npt.NDArray[np.bool_],
    ops: OpUse,
) -> list[Saving]:
    if not candidates:
        return []
    lifetimes = history.lifetimes
    in_group = np.zeros((len(history.signatures), len(candidates)), np.bool_)
    for place, candidate in enumerate(candidates):
        in_group[list(candidate.codes), place] = True
    peaks = np.zeros(len(candidates), np.int64)
    peaks_without(
        history.rows_of(allocator),
        lifetimes.kind,
        lifetimes.begin,
        history.signatures.codes,
        history.allocated,
        history.used,
        counted,
        in_group,
        np.array([candidate.numerator for candidate in candidates], np.int64),
        np.array([candidate.denominator for candidate in candidates], np.int64),
        np.array([candidate.only_older for candidate in candidates], np.bool_),
        peaks,
    )
    savings = []
    for candidate, after in zip(candidates, peaks.tolist(), strict=True):
        rows = _rows(history, found, candidate)
        cost = None
        if candidate.kind == "recompute":
            op = history.signatures[candidate.codes[0]].op
            one = ops.costs.get(op)
            cost = None if one is None else one * int((found.codes == candidate.codes[0]).sum())
        savings.append(
            Saving(
                candidate.kind,
                lifetimes.allocators[allocator],
                found.peak - after,
                after,
                candidate.title,
                rows,
                _SUGGESTIONS[candidate.kind],
                cost,
            )
        )
    return savings


def _rows(
    history: History, found: _AtPeak, candidate: _Candidate
) -> tuple[Mapping[str, object], ...]:
    """The candidate's buffers at the peak, by signature, most bytes first."""
    times = history.events.array("time_ps")
    rows: list[dict[str, object]] = []
    sizes: list[int] = []
    for code in candidate.codes:
        mine = found.codes == code
        if not mine.any():
            continue
        sizes.append(int(found.bytes[mine].sum()))
        rows.append(
            history.signatures[code].as_row()
            | {
                "bytes": sizes[-1],
                "count": int(mine.sum()),
                "since_ps": int(times[found.rows[mine]].min()),
            }
        )
    order = np.argsort(-np.array(sizes, np.int64), kind="stable")
    return tuple(rows[place] for place in order[:_ROWS].tolist())
