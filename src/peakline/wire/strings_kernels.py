"""Kernels of `strings`: a hash table over byte spans, and joining spans.

The hash is SipHash-1-3 (Aumasson and Bernstein 2012) under a random key: whoever writes a file
cannot choose names that collide.
"""

from __future__ import annotations

import numba as nb
import numpy as np

__all__ = ["find", "intern", "join", "rehash"]

U = np.uint64  # also for indices: an unsigned one needs no check for counting from the end

CODE_BITS = 32
_CODE_MASK = (1 << CODE_BITS) - 1
"""A slot is the hash's upper half above, and the code plus 1 below; 0 is an empty slot."""


@nb.njit(forceinline=True)
def _rotate(value, by):  # type: ignore[no-untyped-def]
    return (value << U(by)) | (value >> U(64 - by))


@nb.njit(forceinline=True)
def _round(v0, v1, v2, v3):  # type: ignore[no-untyped-def]
    v0 += v1
    v2 += v3
    v1 = _rotate(v1, 13) ^ v0
    v3 = _rotate(v3, 16) ^ v2
    v0 = _rotate(v0, 32)
    v2 += v1
    v0 += v3
    v1 = _rotate(v1, 17) ^ v2
    v3 = _rotate(v3, 21) ^ v0
    v2 = _rotate(v2, 32)
    return v0, v1, v2, v3


@nb.njit(forceinline=True)
def _word(buf, at):  # type: ignore[no-untyped-def]
    """Eight bytes, little endian: one load once compiled."""
    return (
        U(buf[U(at)]) | U(buf[U(at + 1)]) << U(8)
        | U(buf[U(at + 2)]) << U(16) | U(buf[U(at + 3)]) << U(24)
        | U(buf[U(at + 4)]) << U(32) | U(buf[U(at + 5)]) << U(40)
        | U(buf[U(at + 6)]) << U(48) | U(buf[U(at + 7)]) << U(56)
    )  # fmt: skip


@nb.njit(forceinline=True)
def _hash(buf, start, length, key0, key1):  # type: ignore[no-untyped-def]
    """SipHash-1-3 of ``buf[start : start + length]``."""
    v0 = key0 ^ U(0x736F6D6570736575)
    v1 = key1 ^ U(0x646F72616E646F6D)
    v2 = key0 ^ U(0x6C7967656E657261)
    v3 = key1 ^ U(0x7465646279746573)
    at, end = start, start + (length & ~7)
    while at < end:
        word = _word(buf, at)
        v3 ^= word
        v0, v1, v2, v3 = _round(v0, v1, v2, v3)
        v0 ^= word
        at += 8
    word = U(length & 0xFF) << U(56)
    shift = U(0)
    while at < start + length:
        word |= U(buf[U(at)]) << shift
        shift += U(8)
        at += 1
    v3 ^= word
    v0, v1, v2, v3 = _round(v0, v1, v2, v3)
    v0 ^= word
    v2 ^= U(0xFF)
    v0, v1, v2, v3 = _round(v0, v1, v2, v3)
    v0, v1, v2, v3 = _round(v0, v1, v2, v3)
    v0, v1, v2, v3 = _round(v0, v1, v2, v3)
    return v0 ^ v1 ^ v2 ^ v3


@nb.njit(forceinline=True)
def _equal(buf, start, pool, first, length):  # type: ignore[no-untyped-def]
    at = np.int64(0)
    while at + 8 <= length:
        if _word(buf, start + at) != _word(pool, first + at):
            return False
        at += 8
    while at < length:
        if buf[U(start + at)] != pool[U(first + at)]:
            return False
        at += 1
    return True


@nb.njit(forceinline=True)
def _slot(buf, start, length, slots, ends, pool, key0, key1):  # type: ignore[no-untyped-def]
    """The slot that holds the string, or the empty one where it belongs; and its tag."""
    tag = _hash(buf, start, length, key0, key1) >> U(CODE_BITS)
    mask = U(slots.size - 1)
    slot = tag & mask
    while True:
        entry = slots[slot]
        if entry == U(0):
            return slot, tag
        if entry >> U(CODE_BITS) == tag:
            code = np.int64(entry & U(_CODE_MASK)) - 1
            first = ends[U(code)]
            if ends[U(code + 1)] - first == length and _equal(buf, start, pool, first, length):
                return slot, tag
        slot = (slot + U(1)) & mask


@nb.njit(cache=True, nogil=True)
def intern(buf, starts, lengths, row, codes, slots, ends, pool, count, key0, key1):  # type: ignore[no-untyped-def]
    """Give every span from ``row`` on its code; new strings go to the end of the pool.

    String ``c`` of the ``count`` known ones is ``pool[ends[c] : ends[c + 1]]``. Stops early when
    the table or the pool is full. Returns the next row and how many strings are known.
    """
    most = min(ends.size - 1, slots.size // 2)
    while row < starts.size:
        start, length = starts[U(row)], lengths[U(row)]
        slot, tag = _slot(buf, start, length, slots, ends, pool, key0, key1)
        entry = slots[slot]
        if entry == U(0):
            first = ends[U(count)]
            if count >= most or length > pool.size - first:
                break
            for k in range(length):
                pool[U(first + k)] = buf[U(start + k)]
            count += 1
            ends[U(count)] = first + length
            entry = (tag << U(CODE_BITS)) | U(count)
            slots[slot] = entry
        codes[U(row)] = np.int32(np.int64(entry & U(_CODE_MASK)) - 1)
        row += 1
    return row, count


@nb.njit(cache=True, nogil=True)
def find(buf, slots, ends, pool, key0, key1):  # type: ignore[no-untyped-def]
    """The code of the string that is all of ``buf``, or -1."""
    slot, _ = _slot(buf, np.int64(0), np.int64(buf.size), slots, ends, pool, key0, key1)
    return np.int64(slots[slot] & U(_CODE_MASK)) - 1


@nb.njit(cache=True, nogil=True)
def rehash(old, new):  # type: ignore[no-untyped-def]
    """Put the entries of one table into a larger, empty one."""
    mask = U(new.size - 1)
    for entry in old:
        if entry != U(0):
            slot = (entry >> U(CODE_BITS)) & mask
            while new[slot] != U(0):
                slot = (slot + U(1)) & mask
            new[slot] = entry


@nb.njit(cache=True, nogil=True)
def join(buf, starts, lengths, parents, separator, ends, out):  # type: ignore[no-untyped-def]
    """Write the spans of each parent one after the other, ``separator`` between two.

    ``ends[p]`` is where the text of parent ``p`` begins, and becomes where it ends.
    """
    at_parent = np.int64(-1)
    for row in range(starts.size):
        parent = np.int64(parents[U(row)])
        at = ends[U(parent)]
        if parent == at_parent:
            out[U(at)] = separator
            at += 1
        at_parent = parent
        for k in range(lengths[U(row)]):
            out[U(at + k)] = buf[U(starts[U(row)] + k)]
        ends[U(parent)] = at + lengths[U(row)]
