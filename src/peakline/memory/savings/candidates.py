"""Which buffers at the peak might be made smaller, fewer, or shorter-lived: what savings try.

A candidate names signatures and which of their buffers; `peakline.memory.savings.answer` works out
what the peak would be without them.

The content of variables is apart. A variable's new value takes the place of the old one while it is
updated: then both are in memory, and neither can be dropped or be elsewhere. The records do not say
what a variable is. It shows in two ways: the same number of its signature's buffers lives at the
end of every step, or the op that made them is one that updates variables.

A variable of the loop (``outputs``, ``tape``) holds the objects of a step until it is overwritten,
which happens when the next call returns: both are in memory by then. Python frees what nothing
refers to at once (docs.python.org/3/c-api/refcounting.html), so all of it goes together.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass

import numpy as np

from peakline.arrays import BoolArray, Int64Array
from peakline.deadline import checked
from peakline.kernels.memory_layout import ALL, ALL_BUT_ONE, ALLOCATION, FROM_BEFORE, OF_THE_STEP
from peakline.memory.crossings import find_crossing
from peakline.memory.marks import Marks
from peakline.memory.peak.buffers import AtPeak
from peakline.memory.peak.explained import BEFORE_PROFILE
from peakline.memory.savings.op_use import OpUse
from peakline.memory.signatures import History, dimensions, split_by
from peakline.tables.joins import summed
from peakline.text import size_text

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


MADE_BY = 0.5
"""Outputs and activations are of the forward pass, in the first half of a step's records; what an
optimizer puts in the place of a weight is made after the gradients."""
RELEASE = 3.0
"""They are freed with at most so many other records between two of them."""
FEWEST = 3
"""An output with what it was computed from is so many buffers; one alone may be state that the next
step reads."""
_MADE = frozenset(("activation", "temporary"))
"""Categories (`peakline.memory.origins.categories`) of what a forward pass makes."""
_INPUT = re.compile(r"Iterator|Dataset|(?:^|/)(?:infeed|copy_from_host|h2d)", re.IGNORECASE)
"""Ops that hand out a batch (tensorflow/core/kernels/data): the next one is made in advance."""


def held_outputs(history: History, result: AtPeak) -> BoolArray:
    """Which buffers at the peak are of the forward pass of the step before, and no longer needed.

    They end together in the step of the peak, by which successors of the same op and shape are
    there. Weights, an optimizer's state and batches are replaced too, but are needed: they are
    known by their category or op, and by being made in the second half of a step.
    """
    chosen = np.zeros(result.rows.size, np.bool_)
    if not result.starts.size or result.own_step < 1 or not result.has_ends:
        return chosen
    older = (result.step == result.own_step - 1) & result.is_freed & ~result.has_finding
    older &= ~history.was_there[result.rows]
    if not older.any():
        return chosen
    older &= _is_made(history, result)
    newer = np.unique(result.codes[(result.step == result.own_step) & (result.codes >= 0)])
    older &= np.isin(result.codes, newer) & _is_early(history, result)
    older &= _ends_in_own_step(history, result)
    places = np.flatnonzero(older)
    chosen[places[_go_together(history, result, places)]] = True
    return chosen


def _is_made(history: History, result: AtPeak) -> BoolArray:
    """Which are made by a forward pass, by their category where that is known, else by their op."""
    signatures = history.signatures
    computes = np.array(
        [
            bool(op) and not updates_variables(op) and _INPUT.search(op) is None
            for op in signatures.ops
        ],
        np.bool_,
    )
    named: BoolArray = computes[signatures.op[result.codes]] & (result.codes >= 0)
    if history.descriptions is None:
        return named
    codes, categories = history.descriptions.of(result.rows)[0]
    known = np.array([not one or one in _MADE for one in categories], np.bool_)
    return named & known[codes]


def _is_early(history: History, result: AtPeak) -> BoolArray:
    """Which were made in the first part of their step, by the allocator's own records."""
    own = history.rows_of(result.allocator)
    begin = np.searchsorted(own, result.starts[result.own_step - 1])
    end = np.searchsorted(own, result.starts[result.own_step])
    early: BoolArray = np.searchsorted(own, result.rows) - begin <= MADE_BY * (end - begin)
    return early


def _ends_in_own_step(history: History, result: AtPeak) -> BoolArray:
    """Which are freed before the step of the peak ends, as far as that is on record."""
    after = result.own_step + 1
    end = int(result.starts[after]) if after < result.starts.size else history.rows
    ends: BoolArray = history.lifetimes.end[result.rows] < end
    return ends


def _go_together(history: History, result: AtPeak, places: Int64Array) -> BoolArray:
    """Which of the buffers are freed with most of the others, a few records apart."""
    if not places.size:
        return np.zeros(0, np.bool_)
    own = history.rows_of(result.allocator)
    at = np.searchsorted(own, history.lifetimes.end[result.rows[places]])
    order = np.argsort(at, kind="stable")
    burst = np.cumsum(np.diff(at[order], prepend=at[order[0]]) > RELEASE)
    sizes = np.bincount(burst, result.bytes[places][order])
    together = np.zeros(places.size, np.bool_)
    most = int(sizes.argmax())
    is_whole = 2 * sizes[most] >= sizes.sum() and np.count_nonzero(burst == most) >= FEWEST
    together[order[burst == most]] = bool(is_whole)
    return together


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
PIECES = 2
"""What is computed in pieces is so in two at least: one of them is there at a time."""
_LONGEST = 2**62
"""A leading dimension that is longer is none."""

_EACH = 6
"""So many candidates of each kind are worked out."""
_LOOKED_AT = 4 * _EACH
"""... of so many signatures, for some cannot be done without."""

_LASTING = frozenset(("parameter", "optimizer state", "gradient", "input"))
"""Categories (`peakline.memory.origins.categories`) of buffers that no forward pass makes."""
_UNRECORDED = " (when it is used is not recorded)"


@dataclass(frozen=True)
class Candidate:
    """Buffers that might shrink by ``numerator / denominator`` of their bytes.

    ``codes`` are their signatures; ``which`` of their buffers are meant is `ALL`, `ALL_BUT_ONE`,
    those `OF_THE_STEP` that runs or those `FROM_BEFORE` it. ``has_count`` says that the title is of
    all of them, not of one. ``remains`` are the bytes that may be needed all the same: of what is
    computed in pieces one piece, of what is recomputed one layer's. Records before ``since`` do
    not count.
    """

    kind: str
    codes: tuple[int, ...]
    title: str
    numerator: int = 1
    denominator: int = 1
    which: int = ALL
    has_count: bool = False
    remains: int = 0
    since: int = 0


def find_candidates(
    history: History,
    result: AtPeak,
    marks: Marks | None,
    ops: OpUse,
    programs: Collection[str] = (),
) -> list[Candidate]:
    """Everything that might lower the peak. What has a finding of growth is none.

    ``programs`` are the names of the compiled programs that the file holds.
    """
    candidates = _batch(history, result)
    if result.has_ends:
        # Where nothing is ever freed, the file is of one moment, and of no time before or after.
        candidates += _temporaries(history, result, marks, programs)
        candidates += _held(history, result, marks, ops)
        older = _older(history, result, marks)
        candidates += older
        candidates += _outputs(history, result, {one.codes[0] for one in older})
    return candidates


def _records_per_step(history: History, result: AtPeak, marks: Marks | None) -> int:
    """How many records of the allocator a step has: the median; without steps a tenth of all."""
    own = history.rows_of(result.allocator)
    if marks is None:
        return max(own.size // 10, 1)
    bounds = np.searchsorted(own, np.append(marks.start, marks.rows))
    return max(int(np.median(np.diff(bounds))), 1)


def _temporaries(
    history: History, result: AtPeak, marks: Marks | None, programs: Collection[str]
) -> list[Candidate]:
    """Temporaries at the peak, all of one type and shape together: those of the forward pass and
    their gradients, at the peak and at any other time.

    Where no shape is recorded, those of one size. Buffers of compiled programs stay apart.
    """
    signatures = history.signatures
    records = _records_per_step(history, result, marks)
    brief = result.age + result.left <= max(SHORT * records, min(SHORT_RECORDS, 0.5 * records))
    brief &= result.is_freed
    # A signature of which some buffer lives on is no temporary.
    brief &= ~np.isin(result.codes, result.codes[~brief])
    of_program = np.array([_is_of_program(op, programs) for op in signatures.ops], np.bool_)
    is_program = of_program[signatures.op[result.codes]]
    candidates = [
        Candidate("program", (code,), signatures[code].title)
        for code in _largest(result, brief & is_program)
    ]
    passing = _ends_in_its_step(history, result)
    passing &= (signatures.allocator == result.allocator) & ~of_program[signatures.op]
    passing[result.codes[result.has_finding]] = False
    passing[result.codes[~_can_be_made_again(history, result)]] = False
    forms = _forms(history)
    mine = passing[result.codes]
    own, place = np.unique(forms[result.codes[mine]], return_inverse=True)
    totals = summed(place, result.bytes[mine], own.size)
    for form in own[np.argsort(-totals, kind="stable")[:_EACH]].tolist():
        codes = np.flatnonzero(passing & (forms == form))
        here = int(np.isin(result.codes, codes).sum())
        candidates.append(
            Candidate(
                "temporary",
                tuple(codes.tolist()),
                _group_title(history, codes, here),
                has_count=True,
                remains=-(-_largest_of(result, forms[result.codes] == form) // PIECES),
            )
        )
    return candidates


def _largest_of(result: AtPeak, chosen: BoolArray) -> int:
    """The bytes of the largest of the ``chosen`` buffers at the peak."""
    return int(result.bytes[chosen].max(initial=0))


def _forms(history: History) -> Int64Array:
    """Per signature a number for its type and shape; for its type and size without a shape."""
    signatures = history.signatures
    keys = np.stack([signatures.data_type, signatures.shape, signatures.size])
    result: Int64Array = np.unique(keys, axis=1, return_inverse=True)[1].ravel()
    return result


def _ends_in_its_step(history: History, result: AtPeak) -> BoolArray:
    """Per signature whether all of its buffers end in the step that made them; without steps
    whether all end.
    """
    own = history.rows_of(result.allocator)
    made = own[history.signatures.codes[own] >= 0]
    ends = history.lifetimes.end[made].astype(np.int64)
    stays = (ends < 0) | history.was_there[made]
    if not result.starts.size:
        # Without steps what lives for half of all records is no temporary.
        stays |= np.searchsorted(own, ends) - np.searchsorted(own, made) > own.size // 2
    if result.starts.size:
        begun = np.searchsorted(result.starts, made, "right")
        stays |= (begun == 0) | (begun != np.searchsorted(result.starts, ends, "right"))
    passing = np.zeros(len(history.signatures), np.bool_)
    passing[history.signatures.codes[made]] = True
    passing[history.signatures.codes[made[stays]]] = False
    return passing


def _group_title(history: History, codes: Int64Array, here: int) -> str:
    """``pairwise/Sub float [512, 512, 32]``, or how many ops make buffers of the form."""
    one = history.signatures[int(codes[0])]
    if codes.size == 1:
        return one.title if here < 2 else f"{here} x {one.title}"
    what = " ".join(part for part in (one.data_type, one.shape) if part)
    if one.bytes is not None:
        what = f"{what} buffers of {size_text(one.bytes)}".strip()
    title = f"{codes.size} ops' {what}"
    return f"{title}, {here} at once" if here > 1 else title


def _is_of_program(op: str, programs: Collection[str]) -> bool:
    """Whether the buffer of ``op`` is one of a compiled program as a whole.

    XLA's runtimes request such buffers under the program's name or none, TensorFlow's under that of
    the op that runs a cluster (tensorflow/compiler/jit/xla_launch_util.cc).
    """
    return op in programs or (not op and bool(programs)) or op.endswith("/xla_run")


def _held(history: History, result: AtPeak, marks: Marks | None, ops: OpUse) -> list[Candidate]:
    """Buffers that were made, or last read, well before the peak and are needed well after it.

    Those of the peak's own step can be made again; what an earlier one made, or what stays for
    good, can only be moved away. A signature may have both.
    """
    gap = max(IDLE * _records_per_step(history, result, marks), 1)
    before, after = _unused(history, result, ops)
    across = (before >= gap) & (after >= gap) & ~result.has_finding
    older = history.was_there[result.rows] | (result.step < result.own_step)
    codes = _largest(result, across, _LOOKED_AT)
    variables = find_variables(history, result.allocator, marks, codes)
    # Whether the peak is an allocation of an op that updates variables, and so reads them.
    code = int(history.signatures.codes[result.row])
    is_updating = code >= 0 and updates_variables(history.signatures[code].op)
    candidates: dict[str, list[Candidate]] = {"recompute": [], "offload": []}
    passing: list[int] = []
    again = across & ~older & _can_be_made_again(history, result)
    for code in codes:
        signature = history.signatures[code]
        if signature.op == BEFORE_PROFILE:
            continue
        mine = across & (result.codes == code)
        stays = not signature.op or signature.region_type.startswith("persist")
        if not stays and not updates_variables(signature.op) and (mine & again).any():
            passing.append(code)
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
    found_all = [one for kind in candidates.values() for one in kind[:_EACH]]
    if len(passing) > 1:
        mine = np.isin(result.codes, passing) & again
        count, largest = int(mine.sum()), int(result.bytes[mine].max(initial=0))
        title = f"{count} buffers that {len(passing)} ops made early in the step"
        found_all.append(
            Candidate(
                "recompute", tuple(passing), title, which=OF_THE_STEP, has_count=True,
                remains=largest,
            )
        )  # fmt: skip
    return found_all


def _can_be_made_again(history: History, result: AtPeak) -> BoolArray:
    """Which buffers a forward pass may make again: no gradients, weights or state, where the format
    says which those are.
    """
    if history.descriptions is None:
        return np.ones(result.rows.size, np.bool_)
    codes, categories = history.descriptions.of(result.rows)[0]
    stays = [category in _LASTING for category in categories]
    return ~np.array(stays, np.bool_)[codes]


def _unused(history: History, result: AtPeak, ops: OpUse) -> tuple[Int64Array, Int64Array]:
    """Per buffer at the peak, records since its last use before it, and to the next after it.

    Its beginning and its end count as uses.
    """
    before, after = result.age.copy(), result.left.copy()
    own = history.rows_of(result.allocator)
    times = history.events.array("time_ps")
    peak_time, ordinal = int(times[result.row]), int(np.searchsorted(own, result.row))
    own_times = times[own]
    if not ops.costs:
        # No op's execution is recorded, so none has uses.
        return before, after
    codes, place_of = np.unique(result.codes, return_inverse=True)
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


def _older(history: History, result: AtPeak, marks: Marks | None) -> list[Candidate]:
    """Signatures with an op of which several live at the peak, made in different steps.

    Not those that are variables' content: there the newest takes the place of the old one.
    """
    candidates = []
    codes = _largest(result, ~result.has_finding, _LOOKED_AT)
    variables = find_variables(history, result.allocator, marks, codes)
    for code in codes:
        mine = result.codes == code
        if code in variables.states or not history.signatures[code].op:
            continue
        if np.unique(result.step[mine]).size > 1:
            title = f"{int(mine.sum())} x {history.signatures[code].title}"
            candidates.append(
                Candidate("older_copy", (code,), title, which=ALL_BUT_ONE, has_count=True)
            )
    return candidates[:_EACH]


def _outputs(history: History, result: AtPeak, known: Collection[int]) -> list[Candidate]:
    """What the forward pass of the step before made, and that of this step has made again, but for
    the signatures ``known``.
    """
    mine = held_outputs(history, result) & ~np.isin(result.codes, list(known))
    codes = _largest(result, mine, _LOOKED_AT)
    if not codes:
        return []
    count = int((mine & (result.codes == codes[0])).sum())
    others = int((mine & np.isin(result.codes, codes[1:])).sum())
    title = f"{count} x {history.signatures[codes[0]].title} of the step before"
    if others:
        title += f" and {others} more of it"
    # In the first step those of the step before it are memory from before the profile.
    since = int(result.starts[1])
    return [
        Candidate("older_copy", tuple(codes), title, which=FROM_BEFORE, has_count=True, since=since)
    ]


def _batch(history: History, result: AtPeak) -> list[Candidate]:
    """The leading dimension that most bytes at the peak share."""
    signatures = history.signatures
    # Weights, their gradients and what an optimizer holds do not shrink with the batch.
    held = _held_shapes(history, result)
    is_weight = np.isin(signatures.shape[result.codes], held)
    codes, sums = result.by_code(~result.has_finding & ~is_weight)
    if not codes.size:
        return []
    sides = {size for form in held.tolist() for size in (dimensions(signatures.shapes[form]) or ())}
    forms, form_of = np.unique(signatures.shape[codes], return_inverse=True)
    shapes = [dimensions(signatures.shapes[form]) or (0,) for form in checked(forms.tolist())]
    # Not a dimension that a file only claims.
    leading = np.array([shape[0] if shape[0] < _LONGEST else 0 for shape in shapes], np.int64)
    sizes, size_of = np.unique(leading[form_of], return_inverse=True)
    totals = summed(size_of, sums, sizes.size)
    for place in np.argsort(-totals, kind="stable").tolist():
        if totals[place] < SHARED * result.peak:
            break
        mine = size_of == place
        others = {shapes[form][1:] for form in np.unique(form_of[mine]).tolist()}
        if sizes[place] < 2 or len(others) < 2 or int(sizes[place]) in sides:
            continue
        if np.unique(signatures.op[codes[mine]]).size >= SHARED_OPS:
            title = f"half of the leading dimension {sizes[place]}"
            return [
                Candidate("smaller_batch", tuple(codes[mine].tolist()), title, 1, 2, has_count=True)
            ]
    return []


def _held_shapes(history: History, result: AtPeak) -> Int64Array:
    """The shapes of what stays from step to step: weights, and all of the same shape."""
    signatures = history.signatures
    stays = history.was_there[result.rows] | (result.step < result.own_step) | ~result.is_freed
    regions = [text.startswith("persist") for text in signatures.region_types]
    stays |= np.array(regions, np.bool_)[signatures.region_type[result.codes]]
    shapes = np.unique(signatures.shape[result.codes[stays]])
    ranks = [len(dimensions(signatures.shapes[form]) or ()) for form in shapes.tolist()]
    return shapes[np.array(ranks, np.int64) > 0].astype(np.int64)


def _largest(result: AtPeak, chosen: BoolArray, most: int = _EACH) -> list[int]:
    """The signatures of the chosen buffers that have most bytes."""
    codes, totals = result.by_code(chosen)
    order = np.argsort(-totals, kind="stable")[:most]
    return [int(code) for code in codes[order] if totals[order[0]] > 0]
