"""Shapes of compiled programs as text and in bytes, on their messages."""

from __future__ import annotations

import math
from typing import Any

from peakline.schema import PrimitiveType

MOST_BYTES = 2**62


def kind_of(shape: Any) -> str:
    """The element type as HLO text has it; empty for none."""
    names = {number: name for name, number in PrimitiveType.items()}
    name = names.get(shape.element_type, "").lower()
    return {"primitive_type_invalid": "", "opaque_type": "opaque"}.get(name, name)


def bits_of(kind: str) -> int:
    """Bits of an element in memory that is not packed: whole bytes."""
    if kind == "pred":
        return 8
    digits = kind.removeprefix("b")[1:].split("e")[0]
    return max(int(digits) // 8, 1) * 8 if digits.isdigit() else 8


def bytes_of(shape: Any) -> int:
    """Bytes without padding; of a tuple its table of pointers."""
    kind = kind_of(shape)
    if kind == "tuple":
        return 8 * len(shape.tuple_shapes)
    if kind in ("", "token", "opaque"):
        return 0
    count = min(math.prod(max(size, 0) for size in shape.dimensions), MOST_BYTES)
    return min(-(-count * (shape.layout.element_size_in_bits or bits_of(kind)) // 8), MOST_BYTES)


def text_of(shape: Any, depth: int = 0) -> str:
    """The text without layouts."""
    kind = kind_of(shape)
    if kind == "tuple":
        inside = ", ".join(text_of(part, depth + 1) for part in shape.tuple_shapes)
        return f"({inside})" if depth < 16 else "(...)"
    sizes = []
    for number, size in enumerate(shape.dimensions):
        marks = shape.is_dynamic_dimension
        sizes.append(f"<={size}" if number < len(marks) and marks[number] else str(size))
    return f"{kind}[{','.join(sizes)}]"


def layout_of(shape: Any) -> str | None:
    """The layout in braces; empty where it says nothing, None without one."""
    if not shape.HasField("layout"):
        return None
    layout = shape.layout
    more = ""
    for tile in layout.tiles:
        sizes = ("*" if size == -(2**63) else str(size) for size in tile.dimensions)
        more += f"{'' if more else 'T'}({','.join(sizes)})"
    if layout.element_size_in_bits:
        more += f"E({layout.element_size_in_bits})"
    if layout.memory_space:
        more += f"S({layout.memory_space})"
    order = ",".join(map(str, layout.minor_to_major))
    if not order and not more:
        return ""
    return f"{{{order}:{more}}}" if more else f"{{{order}}}"


def part_at(shape: Any, index: Any) -> Any | None:
    """The part of a tuple at a place."""
    for number in index:
        if not 0 <= number < len(shape.tuple_shapes):
            return None
        shape = shape.tuple_shapes[number]
    return shape
