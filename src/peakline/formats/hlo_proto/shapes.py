"""Shapes of XLA and the types of their elements (``ShapeProto`` in ``xla/xla_data.proto``).

A program of a million instructions has few distinct shapes, and equal ones mostly have equal
bytes: equal ones are read once.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from typing import TypeVar

import numpy as np

from peakline import schema
from peakline.arrays import AnyArray, Int32Array
from peakline.text import whole_number
from peakline.wire import Buffer, Interner, Plan, Spans, WireTable, decode

INVALID = "primitive_type_invalid"
_MOST = 64


@cache
def type_names() -> dict[int, str]:
    """The name of every type in HLO text (``f32``, ``tuple``, ``opaque``), by its number."""
    names = {number: schema.enum_name("xla.PrimitiveType", number) for number in range(_MOST)}
    result = {number: name.lower() for number, name in names.items() if name}
    return {number: "opaque" if name == "opaque_type" else name for number, name in result.items()}


@cache
def bits_of(kind: str) -> int:
    """Bits of an element; 0 of a kind that is no number."""
    if kind == "pred":
        return 1
    digits = kind.removeprefix("b")[1:].split("e")[0]
    return max(whole_number(digits, 4) or 0, 0)


@cache
def width_of(kind: str) -> int:
    """Bytes of an element that is not packed, at least one."""
    return max(bits_of(kind) // 8, 1)


MOST_BYTES = 2**62
"""No size that a file gives counts for more."""
_MOST_PRODUCT = 2**128
_DEEPEST = 64
"""Levels of tuples that are read."""
_TEXT_DEEPEST = 16
_POINTER = 8
Value = TypeVar("Value")


@dataclass(frozen=True, slots=True)
class Layout:
    """How an array lies in memory: its dimensions, the fastest first; the tiles it is cut into, the
    outermost first; bits of a packed element (0: as wide as its type); where it is (0 is the
    device's main memory); bytes before it that hold the sizes of dynamic dimensions.
    """

    minor_to_major: tuple[int, ...] = ()
    tiles: tuple[tuple[int, ...], ...] = ()
    element_bits: int = 0
    memory_space: int = 0
    prefix_bytes: int = 0

    @property
    def text(self) -> str:
        """As XLA writes it: ``{1,0:T(8,128)S(1)}``, empty for that of a scalar in main memory."""
        more = "".join(f"({','.join(map(_tile, tile))})" for tile in self.tiles)
        more = f"T{more}" if more else ""
        more += f"E({self.element_bits})" if self.element_bits else ""
        more += f"S({self.memory_space})" if self.memory_space else ""
        order = ",".join(map(str, self.minor_to_major))
        return f"{{{order}{':' if more else ''}{more}}}" if order or more else ""


def _tile(size: int) -> str:
    # The smallest number means: together with the next dimension (xla/tile.h).
    return "*" if size == -(2**63) else str(size)


def bounded_product(sizes: Iterable[int]) -> int:
    """The product of sizes, as far as a number of 128 bits goes.

    A shape may have very many dimensions, and their product as many digits.
    """
    result = 1
    for size in sizes:
        result = max(min(result * size, _MOST_PRODUCT), -_MOST_PRODUCT)
    return result


@dataclass(frozen=True)
class Shape:
    """An array of ``kind`` (``f32``), or a ``tuple`` of ``parts``, or a ``token`` or ``opaque``.

    ``dynamic`` marks the dimensions that can be smaller than ``dimensions`` says. What is no kind
    that is known has an empty one.
    """

    kind: str
    dimensions: tuple[int, ...] = ()
    dynamic: tuple[bool, ...] = ()
    layout: Layout | None = None
    parts: tuple[Shape, ...] = ()

    @cached_property
    def elements(self) -> int:
        """Elements of an array, of dynamic dimensions as many as there can be."""
        return min(bounded_product(max(size, 0) for size in self.dimensions), MOST_BYTES)

    @cached_property
    def bytes(self) -> int:
        """Bytes without padding, of a tuple those of its table of pointers (``ShapeUtil`` in
        ``xla/shape_util.cc``).
        """
        if self.kind == "tuple":
            return _POINTER * len(self.parts)
        if self.kind in ("token", "opaque", ""):
            return 0
        packed = max(self.layout.element_bits, 0) if self.layout else 0
        return min(-(-self.elements * (packed or 8 * width_of(self.kind)) // 8), MOST_BYTES)

    def at(self, index: Sequence[int]) -> Shape | None:
        """The part at a place, a path through tuples; None where there is none."""
        shape = self
        for place in index:
            if not 0 <= place < len(shape.parts):
                return None
            shape = shape.parts[place]
        return shape

    @cached_property
    def text(self) -> str:
        """As XLA writes it, without layouts: ``f32[8,<=16]``, tuples in parentheses."""
        return self.text_at(0)

    def text_at(self, depth: int) -> str:
        """The text inside so many tuples; from a certain depth on it is cut."""
        if self.kind == "tuple":
            if depth == _TEXT_DEEPEST:
                return "(...)"
            return f"({', '.join(part.text_at(depth + 1) for part in self.parts)})"
        bounded = (*self.dynamic, *(False for _ in self.dimensions))
        sizes = (f"{'<=' * b}{size}" for size, b in zip(self.dimensions, bounded, strict=False))
        return f"{self.kind}[{','.join(sizes)}]"

    @cached_property
    def text_with_layout(self) -> str:
        """As `text`, with layouts, and every fifth part of a tuple numbered
        (``ShapeUtil::HumanStringWithLayout``).
        """
        return self.layout_text_at(0)

    def layout_text_at(self, depth: int) -> str:
        """The same inside so many tuples."""
        if self.kind == "tuple":
            if depth == _TEXT_DEEPEST:
                return "(...)"
            parts = (part.layout_text_at(depth + 1) for part in self.parts)
            numbered = (f"/*index={n}*/{t}" if n and n % 5 == 0 else t for n, t in enumerate(parts))
            return f"({', '.join(numbered)})"
        return self.text + (self.layout.text if self.layout else "")


@cache
def _plan() -> Plan:
    layout = "minor_to_major tiles.dimensions element_size_in_bits memory_space"
    names = [f"layout.{name}" for name in f"{layout} dynamic_shape_metadata_prefix_bytes".split()]
    return Plan(
        schema.shape("xla.ShapeProto"),
        ("element_type", "dimensions", "is_dynamic_dimension", "tuple_shapes", "layout.@", *names),
    )


class Shapes:
    """Distinct shapes by code, in order of first appearance."""

    __retained__ = "_found shapes"

    def __init__(self) -> None:
        self._found = Interner()
        self.shapes: list[Shape] = []

    def add(self, buffer: Buffer, spans: Spans) -> Int32Array:
        """The code of the shape in each span."""
        codes = self._found.add(buffer, spans)
        new = len(self._found) - len(self.shapes)
        if new:
            pool, every = self._found.spans()
            self.shapes += _read(pool, every.take(np.arange(len(every) - new, len(every))), 0)
        return codes


def _read(buffer: Buffer, spans: Spans, depth: int) -> list[Shape]:
    """The shape in each span, level by level."""
    decoded = decode(buffer, _plan(), spans)
    root, layouts = decoded[""], decoded["layout"]
    tuples = decoded["tuple_shapes"]
    below: list[Shape] = []
    if tuples.rows and depth < _DEEPEST:
        inner = tuples.spans("value")
        distinct = Interner()
        codes = distinct.add(buffer, inner)
        pool, each = distinct.spans()
        made = _read(pool, each, depth + 1)
        below = [made[code] for code in codes.tolist()]
    parts = _rows_of(tuples.parent, below, len(spans))
    kinds = [_kind(int(number)) for number in root.array("element_type").tolist()]
    layout: list[Layout | None] = [None] * len(spans)
    tiles = decoded["layout.tiles"]
    sizes = list(_values(decoded["layout.tiles.dimensions"], tiles.rows))
    of_layout = zip(
        layouts.parent.tolist(),
        _values(decoded["layout.minor_to_major"], layouts.rows),
        _rows_of(tiles.parent, sizes, layouts.rows),
        *(layouts.array(name).tolist() for name in (
            "element_size_in_bits", "memory_space", "dynamic_shape_metadata_prefix_bytes")),
        strict=True,
    )  # fmt: skip
    for row, *result in of_layout:
        layout[row] = Layout(*result)
    marks = _values(decoded["is_dynamic_dimension"], len(spans))
    dynamic = [tuple(map(bool, marked)) if any(marked) else () for marked in marks]
    dimensions = _values(decoded["dimensions"], len(spans))
    return [
        Shape(kind, size, is_dynamic, how, inside)
        for kind, size, is_dynamic, how, inside in zip(
            kinds, dimensions, dynamic, layout, parts, strict=True
        )
    ]


def _kind(number: int) -> str:
    name = type_names().get(number, "")
    return "" if name == INVALID else name


def _values(table: WireTable, rows: int) -> Iterator[tuple[int, ...]]:
    """The numbers of a repeated field, by the row of their message."""
    return _rows_of(table.parent, table.array("value").tolist(), rows)


def _rows_of(parent: AnyArray, values: Sequence[Value], rows: int) -> Iterator[tuple[Value, ...]]:
    """What belongs to each row; parents ascend."""
    ends = np.searchsorted(parent, np.arange(rows), side="right").tolist()
    begin = 0
    for end in ends:
        yield tuple(values[begin:end])
        begin = end
