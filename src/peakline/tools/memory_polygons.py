"""The ``memory_polygons`` tool: the buffers of a stretch of time one by one, for a polygon each."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from peakline import memory
from peakline.toolbox.parameters import Parameters, parameter
from peakline.toolbox.registry import Tool
from peakline.toolbox.written import compact_json
from peakline.tools.live_memory.recorded import MOST_PS, recorded, stretch_of

if TYPE_CHECKING:
    from peakline.memory.over_time.layers import Polygons
    from peakline.memory.over_time.live import MemoryRecords
    from peakline.tables import Profile

_MOST_WIDTH = 4096
_MOST_BUFFERS = 5000


class MemoryPolygonsParameters(Parameters):
    """The parameters; text is accepted for every value."""

    allocator: str | None = parameter(
        None, description="of this allocator. Default: the one with the largest peak"
    )
    start_ps: int | None = parameter(
        None, ge=-MOST_PS, le=MOST_PS, description="begin of the stretch. Default: the first record"
    )
    end_ps: int | None = parameter(
        None,
        ge=-MOST_PS,
        le=MOST_PS,
        description="its end, exclusive. Default: past the last record",
    )
    width: int = parameter(600, ge=1, le=_MOST_WIDTH, description="pixels of the stretch")
    limit: int = parameter(
        2000, ge=0, le=_MOST_BUFFERS, description="the largest buffers; all others are one sum"
    )


def _run(profile: Profile, parameters: MemoryPolygonsParameters, _output_format: str) -> bytes:
    return compact_json(_document(profile, parameters), ascii_only=False)


def _document(profile: Profile, parameters: MemoryPolygonsParameters) -> dict[str, Any]:
    document: dict[str, Any] = {
        "host": profile.host,
        "allocator": None,
        "start_ps": parameters.start_ps,
        "end_ps": parameters.end_ps,
        "width": parameters.width,
        "at_ps": [],
        "used": [],
        "below": [],
        "smaller": [],
        "unattributed": [],
        "buffers": None,
        "others": 0,
        "unseen": 0,
    }
    of_whom = recorded(profile, parameters.allocator)
    if of_whom is None:
        return document
    records, number = of_whom
    start, end = stretch_of(records, parameters.start_ps, parameters.end_ps)
    stretch = start, end, parameters.width
    result = memory.polygons(profile, records, number, stretch, parameters.limit)
    moments = result.sampled.high
    first = int(moments.known[0]) if moments.known.size else moments.row.size
    nothing: list[int | None] = [None] * first
    time = records.events.array("time_ps")
    return document | {
        "allocator": records.allocators[number],
        "start_ps": start,
        "end_ps": end,
        "at_ps": nothing + time[moments.row][first:].tolist(),
        "used": nothing + moments.used[first:].tolist(),
        "below": nothing + result.below[first:].tolist(),
        "smaller": nothing + result.smaller[first:].tolist(),
        "unattributed": nothing + result.unattributed[first:].tolist(),
        "buffers": _buffers(records, result),
        "others": result.others,
        "unseen": result.unseen,
    }


def _buffers(records: MemoryRecords, result: Polygons) -> dict[str, list[Any]]:
    """The buffers as columns; ``ops`` are the texts that ``op`` numbers."""
    events, rows = records.events, result.rows
    ends = records.lifetimes.end[rows]
    time = events.array("time_ps")
    was_there = (events.array("is_before") & events.is_valid("is_before"))[rows].tolist()
    codes, ops = events.names("op").take(rows).grouped()
    starts = zip(time[rows].tolist(), was_there, strict=True)
    freed = zip(time[ends].tolist(), (ends >= 0).tolist(), strict=True)
    return {
        "record": rows.tolist(),
        "bytes": result.bytes.tolist(),
        "first": result.first.tolist(),
        "last": result.last.tolist(),
        "start_ps": [None if before else at for at, before in starts],
        "end_ps": [at if ended else None for at, ended in freed],
        "op": codes.tolist(),
        "ops": list(ops),
    }


TOOL = Tool(
    name="memory_polygons",
    doc="The buffers of a stretch of time one by one, as they are stacked at the highest moment of "
    "every pixel (docs/memory-over-time.md).",
    parameters=MemoryPolygonsParameters,
    formats=("json",),
    shows=(("allocator_events",),),
    run=_run,
)
