"""What stands before a record in a log line: when it was logged, and by which thread.

Many programs put something before a line, and what the logging library itself wrote comes last.
So the words before the record are looked at from the last one back, and the first that is a time
is taken:

- ``I0000 00:00:1795194000.088408   10967 file:line]``: seconds since the epoch, then the thread;
- ``I0623 12:34:56.789012   10967 file:line]``, or with the year, ``I20260623``;
- ``2017-09-16 13:24:28.422108: I file:line]``, with or without the fraction;
- ``I 5143420588.000000 file ...``: seconds;
- ``2026-11-20T17:04:52.123Z ...`` as container runtimes put it before lines without a time.
"""

from __future__ import annotations

import numba as nb
import numpy as np

__all__ = ["NO_TIME", "NO_YEAR", "WITH_DATE", "read_prefix"]

NO_TIME, NO_YEAR, WITH_DATE = range(3)
"""How much is known of a time."""

U = np.uint64  # for indices: an unsigned one needs no check for counting from the end

_FARTHEST = 512
"""Bytes before the record that are looked at."""

_SECOND = 1_000_000_000
_DAY = 86_400
_MOST_SECONDS = (1 << 63) // _SECOND - 1


@nb.njit(nogil=True, forceinline=True)
def _digits(text, i, end):  # type: ignore[no-untyped-def]
    """How many digits there are from ``i`` on, at most 18."""
    n = 0
    while i + n < end and n < 18 and 48 <= text[U(i + n)] <= 57:
        n += 1
    return n


@nb.njit(nogil=True, forceinline=True)
def _number(text, i, n):  # type: ignore[no-untyped-def]
    value = np.int64(0)
    for k in range(n):
        value = value * 10 + np.int64(text[U(i + k)]) - 48
    return value


@nb.njit(nogil=True, forceinline=True)
def _two(text, i, end):  # type: ignore[no-untyped-def]
    """The number of two digits, -1 if they are none."""
    return _number(text, i, 2) if _digits(text, i, min(end, i + 2)) == 2 else np.int64(-1)


@nb.njit(nogil=True)
def _days(year, month, day):  # type: ignore[no-untyped-def]
    """Days from 1970-01-01 in the Gregorian calendar. The year is counted from March on."""
    year -= month <= 2
    since_march = (153 * ((month + 9) % 12) + 2) // 5 + day - 1
    return 365 * year + year // 4 - year // 100 + year // 400 + since_march - 719468


@nb.njit(nogil=True)
def _date(text, start, stop):  # type: ignore[no-untyped-def]
    """The date that ends at ``stop``: how much is known of it, its days since 1970, and whether
    it is written as loggers do that name the thread.

    Without a year the days are those of 1972, a leap year, since its beginning.
    """
    none = (NO_TIME, np.int64(0), False)
    if stop - start >= 10 and (text[U(stop - 3)] == 45 or text[U(stop - 3)] == 47):
        at = stop - 10
        month, day = _two(text, at + 5, stop), _two(text, at + 8, stop)
        if _digits(text, at, at + 4) < 4 or text[U(at + 4)] != text[U(stop - 3)]:
            return none
        if not (1 <= month <= 12 and 1 <= day <= 31):
            return none
        return WITH_DATE, _days(_number(text, at, 4), month, day), False
    for n in (4, 8):
        at = stop - n
        if at - 1 >= start and 65 <= text[U(at - 1)] <= 90 and _digits(text, at, stop) == n:
            month, day = _two(text, stop - 4, stop), _two(text, stop - 2, stop)
            if n == 4 and month == 0 and day == 0:
                return NO_YEAR, np.int64(0), True
            if not (1 <= month <= 12 and 1 <= day <= 31):
                return none
            if n == 8:
                return WITH_DATE, _days(_number(text, at, 4), month, day), True
            return NO_YEAR, _days(np.int64(1972), month, day) - 730, True
    return none


@nb.njit(nogil=True, forceinline=True)
def _fraction(text, i, end):  # type: ignore[no-untyped-def]
    """The nanoseconds of a fraction behind seconds, and where it ends."""
    if i >= end or (text[U(i)] != 46 and text[U(i)] != 44):
        return np.int64(0), i
    n = _digits(text, i + 1, end)
    used = min(n, 9)
    value = _number(text, i + 1, used)
    for _ in range(9 - used):
        value *= 10
    return value, i + 1 + n


@nb.njit(nogil=True)
def _zone(text, i, end):  # type: ignore[no-untyped-def]
    """Seconds that the time zone written at ``i`` (``+01:00``) is ahead of UTC; 0 for none."""
    if i >= end or (text[U(i)] != 43 and text[U(i)] != 45):
        return np.int64(0)
    hours = _two(text, i + 1, end)
    at = i + 4 if i + 3 < end and text[U(i + 3)] == 58 else i + 3
    minutes = max(_two(text, at, end), np.int64(0))
    if hours < 0:
        return np.int64(0)
    return (hours * 3600 + minutes * 60) * (1 if text[U(i)] == 43 else -1)


@nb.njit(nogil=True, forceinline=True)
def _word_before(text, low, stop):  # type: ignore[no-untyped-def]
    """The word that ends before ``stop``, as start and stop; empty at the line's beginning."""
    while stop > low and (text[U(stop - 1)] == 32 or text[U(stop - 1)] == 9):
        stop -= 1
    start = stop
    while start > low and text[U(start - 1)] > 32:
        start -= 1
    return start, stop


@nb.njit(nogil=True)
def _thread(text, start, stop):  # type: ignore[no-untyped-def]
    n = _digits(text, start, stop)
    return _number(text, start, n) if n == stop - start else np.int64(0)


@nb.njit(nogil=True)
def read_prefix(text, low, stop):  # type: ignore[no-untyped-def]
    """What the words of one line between ``low`` and ``stop`` say of the record behind them.

    Returns how much is known of the time, the time in nanoseconds, and the thread (0: unknown).
    """
    low = max(low, stop - _FARTHEST)
    behind_start, behind_stop = stop, stop
    start = stop
    while True:
        start, stop = _word_before(text, low, start)
        if start == stop:
            return NO_TIME, np.int64(0), np.int64(0)
        first = text[U(start)]
        if stop - start >= 8 and (48 <= text[U(stop - 2)] <= 57 or 48 <= first <= 57):
            for k in range(start + 2, stop - 5):
                if text[U(k)] != 58 or text[U(k + 3)] != 58:
                    continue
                hours, minutes = _two(text, k - 2, stop), _two(text, k + 1, stop)
                n = _digits(text, k + 4, stop)
                seconds = _number(text, k + 4, n)
                if hours < 0 or minutes < 0:
                    continue
                nanos, after = _fraction(text, k + 4 + n, stop)
                thread = np.int64(0)
                before = _word_before(text, low, start)
                if n > 2:
                    # In place of the seconds stand those since the epoch.
                    if hours > 0 or minutes > 0 or seconds > _MOST_SECONDS:
                        continue
                    thread = _thread(text, behind_start, behind_stop)
                    return WITH_DATE, seconds * _SECOND + nanos, thread
                if n < 2 or hours > 23 or minutes > 59 or seconds > 60:
                    continue
                known, days, threaded = NO_TIME, np.int64(0), False
                if k - 2 == start:
                    known, days, threaded = _date(text, before[0], before[1])
                    if threaded:
                        thread = _thread(text, behind_start, behind_stop)
                elif text[U(k - 3)] == 84:  # T
                    known, days, threaded = _date(text, start, k - 3)
                    seconds -= _zone(text, after, stop)
                seconds += days * _DAY + hours * 3600 + minutes * 60
                if abs(seconds) > _MOST_SECONDS:
                    continue
                return max(known, NO_YEAR), seconds * _SECOND + nanos, thread
        if 48 <= first <= 57:
            n = _digits(text, start, stop)
            nanos, after = _fraction(text, start + n, stop)
            letter, letter_stop = _word_before(text, low, start)
            if 9 <= n <= 10 and after == stop and start + n < stop and letter_stop - letter == 1:
                seconds = _number(text, start, n)
                if 65 <= text[U(letter)] <= 90 and seconds <= _MOST_SECONDS:
                    return WITH_DATE, seconds * _SECOND + nanos, np.int64(0)
        behind_start, behind_stop = start, stop
