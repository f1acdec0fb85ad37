"""Constants of one element as LiteralProto. Larger ones are left out: nothing reads them."""

from __future__ import annotations

import struct

from peakline.formats.hlo_text.packing import Value, pack

_INTEGERS = {b"s8": "b", b"u8": "B", b"s16": "h", b"u16": "H", b"s32": "", b"s64": "", b"u32": "",
             b"u64": ""}  # fmt: skip
_REALS = {b"f16": "e", b"bf16": "", b"f32": "", b"f64": ""}
_AS_BYTES = frozenset((b"s8", b"s16", b"u16", b"u8", b"f16", b"bf16"))


def scalar(kind: bytes, text: bytes, shape: bytes) -> bytes | None:
    """The literal that ``text`` is, of the type ``kind``, whose ShapeProto is ``shape``; None for
    a type that is not read. Raises ValueError where ``text`` is no such value.
    """
    value = _value(kind, text)
    if value is None:
        return None
    field = "preds" if kind == b"pred" else f"{kind.decode()}s"
    return pack("xla.LiteralProto", {"shape": shape, field: value})


def _value(kind: bytes, text: bytes) -> Value | None:
    try:
        if kind == b"pred":
            return [{b"true": 1, b"false": 0, b"1": 1, b"0": 0}[text]]
        if kind in _INTEGERS:
            number = int(text)
            _check(kind, number)
            return struct.pack("<" + _INTEGERS[kind], number) if kind in _AS_BYTES else [number]
        if kind in _REALS:
            real = _real(text)
            if kind == b"bf16":
                return struct.pack("<H", _upper_half(real))
            if kind == b"f32":
                # Rounded as a number of 32 bits; what is too large is infinite, as in XLA.
                return [_as_float(real)]
            return struct.pack("<e", real) if kind == b"f16" else [real]
        if kind in {b"c64", b"c128"}:
            first, _, second = text.strip(b"()").partition(b",")
            return [_real(first), _real(second)]
    except (KeyError, OverflowError, struct.error):
        raise ValueError(text[:40]) from None
    return None


def _check(kind: bytes, number: int) -> None:
    bits = int(kind[1:])
    least, most = (-(1 << bits - 1), 1 << bits - 1) if kind[:1] == b"s" else (0, 1 << bits)
    if not least <= number < most:
        raise ValueError(number)


def _real(text: bytes) -> float:
    # A NaN may name its bits: nan(0x7f), of which one is as good as another here.
    return float(text.partition(b"(")[0])


def _as_float(real: float) -> float:
    try:
        return float(struct.unpack("<f", struct.pack("<f", real))[0])
    except OverflowError:
        return float("inf") if real > 0 else float("-inf")


def _upper_half(real: float) -> int:
    bits = int(struct.unpack("<I", struct.pack("<f", _as_float(real)))[0])
    if real != real:  # noqa: PLR0124 (a NaN)
        return bits >> 16
    # To the nearest, ties to even.
    return (bits + 0x7FFF + (bits >> 16 & 1)) >> 16 & 0xFFFF
