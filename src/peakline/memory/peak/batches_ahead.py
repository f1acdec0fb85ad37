"""Batches of input that are in memory at once, ready for later steps.

Two or three are enough for a device to find the next one there, as the documentation of
``flax.jax_utils.prefetch_to_device`` says of GPUs; a queue without a bound, or a list of all
batches, holds many.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from peakline.arrays import Int64Array
from peakline.memory.origins.stacks import Origins
from peakline.memory.peak.buffers import AtPeak
from peakline.memory.peak.copies import buffer_counts
from peakline.memory.signatures import History
from peakline.trace.frames import Frame

MANY = 8
"""From so many batches on, ..."""
SHARE = 0.35
"""... and from this share of the peak on."""
ENOUGH = 2
_SMALL = 1e-3
"""Buffers of less than this share of the peak are no evidence."""


@dataclass(frozen=True, eq=False)
class Batches:
    """``number`` batches in the buffers that ``rows`` allocated, of ``bytes`` together; ``maker``
    is the function that put them into memory, None where it is not known.
    """

    number: int
    rows: Int64Array
    bytes: int
    maker: Frame | None


def batches_ahead(history: History, result: AtPeak, origins: Origins) -> Batches | None:
    """The input at the peak, where it is of many batches: each of its sizes as often.

    What is input the categories of PyTorch's buffers say; else what a function of the program made
    that hands arrays of the host to the device. Weights that are read from a file are handed over
    too, but of several sizes, some of which occur once.
    """
    for rows, maker in _inputs(history, result, origins):
        total = int(history.allocated[rows].sum())
        number = _number(history, result, rows)
        if number >= MANY and total >= SHARE * result.peak:
            return Batches(number, rows, total, maker)
    return None


def _inputs(
    history: History, result: AtPeak, origins: Origins
) -> list[tuple[Int64Array, Frame | None]]:
    if history.descriptions is not None:
        codes, categories = history.descriptions.of(result.rows)[0]
        mine = (codes == categories.index("input")) & ~result.has_finding
        rows = result.rows[mine]
        return [(rows, origins.function(rows, history.allocated[rows]))]
    if not origins.has_frames:
        return []
    stacks = origins.of(result.rows)
    makers = {stack.program for stack in stacks if stack.program is not None and stack.is_put}
    groups: dict[tuple[str, str], list[int]] = {}
    for place, stack in enumerate(stacks):
        if stack.program is not None and not result.has_finding[place]:
            groups.setdefault((stack.program.file, stack.program.function), []).append(place)
    inputs: list[tuple[Int64Array, Frame | None]] = []
    for maker in sorted(makers, key=lambda frame: (frame.file, frame.line)):
        places = groups.pop((maker.file, maker.function), None)
        if places is not None:
            inputs.append((result.rows[places], maker))
    return inputs


def _number(history: History, result: AtPeak, rows: Int64Array) -> int:
    """How many batches: as many as there are buffers of each size, or one more or less; 0 where
    some sizes occur more often than others.
    """
    numbers = buffer_counts(history, rows)
    sizes: Counter[int] = Counter()
    for size, many in zip(
        (history.allocated[rows] // numbers).tolist(), numbers.tolist(), strict=True
    ):
        if size * many >= _SMALL * result.peak:
            sizes[size] += many
    if not sizes:
        return 0
    least, most = min(sizes.values()), max(sizes.values())
    return least if most - least <= 1 else 0
