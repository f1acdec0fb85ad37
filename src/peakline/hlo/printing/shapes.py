"""Shapes as XLA writes them (``ShapeUtil::PrintHumanStringWithLayout``, ``Layout::Print``)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from peakline.formats.hlo_proto.shapes import type_names
from peakline.hlo.printing.quoting import check_items, joined, listed

if TYPE_CHECKING:
    from peakline.schema import LayoutProto, ShapeProto

UNBOUNDED = -(2**63)
"""The size of a dimension that may have any."""
_INTEGERS = frozenset("pred s1 s2 s4 s8 s16 s32 s64 u1 u2 u4 u8 u16 u32 u64".split())
_DEEPEST = 90
"""Levels of tuples that are followed: protobuf reads no deeper ones."""
_MOST_TEXTS = 50_000
_COMBINED = UNBOUNDED
"""What stands in a tile for a dimension that is combined with the next one."""


class Shapes:
    """The texts of shapes; equal ones are written once."""

    def __init__(self) -> None:
        self._texts: dict[bytes, str] = {}

    def text(self, shape: ShapeProto) -> str:
        """``f32[8,16]{1,0}``, a tuple in parentheses."""
        key = shape.SerializeToString()
        result = self._texts.get(key)
        if result is None:
            if len(self._texts) >= _MOST_TEXTS:
                self._texts.clear()
            result = self._texts[key] = with_layout(shape)
        return result


def with_layout(shape: ShapeProto, depth: int = 0) -> str:
    """A shape with its layouts."""
    name = type_names().get(shape.element_type, "")
    if name == "tuple":
        return _tuple(shape.tuple_shapes, with_layout, depth)
    if name == "buffer":
        return _buffer(shape, with_layout, depth)
    plain = without_layout(shape)
    if not shape.HasField("layout") or name in ("token", "opaque"):
        return plain
    layout = layout_text(shape.layout, depth)
    return plain if layout == "{}" and not shape.dimensions else plain + layout


def without_layout(shape: ShapeProto, depth: int = 0) -> str:
    """A shape without layouts (``ShapeUtil::PrintHumanString``)."""
    name = type_names().get(shape.element_type, "")
    if name == "tuple":
        return _tuple(shape.tuple_shapes, without_layout, depth)
    if name == "buffer":
        return _buffer(shape, without_layout, depth)
    dynamic = shape.is_dynamic_dimension
    if not any(dynamic):
        return f"{name}[{listed(shape.dimensions)}]"
    sizes = [
        _bounded(size) if place < len(dynamic) and dynamic[place] else str(size)
        for place, size in enumerate(shape.dimensions)
    ]
    return f"{name}[{','.join(sizes)}]"


def _bounded(size: int) -> str:
    return "?" if size == UNBOUNDED else f"<={size}"


def _tuple(parts: Sequence[ShapeProto], text: Callable[[ShapeProto, int], str], depth: int) -> str:
    if depth >= _DEEPEST:
        return "(...)"
    return f"({numbered([text(part, depth + 1) for part in parts])})"


def _buffer(shape: ShapeProto, text: Callable[[ShapeProto, int], str], depth: int) -> str:
    if depth >= _DEEPEST or not shape.tuple_shapes:
        return "b(...)"
    return f"b({text(shape.tuple_shapes[0], depth + 1)})"


def numbered(items: Sequence[str]) -> str:
    """Items with commas between, every fifth with its number in a comment; InputError as by
    `check_items`.
    """
    if len(items) <= 5:
        return joined(items)
    check_items(items)
    return ", ".join(
        f"/*index={place}*/{item}" if place and place % 5 == 0 else item
        for place, item in enumerate(items)
    )


def layout_text(layout: LayoutProto, depth: int = 0) -> str:
    """``{1,0:T(8,128)S(1)}``."""
    more = "".join(_beside(layout, depth))
    order = listed(layout.minor_to_major)
    return f"{{{order}:{more}}}" if more else f"{{{order}}}"


def _beside(layout: LayoutProto, depth: int) -> list[str]:
    """What a layout says beside the order of the dimensions."""
    result = []
    if layout.tiles:
        tiles = (",".join(map(_tile_size, tile.dimensions)) for tile in layout.tiles)
        result.append("T" + "".join(f"({sizes})" for sizes in tiles))
    # A message without the field means no padding, which XLA has as 1.
    if layout.tail_padding_alignment_in_elements not in (0, 1):
        result.append(f"L({layout.tail_padding_alignment_in_elements})")
    for sign, kind in (("#", layout.index_primitive_type), ("*", layout.pointer_primitive_type)):
        if kind:
            name = type_names().get(kind, "")
            result.append(f"{sign}({name if name in _INTEGERS else 'invalid'})")
    if layout.element_size_in_bits:
        result.append(f"E({layout.element_size_in_bits})")
    if layout.memory_space:
        result.append(f"S({layout.memory_space})")
    if layout.split_configs:
        result.append("SC" + "".join(
            f"({split.dimension}:{listed(split.split_indices)})" for split in layout.split_configs
        ))  # fmt: skip
    if layout.HasField("physical_shape") and depth < _DEEPEST:
        result.append(f"P({with_layout(layout.physical_shape, depth + 1)})")
    if layout.dynamic_shape_metadata_prefix_bytes > 0:
        result.append(f"M({layout.dynamic_shape_metadata_prefix_bytes})")
    return result


def _tile_size(size: int) -> str:
    if size >= 0:
        return str(size)
    return "*" if size == _COMBINED else f"Invalid value {size}"
