"""Walking the records of a TFRecord file, and their checksums.

A record is 8 bytes of length, 4 of that length's checksum, the content, 4 of its checksum
(``lib/io/record_writer.h`` of TensorFlow); numbers are little-endian. The checksum is CRC-32C
(RFC 3720, reflected polynomial 0x82F63B78), rotated and shifted so that it differs from one of
content that holds checksums itself.
"""

from __future__ import annotations

import cython

if not cython.compiled:
    from peakline.kernels.bits import low64

__all__ = ["checksums", "walk_records"]


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _checksum(
    buf: cython.const[cython.uchar][::1],
    start: cython.longlong,
    end: cython.longlong,
    tables: cython.const[cython.uint][:, ::1],
) -> cython.ulonglong:
    """The masked CRC-32C of ``buf[start:end]``, eight bytes at a time."""
    whole: cython.ulonglong = 0xFFFFFFFF
    shift: cython.ulonglong = 0xA282EAD8
    crc: cython.ulonglong = whole
    low: cython.ulonglong
    at: cython.longlong = start
    k: cython.int
    while at + 8 <= end:
        low = 0
        for k in range(4):
            low |= low64(buf[at + k]) << (8 * k)
        low ^= crc
        crc = (
            tables[7, low & 0xFF]
            ^ tables[6, (low >> 8) & 0xFF]
            ^ tables[5, (low >> 16) & 0xFF]
            ^ tables[4, low >> 24]
            ^ tables[3, buf[at + 4]]
            ^ tables[2, buf[at + 5]]
            ^ tables[1, buf[at + 6]]
            ^ tables[0, buf[at + 7]]
        )
        at += 8
    while at < end:
        crc = tables[0, (crc ^ buf[at]) & 0xFF] ^ (crc >> 8)
        at += 1
    crc ^= whole
    return (((crc >> 15) | (crc << 17)) + shift) & whole


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _number(
    buf: cython.const[cython.uchar][::1], at: cython.longlong, size: cython.int
) -> cython.ulonglong:
    """A little-endian number of ``size`` bytes."""
    value: cython.ulonglong = 0
    k: cython.int
    for k in range(size):
        value |= low64(buf[at + k]) << (8 * k)
    return value


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _is_of_run(
    buf: cython.const[cython.uchar][::1], at: cython.longlong, end: cython.longlong
) -> cython.bint:
    """Whether ``graph_run_metadata`` stands anywhere in what says what a summary's value is."""
    graph: cython.ulonglong = 0x75725F6870617267  # "graph_ru"
    run: cython.ulonglong = 0x61646174656D5F6E  # "n_metada"
    data: cython.ulonglong = 0x6174  # "ta"
    while at + 18 <= end:
        if (
            buf[at] == 103
            and _number(buf, at, 8) == graph
            and _number(buf, at + 8, 8) == run
            and _number(buf, at + 16, 2) == data
        ):
            return True
        at += 1
    return False


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _varint(
    buf: cython.const[cython.uchar][::1], at: cython.longlong, end: cython.longlong
) -> tuple[cython.ulonglong, cython.longlong]:
    """The number at ``at`` and where it ends; -1 for the latter when it is broken."""
    value: cython.ulonglong = 0
    byte: cython.ulonglong
    shift: cython.int = 0
    while at < end and shift < 70:
        byte = buf[at]
        at += 1
        value = low64(value | (byte & 127) << shift)
        shift += 7
        if byte < 128:
            return value, at
    return 0, -1


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _holds_more(
    buf: cython.const[cython.uchar][::1],
    at: cython.longlong,
    end: cython.longlong,
    level: cython.int,
) -> cython.bint:
    """Whether an Event has a graph (fields 4, 9), a run (8, or in a summary), or cannot be walked:
    then its reader says what is damaged.

    Nearly all events hold another summary: they are passed over here, before they cost anything.
    Of an Event (``level`` 0) the summary (5) is walked too, of that (1) its values (1), of these
    (2) the metadata (9): images, tensors and histograms are not read.
    """
    number: cython.ulonglong
    wire: cython.ulonglong
    value: cython.ulonglong
    while at < end:
        value, at = _varint(buf, at, end)
        if at < 0:
            return True
        number, wire = value >> 3, value & 7
        if level == 0 and (number == 4 or number == 8 or number == 9):
            return True
        if wire == 1:
            at += 8
        elif wire == 5:
            at += 4
        elif wire == 0 or wire == 2:
            value, at = _varint(buf, at, end)
            if at < 0:
                return True
            if wire == 2:
                if value > low64(end - at):
                    return True
                if level == 2:
                    if number == 9 and _is_of_run(buf, at, at + value):
                        return True
                elif number == (5 if level == 0 else 1) and _holds_more(
                    buf, at, at + value, level + 1
                ):
                    return True
                at += value
        else:
            return True
    return at > end


def walk_records(
    buf: cython.const[cython.uchar][::1],
    tables: cython.const[cython.uint][:, ::1],
    starts: cython.longlong[::1],
    lengths: cython.longlong[::1],
) -> tuple[int, int, int, int, int]:
    """Find the contents of the records that may hold a graph or a run.

    ``starts`` and ``lengths`` are filled as far as they go. Where the length is not what its
    checksum says, the next place with a good one is searched. Returns how many records there
    are, how many were found, how many bad places there are, the first of them (-1: none), and
    how many bytes the last record lacks.
    """
    count: cython.longlong = 0
    result: cython.longlong = 0
    bad: cython.longlong = 0
    first: cython.longlong = -1
    missing: cython.longlong = 0
    at: cython.longlong = 0
    left: cython.longlong
    end: cython.longlong
    length: cython.ulonglong
    room: cython.ulonglong
    one: cython.ulonglong = 1
    lost: cython.bint = False
    with cython.nogil:
        while at < buf.shape[0]:
            left = buf.shape[0] - at
            if left < 12:
                if not lost:
                    missing = 12 - left
                break
            if _checksum(buf, at, at + 8, tables) != _number(buf, at + 8, 4):
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
            room = left - 16
            if length > room:
                length -= room
                missing = min(one << 62, length)
                break
            end = at + 12 + length
            if _holds_more(buf, at + 12, end, 0):
                if result < starts.shape[0]:
                    starts[result] = at + 12
                    lengths[result] = length
                result += 1
            count += 1
            at = end + 4
    return count, result, bad, first, missing


def checksums(
    buf: cython.const[cython.uchar][::1],
    tables: cython.const[cython.uint][:, ::1],
    starts: cython.const[cython.longlong][::1],
    lengths: cython.const[cython.longlong][::1],
    good: cython.uchar[::1],
) -> None:
    """Set ``good`` where the content has the checksum that stands behind it."""
    row: cython.longlong
    end: cython.longlong
    with cython.nogil:
        for row in range(starts.shape[0]):
            end = starts[row] + lengths[row]
            good[row] = _checksum(buf, starts[row], end, tables) == _number(buf, end, 4)
