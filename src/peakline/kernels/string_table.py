"""A hash table over byte spans, and joining spans.

The hash is SipHash-1-3 (Aumasson and Bernstein 2012) under a random key: whoever writes a file
cannot choose names that collide.

A slot is the hash's upper half above, and the code plus 1 below; 0 is an empty slot. The number
of slots is a power of two, and at most half of them are taken.
"""

from __future__ import annotations

import cython

if not cython.compiled:
    from peakline.kernels.bits import copy_bytes, low64, signed64, unsigned64, word64

__all__ = ["find", "intern", "join", "rehash"]


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _rotate(value: cython.ulonglong, by: cython.int) -> cython.ulonglong:
    return low64(value << by) | (value >> (64 - by))


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
@cython.returns((cython.ulonglong, cython.ulonglong, cython.ulonglong, cython.ulonglong))
def _round(  # noqa: ANN202 - Cython's tuple of C numbers
    v0: cython.ulonglong, v1: cython.ulonglong, v2: cython.ulonglong, v3: cython.ulonglong
):
    v0 = low64(v0 + v1)
    v2 = low64(v2 + v3)
    v1 = _rotate(v1, 13) ^ v0
    v3 = _rotate(v3, 16) ^ v2
    v0 = _rotate(v0, 32)
    v2 = low64(v2 + v1)
    v0 = low64(v0 + v3)
    v1 = _rotate(v1, 17) ^ v2
    v3 = _rotate(v3, 21) ^ v0
    v2 = _rotate(v2, 32)
    return v0, v1, v2, v3


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _hash(
    buf: cython.const[cython.uchar][::1],
    start: cython.longlong,
    length: cython.longlong,
    key0: cython.ulonglong,
    key1: cython.ulonglong,
) -> cython.ulonglong:
    """SipHash-1-3 of ``buf[start : start + length]``."""
    v0: cython.ulonglong = key0 ^ low64(0x736F6D6570736575)
    v1: cython.ulonglong = key1 ^ low64(0x646F72616E646F6D)
    v2: cython.ulonglong = key0 ^ low64(0x6C7967656E657261)
    v3: cython.ulonglong = key1 ^ low64(0x7465646279746573)
    word: cython.ulonglong
    at: cython.longlong = start
    end: cython.longlong = start + (length & ~7)
    rest: cython.int = length & 7
    k: cython.int
    while at < end:
        word = word64(buf, at)
        v3 ^= word
        v0, v1, v2, v3 = _round(v0, v1, v2, v3)
        v0 ^= word
        at += 8
    word = unsigned64(length & 0xFF) << 56
    if rest and at + 8 <= buf.shape[0]:
        word |= low64(word64(buf, at) << (64 - 8 * rest)) >> (64 - 8 * rest)
    else:
        for k in range(rest):
            word |= unsigned64(buf[at + k]) << 8 * k
    v3 ^= word
    v0, v1, v2, v3 = _round(v0, v1, v2, v3)
    v0 ^= word
    v2 ^= 0xFF
    v0, v1, v2, v3 = _round(v0, v1, v2, v3)
    v0, v1, v2, v3 = _round(v0, v1, v2, v3)
    v0, v1, v2, v3 = _round(v0, v1, v2, v3)
    return v0 ^ v1 ^ v2 ^ v3


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _equal(
    buf: cython.const[cython.uchar][::1],
    start: cython.longlong,
    pool: cython.const[cython.uchar][::1],
    first: cython.longlong,
    length: cython.longlong,
) -> cython.bint:
    at: cython.longlong = 0
    word: cython.ulonglong
    while at + 8 <= length:
        if word64(buf, start + at) != word64(pool, first + at):
            return False
        at += 8
    if at == length:
        return True
    if start + at + 8 <= buf.shape[0] and first + at + 8 <= pool.shape[0]:
        word = word64(buf, start + at) ^ word64(pool, first + at)
        return low64(word << (64 - 8 * (length - at))) == 0
    while at < length:
        if buf[start + at] != pool[first + at]:
            return False
        at += 1
    return True


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _slot(
    buf: cython.const[cython.uchar][::1],
    start: cython.longlong,
    length: cython.longlong,
    tag: cython.ulonglong,
    slots: cython.const[cython.ulonglong][::1],
    ends: cython.const[cython.longlong][::1],
    pool: cython.const[cython.uchar][::1],
) -> cython.longlong:
    """The slot that holds the string, or the empty one where it belongs.

    ``tag`` is the upper half of the string's hash.
    """
    mask: cython.longlong = slots.shape[0] - 1
    slot: cython.longlong = signed64(tag) & mask
    entry: cython.ulonglong = slots[slot]
    code: cython.longlong
    first: cython.longlong
    while entry != 0:
        if entry >> 32 == tag:
            code = _code(entry)
            first = ends[code]
            if ends[code + 1] - first == length and _equal(buf, start, pool, first, length):
                break
        slot = (slot + 1) & mask
        entry = slots[slot]
    return slot


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _code(entry: cython.ulonglong) -> cython.longlong:
    """The code that an entry holds; -1 for an empty one."""
    return signed64(low64(entry << 32) >> 32) - 1


def intern(
    buf: cython.const[cython.uchar][::1],
    starts: cython.const[cython.longlong][::1],
    lengths: cython.const[cython.longlong][::1],
    row: cython.longlong,
    codes: cython.int[::1],
    slots: cython.ulonglong[::1],
    ends: cython.longlong[::1],
    pool: cython.uchar[::1],
    count: cython.longlong,
    key0: cython.ulonglong,
    key1: cython.ulonglong,
) -> tuple[int, int]:
    """Give every span from ``row`` on its code; new strings go to the end of the pool.

    String ``c`` of the ``count`` known ones is ``pool[ends[c] : ends[c + 1]]``. Stops early when
    the table or the pool is full. Returns the next row and how many strings are known.
    """
    most: cython.longlong = min(ends.shape[0] - 1, slots.shape[0] >> 1)
    start: cython.longlong
    length: cython.longlong
    slot: cython.longlong
    first: cython.longlong
    tag: cython.ulonglong
    entry: cython.ulonglong
    with cython.nogil:
        while row < starts.shape[0]:
            start, length = starts[row], lengths[row]
            tag = _hash(buf, start, length, key0, key1) >> 32
            slot = _slot(buf, start, length, tag, slots, ends, pool)
            entry = slots[slot]
            if entry == 0:
                first = ends[count]
                if count >= most or length > pool.shape[0] - first:
                    break
                copy_bytes(buf, start, pool, first, length)
                count += 1
                ends[count] = first + length
                entry = (tag << 32) | unsigned64(count)
                slots[slot] = entry
            codes[row] = _code(entry)
            row += 1
    return row, count


def find(
    buf: cython.const[cython.uchar][::1],
    slots: cython.const[cython.ulonglong][::1],
    ends: cython.const[cython.longlong][::1],
    pool: cython.const[cython.uchar][::1],
    key0: cython.ulonglong,
    key1: cython.ulonglong,
) -> int:
    """The code of the string that is all of ``buf``, or -1."""
    code: cython.longlong
    tag: cython.ulonglong
    with cython.nogil:
        tag = _hash(buf, 0, buf.shape[0], key0, key1) >> 32
        code = _code(slots[_slot(buf, 0, buf.shape[0], tag, slots, ends, pool)])
    return code


def rehash(old: cython.const[cython.ulonglong][::1], new: cython.ulonglong[::1]) -> None:
    """Put the entries of one table into a larger, empty one."""
    mask: cython.longlong = new.shape[0] - 1
    entry: cython.ulonglong
    slot: cython.longlong
    k: cython.longlong
    with cython.nogil:
        for k in range(old.shape[0]):
            entry = old[k]
            if entry != 0:
                slot = signed64(entry >> 32) & mask
                while new[slot] != 0:
                    slot = (slot + 1) & mask
                new[slot] = entry


def join(
    buf: cython.const[cython.uchar][::1],
    starts: cython.const[cython.longlong][::1],
    lengths: cython.const[cython.longlong][::1],
    parents: cython.const[cython.longlong][::1],
    separator: cython.uchar,
    ends: cython.longlong[::1],
    out: cython.uchar[::1],
) -> None:
    """Write the spans of each parent one after the other, ``separator`` between two.

    ``ends[p]`` is where the text of parent ``p`` begins, and becomes where it ends.
    """
    at_parent: cython.longlong = -1
    parent: cython.longlong
    at: cython.longlong
    row: cython.longlong
    with cython.nogil:
        for row in range(starts.shape[0]):
            parent = parents[row]
            at = ends[parent]
            if parent == at_parent:
                out[at] = separator
                at += 1
            at_parent = parent
            copy_bytes(buf, starts[row], out, at, lengths[row])
            ends[parent] = at + lengths[row]
