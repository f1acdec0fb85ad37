"""What the memory viewer shows of a program: the curve of its memory, and what is live when.

`View` holds it whichever rule found it; `answer` writes it, `drawing` draws it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from peakline.arrays import Int64Array

if TYPE_CHECKING:
    from peakline.formats.hlo_proto.shapes import Shape
    from peakline.hlo.placement import Placement

SMALL_BYTES = 16384
"""What is smaller at the peak is shown as one (``kSmallBufferSize`` in XProf's
``hlo_to_tools_data.cc``)."""


def no_spans() -> Int64Array:
    """Spans of no value."""
    return np.zeros((0, 3), np.int64)


@dataclass(frozen=True, eq=False)
class Curve:
    """What simulated heaps say: bytes before each of their events and after the last, with the
    instruction of each (a row of `Placement.event_names`, -1 for none); the peak, and the event
    that reaches it.

    ``live`` are the values at the peak, rows of `Values`, with the bytes each stands for. ``spans``
    has rows of a value, the event it begins with and the one that ends it; ``blocks`` between which
    ones it is drawn: of values that share memory one at a time. Of two about one value the last
    counts.
    """

    bytes: list[int] = field(default_factory=list)
    unpadded_bytes: list[int] = field(default_factory=list)
    instructions: list[int] = field(default_factory=list)
    peak: int = 0
    unpadded_peak: int = 0
    position: int = 0
    live: list[tuple[int, int]] = field(default_factory=list)
    spans: Int64Array = field(default_factory=no_spans)
    blocks: Int64Array = field(default_factory=no_spans)


@dataclass(frozen=True, eq=False)
class View:
    """The memory of a program in one memory space.

    ``lasting_bytes`` is what is held from the beginning to the end, ``indefinite_bytes`` what
    allocations of it take; ``shown`` are the values at the peak, what lasts first, and
    ``shown_bytes`` their bytes. ``listed`` are the allocations that last, ``drawn`` those of
    temporaries with the place where each begins in the picture, ``steps`` how wide it is.
    ``scoped`` is the largest piece of fast memory that an instruction takes while it runs, with its
    name. ``by_size`` gives the order of sizes, the largest first; ``label_id`` makes of values'
    numbers those of the answer.
    """

    placement: Placement
    space: int
    shapes: ValueShapes
    curve: Curve
    lasting_bytes: int
    indefinite_bytes: int
    shown: Int64Array
    shown_bytes: Int64Array
    listed: Int64Array
    drawn: Sequence[tuple[int, int]]
    steps: int
    scoped: tuple[int, str]
    by_size: Callable[[list[int]], list[int]]
    label_id: Callable[[Int64Array], Int64Array] = np.asarray

    def name_of(self, row: int) -> str:
        """The instruction that defines a value, with the value's place in its result."""
        values, names = self.placement.values, self.placement.instructions.name
        instruction, path = int(values.instruction[row]), values.paths[values.path[row]]
        return (names[instruction] or "" if instruction >= 0 else "") + index_text(path)


class ValueShapes:
    """Text and bytes of the values' shapes, which ``part`` takes from those of instructions.

    ``code`` is of each value a row of ``texts`` (type, dimensions and layout; the first is empty,
    for what is not known), ``bytes`` its size without padding.
    """

    def __init__(
        self, placement: Placement, part: Callable[[Shape, tuple[int, ...]], Shape | None]
    ) -> None:
        values, instructions = placement.values, placement.instructions
        shape = np.append(instructions.shape, -1)[values.instruction]
        pairs = np.where(shape < 0, -1, shape * len(values.paths) + values.path)
        known, place = np.unique(pairs, return_inverse=True)
        codes, sizes = {"": 0}, []
        for pair in known.tolist():
            whole, path = divmod(pair, len(values.paths))
            result = None
            if pair >= 0:
                result = instructions.shapes[whole]
                result = part(result, values.paths[path]) if path else result
            text, size = ("", 0) if result is None else (result.text_with_layout, result.bytes)
            sizes.append((codes.setdefault(text, len(codes)), size))
        self.code, self.bytes = np.array(sizes, np.int64).reshape(-1, 2)[place].T
        self.texts: list[str] = list(codes)

    def text(self, row: int) -> str:
        """The text of one value."""
        return self.texts[int(self.code[row])]


def spans_by_row(spans: Int64Array, rows: int) -> tuple[Int64Array, Int64Array]:
    """Begin and end of each value's span, -1 where it has none; the last is that of row -1."""
    start, end = np.full((2, rows + 1), -1)
    start[spans[:, 0]], end[spans[:, 0]] = spans[:, 1], spans[:, 2]
    return start, end


def index_text(index: tuple[int, ...]) -> str:
    """A place in a tuple as XLA writes it: ``{1,0}``, empty for the whole."""
    return f"{{{','.join(map(str, index))}}}" if index else ""


def allocations_in(placement: Placement, space: int) -> Int64Array:
    """The rows of the allocations of a memory space, by number."""
    return np.flatnonzero(placement.allocations.space == space)
