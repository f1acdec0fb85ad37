"""Which buffers at the peak might be made smaller, fewer, or shorter-lived: what savings try.

A candidate names signatures and which of their buffers; `peakline.memory.savings` works out what
the peak would be without them.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

import numpy as np

from peakline.arrays import BoolArray, Int32Array, Int64Array
from peakline.deadline import checked
from peakline.kernels.memory_layout import ALL, ALL_BUT_ONE, FROM_BEFORE, OF_THE_STEP
from peakline.memory.marks import Marks
from peakline.memory.op_use import OpUse
from peakline.memory.peak import BEFORE_PROFILE
from peakline.memory.signatures import History, dimensions, split_by
from peakline.memory.variables import find_variables, updates_variables
from peakline.tables.joins import summed

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
_LONGEST = 2**62
"""A leading dimension that is longer is none."""

_EACH = 6
"""So many candidates of each kind are worked out."""
_LOOKED_AT = 4 * _EACH
"""... of so many signatures, for some cannot be done without."""

_UNRECORDED = " (when it is used is not recorded)"


@dataclass(frozen=True, eq=False)
class AtPeak:
    """The buffers at the peak: rows of their allocations, sorted out by signature.

    ``starts`` are the first records of the steps, ascending (empty without steps), ``step`` and
    ``own_step`` the numbers of the buffers' steps and of the peak's; ``has_finding`` marks those
    whose signature has a finding of growth.
    """

    allocator: int
    row: int
    peak: int
    starts: Int64Array
    rows: Int64Array
    bytes: Int64Array
    codes: Int32Array
    age: Int64Array
    left: Int64Array
    step: Int64Array
    is_freed: BoolArray
    has_finding: BoolArray
    own_step: int
    has_ends: bool

    def by_code(self, chosen: BoolArray | slice = slice(None)) -> tuple[Int32Array, Int64Array]:
        """The signatures of the ``chosen`` buffers, ascending, and their bytes."""
        codes, place = np.unique(self.codes[chosen], return_inverse=True)
        return codes, summed(place, self.bytes[chosen], codes.size)


@dataclass(frozen=True)
class Candidate:
    """Buffers that might shrink by ``numerator / denominator`` of their bytes.

    ``codes`` are their signatures; ``which`` of their buffers are meant is `ALL`, `ALL_BUT_ONE`,
    those `OF_THE_STEP` that runs or those `FROM_BEFORE` it. ``has_count`` says that the title is of
    all of them, not of one.
    """

    kind: str
    codes: tuple[int, ...]
    title: str
    numerator: int = 1
    denominator: int = 1
    which: int = ALL
    has_count: bool = False


def find_candidates(
    history: History,
    found: AtPeak,
    marks: Marks | None,
    ops: OpUse,
    programs: Collection[str] = (),
) -> list[Candidate]:
    """Everything that might lower the peak. What has a finding of growth is none.

    ``programs`` are the names of the compiled programs that the file holds.
    """
    candidates = _batch(history, found)
    if found.has_ends:
        # Where nothing is ever freed, the file is of one moment, and of no time before or after.
        candidates += _temporaries(history, found, marks, programs)
        candidates += _held(history, found, marks, ops)
        candidates += _older(history, found, marks)
    return candidates


def buffers_at_peak(
    history: History,
    allocator: int,
    marks: Marks | None,
    counted: BoolArray,
    growing: BoolArray | None = None,
) -> AtPeak | None:
    """The buffers at the largest memory in use after a ``counted`` record; None without any.

    ``growing`` marks the signatures that have a finding of growth.
    """
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

    codes = history.signatures.codes[rows]

    def step_of(at: Int64Array) -> Int64Array:
        return np.searchsorted(starts, at, "right") - 1

    # Ages are in the allocator's own records: others' are no measure of its time.
    return AtPeak(
        allocator=allocator,
        row=row,
        peak=int(history.used[row]),
        starts=starts,
        rows=rows,
        bytes=history.allocated[rows],
        codes=codes,
        age=ordinal - np.searchsorted(own_rows, rows),
        left=np.searchsorted(own_rows, ends) - ordinal,
        step=step_of(rows),
        is_freed=is_freed,
        has_finding=np.zeros(rows.size, np.bool_) if growing is None else growing[codes],
        own_step=int(step_of(np.array([row]))[0]),
        has_ends=bool((lifetimes.begin[own_rows] >= 0).any()),
    )


def _records_per_step(history: History, found: AtPeak, marks: Marks | None) -> int:
    """How many records of the allocator a step has: the median; without steps a tenth of all."""
    own = history.rows_of(found.allocator)
    if marks is None:
        return max(own.size // 10, 1)
    bounds = np.searchsorted(own, np.append(marks.start, marks.rows))
    return max(int(np.median(np.diff(bounds))), 1)


def _temporaries(
    history: History, found: AtPeak, marks: Marks | None, programs: Collection[str]
) -> list[Candidate]:
    """Short-lived buffers at the peak: each signature, and all that share type and shape."""
    records = _records_per_step(history, found, marks)
    brief = found.age + found.left <= max(SHORT * records, min(SHORT_RECORDS, 0.5 * records))
    brief &= found.is_freed
    # A signature of which some buffer lives on is no temporary.
    brief &= ~np.isin(found.codes, found.codes[~brief])
    candidates = [
        Candidate(
            "program" if _is_of_program(history.signatures[code].op, programs) else "temporary",
            (code,),
            history.signatures[code].title,
        )
        for code in _largest(found, brief)
    ]
    signatures = history.signatures
    codes = np.unique(found.codes[brief])
    codes = codes[signatures.shape[codes] > 0]
    pairs = np.stack([signatures.data_type[codes], signatures.shape[codes]])
    forms, form_of = np.unique(pairs, axis=1, return_inverse=True)
    counts = np.bincount(form_of.ravel(), minlength=forms.shape[1])
    mine = np.flatnonzero(brief & np.isin(found.codes, codes))
    form = form_of.ravel()[np.searchsorted(codes, found.codes[mine])]
    totals = summed(form, found.bytes[mine], counts.size)
    totals[counts < 2] = 0
    for place in np.argsort(-totals, kind="stable")[:_EACH].tolist():
        if totals[place]:
            together = codes[form_of.ravel() == place]
            one = signatures[int(together[0])]
            title = f"{together.size} ops' {one.data_type} {one.shape}"
            buffers = int(np.isin(found.codes, together).sum())
            if buffers > together.size:
                title += f", {buffers} buffers"
            candidates.append(
                Candidate("temporary", tuple(together.tolist()), title, has_count=True)
            )
    return candidates


def _is_of_program(op: str, programs: Collection[str]) -> bool:
    """Whether the buffer of ``op`` is one of a compiled program as a whole.

    XLA's runtimes request such buffers under the program's name or none, TensorFlow's under that of
    the op that runs a cluster (tensorflow/compiler/jit/xla_launch_util.cc).
    """
    return op in programs or (not op and bool(programs)) or op.endswith("/xla_run")


def _held(history: History, found: AtPeak, marks: Marks | None, ops: OpUse) -> list[Candidate]:
    """Buffers that were made, or last read, well before the peak and are needed well after it.

    Those of the peak's own step can be made again; what an earlier one made, or what stays for
    good, can only be moved away. A signature may have both.
    """
    gap = max(IDLE * _records_per_step(history, found, marks), 1)
    before, after = _unused(history, found, ops)
    across = (before >= gap) & (after >= gap) & ~found.has_finding
    older = history.was_there[found.rows] | (found.step < found.own_step)
    codes = _largest(found, across, _LOOKED_AT)
    variables = find_variables(history, found.allocator, marks, codes)
    # Whether the peak is an allocation of an op that updates variables, and so reads them.
    code = int(history.signatures.codes[found.row])
    is_updating = code >= 0 and updates_variables(history.signatures[code].op)
    candidates: dict[str, list[Candidate]] = {"recompute": [], "offload": []}
    for code in codes:
        signature = history.signatures[code]
        if signature.op == BEFORE_PROFILE:
            continue
        mine = across & (found.codes == code)
        stays = not signature.op or signature.region_type.startswith("persist")
        if not stays and not updates_variables(signature.op) and (mine & ~older).any():
            candidates["recompute"].append(
                Candidate("recompute", (code,), signature.title, which=OF_THE_STEP)
            )
        is_recorded = signature.op in ops.uses
        is_needed = code in variables.states and (
            is_updating or (not is_recorded and code in variables.replaced)
        )
        if (stays or (mine & older).any()) and not is_needed:
            title = signature.title + ("" if is_recorded else _UNRECORDED)
            which = ALL if stays else FROM_BEFORE
            candidates["offload"].append(Candidate("offload", (code,), title, which=which))
    return [one for kind in candidates.values() for one in kind[:_EACH]]


def _unused(history: History, found: AtPeak, ops: OpUse) -> tuple[Int64Array, Int64Array]:
    """Per buffer at the peak, records since its last use before it, and to the next after it.

    Its beginning and its end count as uses.
    """
    before, after = found.age.copy(), found.left.copy()
    own = history.rows_of(found.allocator)
    times = history.events.array("time_ps")
    peak_time, ordinal = int(times[found.row]), int(np.searchsorted(own, found.row))
    own_times = times[own]
    if not ops.costs:
        # No op's execution is recorded, so none has uses.
        return before, after
    codes, place_of = np.unique(found.codes, return_inverse=True)
    buffers = split_by(place_of, codes.size)
    for code, mine in zip(codes.tolist(), checked(buffers), strict=True):
        uses = ops.uses.get(history.signatures[code].op)
        if uses is None:
            continue
        place = int(np.searchsorted(uses, peak_time, "right"))
        if place:
            last = int(np.searchsorted(own_times, uses[place - 1], "right")) - 1
            before[mine] = np.minimum(before[mine], max(ordinal - last, 0))
        if place < uses.size:
            following = int(np.searchsorted(own_times, uses[place], "left"))
            after[mine] = np.minimum(after[mine], max(following - ordinal, 0))
    return before, after


def _older(history: History, found: AtPeak, marks: Marks | None) -> list[Candidate]:
    """Signatures with an op of which several live at the peak, made in different steps.

    Not those that are variables' content: there the newest takes the place of the old one.
    """
    candidates = []
    codes = _largest(found, ~found.has_finding, _LOOKED_AT)
    variables = find_variables(history, found.allocator, marks, codes)
    for code in codes:
        mine = found.codes == code
        if code in variables.states or not history.signatures[code].op:
            continue
        if np.unique(found.step[mine]).size > 1:
            title = f"{int(mine.sum())} x {history.signatures[code].title}"
            candidates.append(
                Candidate("older_copy", (code,), title, which=ALL_BUT_ONE, has_count=True)
            )
    return candidates[:_EACH]


def _batch(history: History, found: AtPeak) -> list[Candidate]:
    """The leading dimension that most bytes at the peak share."""
    signatures = history.signatures
    codes, sums = found.by_code(~found.has_finding)
    forms, form_of = np.unique(signatures.shape[codes], return_inverse=True)
    shapes = [dimensions(signatures.shapes[form]) or (0,) for form in checked(forms.tolist())]
    # Not a dimension that a file only claims.
    leading = np.array([shape[0] if shape[0] < _LONGEST else 0 for shape in shapes], np.int64)
    sizes, size_of = np.unique(leading[form_of], return_inverse=True)
    totals = summed(size_of, sums, sizes.size)
    for place in np.argsort(-totals, kind="stable").tolist():
        if totals[place] < SHARED * found.peak:
            break
        mine = size_of == place
        others = {shapes[form][1:] for form in np.unique(form_of[mine]).tolist()}
        if sizes[place] < 2 or len(others) < 2:
            continue
        if np.unique(signatures.op[codes[mine]]).size >= SHARED_OPS:
            title = f"half of the leading dimension {sizes[place]}"
            return [
                Candidate("smaller_batch", tuple(codes[mine].tolist()), title, 1, 2, has_count=True)
            ]
    return []


def _largest(found: AtPeak, chosen: BoolArray, most: int = _EACH) -> list[int]:
    """The signatures of the chosen buffers that have most bytes."""
    codes, totals = found.by_code(chosen)
    order = np.argsort(-totals, kind="stable")[:most]
    return [int(code) for code in codes[order] if totals[order[0]] > 0]
