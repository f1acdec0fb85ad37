"""The ``memory_stack`` tool: what memory in use is made of over time, as layers on pixels."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from peakline import memory
from peakline.toolbox.parameters import Parameters, parameter
from peakline.toolbox.registry import Tool
from peakline.toolbox.written import compact_json
from peakline.tools.live_memory.recorded import MOST_PS, recorded, stretch_of

if TYPE_CHECKING:
    from peakline.arrays import Int64Array
    from peakline.memory.over_time.layers import Samples
    from peakline.memory.over_time.live import MemoryRecords
    from peakline.tables import Profile

_MOST_WIDTH = 4096


class MemoryStackParameters(Parameters):
    """The parameters; text is accepted for every value."""

    allocator: str | None = parameter(
        None, description="of this allocator. Default: the one with the largest peak"
    )
    group: Literal[
        "op", "scope", "region_type", "data_type", "shape", "category", "module", "function",
        "input_shape", "stack", "step", "program",
    ] = parameter(
        "op",
        description="a layer per op, scope, ...; stack: the innermost frame of the call stack; "
        "program: the compiled program in whose run it lies on its thread; where no event says "
        "that, what its step is called, without a number",
    )  # fmt: skip
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
    size: Literal["allocated", "requested"] = parameter(
        "allocated",
        description="requested: layers of the bytes that were requested, and one of what was "
        "allocated beyond that",
    )


def _run(profile: Profile, parameters: MemoryStackParameters, _output_format: str) -> bytes:
    return compact_json(_document(profile, parameters), ascii_only=False)


def _document(profile: Profile, parameters: MemoryStackParameters) -> dict[str, Any]:
    document: dict[str, Any] = {
        "host": profile.host,
        "allocator": None,
        "group": parameters.group,
        "size": parameters.size,
        "start_ps": parameters.start_ps,
        "end_ps": parameters.end_ps,
        "width": parameters.width,
        "top_ps": None,
        "layers": [],
        "high": None,
        "low": None,
        "reserved": None,
        "program_events": None,
    }
    of_whom = recorded(profile, parameters.allocator)
    if of_whom is None:
        return document
    records, number = of_whom
    start, end = stretch_of(records, parameters.start_ps, parameters.end_ps)
    width = parameters.width
    result = memory.stacked(
        profile,
        records,
        number,
        parameters.group,
        (start, end, width),
        requested=parameters.size == "requested",
    )
    time = records.events.array("time_ps")
    top = result.sampled.top
    taken = memory.reserved_over_time(profile, records.allocators[number])
    return document | {
        "allocator": records.allocators[number],
        "start_ps": start,
        "end_ps": end,
        "top_ps": None if top < 0 else int(time[top]),
        "layers": [vars(layer) for layer in result.layers],
        "high": _moments(time, result.sampled.high, result.high),
        "low": _moments(time, result.sampled.low, result.low),
        "reserved": None if taken is None else memory.held_most(*taken, start, end, width).tolist(),
        "program_events": _evidence(profile, records, number, parameters.group),
    }


def _evidence(
    profile: Profile, records: MemoryRecords, number: int, group: str
) -> list[str] | None:
    """The names of the events that say of which program buffers are; without programs in the
    profile only where it matters, since all events are read for it.
    """
    if group != "program" and not profile.programs():
        return None
    result = memory.programs_of(profile, records, memory.live_bytes(profile, number).rows)
    return None if result is None else list(result[2])


def _moments(time: Int64Array, samples: Samples, layers: Int64Array) -> dict[str, Any]:
    """Per pixel the moment, its bytes in use, and those of every layer; null without a record."""
    first = int(samples.known[0]) if samples.known.size else samples.row.size
    nothing: list[int | None] = [None] * first

    def column(values: Int64Array) -> list[int | None]:
        known: list[int | None] = values[first:].tolist()
        return nothing + known

    return {
        "at_ps": column(time[samples.row]),
        "used": column(samples.used),
        "layers": [column(layer) for layer in layers],
    }


TOOL = Tool(
    name="memory_stack",
    doc="What memory in use is made of over time: layers by op, scope, type, ... on pixels "
    "(docs/memory-over-time.md).",
    parameters=MemoryStackParameters,
    formats=("json",),
    shows=(("allocator_events",),),
    run=_run,
)
