"""Walking the records of a TFRecord file, and their checksums.

A record is 8 bytes of length, 4 of that length's checksum, the content, 4 of its checksum
(``lib/io/record_writer.h`` of TensorFlow); numbers are little-endian. The checksum is CRC-32C
(RFC 3720, reflected polynomial 0x82F63B78), rotated and shifted so that it differs from one of
content that holds checksums itself.
"""

from __future__ import annotations

import numba as nb
import numpy as np
import numpy.typing as npt

__all__ = ["TABLES", "checksums", "walk_records"]


def _tables() -> npt.NDArray[np.uint32]:
    """Row k: the CRC of a byte with k zero bytes behind it."""
    tables = np.zeros((8, 256), np.uint32)
    crc = np.arange(256, dtype=np.uint32)
    for _ in range(8):
        crc = np.where(crc & 1, (crc >> 1) ^ np.uint32(0x82F63B78), crc >> 1).astype(np.uint32)
    tables[0] = crc
    for k in range(1, 8):
        tables[k] = tables[0][tables[k - 1] & 0xFF] ^ (tables[k - 1] >> 8)
    return tables


TABLES = _tables()


@nb.njit(cache=True, nogil=True)
def _checksum(buf, start, end, tables):  # type: ignore[no-untyped-def]
    """The masked CRC-32C of ``buf[start:end]``, eight bytes at a time."""
    crc = np.uint32(0xFFFFFFFF)
    at = start
    while at + 8 <= end:
        low = crc ^ (
            np.uint32(buf[at])
            | np.uint32(buf[at + 1]) << np.uint32(8)
            | np.uint32(buf[at + 2]) << np.uint32(16)
            | np.uint32(buf[at + 3]) << np.uint32(24)
        )
        crc = (
            tables[7, low & np.uint32(0xFF)]
            ^ tables[6, (low >> np.uint32(8)) & np.uint32(0xFF)]
            ^ tables[5, (low >> np.uint32(16)) & np.uint32(0xFF)]
            ^ tables[4, low >> np.uint32(24)]
            ^ tables[3, buf[at + 4]]
            ^ tables[2, buf[at + 5]]
            ^ tables[1, buf[at + 6]]
            ^ tables[0, buf[at + 7]]
        )
        at += 8
    while at < end:
        crc = tables[0, (crc ^ np.uint32(buf[at])) & np.uint32(0xFF)] ^ (crc >> np.uint32(8))
        at += 1
    crc = crc ^ np.uint32(0xFFFFFFFF)
    return np.uint32(np.uint32(crc >> np.uint32(15) | crc << np.uint32(17)) + np.uint32(0xA282EAD8))


@nb.njit(cache=True, nogil=True)
def _number(buf, at, size):  # type: ignore[no-untyped-def]
    value = np.uint64(0)
    for k in range(size):
        value |= np.uint64(buf[at + k]) << np.uint64(8 * k)
    return value


@nb.njit(cache=True, nogil=True)
def _holds_more(buf, at, end):  # type: ignore[no-untyped-def]
    """Whether an Event holds a graph (fields 4, 9) or a run (8), or cannot be walked.

    Nearly all events hold a summary: they are passed over here, before they cost anything.
    """
    while at < end:
        tag = buf[at]
        number, wire = tag >> 3, tag & 7
        if tag >= 128 or number == 4 or number == 8 or number == 9:
            return True
        at += 1
        if wire == 1:
            at += 8
        elif wire == 5:
            at += 4
        elif wire == 0 or wire == 2:
            value, shift = np.uint64(0), np.uint64(0)
            while True:
                if at >= end or shift > np.uint64(63):
                    return True
                byte = np.uint64(buf[at])
                value |= (byte & np.uint64(127)) << shift
                shift += np.uint64(7)
                at += 1
                if byte < np.uint64(128):
                    break
            if wire == 2:
                if value > np.uint64(end - at):
                    return True
                at += np.int64(value)
        else:
            return True
    return False


@nb.njit(cache=True, nogil=True)
def walk_records(buf, tables, starts, lengths):  # type: ignore[no-untyped-def]
    """Find the contents of the records that may hold a graph or a run.

    ``starts`` and ``lengths`` are filled as far as they go. Where the length is not what its
    checksum says, the next place with a good one is searched. Returns how many records there
    are, how many were found, how many bad places there are, the first of them (-1: none), and
    how many bytes the last record lacks.
    """
    count, found, bad = 0, 0, 0
    first, missing, at = np.int64(-1), np.int64(0), np.int64(0)
    lost = False
    while at < buf.size:
        left = np.int64(buf.size) - at
        if left < 12:
            if not lost:
                missing = 12 - left
            break
        if np.uint64(_checksum(buf, at, at + 8, tables)) != _number(buf, at + 8, 4):
            if not lost:
                lost = True
                bad += 1
                if first < 0:
                    first = at
            at += 1
            continue
        lost = False
        length = _number(buf, at, 8)
        if left < 16:
            missing = 16 - left
            break
        room = np.uint64(left - 16)
        if length > room:
            missing = np.int64(min(length - room, np.uint64(1 << 62)))
            break
        end = at + 12 + np.int64(length)
        if _holds_more(buf, at + 12, end):
            if found < starts.size:
                starts[found] = at + 12
                lengths[found] = np.int64(length)
            found += 1
        count += 1
        at = end + 4
    return count, found, bad, first, missing


@nb.njit(cache=True, nogil=True)
def checksums(buf, tables, starts, lengths, good):  # type: ignore[no-untyped-def]
    """Set ``good`` where the content has the checksum that stands behind it."""
    for row in range(starts.size):
        end = starts[row] + lengths[row]
        good[row] = np.uint64(_checksum(buf, starts[row], end, tables)) == _number(buf, end, 4)
