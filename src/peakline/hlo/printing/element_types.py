"""The names of element types in HLO text."""

from __future__ import annotations

from functools import cache


@cache
def type_names() -> dict[int, str]:
    """The name of every element type in HLO text, by its number."""
    from peakline.schema import PrimitiveType

    names: dict[int, str] = {number: name.lower() for name, number in PrimitiveType.items()}
    return names | {0: "primitive_type_invalid", PrimitiveType.OPAQUE_TYPE: "opaque"}
