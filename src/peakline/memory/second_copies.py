"""Copies of weights or gradients at the peak: what calls itself one, and what a program makes by
hand of the same sizes.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from peakline.arrays import Int64Array, IntpArray
from peakline.memory.at_peak import AtPeak
from peakline.memory.composition import COPY_BUFFERS, COPY_SHARE, SAME, Part, goes_at_once
from peakline.memory.signatures import History

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


def second_copies(history: History, found: AtPeak, parts: list[Part]) -> list[SecondCopy]:
    """Copies among the ``parts`` of what is at the peak whose originals are there too, largest
    first.

    What calls itself a copy (clone, deepcopy, jnp.copy) and has buffers of the sizes of another
    part, once or several times; and what the program's own code made in the steps with exactly the
    sizes of what was there before them. State of an optimizer has the sizes of the weights too,
    and is none.
    """
    parts = [part for part in parts if part.bytes >= SAME * COPY_SHARE * found.peak]
    sizes = [_sizes(history, part.rows, found.peak) for part in parts]
    copies = []
    for place, part in enumerate(parts):
        stack = part.stack
        if stack.is_optimizer or stack.is_zeros or part.bytes < COPY_SHARE * found.peak:
            continue
        if sizes[place].total() < COPY_BUFFERS:
            continue
        if stack.is_copy:
            copy = _named(history, parts, sizes, place) or _of_all(history, found, parts, place)
        elif _is_hand_made(history, found, part, sizes[place]):
            copy = _by_hand(history, found, parts, sizes, place)
        elif _is_made_before(history, found, part):
            copy = _of_all(history, found, parts, place)
        else:
            copy = None if found.has_ends else _many(parts, sizes, place)
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


def _of_all(history: History, found: AtPeak, parts: list[Part], place: int) -> SecondCopy | None:
    """A copy of the whole model: each of its sizes as often as among all weights, or several times
    as often. They are the parameters by category, else what no copy is and was there before the
    steps.
    """
    copied = np.concatenate(
        [parts[place].rows, *(part.rows for part in parts if part.stack.is_copy)]
    )
    if history.descriptions is not None:
        codes, categories = history.descriptions.of(found.rows)[0]
        rows = found.rows[codes == categories.index("parameter")]
    else:
        first = found.starts[0] if found.starts.size else history.rows
        rows = np.concatenate([part.rows for part in parts if not part.stack.is_optimizer])
        rows = rows[(rows < first) | history.was_there[rows]]
    rows = rows[~np.isin(rows, copied)]
    part = parts[place]
    if not rows.size or _is_made_of_layers(part):
        return None
    mine = _sizes(history, part.rows, found.peak)
    weights = _sizes(history, rows, found.peak)
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


def _is_hand_made(history: History, found: AtPeak, part: Part, sizes: Counter[int]) -> bool:
    """Whether the program's own code made it in the steps, for a while: it is freed together, and
    there are times at which none of it lives. State, also that of an optimizer written by hand, is
    there at all times once it was made.
    """
    if part.stack.program is None or part.stack.is_backward or part.stack.is_input:
        return False
    if len(sizes) < HAND_SIZES or sizes.total() < HAND_BUFFERS or not found.starts.size:
        return False
    own = history.rows_of(found.allocator)
    if part.rows.min() < found.starts[0] or not goes_at_once(history.lifetimes, own, part.rows):
        return False
    codes = np.unique(history.signatures.codes[part.rows])
    made = own[np.isin(history.signatures.codes[own], codes)]
    ends = history.lifetimes.end[made].astype(np.int64)
    ends = np.maximum.accumulate(np.where(ends < 0, history.rows, ends))
    return bool((ends[:-1] < made[1:]).any())


def _is_made_before(history: History, found: AtPeak, part: Part) -> bool:
    """Whether the program's own code made it before the steps, and it is none of the parameters."""
    if part.stack.program is None or not found.starts.size or history.descriptions is None:
        return False
    if (
        part.rows.max() >= found.starts[0]
        or np.unique(history.allocated[part.rows]).size < MANY_SIZES
    ):
        return False
    codes, categories = history.descriptions.of(part.rows)[0]
    return not any(categories[code] == "parameter" for code in np.unique(codes).tolist())


def _by_hand(
    history: History,
    found: AtPeak,
    parts: list[Part],
    sizes: list[Counter[int]],
    place: int,
) -> SecondCopy | None:
    """The part from before the steps, or of the backward pass, that has exactly these sizes."""
    whole = _bytes(sizes[place])
    for other, original in enumerate(parts):
        lasts = (original.rows < found.starts[0]) | history.was_there[original.rows]
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
    found: Counter[int] = Counter()
    for one, many in zip(size.tolist(), number.tolist(), strict=True):
        if one * many >= max(_SMALL * peak, 1):
            found[one] += many
    return found


def _bytes(sizes: Counter[int]) -> int:
    return sum(size * count for size, count in sizes.items())
