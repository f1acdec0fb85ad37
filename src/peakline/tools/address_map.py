"""The ``address_map`` tool: where buffers lie in the address space, with holes and what failed."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

from peakline import memory
from peakline.errors import UsageError
from peakline.text import parse_size
from peakline.toolbox.parameters import Parameters, parameter
from peakline.toolbox.registry import Tool
from peakline.toolbox.written import compact_json

if TYPE_CHECKING:
    from peakline.arrays import AnyArray, BoolArray
    from peakline.memory.fragmentation.address_map import Blocks, Holes, Placed, Regions
    from peakline.memory.fragmentation.segments import SegmentSpans
    from peakline.memory.over_time.live import MemoryRecords
    from peakline.tables import Profile

_MOST_PS = 1 << 62
_MOST_BLOCKS = 5000
_LONGEST = 1000


class AddressMapParameters(Parameters):
    """The parameters; text is accepted for every value."""

    view: Literal["time", "moment", "listed", "replayed"] = parameter(
        "moment",
        description="time: buffers over a stretch; moment: at one; listed: the blocks that the "
        "file lists, of a report of a failed allocation or at the time of the file; replayed: "
        "under another limit or other settings",
    )
    allocator: str | None = parameter(
        None, description="of this allocator. Default: the one with the largest peak"
    )
    start_ps: int | None = parameter(
        None, ge=-_MOST_PS, le=_MOST_PS, description="time: begin. Default: the first record"
    )
    end_ps: int | None = parameter(
        None, ge=-_MOST_PS, le=_MOST_PS, description="time: end. Default: past the last record"
    )
    at_ps: int | None = parameter(
        None, ge=-_MOST_PS, le=_MOST_PS, description="moment: this one. Default: the peak"
    )
    report: int | None = parameter(
        None, ge=0, description="listed: this report of oom_reports. Default: the time of the file"
    )
    limit_bytes: str | None = parameter(
        None,
        max_length=40,
        description="replayed: under this limit, in bytes or as 8GiB. Default: the largest that "
        "fails",
    )
    settings: tuple[str, ...] = parameter(
        (), description="replayed: settings of the allocator, such as allow_growth=false"
    )
    limit: int = parameter(
        3000, ge=1, le=_MOST_BLOCKS, description="at most so many blocks, the largest"
    )


@dataclass(frozen=True, eq=False)
class _Map:
    """What an answer is made of."""

    regions: Regions
    blocks: Blocks
    holes: Holes
    failed: dict[str, Any] | None = None
    more: dict[str, Any] | None = None


def _run(profile: Profile, parameters: AddressMapParameters, _output_format: str) -> bytes:
    return compact_json(_document(profile, parameters), ascii_only=False)


def _document(profile: Profile, parameters: AddressMapParameters) -> dict[str, Any]:
    from peakline.tools.live_memory import no_records

    document: dict[str, Any] = {
        "host": profile.host,
        "view": parameters.view,
        "allocator": None,
        "reason": None,
        "reports": _reports(profile),
        "has_listed": _has_listed(profile),
        "regions": None,
        "blocks": None,
        "others": 0,
        "other_bytes": 0,
        "holes": None,
        "failed": None,
    }
    records = memory.memory_records(profile)
    if records is None:
        no_records(profile, parameters.allocator)
        return document | {"reason": "the profile has no records of memory"}
    number = records.number_of(parameters.allocator)
    if number is None:
        return document | {"reason": "no allocator says how much is in use"}
    document["allocator"] = records.allocators[number]
    if parameters.view == "time":
        return document | _over_time(profile, records, number, parameters)
    result = _FIND[parameters.view](profile, records, number, parameters)
    if isinstance(result, str):
        return document | {"reason": result}
    return document | _written(records, result, parameters.limit)


def _written(records: MemoryRecords, result: _Map, limit: int) -> dict[str, Any]:
    """A map at one moment as columns, of its blocks and holes the largest."""
    import numpy as np

    blocks, holes = result.blocks, result.holes
    chosen = np.sort(np.argsort(-blocks.bytes, kind="stable")[:limit])
    wide = np.sort(np.argsort(-holes.bytes, kind="stable")[:limit])
    states = [blocks.state[place] for place in chosen.tolist()]
    sizes = blocks.bytes[chosen]
    return {
        "regions": _regions(result.regions),
        "blocks": {
            "region": blocks.region[chosen].tolist(),
            "offset": blocks.offset[chosen].tolist(),
            "bytes": sizes.tolist(),
            "state": states,
            **_records(records, blocks.row[chosen]),
        },
        "others": int(blocks.bytes.size - chosen.size),
        "other_bytes": int(blocks.bytes.sum() - sizes.sum()),
        "holes": {
            "region": holes.region[wide].tolist(),
            "offset": holes.offset[wide].tolist(),
            "bytes": holes.bytes[wide].tolist(),
            "count": int(holes.bytes.size),
            "total_bytes": int(holes.bytes.sum()),
            "largest_bytes": int(holes.bytes.max(initial=0)),
        },
        "failed": result.failed,
    } | (result.more or {})


def _regions(regions: Regions) -> dict[str, list[Any]]:
    return {
        "address": [f"{address:#x}" for address in regions.address.tolist()],
        "bytes": regions.bytes.tolist(),
    }


def _records(records: MemoryRecords, rows: AnyArray) -> dict[str, list[Any]]:
    """Of each record, null for none (-1): record, op, begin and end of its buffer's life."""
    import numpy as np

    events, known = records.events, rows >= 0
    at = np.maximum(rows, 0)
    ends = records.lifetimes.end[at]
    time = events.array("time_ps")
    started = known & ~(events.array("is_before") & events.is_valid("is_before"))[at]
    codes, ops = events.names("op").take(at).grouped()
    return {
        "record": _where(rows, known),
        "op": _where(codes, known),
        "ops": list(ops),
        "start_ps": _where(time[at], started),
        "end_ps": _where(time[ends], known & (ends >= 0)),
    }


def _where(values: AnyArray, known: BoolArray) -> list[int | None]:
    pairs = zip(values.tolist(), known.tolist(), strict=True)
    return [value if is_known else None for value, is_known in pairs]


def _over_time(
    profile: Profile, records: MemoryRecords, number: int, parameters: AddressMapParameters
) -> dict[str, Any]:
    from peakline.tools.live_memory.recorded import stretch_of

    start, end = stretch_of(records, parameters.start_ps, parameters.end_ps)
    if end <= start:
        raise UsageError("address_map: a stretch of time needs an end after its start")
    result = memory.placed(profile, number)
    if not result.rows.size:
        return {"reason": "no buffer has an address"}
    segments = memory.segment_spans(profile, records.allocators[number])
    if segments is not None:
        result = memory.with_segments(result, segments)
    drawn = memory.map_over_time(records, result, (start, end), parameters.limit)
    return {
        "start_ps": start,
        "end_ps": end,
        "regions": _regions(result.regions),
        "blocks": {
            "region": drawn.region.tolist(),
            "offset": drawn.offset.tolist(),
            "bytes": drawn.bytes.tolist(),
            **_records(records, drawn.rows),
        },
        "others": drawn.others,
        "segments": _segments(records, result, segments, (start, end), parameters.limit),
        "touched": {
            "rows": drawn.touched.shape[0],
            "columns": drawn.touched.shape[1],
            **_runs(drawn.touched),
        },
    }


def _segments(
    records: MemoryRecords,
    result: Placed,
    spans: SegmentSpans | None,
    stretch: tuple[int, int],
    limit: int,
) -> dict[str, Any] | None:
    """The segments that are reserved within the stretch, the ``limit`` largest."""
    import numpy as np

    if spans is None:
        return None
    time = records.events.array("time_ps")
    start = np.where(spans.start >= 0, time[spans.start], stretch[0])
    end = np.where(spans.end >= 0, time[spans.end], stretch[1])
    inside = np.flatnonzero((start < stretch[1]) & ((end > stretch[0]) | (spans.end < 0)))
    area = spans.bytes[inside].astype(np.float64) * (end - start)[inside].clip(1)
    rows = inside[np.sort(np.argsort(-area, kind="stable")[:limit])]
    region, offset = result.regions.place(spans.address[rows])
    return {
        "region": region.tolist(),
        "offset": offset.tolist(),
        "bytes": spans.bytes[rows].tolist(),
        "start_ps": _where(start[rows], spans.start[rows] >= 0),
        "end_ps": _where(end[rows], spans.end[rows] >= 0),
        "others": int(inside.size - rows.size),
        "records": spans.records,
    }


def _runs(touched: BoolArray) -> dict[str, list[int]]:
    """The marked cells as runs: row, first column, and the one behind the last."""
    import numpy as np

    padded = np.pad(touched.astype(np.int8), ((0, 0), (1, 1)))
    change = np.diff(padded, axis=1)
    row, first = np.nonzero(change == 1)
    _, last = np.nonzero(change == -1)
    return {"row": row.tolist(), "first": first.tolist(), "last": last.tolist()}


def _at_moment(
    profile: Profile, records: MemoryRecords, number: int, parameters: AddressMapParameters
) -> _Map | str:
    result = memory.placed(profile, number)
    if not result.rows.size:
        return "no buffer has an address"
    segments = memory.segment_spans(profile, records.allocators[number])
    known = None if segments is None else "moment" if segments.records else "end"
    if segments is not None and segments.records:
        result = memory.at_segments(records, number, result, segments, parameters.at_ps)
    regions, failed = _only_list(profile, records.allocators[number])
    if regions is not None:
        result = replace(result, regions=regions)
    blocks = memory.at_moment(records, number, result, parameters.at_ps)
    more = {"segments_of": known}
    return _Map(result.regions, blocks, memory.holes_of(result.regions, blocks), failed, more)


def _only_list(profile: Profile, allocator: str) -> tuple[Regions | None, dict[str, Any] | None]:
    """The regions of the only list of an allocator's blocks, where the file is about that moment
    alone, and the request that failed then.
    """
    from peakline.tables.profile_facts import is_moment

    if not is_moment(profile):
        return None, None
    reports = {one["report_id"]: one for one in _reports(profile) if one["allocator"] == allocator}
    lists = [one for one in _has_listed(profile) if one is None or one in reports]
    listed = memory.listed_blocks(profile, allocator, lists[0]) if len(lists) == 1 else None
    if listed is None:
        return None, None
    return listed[0], None if lists[0] is None else reports[lists[0]]


def _listed(
    profile: Profile, records: MemoryRecords, number: int, parameters: AddressMapParameters
) -> _Map | str:
    result = memory.listed_blocks(profile, records.allocators[number], parameters.report)
    if result is None:
        return "the file lists no blocks of this"
    failed = next((one for one in _reports(profile) if one["report_id"] == parameters.report), None)
    return _Map(*result, memory.holes_of(*result), failed)


def _replayed(
    profile: Profile, records: MemoryRecords, number: int, parameters: AddressMapParameters
) -> _Map | str:
    limit = None if not parameters.limit_bytes else parse_size(parameters.limit_bytes)
    settings = memory.question_of([], parameters.settings, None).settings
    result = memory.replayed_map(profile, number, limit, settings)
    if isinstance(result, memory.NoFit):
        return f"it cannot be replayed: {result.reason}"
    failed = None
    if result.failed_bytes:
        row = result.failed_row
        failed = {
            "report_id": None,
            "requested_bytes": records.number("requested_bytes", row) if row >= 0 else None,
            "rounded_bytes": result.failed_bytes,
            "op": records.events.names("op")[row] if row >= 0 else None,
            "time_ps": int(records.events.array("time_ps")[row]) if row >= 0 else None,
        }
    more = {
        "limit_bytes": result.limit,
        "settings": result.settings,
        "cause": result.outcome.cause,
        "peak_bytes": result.outcome.peak,
        "reserved_bytes": result.outcome.reserved,
    }
    return _Map(
        result.regions, result.blocks, memory.holes_of(result.regions, result.blocks), failed, more
    )


_FIND = {"moment": _at_moment, "listed": _listed, "replayed": _replayed}


def _reports(profile: Profile) -> list[dict[str, Any]]:
    """The reports of failed allocations, the first hundred."""
    import numpy as np

    if "oom_reports" not in profile.tables or not profile.has_rows("oom_reports"):
        return []
    names = ("report_id", "allocator", "requested_bytes", "rounded_bytes", "op", "time_ps")
    table = profile.columns("oom_reports")
    rows = table.take(np.arange(min(table.rows, 100))).to_pylist()
    return [{name: row[name] for name in names} for row in rows]


def _has_listed(profile: Profile) -> list[int | None]:
    """The reports whose blocks the file lists; null for those at the time of the file."""
    import numpy as np

    if "blocks" not in profile.tables or not profile.has_rows("blocks"):
        return []
    blocks = profile.columns("blocks")
    has_report = blocks.is_valid("report_id")
    result: list[int | None] = np.unique(blocks.array("report_id")[has_report])[:100].tolist()
    return result if has_report.all() else [None, *result]


TOOL = Tool(
    name="address_map",
    doc="Where buffers lie in the address space, at a moment or over time, with holes and the "
    "request that failed (docs/memory-over-time.md).",
    parameters=AddressMapParameters,
    formats=("json",),
    shows=(("allocator_events",),),
    run=_run,
)
