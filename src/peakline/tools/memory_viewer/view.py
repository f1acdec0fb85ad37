"""What the memory viewer shows of a program: the curve of its memory, and what is live when.

`View` holds it whichever rule found it; `answer` writes it, `drawing` draws it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from peakline.formats.hlo_proto.shapes import Shape
    from peakline.hlo.placement import Placement

SMALL_BYTES = 16384
"""What is smaller at the peak is shown as one (``kSmallBufferSize`` in XProf's
``hlo_to_tools_data.cc``)."""


@dataclass(frozen=True, eq=False)
class Curve:
    """What simulated heaps say: bytes before each of their events and after the last, with the
    instruction of each; the peak, and the event that reaches it.

    ``live`` are the values at the peak, rows of `Values`, with the bytes each stands for. ``spans``
    says per value the event it begins with and the one that ends it; ``blocks`` between which ones
    it is drawn: of values that share memory one at a time.
    """

    bytes: list[int] = field(default_factory=list)
    unpadded_bytes: list[int] = field(default_factory=list)
    instructions: list[str] = field(default_factory=list)
    peak: int = 0
    unpadded_peak: int = 0
    position: int = 0
    live: list[tuple[int, int]] = field(default_factory=list)
    spans: dict[int, tuple[int, int]] = field(default_factory=dict)
    blocks: dict[int, tuple[int, int]] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class View:
    """The memory of a program in one memory space.

    ``lasting_bytes`` is what is held from the beginning to the end, ``indefinite_bytes`` what
    allocations of it take; ``shown`` are the values at the peak with their bytes, what lasts
    first. ``listed`` are the allocations that last, ``drawn`` those of temporaries with the place
    where each begins in the picture, ``steps`` how wide it is. ``scoped`` is the largest piece of
    fast memory that an instruction takes while it runs, with its name. ``by_size`` gives the order
    of sizes, the largest first; ``label_id`` makes a value's number one that the answer can hold.
    """

    placement: Placement
    space: int
    shapes: ValueShapes
    curve: Curve
    lasting_bytes: int
    indefinite_bytes: int
    shown: Sequence[tuple[int, int]]
    listed: Sequence[int]
    drawn: Sequence[tuple[int, int]]
    steps: int
    scoped: tuple[int, str]
    by_size: Callable[[list[int]], list[int]]
    label_id: Callable[[int], int] = int

    def name_of(self, row: int) -> str:
        """The instruction that defines a value, with the value's place in its result."""
        values, known = self.placement.values, self.placement.instructions
        instruction, index = values.instruction[row], values.index[row]
        name = known.name[instruction] if instruction >= 0 else ""
        return name + index_text(index) if index else name


class ValueShapes:
    """Text and bytes of the values' shapes, which ``part`` takes from those of instructions."""

    def __init__(
        self, placement: Placement, part: Callable[[Shape, tuple[int, ...]], Shape | None]
    ) -> None:
        self._values, self._shapes = placement.values, placement.instructions.shape
        self._part = part
        self._known: dict[tuple[int, tuple[int, ...]], tuple[str, int]] = {}

    def text(self, row: int) -> str:
        """Type, dimensions and layout of a value; empty where they are not known."""
        return self._of(row)[0]

    def bytes(self, row: int) -> int:
        """Bytes of a value without padding."""
        instruction = self._values.instruction[row]
        if instruction >= 0 and not self._values.index[row]:
            return self._shapes[instruction].bytes
        return self._of(row)[1]

    def _of(self, row: int) -> tuple[str, int]:
        instruction = self._values.instruction[row]
        if instruction < 0:
            return "", 0
        shape, index = self._shapes[instruction], self._values.index[row]
        if not index:
            return shape.text_with_layout, shape.bytes
        key = id(shape), index
        if key not in self._known:
            part = self._part(shape, index)
            self._known[key] = ("", 0) if part is None else (part.text_with_layout, part.bytes)
        return self._known[key]


def index_text(index: tuple[int, ...]) -> str:
    """A place in a tuple as XLA writes it: ``{1,0}``."""
    return f"{{{','.join(map(str, index))}}}"


def allocations_in(placement: Placement, space: int) -> list[int]:
    """The rows of the allocations of a memory space, by number."""
    found: list[int] = (placement.allocations.space == space).nonzero()[0].tolist()
    return found
