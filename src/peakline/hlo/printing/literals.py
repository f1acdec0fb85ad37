"""Values of constants as XLA writes them (``xla/literal.cc``, ``RoundTripFpToString``)."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from peakline.formats.hlo_proto.shapes import bounded_product, type_names
from peakline.hlo.printing.shapes import with_layout

if TYPE_CHECKING:
    from peakline.arrays import AnyArray
    from peakline.schema import LiteralProto

ELIDED = "{...}"
_AT_ONCE = 1 << 16
"""Elements that are texts at one time."""
_DEEPEST = 90
_MOST_DIMENSIONS = 32
"""As many as an array of every NumPy can have."""
_NUMBERED_FROM = 4
"""Dimensions from which on the places in outer ones stand in comments."""

_PLAIN: dict[str, tuple[str, str]] = {
    "pred": ("preds", "?"), "s8": ("s8s", "i1"), "u8": ("u8s", "u1"), "s16": ("s16s", "<i2"),
    "u16": ("u16s", "<u2"), "s32": ("s32s", "<i4"), "u32": ("u32s", "<u4"), "s64": ("s64s", "<i8"),
    "u64": ("u64s", "<u8"), "f16": ("f16s", "<f2"), "f32": ("f32s", "<f4"), "f64": ("f64s", "<f8"),
    "bf16": ("bf16s", "<u2"), "c64": ("c64s", "<f4"), "c128": ("c128s", "<f8"),
}  # fmt: skip
"""The field that holds the elements of a type, and how they lie in it."""
_NARROW = {"s1": 1, "s2": 2, "s4": 4, "u1": 1, "u2": 2, "u4": 4, "f4e2m1fn": 4}
"""Bits of the types of which several elements share a byte."""
_SMALL_FLOATS = {
    "f8e5m2": (5, 2, 15, "ieee"), "f8e4m3": (4, 3, 7, "ieee"), "f8e3m4": (3, 4, 3, "ieee"),
    "f8e4m3fn": (4, 3, 7, "fn"), "f8e4m3b11fnuz": (4, 3, 11, "fnuz"),
    "f8e5m2fnuz": (5, 2, 16, "fnuz"), "f8e4m3fnuz": (4, 3, 8, "fnuz"),
    "f4e2m1fn": (2, 1, 1, "finite"), "f6e2m3fn": (2, 3, 1, "finite"),
    "f6e3m2fn": (3, 2, 3, "finite"),
}  # fmt: skip
"""Bits of exponent and fraction, the exponent's bias, and which patterns are no numbers."""
_FRACTIONS = {"bf16": 7, "f16": 10, "f32": 23, "f64": 52, "f8e8m0fnu": 0}


class UnreadableLiteral(ValueError):
    """The elements of a literal are not those of its shape."""


def literal_text(literal: LiteralProto, *, shapes: bool = False, depth: int = 0) -> Iterator[str]:
    """A literal on one line, in pieces; with ``shapes`` the shape of every array before it.

    Raises UnreadableLiteral before the first piece of an array that does not fit its shape.
    """
    shape = literal.shape
    name = type_names().get(shape.element_type, "")
    if name == "tuple":
        if depth >= _DEEPEST:
            raise UnreadableLiteral("too deep")
        yield "( "
        for place, part in enumerate(literal.tuple_literals):
            if place:
                yield ", "
            yield from literal_text(part, shapes=shapes, depth=depth + 1)
        yield " )"
    elif name == "token":
        yield "token"
    else:
        values = _elements(literal, name)
        if shapes:
            yield f"{with_layout(shape)} "
        yield from _written(values, name)


def _elements(literal: LiteralProto, name: str) -> AnyArray:
    """The elements in logical order, in the shape of the array."""
    shape = literal.shape
    sizes = tuple(shape.dimensions)
    count = bounded_product(sizes)
    if min(sizes, default=1) < 0 or len(sizes) > _MOST_DIMENSIONS:
        raise UnreadableLiteral("sizes")
    flat = _flat(literal, name, count)
    if len(flat) != count:
        raise UnreadableLiteral(f"{len(flat)} elements, not {count}")
    order = tuple(shape.layout.minor_to_major)
    if sorted(order) != list(range(len(sizes))):
        if order or len(sizes) > 1:
            raise UnreadableLiteral("layout")
        return flat.reshape(sizes)
    outer_first = order[::-1]
    lying = flat.reshape([sizes[place] for place in outer_first])
    return lying.transpose(np.argsort(outer_first)) if len(sizes) > 1 else lying


def _flat(literal: LiteralProto, name: str, count: int) -> AnyArray:
    if name in _PLAIN:
        field, kind = _PLAIN[name]
        stored = getattr(literal, field)
        if isinstance(stored, bytes):
            if len(stored) % np.dtype(kind).itemsize:
                raise UnreadableLiteral("bytes")
            flat = np.frombuffer(stored, kind)
        else:
            flat = np.fromiter(stored, kind, len(stored))
        if name == "bf16":
            return (flat.astype(np.uint32) << 16).view(np.float32)
        return flat.view(f"<c{2 * flat.itemsize}") if name in ("c64", "c128") else flat
    stored = getattr(literal, f"{name}s", None)
    if not isinstance(stored, bytes):
        raise UnreadableLiteral("type")
    flat = np.frombuffer(stored, np.uint8)
    if name in _NARROW:
        flat = _unpacked(flat, _NARROW[name], count)
        if name.startswith("s"):
            half = 1 << (_NARROW[name] - 1)
            return ((flat.astype(np.int16) ^ half) - half).astype(np.int8)
    if name in _SMALL_FLOATS or name == "f8e8m0fnu":
        table = _table(name)
        return np.asarray(table[flat])
    return flat


def _unpacked(flat: AnyArray, bits: int, count: int) -> AnyArray:
    """Elements that share bytes, the first one in the lowest bits; each in a byte of its own where
    there are as many bytes as elements.
    """
    mask = (1 << bits) - 1
    if len(flat) == count and count != -(-count * bits // 8):
        return flat & mask
    per = 8 // bits
    if len(flat) != -(-count // per):
        raise UnreadableLiteral("bytes")
    steps = np.arange(per, dtype=np.uint8) * bits
    return ((flat[:, None] >> steps) & mask).reshape(-1)[:count]


@cache
def _table(name: str) -> AnyArray:
    """The values of the 256 patterns of a small type."""
    if name == "f8e8m0fnu":
        values = [math.ldexp(1.0, pattern - 127) for pattern in range(255)]
        return np.array([*values, math.nan])
    exponents, fraction, bias, kind = _SMALL_FLOATS[name]
    return np.array([_value(pattern, exponents, fraction, bias, kind) for pattern in range(256)])


def _value(pattern: int, exponents: int, fraction: int, bias: int, kind: str) -> float:
    bits = pattern & ((1 << (exponents + fraction)) - 1)
    sign = -1.0 if pattern >> (exponents + fraction) & 1 else 1.0
    power, part = bits >> fraction, bits & ((1 << fraction) - 1)
    top = power == (1 << exponents) - 1
    if kind == "fnuz" and not bits and sign < 0:
        return -math.nan
    if kind == "ieee" and top:
        return math.copysign(math.nan, sign) if part else sign * math.inf
    if kind == "fn" and bits == (1 << (exponents + fraction)) - 1:
        return math.copysign(math.nan, sign)
    scaled = part if power == 0 else part + (1 << fraction)
    return sign * math.ldexp(scaled, max(power, 1) - bias - fraction)


def _written(values: AnyArray, name: str) -> Iterator[str]:
    if values.ndim == 0:
        (text,) = _texts(values.reshape(1), name, alone=True)
        yield text
    elif values.ndim == 1:
        yield "{"
        for start in range(0, len(values), _AT_ONCE):
            yield ", " if start else ""
            yield ", ".join(_texts(values[start : start + _AT_ONCE], name))
        yield "}"
    elif values.size == 0:
        yield from _hollow(values.shape)
    else:
        yield from _rows(values, name)


def _hollow(sizes: Sequence[int]) -> Iterator[str]:
    """An array of two dimensions or more without elements."""
    zero = sizes.index(0)
    outer = sizes[:zero]
    if (count := bounded_product(outer)) > _AT_ONCE:
        raise UnreadableLiteral("sizes")
    texts = ["{}" if zero == len(sizes) - 1 else "{  }"] * count
    if zero and zero < len(sizes) - 1 and len(sizes) >= _NUMBERED_FROM:
        texts = [f"{{ /*i{zero - 1}={place % outer[-1]}*/ }}" for place in range(count)]
    yield from _nested(texts, outer, len(sizes), [0] * zero)


def _nested(
    texts: Sequence[str], sizes: Sequence[int], rank: int, counts: list[int]
) -> Iterator[str]:
    """Texts of inner arrays within the braces of the outer dimensions.

    ``counts`` is the place of the first in every dimension, and then that of the one behind the
    last; a comma stands before each that is not the first of all.
    """
    for text in texts:
        opened = len(sizes)
        while opened and counts[opened - 1] == 0:
            opened -= 1
        if opened:
            yield ", "
        for level in range(opened, len(sizes)):
            yield _opening(level, counts, rank)
        yield text
        for level in range(len(sizes) - 1, -1, -1):
            counts[level] += 1
            if counts[level] < sizes[level]:
                break
            counts[level] = 0
            yield " }"


def _opening(level: int, counts: Sequence[int], rank: int) -> str:
    if rank < _NUMBERED_FROM or level == 0:
        return "{ "
    return f"{{ /*i{level - 1}={counts[level - 1]}*/ "


def _rows(values: AnyArray, name: str) -> Iterator[str]:
    """The innermost rows within the braces of the outer dimensions, a part of them at a time."""
    *outer, width = values.shape
    begin, end = ("{", "}") if width <= 1 else ("{ ", " }")
    counts = [0] * len(outer)
    at_once = max(1, _AT_ONCE // width)
    flat = values.reshape(-1, width)
    for start in range(0, len(flat), at_once):
        texts = _texts(flat[start : start + at_once].reshape(-1), name)
        rows = [
            f"{begin}{', '.join(texts[place : place + width])}{end}"
            for place in range(0, len(texts), width)
        ]
        yield "".join(_nested(rows, outer, values.ndim, counts))


def _texts(values: AnyArray, name: str, *, alone: bool = False) -> list[str]:
    """The texts of elements in a row."""
    if name == "pred":
        words = ("false", "true") if alone else ("0", "1")
        return [words[bool(value)] for value in values.tolist()]
    if name in ("c64", "c128"):
        part = "f32" if name == "c64" else "f64"
        pairs = zip(_texts(values.real, part), _texts(values.imag, part), strict=True)
        return [f"({real}, {imaginary})" for real, imaginary in pairs]
    if values.dtype.kind in "iu":
        return list(map(str, values.tolist()))
    return _floats(values, name)


def _floats(values: AnyArray, name: str) -> list[str]:
    if name in ("f32", "f64"):
        short, long = ("%.6g", "%.9g") if name == "f32" else ("%.15g", "%.17g")
        texts = [short % value for value in values.tolist()]
        inexact = np.array(texts, np.float64).astype(values.dtype) != values
        for place in np.flatnonzero(inexact).tolist():
            texts[place] = long % values[place]
    else:
        bits = _FRACTIONS.get(name, _SMALL_FLOATS.get(name, (0, 0))[1]) + 1
        form = f"%.{math.ceil(1 + bits * math.log10(2))}g"
        texts = [form % value for value in values.tolist()]
    for place in np.flatnonzero(np.isnan(values)).tolist():
        texts[place] = _no_number(values[place], name)
    return texts


def _no_number(value: Any, name: str) -> str:
    """A pattern that stands for no number: its sign, and what else it holds."""
    text = "-nan" if np.signbit(value) else "nan"
    fraction = _FRACTIONS.get(name, 0)
    if not fraction:
        return text
    wide = np.asarray(value).view(f"u{np.asarray(value).itemsize}")
    pattern = int(wide) >> 16 if name == "bf16" else int(wide)
    payload = pattern & ((1 << fraction) - 1)
    return text if payload == 1 << (fraction - 1) else f"{text}(0x{payload:x})"
