"""What memory is made of at the peak by who made it: second copies, types that are wide, buffers
that a step adds up.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass

import numpy as np

from peakline.arrays import BoolArray, Int64Array, IntpArray
from peakline.kernels.memory_layout import ALLOCATION
from peakline.memory.at_peak import AtPeak
from peakline.memory.lifetimes import Lifetimes
from peakline.memory.origins import Origins, Stack
from peakline.memory.signatures import History
from peakline.tables.joins import summed

COPY_SHARE = 0.10
"""A second copy counts from this share of the peak on, ..."""
SAME = 0.95
"""... when so many of its bytes are in buffers of sizes that the original has too, ..."""
COPY_BUFFERS = 2
"""... and it is of so many buffers."""
_GRADIENT = re.compile(r"(?:^|/)(?:gradient_tape|gradients(?:_\d+)?|transpose\(jvp)/?")
JOINS = frozenset(("concat", "concatv2", "cat", "stack", "pack", "parallelconcat"))
"""Ops whose result is their inputs one after the other."""
_NUMBERED = re.compile(r"_\d+(?=/|$)")

_APART = 64
"""So many other records lie between what two optimizers make."""

TOGETHER = 4
"""So many buffers of one op and size, made one after the other in a step, ..."""
TOGETHER_SHARE = 0.25
"""... of this share of the peak together, ..."""
FEWEST = 3
"""In fewer steps what prepares a run is not distinct from a step of it."""
RELEASE = 3.0
"""... and freed with at most so many other records between two of them, ..."""
ALLOCATED = 0.25
"""... or with so many allocations, are added up for later."""


@dataclass(frozen=True, eq=False)
class Part:
    """Buffers at the peak that one piece of code made: ``rows`` are their allocations."""

    stack: Stack
    op: str
    rows: IntpArray
    bytes: int

    @property
    def title(self) -> str:
        """The function that made them, else the op."""
        return self.op if self.stack.program is None else self.stack.program.title


def parts_of(history: History, found: AtPeak, origins: Origins) -> list[Part]:
    """The buffers at the peak by the code that made them, most bytes first."""
    stacks = origins.of(found.rows)
    keys: dict[tuple[object, ...], list[int]] = {}
    for place, (row, stack) in enumerate(zip(found.rows.tolist(), stacks, strict=True)):
        code = int(history.signatures.codes[row])
        op = history.signatures[code].op if code >= 0 else ""
        what = (stack.program, stack.op or op, stack.is_backward, stack.is_optimizer)
        keys.setdefault(what, []).append(place)
    parts = []
    for places in keys.values():
        at = np.array(places)
        code = int(history.signatures.codes[found.rows[at[0]]])
        op = stacks[places[0]].op or (history.signatures[code].op if code >= 0 else "")
        parts.append(Part(stacks[places[0]], op, found.rows[at], int(found.bytes[at].sum())))
    return sorted(parts, key=lambda part: -part.bytes)


def second_states(history: History, found: AtPeak, origins: Origins) -> Part | None:
    """The state that an optimizer made at a later time, of the sizes of what one had made before:
    both live at the peak. None without any.
    """
    mine = np.flatnonzero(_is_state(history, found, origins))
    if mine.size < 2 * COPY_BUFFERS:
        return None
    rows = np.sort(found.rows[mine])
    # Made at once: between two of one optimizer's lie few records.
    own = history.rows_of(found.allocator)
    apart = np.flatnonzero(np.diff(np.searchsorted(own, rows)) > _APART) + 1
    bursts = np.split(rows, apart)
    sizes = [Counter(history.allocated[burst].tolist()) for burst in bursts]
    for later in range(len(bursts) - 1, 0, -1):
        whole = sum(size * count for size, count in sizes[later].items())
        for earlier in range(later):
            common = sizes[later] & sizes[earlier]
            shared = sum(size * count for size, count in common.items())
            if shared >= SAME * whole >= COPY_SHARE * found.peak:
                stack = origins.of(bursts[later][:1])[0]
                return Part(stack, stack.op, bursts[later], whole)
    return None


def _is_state(history: History, found: AtPeak, origins: Origins) -> list[bool]:
    """Which buffers at the peak are an optimizer's state: by category where those are known."""
    if history.descriptions is not None:
        codes, categories = history.descriptions.of(found.rows)[0]
        return [categories[code] == "optimizer state" for code in codes.tolist()]
    return [stack.is_optimizer and stack.is_zeros for stack in origins.of(found.rows)]


@dataclass(frozen=True, eq=False)
class AddedUp:
    """Buffers of one signature that a step makes one by one, holds, and frees together.

    ``rows`` are those at the peak, in order of time, of ``turns`` turns of a loop; gradients of
    several weights are added up together, ``code`` is the largest. ``has_passes`` says that a
    backward pass ran between each two. ``is_sure`` is false where layers may have made them: where
    no backward pass is on record, what layers hold (a cache of keys and values each) goes together
    too.
    """

    code: int
    rows: IntpArray
    bytes: int
    turns: int
    has_passes: bool
    is_sure: bool = True


def added_up(
    history: History, found: AtPeak, is_backward: BoolArray | None = None
) -> list[AddedUp]:
    """What the step of the peak has added up by then, largest first.

    Layers hold their activations too, but give them back one after the other while the gradients
    are made; what is held for a list goes at once. ``is_backward`` marks the records of backward
    passes, where the file says it.
    """
    # Their starts, and the end of the last one.
    if not found.has_ends or found.starts.size <= FEWEST:
        return []
    lifetimes = history.lifetimes
    own = history.rows_of(found.allocator)
    new = (found.step == found.own_step) & ~history.was_there[found.rows] & ~found.has_finding
    if is_backward is not None:
        # Gradients of layers come one after the other in one backward pass.
        new &= ~is_backward[found.rows]
    group = _turns_of(history)
    numbers, place = np.unique(group[found.codes[new]], return_inverse=True)
    totals = summed(place, found.bytes[new], numbers.size)
    many = (np.bincount(place, minlength=numbers.size) >= TOGETHER) & (
        totals >= TOGETHER_SHARE * found.peak
    )
    result = []
    for number in np.flatnonzero(many).tolist():
        rows = np.sort(found.rows[new][place == number])
        total = int(history.allocated[rows].sum())
        code = int(history.signatures.codes[rows[0]]) if rows.size else -1
        passes = _has_passes(rows, is_backward)
        joined = _join_of(history, found, rows)
        if joined is not None:
            rows = np.append(rows, joined)
            total += int(history.allocated[joined])
            result.append(AddedUp(code, rows, total, rows.size, bool(passes)))
            continue
        if passes is False or not (passes or goes_at_once(lifetimes, own, rows)):
            continue
        if not passes and not _is_looped(history, own, rows):
            continue
        result.append(AddedUp(code, rows, total, rows.size, bool(passes), is_sure=bool(passes)))
    if is_backward is not None:
        result.extend(_added_gradients(history, found, is_backward))
    return sorted(result, key=lambda one: -one.bytes)


def _added_gradients(history: History, found: AtPeak, is_backward: BoolArray) -> list[AddedUp]:
    """Gradients of the same weights, one of each turn: ops of one scope, which names one place in
    the program, with forward passes between them. PyTorch's ops have none.
    """
    new = (found.step == found.own_step) & ~found.has_finding & is_backward[found.rows]
    new &= ~history.was_there[found.rows] & (found.codes >= 0)
    codes, counts = np.unique(found.codes[new], return_counts=True)
    is_forward = (history.lifetimes.kind == ALLOCATION) & ~is_backward
    own = history.rows_of(found.allocator)
    groups: dict[int, list[IntpArray]] = {}
    for code, turns in zip(codes.tolist(), counts.tolist(), strict=True):
        if turns < TOGETHER or "/" not in history.signatures[code].op:
            continue
        rows = np.sort(found.rows[new & (found.codes == code)])
        if _has_passes(rows, is_forward) and goes_at_once(history.lifetimes, own, rows):
            groups.setdefault(turns, []).append(rows)
    result = []
    for turns, every in groups.items():
        every.sort(key=lambda rows: -int(history.allocated[rows].sum()))
        total = int(sum(history.allocated[rows].sum() for rows in every))
        if total >= TOGETHER_SHARE * found.peak:
            code = int(history.signatures.codes[every[0][0]])
            result.append(
                AddedUp(code, np.sort(np.concatenate(every)), total, turns, has_passes=True)
            )
    return result


def _turns_of(history: History) -> Int64Array:
    """Per signature a number for its op, type and shape; turns of an unrolled loop are one op,
    which TensorFlow numbers (``logits_1``).
    """
    signatures = history.signatures
    plain = [_NUMBERED.sub("", op) for op in signatures.ops]
    numbers = {op: number for number, op in enumerate(dict.fromkeys(plain))}
    ops = np.array([numbers[op] for op in plain], np.int64)[signatures.op]
    keys = np.stack([ops, signatures.data_type, signatures.shape, signatures.size])
    found: Int64Array = np.unique(keys, axis=1, return_inverse=True)[1].ravel()
    return found


def gradients(history: History) -> BoolArray:
    """Which records are allocations of ops of a gradient, by the names of their scopes."""
    signatures = history.signatures
    named = np.array([_GRADIENT.search(op) is not None for op in signatures.ops], np.bool_)
    # The last place is for records without a signature, whose code is -1.
    of_code = np.append(named[signatures.op], False)
    found: BoolArray = of_code[signatures.codes]
    return found


def _has_passes(rows: IntpArray, is_backward: BoolArray | None) -> bool | None:
    """Whether backward passes ran between most of ``rows``; None where nothing says it."""
    if is_backward is None or not is_backward.any():
        return None
    passed = np.concatenate([[0], np.cumsum(is_backward)])
    between = passed[rows[1:]] - passed[rows[:-1] + 1]
    return bool(np.count_nonzero(between) >= 0.8 * (rows.size - 1))


def _join_of(history: History, found: AtPeak, rows: IntpArray) -> int | None:
    """The buffer at the peak that an op made that puts all of ``rows`` one after the other."""
    signatures, size = history.signatures, int(history.requested[rows].sum())
    for row in found.rows[found.rows > rows[-1]].tolist():
        op = signatures.ops[signatures.op[signatures.codes[row]]]
        last = re.split(r"[/:]", _NUMBERED.sub("", op))[-1].lower()
        if last in JOINS and int(history.requested[row]) == size:
            return int(row)
    return None


def goes_at_once(lifetimes: Lifetimes, own: IntpArray, rows: IntpArray) -> bool:
    """Whether all are freed, and next to each other: with few other records between them, or
    without allocations.
    """
    ends = lifetimes.end[rows].astype(np.int64)
    if (ends < 0).any():
        return False
    first, last = np.searchsorted(own, [ends.min(), ends.max()]).tolist()
    if last - first <= RELEASE * rows.size:
        return True
    made = np.count_nonzero(lifetimes.kind[own[first:last]] == ALLOCATION)
    return bool(made <= ALLOCATED * rows.size)


def _is_looped(history: History, own: IntpArray, rows: IntpArray) -> bool:
    """Whether between each two of ``rows`` the same other buffers came and went."""
    lifetimes, codes = history.lifetimes, history.signatures.codes
    bounds = np.searchsorted(own, rows)
    turns: list[Int64Array] = []
    for first, last in zip(bounds[:-1].tolist(), bounds[1:].tolist(), strict=True):
        inside = own[first + 1 : last]
        made = inside[(codes[inside] >= 0)]
        ends = lifetimes.end[made].astype(np.int64)
        gone = made[(ends >= 0) & (ends <= own[last])]
        turns.append(np.unique(codes[gone]))
    if not turns or not turns[0].size:
        return False
    same = [np.array_equal(turn, turns[0]) for turn in turns]
    return float(np.mean(same)) >= 0.8
