"""Copies of weights or gradients at the peak: what calls itself one, and what a program makes by
hand of the same sizes.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import numpy as np

from peakline.memory.at_peak import AtPeak
from peakline.memory.composition import COPY_BUFFERS, COPY_SHARE, SAME, Part, goes_at_once, parts_of
from peakline.memory.origins import Origins
from peakline.memory.signatures import History

_SMALL = 1e-3
"""Buffers of less than this share of the peak are no evidence."""
HAND_BUFFERS = 4
"""What no function calls a copy is one from so many buffers on, ..."""
HAND_SIZES = 2
"""... of so many distinct sizes: activations of equal layers have one."""


@dataclass(frozen=True, eq=False)
class SecondCopy:
    """``copy`` holds buffers of the same sizes as ``original``, ``times`` over."""

    copy: Part
    original: Part
    times: int = 1


def second_copies(history: History, found: AtPeak, origins: Origins) -> list[SecondCopy]:
    """Copies at the peak whose originals are there too, largest first.

    What calls itself a copy (clone, deepcopy, jnp.copy) and has buffers of the sizes of another
    part, once or several times; and what the program's own code made in the steps with exactly the
    sizes of what was there before them. State of an optimizer has the sizes of the weights too,
    and is none.
    """
    if not origins.has_frames:
        return []
    parts = [
        part
        for part in parts_of(history, found, origins)
        if part.bytes >= SAME * COPY_SHARE * found.peak
    ]
    sizes = [_sizes(history, part, found.peak) for part in parts]
    copies = []
    for place, part in enumerate(parts):
        stack = part.stack
        if stack.is_optimizer or stack.is_zeros or part.bytes < COPY_SHARE * found.peak:
            continue
        if sizes[place].total() < COPY_BUFFERS:
            continue
        if stack.is_copy:
            copy = _named(history, parts, sizes, place)
        elif _is_hand_made(history, found, part, sizes[place]):
            copy = _by_hand(history, found, parts, sizes, place)
        else:
            copy = None
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


def _are_layers(history: History, part: Part) -> bool:
    """Whether a model is built of copies of one layer (``torch.nn.modules.transformer``'s
    ``_get_clones``): those are its weights.
    """
    if part.stack.program is not None and part.stack.program.function == "__init__":
        return True
    if history.descriptions is None:
        return False
    codes, categories = history.descriptions.of(part.rows)[0]
    return any(categories[code] == "parameter" for code in np.unique(codes).tolist())


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
    return int(_counts(history, part).sum())


def _counts(history: History, part: Part) -> np.ndarray:
    counts = history.events.array("count")[part.rows]
    known = history.events.is_valid("count")[part.rows]
    return np.where(known, np.maximum(counts, 1), 1)


def _sizes(history: History, part: Part, peak: int) -> Counter[int]:
    """How many buffers of each size."""
    number = _counts(history, part)
    size = history.allocated[part.rows] // number
    found: Counter[int] = Counter()
    for one, many in zip(size.tolist(), number.tolist(), strict=True):
        if one * many >= max(_SMALL * peak, 1):
            found[one] += many
    return found


def _bytes(sizes: Counter[int]) -> int:
    return sum(size * count for size, count in sizes.items())
