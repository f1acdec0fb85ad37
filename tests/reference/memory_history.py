"""The memory analyses done slowly and plainly: dictionaries, one buffer at a time.

Rows are those of `tests.memory.records`: dicts in time order, one row a picosecond apart.
"""

from collections import defaultdict
from dataclasses import dataclass
from statistics import median


@dataclass
class Buffer:
    """A buffer: the rows that begin and end it, and what it is."""

    begin: int
    end: int | None
    allocator: str
    address: int | None
    allocated: int
    requested: int
    signature: tuple


def size_of(row):
    size = row.get("allocated_bytes")
    return (row.get("requested_bytes") or 0) if size is None else size


def requested_of(row):
    request, size = row.get("requested_bytes") or 0, size_of(row)
    return request if 0 < request <= size else size


def spelled(shape):
    if shape and shape[0] in "[(" and shape[-1] in "])":
        inner = [part.strip() for part in shape[1:-1].split(",")]
        return "[" + ", ".join(part for part in inner if part) + "]"
    return shape


def buffers(rows):
    """Every buffer that can be followed, in order of its beginning."""
    result, live = [], {}
    for number, row in enumerate(rows):
        allocator = row.get("allocator") or ""
        key = ("id", row["allocation_id"]) if row.get("allocation_id") is not None else None
        if key is None and row.get("address") is not None:
            key = ("address", row["address"])
        if key is None or row["activity"] not in ("allocation", "deallocation"):
            continue
        ended = live.pop((allocator, key), None)
        if ended is not None:
            ended.end = number
        if row["activity"] == "allocation":
            shape = spelled(row.get("shape") or "")
            names = tuple(row.get(name) or "" for name in ("op", "region_type", "data_type"))
            one = Buffer(
                number,
                None,
                allocator,
                row.get("address"),
                size_of(row),
                requested_of(row),
                (allocator, *names, shape, None if shape else requested_of(row)),
            )
            live[allocator, key] = one
            result.append(one)
    return result


def lives_at(one, row):
    """Whether a buffer is live just before row ``row``."""
    return one.begin < row and (one.end is None or one.end >= row)


def live_bytes(result, allocator, marks):
    """Per signature, the bytes asked for that live just before each of the rows ``marks``."""
    series = defaultdict(lambda: [0] * len(marks))
    for one in result:
        if one.allocator != allocator:
            continue
        for place, mark in enumerate(marks):
            if lives_at(one, mark):
                series[one.signature][place] += one.requested
    return dict(series)


def in_use(rows, allocator):
    """Memory in use after each row: as the allocator reported last, else the live buffers."""
    result = buffers(rows)
    reports = any(
        row.get("in_use_bytes") is not None and (row.get("allocator") or "") == allocator
        for row in rows
    )
    last, used = 0, []
    for number, row in enumerate(rows):
        if reports:
            if row.get("in_use_bytes") is not None and (row.get("allocator") or "") == allocator:
                last = row["in_use_bytes"] + (row.get("reserved_bytes") or 0)
        else:
            last = sum(
                one.allocated
                for one in result
                if one.allocator == allocator and lives_at(one, number + 1)
            )
        used.append(last)
    return used


def slope(values):
    """Theil and Sen's: the median of the slopes of all pairs."""
    pairs = [
        (values[j] - values[i]) / (j - i)
        for i in range(len(values))
        for j in range(i + 1, len(values))
    ]
    return median(pairs) if pairs else 0.0


def concordance(values):
    pairs = [(values[i], values[j]) for i in range(len(values)) for j in range(i + 1, len(values))]
    if not pairs:
        return 0.0
    return sum((b > a) - (b < a) for a, b in pairs) / len(pairs)


def holes(spans, touched):
    """Sizes of the runs of bytes that are in ``touched`` and in none of ``spans``, byte by byte."""
    covered = {byte for start, size in spans for byte in range(start, start + size)}
    free = sorted(
        {byte for start, size in touched for byte in range(start, start + size)} - covered
    )
    runs = []
    for byte in free:
        if runs and byte == runs[-1][1] + 1:
            runs[-1][1] = byte
        else:
            runs.append([byte, byte])
    return [last - first + 1 for first, last in runs]


def fragmentation(rows, allocator):
    """Per row: free bytes, largest hole, holes; and the rows of allocations that were forced."""
    result = [
        one
        for one in buffers(rows)
        if one.allocator == allocator and one.address is not None and one.allocated > 0
    ]
    course, forced = [], []
    for number in range(len(rows)):
        for one in result:
            if one.begin != number:
                continue
            before = [(o.address, o.allocated) for o in result if o.begin < number]
            # What the new buffer replaces under its own key is gone already.
            live = [
                (o.address, o.allocated)
                for o in result
                if o.begin < number and (o.end is None or o.end > number)
            ]
            pieces = holes(live, before)
            old = {byte for start, size in before for byte in range(start, start + size)}
            new = len(set(range(one.address, one.address + one.allocated)) - old)
            if new and max(pieces, default=0) < one.requested <= sum(pieces):
                forced.append((number, new, sum(pieces), max(pieces, default=0)))
        touched = [(o.address, o.allocated) for o in result if o.begin <= number]
        live = [(o.address, o.allocated) for o in result if lives_at(o, number + 1)]
        pieces = holes(live, touched)
        course.append((sum(pieces), max(pieces, default=0), len(pieces)))
    return course, forced


def churn(rows, starts, short):
    """Per signature: allocations, bytes, freed in their step, short-lived, most at once."""
    result = defaultdict(lambda: [0, 0, 0, 0, 0])

    def step(row):
        return sum(start <= row for start in starts)

    everything = buffers(rows)
    for one in everything:
        result[one.signature]  # one from before the profile is told of, but not counted
    everything = [one for one in everything if not rows[one.begin].get("is_before")]
    for one in everything:
        row = result[one.signature]
        row[0] += 1
        row[1] += one.allocated
        if one.end is not None:
            row[2] += step(one.begin) == step(one.end) > 0
            row[3] += one.end - one.begin <= short
        alike = [other for other in everything if other.signature == one.signature]
        row[4] = max(row[4], sum(lives_at(other, one.begin + 1) for other in alike))
    for row in rows:
        if row["activity"] == "allocation" and row.get("address") is None:
            if row.get("allocation_id") is not None:
                continue
            shape = spelled(row.get("shape") or "")
            names = tuple(row.get(name) or "" for name in ("op", "region_type", "data_type"))
            key = (row.get("allocator") or "", *names, shape, None if shape else requested_of(row))
            result[key][0] += not row.get("is_before")
            result[key][1] += 0 if row.get("is_before") else size_of(row)
    return {key: tuple(row) for key, row in result.items()}


def peak_without(rows, allocator, shrunk, *, numerator=1, denominator=1, which="all", starts=()):
    """The largest memory in use if the buffers of the signatures ``shrunk`` were smaller.

    ``which`` of them: ``all``, ``all but one``, ``of the step`` or ``from before`` it; the steps
    begin at the records ``starts``.
    """

    def is_new(one, number):
        is_before = rows[one.begin].get("is_before")
        return not is_before and not any(one.begin < start <= number for start in starts)

    used = in_use(rows, allocator)
    reports = any(
        row.get("in_use_bytes") is not None and (row.get("allocator") or "") == allocator
        for row in rows
    )
    result = [one for one in buffers(rows) if one.allocator == allocator]
    best = 0
    for number, row in enumerate(rows):
        if (row.get("allocator") or "") != allocator:
            continue
        if reports and row.get("in_use_bytes") is None:
            continue
        live = [
            one.allocated
            for one in result
            if one.signature in shrunk
            and lives_at(one, number + 1)
            and (which != "of the step" or is_new(one, number))
            and (which != "from before" or not is_new(one, number))
        ]
        if which == "all but one":
            saved = sum(live) - sum(live) // len(live) if len(live) > 1 else 0
        else:
            saved = sum(live) * numerator // denominator
        best = max(best, used[number] - saved)
    return best
