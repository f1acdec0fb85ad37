"""A memory profile as ``tensorflow.profiler.MemoryProfile``: protobuf JSON or wire format.

Snapshots are written a few thousand at a time, so a timeline of millions needs little more than
the bytes of its own output. The JSON is what the C++ protobuf library prints with
``always_print_fields_with_no_presence``: compact, 64-bit integers as text, enums by name.

Of several hosts, an allocator of host ``a`` is known as ``a/ALLOCATOR``, a module's plane likewise,
and modules are numbered through.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from io import BytesIO
from operator import attrgetter, itemgetter
from typing import Any

import numpy as np

from peakline.arrays import Int64Array
from peakline.deadline import check_deadline
from peakline.safe_text import valid_text
from peakline.schema import MemoryProfile, PerAllocatorMemoryProfile
from peakline.tables import Columns, Names
from peakline.text import ROW_BYTES, check_length
from peakline.wire.encode import message
from peakline.wire.tables import varint
from peakline.xprof.memory_profile.rules import AllocatorProfile, Peak, SpecialAllocation

TEXT_COLUMNS = ("tf_op_name", "region_type", "data_type", "tensor_shape")
"""What a snapshot says of its tensor."""


@dataclass(frozen=True, eq=False)
class Shown:
    """Snapshots in the order in which they are written, one entry each.

    ``rows`` are their rows in the report's table, ``sources`` the rows whose op, region, data type
    and shape they show, ``steps`` their steps.
    """

    rows: Int64Array
    sources: Int64Array
    steps: Int64Array


@dataclass(frozen=True, eq=False)
class AllocatorReport:
    """What is written about one allocator.

    ``active`` has ``(snapshot_index, special_index, num_occurrences)`` per row of the table at the
    peak; ``capacity_bytes`` is 0 where it is not known.
    """

    memory_id: str
    lifetime_peak_bytes: int
    peak: Peak
    capacity_bytes: int
    chosen: Shown
    sampled: Shown
    active: list[tuple[int, int, int]]
    specials: tuple[SpecialAllocation, ...]


@dataclass(frozen=True, eq=False)
class Report:
    """What is written about one host: its allocators, over one table of snapshots, and the runs of
    its modules. It can be pickled, and holds no other snapshots than it shows.
    """

    snapshots: Columns
    allocators: list[AllocatorReport]
    modules: Columns | None
    version: int

    @cached_property
    def text_bytes(self) -> int:
        """How long the distinct texts of the snapshots are together."""
        texts = (self.snapshots.names(name).values for name in TEXT_COLUMNS)
        return sum(sum(map(len, values)) for values in texts)


def make_report(
    snapshots: Columns,
    allocators: Iterable[AllocatorProfile],
    modules: Columns | None,
    version: int,
    max_snapshots: int,
    *,
    without_capacity: Collection[str] = (),
) -> Report:
    """The report about the allocators of ``snapshots``.

    ``version`` 0 keeps every snapshot and has no sample and no modules; 1 keeps the snapshots of
    the table at the peak and a sample of at most ``max_snapshots``. The capacity of the memories
    ``without_capacity`` (nothing says how much was free) is 0.
    """
    result = []
    for one in allocators:
        index = one.active.copy()
        if version == 0:
            chosen, sampled = np.arange(one.rows.size), np.zeros(0, np.int64)
        else:
            chosen, sampled = one.referenced, one.sampled(max_snapshots)
            index[index >= 0] = np.arange(chosen.size)
        special = np.where(index < 0, -1 - index, -1)
        active = zip(index.tolist(), special.tolist(), one.occurrences.tolist(), strict=True)
        result.append(
            AllocatorReport(
                memory_id=one.memory_id,
                lifetime_peak_bytes=one.lifetime_peak_bytes,
                peak=one.peak,
                capacity_bytes=0 if one.memory_id in without_capacity else one.peak.capacity_bytes,
                chosen=Shown(one.rows[chosen], one.sources[chosen], one.steps[chosen]),
                sampled=Shown(one.rows[sampled], one.sources[sampled], one.steps[sampled]),
                active=list(active),
                specials=one.specials,
            )
        )
    if version == 0:
        return Report(snapshots, result, None, version)
    used = [
        a for one in result for some in (one.chosen, one.sampled) for a in (some.rows, some.sources)
    ]
    rows = np.unique(np.concatenate([np.zeros(0, np.int64), *used]))

    def moved(some: Shown) -> Shown:
        return Shown(
            np.searchsorted(rows, some.rows), np.searchsorted(rows, some.sources), some.steps
        )

    result = [replace(one, chosen=moved(one.chosen), sampled=moved(one.sampled)) for one in result]
    return Report(snapshots.take(rows), result, modules, version)


Reports = Sequence[tuple[str, Report]]
"""The reports of some hosts, each with what its allocators' and planes' names begin with."""


_CHUNK = 16384

_ACTIVITIES = {
    0: "UNKNOWN_ACTIVITY",
    1: "ALLOCATION",
    2: "DEALLOCATION",
    3: "RESERVATION",
    4: "EXPANSION",
}


def to_json(reports: Reports, hosts: int) -> bytes:
    """The reports, at least one, as protobuf JSON in UTF-8; ``hosts`` is ``num_hosts``."""
    out = BytesIO()
    out.write(b'{"memoryProfilePerAllocator":{')
    names: list[str] = []
    for name, report, allocator in _allocators(reports):
        out.write(f"{',' if names else ''}{json_string(name)}:".encode())
        out.write(b'{"memoryProfileSnapshots":[')
        names.append(json_string(name))
        _write_snapshots(out, report, allocator.chosen)
        out.write(f'],"profileSummary":{_summary(allocator)},"activeAllocations":['.encode())
        out.write(
            ",".join(
                f'{{"snapshotIndex":"{index}","specialIndex":"{special}","numOccurrences":"{n}"}}'
                for index, special, n in allocator.active
            ).encode()
        )
        specials = ",".join(
            "{" + _METADATA % _special_values(special, '"ALLOCATION"', json_string) + "}"
            for special in allocator.specials
        )
        out.write(f'],"specialAllocations":[{specials}],"sampledTimelineSnapshots":['.encode())
        _write_snapshots(out, report, allocator.sampled)
        out.write(b"]}")
    version = reports[0][1].version
    out.write(f'}},"numHosts":{hosts},"memoryIds":[{",".join(names)}],"version":{version}'.encode())
    modules = ",".join(
        f'{{"name":{json_string(name)},"startTimePs":"{start}","endTimePs":"{end}",'
        f'"id":"{number}","planeName":{json_string(plane)}}}'
        for number, (name, start, end, plane) in enumerate(_modules(reports))
    )
    out.write(f',"hloModules":[{modules}]}}'.encode())
    return out.getvalue()


def to_proto(reports: Reports, hosts: int) -> bytes:
    """The reports, at least one, as a serialized ``MemoryProfile`` of ``hosts`` hosts."""
    out = BytesIO()
    whole = MemoryProfile(num_hosts=hosts, version=reports[0][1].version)
    for name, report, allocator in _allocators(reports):
        profile = BytesIO()
        # Serialized messages that follow each other merge: repeated fields append. So each
        # message below holds only a part of the allocator's profile.
        for field, shown in (
            ("memory_profile_snapshots", allocator.chosen),
            ("sampled_timeline_snapshots", allocator.sampled),
        ):
            for fields in _snapshot_fields(report, shown):
                part = PerAllocatorMemoryProfile()
                add = getattr(part, field).add
                for values in fields:
                    _fill_snapshot(add(), values)
                profile.write(part.SerializeToString())
        profile.write(_rest(allocator, PerAllocatorMemoryProfile()).SerializeToString())
        value = profile.getbuffer()
        out.write(_map_entry(name, len(value)))
        out.write(value)
        whole.memory_ids.append(valid_text(name))
    for number, (name, start, end, plane) in enumerate(_modules(reports)):
        whole.hlo_modules.add(
            name=valid_text(name),
            start_time_ps=start,
            end_time_ps=end,
            id=number,
            plane_name=valid_text(plane),
        )
    out.write(whole.SerializeToString())
    return out.getvalue()


def _allocators(reports: Reports) -> list[tuple[str, Report, AllocatorReport]]:
    """Name, report and allocator of all that is written, sorted by name."""
    result = (
        (prefix + allocator.memory_id, report, allocator)
        for prefix, report in reports
        for allocator in report.allocators
    )
    return sorted(result, key=itemgetter(0))


def _map_entry(memory_id: str, size: int) -> bytes:
    """What stands in a serialized ``MemoryProfile`` before an allocator's ``size`` bytes."""
    key = valid_text(memory_id).encode()
    head = message(1, key) + b"\x12" + varint(size)
    return b"\x0a" + varint(len(head) + size) + head


# Plain columns before and after the one that is not: order of a snapshot's values everywhere.
_NUMBERS = ("time_offset_ps", "stack_reserved_bytes", "heap_allocated_bytes", "free_memory_bytes")
_STATS_FIELDS = (*_NUMBERS[1:], "fragmentation", "peak_bytes_in_use")
_METADATA_FIELDS = (
    "memory_activity", "requested_bytes", "allocation_bytes", "address", "tf_op_name", "step_id",
    "region_type", "data_type", "tensor_shape",
)  # fmt: skip
_SIZES = ("peak_bytes_in_use", "activity", "requested_bytes", "allocation_bytes", "address")


def _snapshot_fields(
    report: Report,
    shown: Shown,
    text: Callable[[str], str] | None = None,
    number: Callable[[float], Any] | None = None,
) -> Iterator[Iterator[tuple[Any, ...]]]:
    """The values of the snapshots ``shown`` in the order of the JSON, chunk by chunk.

    Raises as `check_length`.
    """
    table = report.snapshots
    write_text = valid_text if text is None else text
    source_bytes = report.text_bytes + ROW_BYTES * shown.rows.size
    length = 0
    for start in range(0, shown.rows.size, _CHUNK):
        check_deadline()
        chunk = slice(start, start + _CHUNK)
        rows, sources = shown.rows[chunk], shown.sources[chunk]
        fragmentation = table.array("fragmentation")[rows].tolist()
        op, region, data_type, shape = texts = [
            _texts(table.names(name), sources, write_text) for name in TEXT_COLUMNS
        ]
        length += sum(sum(map(len, column)) for column in texts)
        check_length(length, source_bytes)
        yield zip(
            *(table.array(name)[rows].tolist() for name in _NUMBERS),
            fragmentation if number is None else map(number, fragmentation),
            *(table.array(name)[rows].tolist() for name in _SIZES),
            op,
            shown.steps[chunk].tolist(),
            region,
            data_type,
            shape,
            strict=True,
        )


def _texts(names: Names, rows: Int64Array, text: Callable[[str], str]) -> list[str]:
    """The strings of ``rows``, each distinct one made by ``text`` once."""
    codes = names.codes[rows].tolist()
    made = {code: text(names.values[code]) for code in set(codes)}
    return [made[code] for code in codes]


_AGGREGATION = (
    '"stackReservedBytes":"%d","heapAllocatedBytes":"%d","freeMemoryBytes":"%d",'
    '"fragmentation":%s,"peakBytesInUse":"%d"'
)
_METADATA = (
    '"memoryActivity":%s,"requestedBytes":"%d","allocationBytes":"%d","address":"%d",'
    '"tfOpName":%s,"stepId":"%d","regionType":%s,"dataType":%s,"tensorShape":%s'
)
_SNAPSHOT = (
    f'{{"timeOffsetPs":"%d","aggregationStats":{{{_AGGREGATION}}},'
    f'"activityMetadata":{{{_METADATA}}}}}'
)
_SUMMARY = (
    f'{{"peakBytesUsageLifetime":"%d","peakStats":{{{_AGGREGATION}}},'
    '"peakStatsTimePs":"%d","memoryCapacity":"%d"}'
)


def _write_snapshots(out: BytesIO, report: Report, shown: Shown) -> None:
    separator = b""
    for fields in _snapshot_fields(report, shown, json_string, json_number):
        out.write(separator)
        out.write(
            ",".join([_SNAPSHOT % (*v[:6], _json_activity(v[6]), *v[7:]) for v in fields]).encode()
        )
        separator = b","


_PEAK_STATS = attrgetter("stack_bytes", "heap_bytes", "free_bytes", "fragmentation", "in_use_bytes")
_TEXTS = attrgetter(*TEXT_COLUMNS)


def _summary(allocator: AllocatorReport) -> str:
    peak = allocator.peak
    stack, heap, free, fragmentation, in_use = _PEAK_STATS(peak)
    stats = (stack, heap, free, json_number(fragmentation), in_use)
    capacity = allocator.capacity_bytes
    return _SUMMARY % (allocator.lifetime_peak_bytes, *stats, peak.time_ps, capacity)


def _special_values(
    special: SpecialAllocation, activity: object, text: Callable[[str], str]
) -> tuple[Any, ...]:
    """In the order of the fields of a snapshot's metadata."""
    size = special.size_bytes
    op, *others = map(text, _TEXTS(special))
    return (activity, size, size, 0, op, special.step_id, *others)


def _fill_snapshot(snapshot: Any, values: tuple[Any, ...]) -> None:
    """Fill a ``MemoryProfileSnapshot`` with one tuple of `_snapshot_fields`."""
    snapshot.time_offset_ps = values[0]
    _fill(snapshot.aggregation_stats, _STATS_FIELDS, values[1:6])
    _fill(snapshot.activity_metadata, _METADATA_FIELDS, values[6:])


def _fill(part: Any, names: tuple[str, ...], values: tuple[Any, ...]) -> None:
    """Set the fields ``names``; the message is there even where all are zero."""
    for name, value in zip(names, values, strict=True):
        setattr(part, name, value)
    part.SetInParent()


def _rest(allocator: AllocatorReport, part: Any) -> Any:
    """A ``PerAllocatorMemoryProfile`` with everything but the snapshots."""
    peak = allocator.peak
    summary = part.profile_summary
    summary.peak_bytes_usage_lifetime = allocator.lifetime_peak_bytes
    summary.peak_stats_time_ps = peak.time_ps
    summary.memory_capacity = allocator.capacity_bytes
    _fill(summary.peak_stats, _STATS_FIELDS, _PEAK_STATS(peak))
    for index, special_index, occurrences in allocator.active:
        part.active_allocations.add(
            snapshot_index=index, special_index=special_index, num_occurrences=occurrences
        )
    for special in allocator.specials:
        values = _special_values(special, 1, str)
        _fill(part.special_allocations.add(), _METADATA_FIELDS, values)
    return part


def _modules(reports: Reports) -> Iterator[tuple[Any, ...]]:
    """``(name, start_ps, end_ps, plane_name)`` per module run, in file order."""
    for prefix, report in reports:
        modules = report.modules
        if modules is not None:
            yield from zip(
                (name or "" for name in modules.names("name").to_list()),
                modules.array("start_ps").tolist(),
                modules.array("end_ps").tolist(),
                (prefix + (name or "") for name in modules.names("plane_name").to_list()),
                strict=True,
            )


def _json_activity(value: int) -> str:
    """The enum's name, or the bare number of a value it does not have."""
    return f'"{_ACTIVITIES[value]}"' if value in _ACTIVITIES else str(value)


def json_number(value: float) -> str:
    """A double as the C++ library prints it: 15 digits, or 17 where 15 do not give it back."""
    if not math.isfinite(value):
        return '"NaN"' if math.isnan(value) else '"Infinity"' if value > 0 else '"-Infinity"'
    short = f"{value:.15g}"
    return short if float(short) == value else f"{value:.17g}"


# What the C++ library escapes: what JSON must, HTML's angle brackets, and invisible characters.
_ESCAPED = re.compile(
    '[\x00-\x1f"<>\\\\\x7f-\x9f\xad\u0600-\u0603\u06dd\u070f\u17b4\u17b5\u200b-\u200f'
    "\u2028-\u202e\u2060-\u2064\u206a-\u206f\ufeff\ufff9-\ufffb\U0001d173-\U0001d17a"
    "\U000e0001\U000e0020-\U000e007f]"
)
_SHORT = {c: f"\\{letter}" for c, letter in zip('"\\\b\f\n\r\t', '"\\bfnrt', strict=True)}


def json_string(value: str) -> str:
    """A quoted JSON string with the escapes of the C++ library."""
    return '"' + _ESCAPED.sub(_escape, valid_text(value)) + '"'


def _escape(match: re.Match[str]) -> str:
    character = match[0]
    if character in _SHORT:
        return _SHORT[character]
    units = character.encode("utf-16-be").hex()
    return "".join(f"\\u{units[start : start + 4]}" for start in range(0, len(units), 4))
