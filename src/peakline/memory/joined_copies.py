"""Single buffers at the peak that hold all weights, or all gradients, one after the other.

``torch.nn.utils.parameters_to_vector``, ``jax.flatten_util.ravel_pytree`` and buckets of gradients
(``torch.nn.parallel.DistributedDataParallel``) make such copies: one buffer as large as all that it
was joined of.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from peakline.arrays import Int64Array
from peakline.memory.at_peak import AtPeak
from peakline.memory.composition import COPY_SHARE, Part
from peakline.memory.second_copies import buffer_counts
from peakline.memory.signatures import History

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
"""Categories (`peakline.memory.categories`) of what a model needs, whatever its size."""


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


def joined_copies(history: History, found: AtPeak, parts: list[Part]) -> list[JoinedCopy]:
    """Those among the ``parts`` of what is at the peak, largest first, from 10 % of it on."""
    wholes = _wholes(history, found, parts)
    copies = []
    for part in parts:
        if part.bytes < COPY_SHARE * found.peak:
            break
        if part.stack.is_optimizer or part.stack.is_zeros:
            continue
        size, rows = _of_one_size(history, part)
        whole = next((one for one in wholes if _is_joined(size, one) and one.made_by != part), None)
        held = int(history.allocated[rows].sum())
        if whole is None or held < COPY_SHARE * found.peak or _is_needed(history, rows):
            continue
        if int(_sizes(history, rows)[1].sum()) > _COPIES:
            continue
        copies.append(JoinedCopy(Part(part.stack, part.op, rows, held), whole.what, whole.number))
    return copies


def _wholes(history: History, found: AtPeak, parts: list[Part]) -> list[_Whole]:
    """What may have been joined: the buffers of a category, and those of each piece of code."""
    wholes = []
    if history.descriptions is not None:
        codes, categories = history.descriptions.of(found.rows)[0]
        for category in _JOINED:
            rows = found.rows[codes == categories.index(category)]
            wholes.append(_whole(history, f"all {category}s", rows, None))
    wholes.extend(
        _whole(history, f"all that {part.title} made", part.rows, part)
        for part in parts
        if not part.stack.is_copy
    )
    return [one for one in wholes if one is not None]


def _whole(history: History, what: str, rows: Int64Array, part: Part | None) -> _Whole | None:
    sizes, numbers = _sizes(history, rows)
    number = int(numbers.sum())
    if number < _NUMBER or np.unique(sizes).size < _SIZES:
        return None
    return _Whole(what, int((sizes * numbers).sum()), number, part)


def _of_one_size(history: History, part: Part) -> tuple[int, Int64Array]:
    """The size that most bytes of a part are in, and the rows of its buffers."""
    sizes, numbers = _sizes(history, part.rows)
    distinct, place = np.unique(sizes, return_inverse=True)
    most = int(np.bincount(place, sizes * numbers).argmax())
    return int(distinct[most]), part.rows[place == most]


def _sizes(history: History, rows: Int64Array) -> tuple[Int64Array, Int64Array]:
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
