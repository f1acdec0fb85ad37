"""Fixed-width numbers for kernels that run uncompiled; bits.pxd is the same for C.

Python's integers have no width: a kernel says with these where its numbers wrap, or change from
unsigned to signed. Compiled, they are nothing. Words and copies are there because C compilers do
not make one instruction, or one call, of byte after byte of a memoryview.
"""

from __future__ import annotations

import struct
from collections.abc import MutableSequence, Sequence

__all__ = [
    "bits_double",
    "copy_bytes",
    "double_bits",
    "float_bits",
    "low64",
    "lowest_bit",
    "put_word64",
    "signed32",
    "signed64",
    "unsigned64",
    "word64",
]

_ALL = (1 << 64) - 1


def low64(value: int) -> int:
    """The low 64 bits of a sum, product or shift of unsigned numbers."""
    return int(value) & _ALL


def unsigned64(value: int) -> int:
    """The 64 bits of a signed number as an unsigned one."""
    return int(value) & _ALL


def signed64(value: int) -> int:
    """The low 64 bits as a signed number."""
    value = int(value) & _ALL
    return value - (1 << 64) if value >> 63 else value


def signed32(value: int) -> int:
    """The low 32 bits as a signed number."""
    value = int(value) & 0xFFFFFFFF
    return value - (1 << 32) if value >> 31 else value


def lowest_bit(value: int) -> int:
    """The number of the lowest bit that is set, of a number other than zero."""
    return (value & -value).bit_length() - 1


def word64(buf: Sequence[int], at: int) -> int:
    """Eight bytes of a buffer as one number, the lowest first."""
    return int.from_bytes(bytes(buf[at + k] for k in range(8)), "little")


def copy_bytes(
    buf: Sequence[int], start: int, out: MutableSequence[int], first: int, length: int
) -> None:
    """Copy ``buf[start : start + length]`` to ``out[first:]``, which is another buffer."""
    for k in range(length):
        out[first + k] = buf[start + k]


def put_word64(out: MutableSequence[int], at: int, value: int) -> None:
    """Write a number as eight bytes, the lowest first."""
    for k, byte in enumerate(value.to_bytes(8, "little")):
        out[at + k] = byte


def double_bits(value: float) -> int:
    """The bits of a double."""
    return int.from_bytes(struct.pack("<d", value), "little")


def bits_double(bits: int) -> float:
    """The double that has these bits."""
    value: float = struct.unpack("<d", bits.to_bytes(8, "little"))[0]
    return value


def float_bits(value: float) -> int:
    """The bits of a double that is rounded to a float; what is too large is infinite."""
    try:
        return int.from_bytes(struct.pack("<f", value), "little")
    except OverflowError:
        return 0x7F800000 if value > 0 else 0xFF800000
