"""Shapes as XLA writes them with their layouts (``xla/shape_util.cc`` and ``xla/layout.cc``)."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from peakline.schema import LayoutProto, ShapeProto

_INTERVAL, _DEEPEST = 5, 64
_UNKNOWN = -(2**63)


def layout_shape(shape: ShapeProto, depth: int = 0) -> str:
    """A shape such as ``bf16[8,128]{1,0:T(8,128)S(1)}``; parts of tuples deeper than 64 are cut."""
    kind = kind_name(shape.element_type)
    if kind == "tuple":
        if depth == _DEEPEST:
            return "(...)"
        parts = [layout_shape(part, depth + 1) for part in shape.tuple_shapes]
        return f"({', '.join(numbered(parts))})"
    if kind in ("opaque", "token"):
        return f"{kind}[]"
    dynamic = list(shape.is_dynamic_dimension)
    sizes = []
    for place, size in enumerate(shape.dimensions):
        is_dynamic = place < len(dynamic) and dynamic[place]
        text = "?" if size == _UNKNOWN else f"<={size}" if is_dynamic else str(size)
        sizes.append(text)
    layout = _layout(shape.layout) if shape.HasField("layout") else ""
    return f"{kind}[{','.join(sizes)}]" + (layout if layout != "{}" else "")


def numbered(parts: list[str]) -> list[str]:
    """Every fifth of several says which it is."""
    return [
        f"/*index={place}*/{part}" if place and place % _INTERVAL == 0 else part
        for place, part in enumerate(parts)
    ]


def _layout(layout: LayoutProto) -> str:
    more = ""
    if layout.tiles:
        more += "T" + "".join(
            "(" + ",".join("*" if size == _UNKNOWN else str(size) for size in tile.dimensions) + ")"
            for tile in layout.tiles
        )
    if layout.tail_padding_alignment_in_elements > 1:
        more += f"L({layout.tail_padding_alignment_in_elements})"
    if layout.index_primitive_type:
        more += f"#({kind_name(layout.index_primitive_type)})"
    if layout.pointer_primitive_type:
        more += f"*({kind_name(layout.pointer_primitive_type)})"
    if layout.element_size_in_bits:
        more += f"E({layout.element_size_in_bits})"
    if layout.memory_space:
        more += f"S({layout.memory_space})"
    for split in layout.split_configs:
        more += f"SC({split.dimension}:{','.join(map(str, split.split_indices))})"
    if layout.dynamic_shape_metadata_prefix_bytes:
        more += f"M({layout.dynamic_shape_metadata_prefix_bytes})"
    return "{" + ",".join(map(str, layout.minor_to_major)) + (f":{more}" if more else "") + "}"


def kind_name(number: int) -> str:
    """The name of an element type in lower case, ``opaque`` for what is none."""
    return _names().get(number, "")


@cache
def _names() -> dict[int, str]:
    from peakline.schema import PrimitiveType

    names = {number: name.lower() for name, number in PrimitiveType.items()}
    return names | {0: "", PrimitiveType.Value("OPAQUE_TYPE"): "opaque"}
