"""Where buffers lie in the address space: at a moment, and over a stretch of time.

The address space is cut into regions: what lies far from each other is not drawn to scale. A place
is a region and an offset in it, since addresses do not fit into the numbers of all programs. What a
region has besides blocks in use is a hole.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from peakline.arrays import AnyArray, BoolArray, Float64Array, Int64Array, IntpArray
from peakline.deadline import check_deadline
from peakline.memory.fragmentation.segments import SegmentSpans
from peakline.memory.over_time.live import MemoryRecords, begun, memory_records
from peakline.memory.usage import buffer_bytes, was_there
from peakline.tables import Profile
from peakline.tables.once import once

MOST_REGIONS = 256
_LEAST_GAP = 1 << 20
"""What lies nearer to each other is one region."""
_GAP_SHARE = 1 / 50
"""A gap of a smaller share of all that is ever in use is drawn as it is."""
_COLUMNS, _ROWS = 300, 240
"""The grid on which what is too small to be drawn by itself is marked."""
_HIGHEST = 1 << 62


@dataclass(frozen=True, eq=False)
class Regions:
    """Stretches of the address space, ascending: first address and bytes of each."""

    address: Int64Array
    bytes: Int64Array

    def place(self, address: Int64Array) -> tuple[IntpArray, Int64Array]:
        """The region of each address, and the offset in it; all must lie in one."""
        region = np.searchsorted(self.address, address, "right") - 1
        return region, address - self.address[region]

    @property
    def before(self) -> Int64Array:
        """Bytes of all regions below each one."""
        return np.cumsum(self.bytes) - self.bytes


@dataclass(frozen=True, eq=False)
class Blocks:
    """Blocks in the regions, in order of address. ``row`` is the record that begins the buffer, -1
    without one; ``state`` one of in_use, awaiting_free and free.
    """

    region: IntpArray
    offset: Int64Array
    bytes: Int64Array
    row: IntpArray
    state: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class Holes:
    """What of the regions is in no block in use, in order of address."""

    region: IntpArray
    offset: Int64Array
    bytes: Int64Array


@dataclass(frozen=True, eq=False)
class OverTime:
    """The buffers with the largest areas (bytes times time in view): records ``rows``, ascending.

    ``others`` is how many more live in the stretch; the cells of a grid that they touch are
    ``touched``, shape (rows from the lowest address, columns).
    """

    rows: IntpArray
    region: IntpArray
    offset: Int64Array
    bytes: Int64Array
    others: int
    touched: BoolArray


def regions_of(address: Int64Array, size: Int64Array, largest_gap: int = _LEAST_GAP) -> Regions:
    """The regions that hold all of these stretches of addresses; gaps of more than ``largest_gap``
    lie between them, and than a share of all bytes. At most `MOST_REGIONS`.
    """
    if not address.size:
        return Regions(np.zeros(0, np.int64), np.zeros(0, np.int64))
    order = np.argsort(address, kind="stable")
    begin, end = address[order], (address + size)[order]
    reach = np.maximum.accumulate(end)
    gap = begin[1:] - reach[:-1]
    covered = int(
        (reach - np.maximum(begin, np.concatenate([[begin[0]], reach[:-1]]))).clip(0).sum()
    )
    wide = np.flatnonzero(gap > max(largest_gap, int(covered * _GAP_SHARE)))
    if wide.size >= MOST_REGIONS:
        wide = np.sort(wide[np.argsort(-gap[wide], kind="stable")[: MOST_REGIONS - 1]])
    first = begin[np.concatenate([[0], wide + 1])]
    last = reach[np.concatenate([wide, [begin.size - 1]])]
    return Regions(first, last - first)


@dataclass(frozen=True, eq=False)
class Placed:
    """The buffers of an allocator that have an address: records, addresses, bytes."""

    rows: IntpArray
    address: Int64Array
    bytes: Int64Array
    regions: Regions


@once
def placed(profile: Profile, number: int) -> Placed:
    """The buffers of an allocator of `memory_records` that have an address, by its number."""
    records = memory_records(profile)
    if records is None:
        raise ValueError("a profile without records of memory has no buffers")
    rows = begun(records, number)
    events = records.events
    address, size = events.array("address")[rows], buffer_bytes(events, rows)
    is_placed = events.is_valid("address")[rows] & (address < _HIGHEST) & (size > 0)
    rows, size = rows[is_placed], size[is_placed]
    own = address[is_placed].astype(np.int64)
    check_deadline()
    taken = _segments(profile, records.allocators[number])
    every = np.concatenate([own, taken[0]]), np.concatenate([size, taken[1]])
    return Placed(rows, own, size, regions_of(*every))


def with_segments(result: Placed, segments: SegmentSpans) -> Placed:
    """The same buffers in regions that also hold what was reserved at any time."""
    address = np.concatenate([result.address, segments.address])
    size = np.concatenate([result.bytes, segments.bytes])
    return replace(result, regions=regions_of(address, size))


def _segments(profile: Profile, allocator: str) -> tuple[Int64Array, Int64Array]:
    """Address and bytes of all that a caching allocator has of its device at the end."""
    nothing = np.zeros(0, np.int64)
    if "segments" not in profile.tables:
        return nothing, nothing
    table = profile.columns("segments")
    mine = table.names("allocator").per_row(allocator.__eq__, np.bool_)
    mine = mine & (table.array("address") < _HIGHEST)
    return table.array("address")[mine].astype(np.int64), table.array("total_bytes")[mine]


def map_over_time(
    records: MemoryRecords, result: Placed, stretch: tuple[int, int], most: int
) -> OverTime:
    """The buffers over a stretch of time: start, and end (exclusive)."""
    start, end = stretch
    time = records.events.array("time_ps")
    ends = records.lifetimes.end[result.rows]
    begin_ps = np.where(was_there(records.events, result.rows), start, time[result.rows])
    end_ps = np.where(ends >= 0, time[ends], end)
    inside = np.flatnonzero((begin_ps < end) & ((end_ps > start) | (ends < 0)))
    first = np.maximum(begin_ps[inside], start)
    last = np.minimum(end_ps[inside], end)
    area = result.bytes[inside].astype(np.float64) * np.maximum(last - first, 1)
    chosen, rest = _largest(area, most)
    touched = _touched(result, inside[rest], first[rest], last[rest], stretch)
    rows = inside[chosen]
    region, offset = result.regions.place(result.address[rows])
    return OverTime(result.rows[rows], region, offset, result.bytes[rows], int(rest.size), touched)


def _largest(area: Float64Array, most: int) -> tuple[IntpArray, IntpArray]:
    """The places of the ``most`` largest, of equals the first, and all others; both ascending."""
    if area.size <= most:
        return np.arange(area.size), np.zeros(0, np.intp)
    least = np.partition(area, area.size - most)[area.size - most]
    is_chosen = area > least
    equal = np.flatnonzero(area == least)
    is_chosen[equal[: most - int(np.count_nonzero(is_chosen))]] = True
    return np.flatnonzero(is_chosen), np.flatnonzero(~is_chosen)


def _touched(
    result: Placed, rows: IntpArray, first: Int64Array, last: Int64Array, stretch: tuple[int, int]
) -> BoolArray:
    """The cells of the grid that some of the buffers ``rows`` touch."""
    shape = _ROWS + 1, _COLUMNS + 1
    count = np.zeros(shape, np.int64)
    if rows.size:
        per_ps = _COLUMNS / (stretch[1] - stretch[0])
        left = ((first - stretch[0]) * per_ps).astype(np.int64).clip(0, _COLUMNS - 1)
        right = np.ceil((last - stretch[0]) * per_ps).astype(np.int64).clip(left + 1, _COLUMNS)
        region, offset = result.regions.place(result.address[rows])
        whole = max(int(result.regions.bytes.sum()), 1)
        at = result.regions.before[region] + offset
        scale = _ROWS / whole
        low = np.clip((at * scale).astype(np.int64), 0, _ROWS - 1)
        high = np.clip(np.ceil((at + result.bytes[rows]) * scale).astype(np.int64), low + 1, _ROWS)
        for y, x, sign in ((low, left, 1), (high, left, -1), (low, right, -1), (high, right, 1)):
            cells = np.bincount(y * shape[1] + x, minlength=count.size)
            count += sign * cells.reshape(shape)
    touched: BoolArray = (count.cumsum(axis=0).cumsum(axis=1) > 0)[:_ROWS, :_COLUMNS]
    return touched


def at_moment(records: MemoryRecords, number: int, result: Placed, time_ps: int | None) -> Blocks:
    """The buffers of an allocator that are live at a moment, by default its peak."""
    moment = records.at_peak(number) if time_ps is None else records.at(number, time_ps)
    live = moment.buffers if moment is not None else np.zeros(0, np.intp)
    places = np.searchsorted(result.rows, live)
    places = places[(places < result.rows.size)]
    live = live[: places.size]
    places = places[result.rows[places] == live]
    places = places[np.argsort(result.address[places], kind="stable")]
    region, offset = result.regions.place(result.address[places])
    return Blocks(
        region, offset, result.bytes[places], result.rows[places], ("in_use",) * places.size
    )


def at_segments(
    records: MemoryRecords, number: int, result: Placed, segments: SegmentSpans, time_ps: int | None
) -> Placed:
    """The live buffers, for `at_moment`, in regions of them and of what is reserved then."""
    moment = records.at_peak(number) if time_ps is None else records.at(number, time_ps)
    live = np.isin(result.rows, moment.buffers if moment is not None else np.zeros(0, np.intp))
    if time_ps is None:
        row = moment.row if moment is not None else -1
    else:
        row = int(np.searchsorted(records.events.array("time_ps"), time_ps, "right")) - 1
    there = (segments.start <= row) & ((segments.end < 0) | (segments.end > row))
    address = np.concatenate([result.address[live], segments.address[there]])
    size = np.concatenate([result.bytes[live], segments.bytes[there]])
    rows, own, much = result.rows[live], result.address[live], result.bytes[live]
    return Placed(rows, own, much, regions_of(address, size))


def holes_of(regions: Regions, blocks: Blocks) -> Holes:
    """What of the regions no block in use has."""
    used = np.array([state != "free" for state in blocks.state], np.bool_)
    base = regions.before
    begin = (base[blocks.region] + blocks.offset)[used]
    end = begin + blocks.bytes[used]
    order = np.argsort(begin, kind="stable")
    # Every region begins and ends what is free in it.
    bounds = np.concatenate([base, base + regions.bytes])
    begin = np.concatenate([begin[order], bounds])
    end = np.concatenate([end[order], bounds])
    order = np.lexsort((end, begin))
    begin, reach = begin[order], np.maximum.accumulate(end[order])
    gap = np.flatnonzero(begin[1:] > reach[:-1])
    first, size = reach[gap], begin[gap + 1] - reach[gap]
    region = np.searchsorted(base, first, "right") - 1
    return Holes(region, first - base[region], size)


def listed_blocks(
    profile: Profile, allocator: str, report: int | None
) -> tuple[Regions, Blocks] | None:
    """The blocks that the file lists: of a report of a failed allocation, or with None of the
    allocator at the time of the file. None without any.
    """
    if "blocks" not in profile.tables:
        return None
    blocks = profile.columns("blocks")
    has_report = blocks.is_valid("report_id")
    mine = has_report & (blocks.array("report_id") == report) if report is not None else ~has_report
    segment = blocks.array("segment_id")
    if report is None and "segments" in profile.tables:
        segments = profile.columns("segments")
        own = segments.names("allocator").per_row(allocator.__eq__, np.bool_)
        mine = mine & np.isin(segment, segments.array("segment_id")[own])
    rows = np.flatnonzero(mine & (blocks.array("address") < _HIGHEST))
    if not rows.size:
        return None
    address = blocks.array("address")[rows].astype(np.int64)
    size = blocks.array("bytes")[rows]
    order = np.argsort(address, kind="stable")
    regions = _by_segment(segment[rows], address, size)
    states = blocks.names("state").take(rows[order]).to_list()
    return regions, _blocks(regions, address[order], size[order], states)


def _by_segment(segment: AnyArray, address: Int64Array, size: Int64Array) -> Regions:
    """A region for every segment; those that lie one behind the other stay apart."""
    ids, place = np.unique(segment, return_inverse=True)
    first = np.full(ids.size, _HIGHEST)
    last = np.zeros(ids.size, np.int64)
    np.minimum.at(first, place, address)
    np.maximum.at(last, place, address + size)
    order = np.argsort(first, kind="stable")
    return Regions(first[order], (last - first)[order])


def _blocks(
    regions: Regions, address: Int64Array, size: Int64Array, states: list[str | None]
) -> Blocks:
    region, offset = regions.place(address)
    rows = np.full(address.size, -1, np.intp)
    return Blocks(region, offset, size, rows, tuple(state or "free" for state in states))
