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

import cython

if not cython.compiled:
    from peakline.kernels.text_layout import NO_TIME, NO_YEAR, WITH_DATE

__all__: list[str] = []


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _digits(
    text: cython.const[cython.uchar][::1], i: cython.longlong, end: cython.longlong
) -> cython.longlong:
    """How many digits there are from ``i`` on, at most 18."""
    n: cython.longlong = 0
    while i + n < end and n < 18 and text[i + n] >= 48 and text[i + n] <= 57:
        n += 1
    return n


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _number(
    text: cython.const[cython.uchar][::1], i: cython.longlong, n: cython.longlong
) -> cython.longlong:
    """The number that ``n`` digits give."""
    value: cython.longlong = 0
    k: cython.longlong
    for k in range(n):
        value = value * 10 + text[i + k] - 48
    return value


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _two(
    text: cython.const[cython.uchar][::1], i: cython.longlong, end: cython.longlong
) -> cython.longlong:
    """The number of two digits, -1 if they are none."""
    if _digits(text, i, min(i + 2, end)) == 2:
        return _number(text, i, 2)
    return -1


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _days(year: cython.longlong, month: cython.longlong, day: cython.longlong) -> cython.longlong:
    """Days from 1970-01-01 in the Gregorian calendar. The year is counted from March on."""
    since_march: cython.longlong
    leap_days: cython.longlong
    if month <= 2:
        year -= 1
    since_march = (153 * ((month + 9) % 12) + 2) // 5 + day - 1
    # The year before 0 is the only negative one: quotients rounded down.
    leap_days = year // 4 - year // 100 + year // 400 if year >= 0 else -1
    return 365 * year + leap_days + since_march - 719468


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _date(
    text: cython.const[cython.uchar][::1], start: cython.longlong, stop: cython.longlong
) -> tuple[cython.int, cython.longlong, cython.bint]:
    """The date that ends at ``stop``: how much is known of it, its days since 1970, and whether
    it is written as loggers do that name the thread.

    Without a year the days are those of 1972, a leap year, since its beginning.
    """
    at: cython.longlong
    month: cython.longlong
    day: cython.longlong
    n: cython.longlong = 4
    if stop - start >= 10 and (text[stop - 3] == 45 or text[stop - 3] == 47):
        at = stop - 10
        month, day = _two(text, at + 5, stop), _two(text, at + 8, stop)
        if _digits(text, at, at + 4) < 4 or text[at + 4] != text[stop - 3]:
            return NO_TIME, 0, False
        if not (month >= 1 and month <= 12 and day >= 1 and day <= 31):
            return NO_TIME, 0, False
        return WITH_DATE, _days(_number(text, at, 4), month, day), False
    while n <= 8:
        at = stop - n
        if (
            at - 1 >= start
            and text[at - 1] >= 65
            and text[at - 1] <= 90
            and _digits(text, at, stop) == n
        ):
            month, day = _two(text, stop - 4, stop), _two(text, stop - 2, stop)
            if n == 4 and month == 0 and day == 0:
                return NO_YEAR, 0, True
            if not (month >= 1 and month <= 12 and day >= 1 and day <= 31):
                return NO_TIME, 0, False
            if n == 8:
                return WITH_DATE, _days(_number(text, at, 4), month, day), True
            return NO_YEAR, _days(1972, month, day) - 730, True
        n += 4
    return NO_TIME, 0, False


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _fraction(
    text: cython.const[cython.uchar][::1], i: cython.longlong, end: cython.longlong
) -> tuple[cython.longlong, cython.longlong]:
    """The nanoseconds of a fraction behind seconds, and where it ends."""
    n: cython.longlong
    used: cython.longlong
    value: cython.longlong
    if i >= end or (text[i] != 46 and text[i] != 44):
        return 0, i
    n = _digits(text, i + 1, end)
    used = min(9, n)
    value = _number(text, i + 1, used)
    while used < 9:
        value *= 10
        used += 1
    return value, i + 1 + n


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _zone(
    text: cython.const[cython.uchar][::1], i: cython.longlong, end: cython.longlong
) -> cython.longlong:
    """Seconds that the time zone written at ``i`` (``+01:00``) is ahead of UTC; 0 for none."""
    hours: cython.longlong
    minutes: cython.longlong
    at: cython.longlong
    if i >= end or (text[i] != 43 and text[i] != 45):
        return 0
    hours = _two(text, i + 1, end)
    at = i + 4 if i + 3 < end and text[i + 3] == 58 else i + 3
    minutes = _two(text, at, end)
    if hours < 0:
        return 0
    minutes = max(minutes, 0)
    hours = hours * 3600 + minutes * 60
    return hours if text[i] == 43 else -hours


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _word_before(
    text: cython.const[cython.uchar][::1], low: cython.longlong, stop: cython.longlong
) -> tuple[cython.longlong, cython.longlong]:
    """The word that ends before ``stop``, as start and stop; empty at the line's beginning."""
    start: cython.longlong
    while stop > low and (text[stop - 1] == 32 or text[stop - 1] == 9):
        stop -= 1
    start = stop
    while start > low and text[start - 1] > 32:
        start -= 1
    return start, stop


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _thread(
    text: cython.const[cython.uchar][::1], start: cython.longlong, stop: cython.longlong
) -> cython.longlong:
    """The thread's number that the word is, 0 for another word."""
    n: cython.longlong = _digits(text, start, stop)
    return _number(text, start, n) if n == stop - start else 0


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def read_prefix(
    text: cython.const[cython.uchar][::1],
    low: cython.longlong,
    stop: cython.longlong,
    found: cython.longlong[::1],
) -> cython.void:
    """What the words of one line between ``low`` and ``stop`` say of the record behind them.

    Writes into ``found`` how much is known of the time, the time in nanoseconds, and the thread
    (0: unknown).
    """
    second: cython.longlong = 1_000_000_000
    most: cython.longlong = 9223372035  # seconds
    behind_start: cython.longlong = stop
    behind_stop: cython.longlong = stop
    start: cython.longlong = stop
    before_start: cython.longlong
    before_stop: cython.longlong
    hours: cython.longlong
    minutes: cython.longlong
    seconds: cython.longlong
    nanos: cython.longlong
    after: cython.longlong
    days: cython.longlong
    thread: cython.longlong
    n: cython.longlong
    k: cython.longlong
    known: cython.int
    first: cython.int
    threaded: cython.bint
    found[0], found[1], found[2] = NO_TIME, 0, 0
    # So many bytes before the record are looked at.
    low = max(low, stop - 512)
    while True:
        start, stop = _word_before(text, low, start)
        if start == stop:
            return
        first = text[start]
        if stop - start >= 8 and (
            (text[stop - 2] >= 48 and text[stop - 2] <= 57) or (first >= 48 and first <= 57)
        ):
            for k in range(start + 2, stop - 5):
                if text[k] != 58 or text[k + 3] != 58:
                    continue
                hours, minutes = _two(text, k - 2, stop), _two(text, k + 1, stop)
                n = _digits(text, k + 4, stop)
                seconds = _number(text, k + 4, n)
                if hours < 0 or minutes < 0:
                    continue
                nanos, after = _fraction(text, k + 4 + n, stop)
                thread = 0
                before_start, before_stop = _word_before(text, low, start)
                if n > 2:
                    # In place of the seconds stand those since the epoch.
                    if hours > 0 or minutes > 0 or seconds > most:
                        continue
                    thread = _thread(text, behind_start, behind_stop)
                    found[0], found[1], found[2] = WITH_DATE, seconds * second + nanos, thread
                    return
                if n < 2 or hours > 23 or minutes > 59 or seconds > 60:
                    continue
                known, days, threaded = NO_TIME, 0, False
                if k - 2 == start:
                    known, days, threaded = _date(text, before_start, before_stop)
                    if threaded:
                        thread = _thread(text, behind_start, behind_stop)
                elif text[k - 3] == 84:  # T
                    known, days, threaded = _date(text, start, k - 3)
                    seconds -= _zone(text, after, stop)
                seconds += days * 86_400 + hours * 3600 + minutes * 60
                if seconds > most or seconds < -most:
                    continue
                found[0] = max(NO_YEAR, known)
                found[1], found[2] = seconds * second + nanos, thread
                return
        if first >= 48 and first <= 57:
            n = _digits(text, start, stop)
            nanos, after = _fraction(text, start + n, stop)
            before_start, before_stop = _word_before(text, low, start)
            if (
                n >= 9
                and n <= 10
                and after == stop
                and start + n < stop
                and before_stop - before_start == 1
            ):
                seconds = _number(text, start, n)
                if text[before_start] >= 65 and text[before_start] <= 90 and seconds <= most:
                    found[0], found[1], found[2] = WITH_DATE, seconds * second + nanos, 0
                    return
        behind_start, behind_stop = start, stop
