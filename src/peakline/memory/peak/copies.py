"""What memory is made of at the peak by who made it, and which of that is there twice: copies of
weights or gradients, state of two optimizers, what a step adds up; single buffers that hold all
weights, or all gradients, one after the other.

A copy calls itself one, or a program makes it by hand of the same sizes.
``torch.nn.utils.parameters_to_vector``, ``jax.flatten_util.ravel_pytree`` and buckets of gradients
(``torch.nn.parallel.DistributedDataParallel``) make one buffer as large as all that it was joined
of.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from peakline.arrays import BoolArray, Int64Array, IntpArray
from peakline.kernels.memory_layout import ALLOCATION
from peakline.memory.lifetimes import Lifetimes
from peakline.memory.origins.stacks import Origins, Stack
from peakline.memory.peak.buffers import AtPeak
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


def parts_of(history: History, result: AtPeak, origins: Origins) -> list[Part]:
    """The buffers at the peak by the code that made them, most bytes first."""
    stacks = origins.of(result.rows)
    keys: dict[tuple[object, ...], list[int]] = {}
    for place, (row, stack) in enumerate(zip(result.rows.tolist(), stacks, strict=True)):
        code = int(history.signatures.codes[row])
        op = history.signatures[code].op if code >= 0 else ""
        what = (stack.program, stack.op or op, stack.is_backward, stack.is_optimizer)
        keys.setdefault(what, []).append(place)
    parts = []
    for places in keys.values():
        at = np.array(places)
        code = int(history.signatures.codes[result.rows[at[0]]])
        op = stacks[places[0]].op or (history.signatures[code].op if code >= 0 else "")
        parts.append(Part(stacks[places[0]], op, result.rows[at], int(result.bytes[at].sum())))
    return sorted(parts, key=lambda part: -part.bytes)


def second_states(history: History, result: AtPeak, origins: Origins) -> Part | None:
    """The state that an optimizer made at a later time, of the sizes of what one had made before:
    both live at the peak. None without any.
    """
    mine = np.flatnonzero(_is_state(history, result, origins))
    if mine.size < 2 * COPY_BUFFERS:
        return None
    rows = np.sort(result.rows[mine])
    # Made at once: between two of one optimizer's lie few records.
    own = history.rows_of(result.allocator)
    apart = np.flatnonzero(np.diff(np.searchsorted(own, rows)) > _APART) + 1
    bursts = np.split(rows, apart)
    sizes = [Counter(history.allocated[burst].tolist()) for burst in bursts]
    for later in range(len(bursts) - 1, 0, -1):
        whole = sum(size * count for size, count in sizes[later].items())
        for earlier in range(later):
            common = sizes[later] & sizes[earlier]
            shared = sum(size * count for size, count in common.items())
            if shared >= SAME * whole >= COPY_SHARE * result.peak:
                stack = origins.of(bursts[later][:1])[0]
                return Part(stack, stack.op, bursts[later], whole)
    return None


def _is_state(history: History, result: AtPeak, origins: Origins) -> list[bool]:
    """Which buffers at the peak are an optimizer's state: by category where those are known."""
    if history.descriptions is not None:
        codes, categories = history.descriptions.of(result.rows)[0]
        return [categories[code] == "optimizer state" for code in codes.tolist()]
    return [stack.is_optimizer and stack.is_zeros for stack in origins.of(result.rows)]


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
    history: History, results: AtPeak, is_backward: BoolArray | None = None
) -> list[AddedUp]:
    """What the step of the peak has added up by then, largest first.

    Layers hold their activations too, but give them back one after the other while the gradients
    are made; what is held for a list goes at once. ``is_backward`` marks the records of backward
    passes, where the file says it.
    """
    # Their starts, and the end of the last one.
    if not results.has_ends or results.starts.size <= FEWEST:
        return []
    lifetimes = history.lifetimes
    own = history.rows_of(results.allocator)
    new = (
        (results.step == results.own_step) & ~history.was_there[results.rows] & ~results.has_finding
    )
    if is_backward is not None:
        # Gradients of layers come one after the other in one backward pass.
        new &= ~is_backward[results.rows]
    group = _turns_of(history)
    numbers, place = np.unique(group[results.codes[new]], return_inverse=True)
    totals = summed(place, results.bytes[new], numbers.size)
    many = (np.bincount(place, minlength=numbers.size) >= TOGETHER) & (
        totals >= TOGETHER_SHARE * results.peak
    )
    result = []
    for number in np.flatnonzero(many).tolist():
        rows = np.sort(results.rows[new][place == number])
        total = int(history.allocated[rows].sum())
        code = int(history.signatures.codes[rows[0]]) if rows.size else -1
        passes = _has_passes(rows, is_backward)
        joined = _join_of(history, results, rows)
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
        result.extend(_added_gradients(history, results, is_backward))
    return sorted(result, key=lambda one: -one.bytes)


def _added_gradients(history: History, results: AtPeak, is_backward: BoolArray) -> list[AddedUp]:
    """Gradients of the same weights, one of each turn: ops of one scope, which names one place in
    the program, with forward passes between them. PyTorch's ops have none.
    """
    new = (results.step == results.own_step) & ~results.has_finding & is_backward[results.rows]
    new &= ~history.was_there[results.rows] & (results.codes >= 0)
    codes, counts = np.unique(results.codes[new], return_counts=True)
    is_forward = (history.lifetimes.kind == ALLOCATION) & ~is_backward
    own = history.rows_of(results.allocator)
    groups: dict[int, list[IntpArray]] = {}
    for code, turns in zip(codes.tolist(), counts.tolist(), strict=True):
        if turns < TOGETHER or "/" not in history.signatures[code].op:
            continue
        rows = np.sort(results.rows[new & (results.codes == code)])
        if _has_passes(rows, is_forward) and goes_at_once(history.lifetimes, own, rows):
            groups.setdefault(turns, []).append(rows)
    result = []
    for turns, every in groups.items():
        every.sort(key=lambda rows: -int(history.allocated[rows].sum()))
        total = int(sum(history.allocated[rows].sum() for rows in every))
        if total >= TOGETHER_SHARE * results.peak:
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
    result: Int64Array = np.unique(keys, axis=1, return_inverse=True)[1].ravel()
    return result


def gradients(history: History) -> BoolArray:
    """Which records are allocations of ops of a gradient, by the names of their scopes."""
    signatures = history.signatures
    named = np.array([_GRADIENT.search(op) is not None for op in signatures.ops], np.bool_)
    # The last place is for records without a signature, whose code is -1.
    of_code = np.append(named[signatures.op], False)
    result: BoolArray = of_code[signatures.codes]
    return result


def _has_passes(rows: IntpArray, is_backward: BoolArray | None) -> bool | None:
    """Whether backward passes ran between most of ``rows``; None where nothing says it."""
    if is_backward is None or not is_backward.any():
        return None
    passed = np.concatenate([[0], np.cumsum(is_backward)])
    between = passed[rows[1:]] - passed[rows[:-1] + 1]
    return bool(np.count_nonzero(between) >= 0.8 * (rows.size - 1))


def _join_of(history: History, result: AtPeak, rows: IntpArray) -> int | None:
    """The buffer at the peak that an op made that puts all of ``rows`` one after the other."""
    signatures, size = history.signatures, int(history.requested[rows].sum())
    for row in result.rows[result.rows > rows[-1]].tolist():
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


_SMALL = 1e-3
"""Buffers of less than this share of the peak are no evidence."""
HAND_BUFFERS = 4
"""What no function calls a copy is one from so many buffers on, ..."""
HAND_SIZES = 2
"""... of so many distinct sizes: activations of equal layers have one."""
MANY_TIMES = 4
"""A list of copies has so many of each size or more, ..."""
MANY_SIZES = 3
"""... of so many sizes."""


@dataclass(frozen=True, eq=False)
class SecondCopy:
    """``copy`` holds buffers of the same sizes as ``original``, ``times`` over; None stands for
    all weights, which several pieces of code made. ``needed`` bytes of it may be.
    """

    copy: Part
    original: Part | None
    times: int = 1
    needed: int = 0


def second_copies(history: History, result: AtPeak, parts: list[Part]) -> list[SecondCopy]:
    """Copies among the ``parts`` of what is at the peak whose originals are there too, largest
    first.

    What calls itself a copy (clone, deepcopy, jnp.copy) and has buffers of the sizes of another
    part, once or several times; and what the program's own code made in the steps with exactly the
    sizes of what was there before them. State of an optimizer has the sizes of the weights too,
    and is none.
    """
    parts = [part for part in parts if part.bytes >= SAME * COPY_SHARE * result.peak]
    sizes = [_sizes(history, part.rows, result.peak) for part in parts]
    copies = []
    for place, part in enumerate(parts):
        stack = part.stack
        if stack.is_optimizer or stack.is_zeros or part.bytes < COPY_SHARE * result.peak:
            continue
        if sizes[place].total() < COPY_BUFFERS:
            continue
        if stack.is_copy:
            copy = _named(history, parts, sizes, place) or _of_all(history, result, parts, place)
        elif _is_hand_made(history, result, part, sizes[place]):
            copy = _by_hand(history, result, parts, sizes, place)
        elif _is_made_before(history, result, part):
            copy = _of_all(history, result, parts, place)
        else:
            copy = None if result.has_ends else _many(parts, sizes, place)
        if copy is not None:
            copies.append(copy)
    return copies


def _named(
    history: History, parts: list[Part], sizes: list[Counter[int]], place: int
) -> SecondCopy | None:
    part = parts[place]
    for other, original in enumerate(parts):
        if other == place or (original.stack.is_copy and original.bytes < part.bytes):
            continue
        times = max(round(_bytes(sizes[place]) / max(_bytes(sizes[other]), 1)), 1)
        if times > 1 and _are_layers(history, part):
            times = 1
        every = Counter({size: times * count for size, count in sizes[other].items()})
        if _bytes(sizes[place] & every) >= SAME * _bytes(sizes[place]) > 0:
            return SecondCopy(part, original, times)
    return None


def _of_all(history: History, result: AtPeak, parts: list[Part], place: int) -> SecondCopy | None:
    """A copy of the whole model: each of its sizes as often as among all weights, or several times
    as often. They are the parameters by category, else what no copy is and was there before the
    steps.
    """
    copied = np.concatenate(
        [parts[place].rows, *(part.rows for part in parts if part.stack.is_copy)]
    )
    if history.descriptions is not None:
        codes, categories = history.descriptions.of(result.rows)[0]
        rows = result.rows[codes == categories.index("parameter")]
    else:
        first = result.starts[0] if result.starts.size else history.rows
        rows = np.concatenate([part.rows for part in parts if not part.stack.is_optimizer])
        rows = rows[(rows < first) | history.was_there[rows]]
    rows = rows[~np.isin(rows, copied)]
    part = parts[place]
    if not rows.size or _is_made_of_layers(part):
        return None
    mine = _sizes(history, part.rows, result.peak)
    weights = _sizes(history, rows, result.peak)
    times = max(round(_bytes(mine) / max(_bytes(weights), 1)), 1)
    every = Counter({size: times * count for size, count in weights.items()})
    if _bytes(mine & every) >= SAME * max(_bytes(mine), _bytes(every)) > 0:
        return SecondCopy(part, None, times)
    return None


def _many(parts: list[Part], sizes: list[Counter[int]], place: int) -> SecondCopy | None:
    """In a file of one moment, a list of weights or gradients of many turns: each size of a part
    so many times as often as in all others. An optimizer holds two or three such copies.
    """
    mine, others = sizes[place], Counter[int]()
    if len(mine) < MANY_SIZES:
        return None
    makers = [
        part
        for other, part in enumerate(parts)
        if other != place and not set(mine).isdisjoint(sizes[other])
    ]
    for other in range(len(parts)):
        if other != place:
            others += Counter({size: sizes[other][size] for size in mine if size in sizes[other]})
    times = math.gcd(*mine.values())
    if times < MANY_TIMES or set(others) != set(mine):
        return None
    usual = {Fraction(times * others[size], mine[size]) for size in mine}
    if len(usual) > 1:
        return None
    part = parts[place]
    return SecondCopy(part, makers[0] if len(makers) == 1 else None, times, part.bytes // times)


def _are_layers(history: History, part: Part) -> bool:
    """Whether a model is built of copies of one layer (``torch.nn.modules.transformer``'s
    ``_get_clones``): those are its weights.
    """
    if _is_made_of_layers(part):
        return True
    if history.descriptions is None:
        return False
    codes, categories = history.descriptions.of(part.rows)[0]
    return any(categories[code] == "parameter" for code in np.unique(codes).tolist())


def _is_made_of_layers(part: Part) -> bool:
    return part.stack.program is not None and part.stack.program.function == "__init__"


def _is_hand_made(history: History, result: AtPeak, part: Part, sizes: Counter[int]) -> bool:
    """Whether the program's own code made it in the steps, for a while: it is freed together, and
    there are times at which none of it lives. State, also that of an optimizer written by hand, is
    there at all times once it was made.
    """
    if part.stack.program is None or part.stack.is_backward or part.stack.is_input:
        return False
    if len(sizes) < HAND_SIZES or sizes.total() < HAND_BUFFERS or not result.starts.size:
        return False
    own = history.rows_of(result.allocator)
    if part.rows.min() < result.starts[0] or not goes_at_once(history.lifetimes, own, part.rows):
        return False
    codes = np.unique(history.signatures.codes[part.rows])
    made = own[np.isin(history.signatures.codes[own], codes)]
    ends = history.lifetimes.end[made].astype(np.int64)
    ends = np.maximum.accumulate(np.where(ends < 0, history.rows, ends))
    return bool((ends[:-1] < made[1:]).any())


def _is_made_before(history: History, result: AtPeak, part: Part) -> bool:
    """Whether the program's own code made it before the steps, and it is none of the parameters."""
    if part.stack.program is None or not result.starts.size or history.descriptions is None:
        return False
    if (
        part.rows.max() >= result.starts[0]
        or np.unique(history.allocated[part.rows]).size < MANY_SIZES
    ):
        return False
    codes, categories = history.descriptions.of(part.rows)[0]
    return not any(categories[code] == "parameter" for code in np.unique(codes).tolist())


def _by_hand(
    history: History, result: AtPeak, parts: list[Part], sizes: list[Counter[int]], place: int
) -> SecondCopy | None:
    """The part from before the steps, or of the backward pass, that has exactly these sizes."""
    whole = _bytes(sizes[place])
    for other, original in enumerate(parts):
        lasts = (original.rows < result.starts[0]) | history.was_there[original.rows]
        if other == place or not (bool(lasts.all()) or original.stack.is_backward):
            continue
        common = _bytes(sizes[place] & sizes[other])
        if common >= SAME * max(whole, _bytes(sizes[other])):
            return SecondCopy(parts[place], original)
    return None


def buffers_in(history: History, part: Part) -> int:
    """How many buffers a part has; of formats that only give sums, as many as they stand for."""
    return int(buffer_counts(history, part.rows).sum())


def buffer_counts(history: History, rows: IntpArray) -> Int64Array:
    """Per allocation how many buffers it stands for."""
    counts = history.events.array("count")[rows]
    known = history.events.is_valid("count")[rows]
    return np.where(known, np.maximum(counts, 1), 1)


def _sizes(history: History, rows: IntpArray, peak: int) -> Counter[int]:
    """How many buffers of each size."""
    number = buffer_counts(history, rows)
    size = history.allocated[rows] // number
    result: Counter[int] = Counter()
    for one, many in zip(size.tolist(), number.tolist(), strict=True):
        if one * many >= max(_SMALL * peak, 1):
            result[one] += many
    return result


def _bytes(sizes: Counter[int]) -> int:
    return sum(size * count for size, count in sizes.items())


_NUMBER = 4
"""What is joined are so many buffers or more, ..."""
_SIZES = 3
"""... of so many sizes: few sizes, powers of two above all, add up to another by chance."""
_COPIES = 3
"""At most so many vectors: of now, of before, and their difference or sum."""
_ROUNDED = 512
"""PyTorch's allocator for CUDA rounds each up to a multiple of this (``kMinBlockSize`` in
``c10/cuda/CUDACachingAllocator.h``); a file may have the rounded sizes alone."""
_CLOSE = 0.005
"""In any case the sizes are within this share of each other."""
_JOINED = ("parameter", "gradient")
_NO_COPIES = frozenset(("parameter", "optimizer state", "activation"))
"""Categories (`peakline.memory.origins.categories`) of what a model needs, whatever its size."""


@dataclass(frozen=True, eq=False)
class JoinedCopy:
    """``part`` is buffers of one size, each as large as ``number`` buffers together: all of a
    category (``what``: "parameters"), or all that one piece of code made (its title).
    """

    part: Part
    what: str
    number: int


@dataclass(frozen=True, eq=False)
class _Whole:
    what: str
    bytes: int
    number: int
    made_by: Part | None


def joined_copies(history: History, result: AtPeak, parts: list[Part]) -> list[JoinedCopy]:
    """Those among the ``parts`` of what is at the peak, largest first, from 10 % of it on."""
    wholes = _wholes(history, result, parts)
    copies = []
    for part in parts:
        if part.bytes < COPY_SHARE * result.peak:
            break
        if part.stack.is_optimizer or part.stack.is_zeros:
            continue
        size, rows = _of_one_size(history, part)
        whole = next((one for one in wholes if _is_joined(size, one) and one.made_by != part), None)
        held = int(history.allocated[rows].sum())
        if whole is None or held < COPY_SHARE * result.peak or _is_needed(history, rows):
            continue
        if int(_requested_sizes(history, rows)[1].sum()) > _COPIES:
            continue
        copies.append(JoinedCopy(Part(part.stack, part.op, rows, held), whole.what, whole.number))
    return copies


def _wholes(history: History, result: AtPeak, parts: list[Part]) -> list[_Whole]:
    """What may have been joined: the buffers of a category, and those of each piece of code."""
    wholes = []
    if history.descriptions is not None:
        codes, categories = history.descriptions.of(result.rows)[0]
        for category in _JOINED:
            rows = result.rows[codes == categories.index(category)]
            wholes.append(_whole(history, f"all {category}s", rows, None))
    wholes.extend(
        _whole(history, f"all that {part.title} made", part.rows, part)
        for part in parts
        if not part.stack.is_copy
    )
    return [one for one in wholes if one is not None]


def _whole(history: History, what: str, rows: Int64Array, part: Part | None) -> _Whole | None:
    sizes, numbers = _requested_sizes(history, rows)
    number = int(numbers.sum())
    if number < _NUMBER or np.unique(sizes).size < _SIZES:
        return None
    return _Whole(what, int((sizes * numbers).sum()), number, part)


def _of_one_size(history: History, part: Part) -> tuple[int, Int64Array]:
    """The size that most bytes of a part are in, and the rows of its buffers."""
    sizes, numbers = _requested_sizes(history, part.rows)
    distinct, place = np.unique(sizes, return_inverse=True)
    most = int(np.bincount(place, sizes * numbers).argmax())
    return int(distinct[most]), part.rows[place == most]


def _requested_sizes(history: History, rows: Int64Array) -> tuple[Int64Array, Int64Array]:
    """What was requested for one buffer, and how many there are."""
    numbers = buffer_counts(history, rows)
    return history.requested[rows] // numbers, numbers


def _is_joined(size: int, whole: _Whole) -> bool:
    least = min(_ROUNDED * (whole.number + 1), int(_CLOSE * whole.bytes))
    return abs(size - whole.bytes) <= least


def _is_needed(history: History, rows: Int64Array) -> bool:
    if history.descriptions is None:
        return False
    codes, categories = history.descriptions.of(rows)[0]
    return any(categories[code] in _NO_COPIES for code in np.unique(codes).tolist())
