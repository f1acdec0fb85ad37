"""Types of elements (``PrimitiveType`` in ``xla/xla_data.proto``)."""

from __future__ import annotations

from functools import cache

from peakline import schema

INVALID = "primitive_type_invalid"
_MOST = 64


@cache
def type_names() -> dict[int, str]:
    """The name of every type in HLO text (``f32``, ``tuple``, ``opaque``), by its number."""
    names = {number: schema.enum_name("xla.PrimitiveType", number) for number in range(_MOST)}
    found = {number: name.lower() for number, name in names.items() if name}
    return {number: "opaque" if name == "opaque_type" else name for number, name in found.items()}


@cache
def bits_of(kind: str) -> int:
    """Bits of an element; 0 of a kind that is no number."""
    if kind == "pred":
        return 1
    digits = kind.removeprefix("b")[1:].split("e")[0]
    return int(digits) if digits.isdigit() else 0


@cache
def width_of(kind: str) -> int:
    """Bytes of an element that is not packed, at least one."""
    return max(bits_of(kind) // 8, 1)
