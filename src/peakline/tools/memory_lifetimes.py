"""The ``memory_lifetimes`` tool: how long buffers live, weighted by their bytes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from peakline.errors import UsageError
from peakline.toolbox.parameters import Parameters, parameter
from peakline.toolbox.registry import Tool
from peakline.toolbox.written import compact_json, quoted_csv

if TYPE_CHECKING:
    from peakline.tables import Profile

_MOST_PS = 1 << 62
_COLUMNS = ("from_ps", "to_ps", "bytes", "buffers", "largest_op", "largest_op_bytes")


class MemoryLifetimesParameters(Parameters):
    """The parameters; text is accepted for every value."""

    allocator: str | None = parameter(
        None, description="of this allocator. Default: the one with the largest peak"
    )
    start_ps: int | None = parameter(
        None, ge=-_MOST_PS, le=_MOST_PS, description="allocated from here on. Default: the first"
    )
    end_ps: int | None = parameter(
        None, ge=-_MOST_PS, le=_MOST_PS, description="and before this. Default: past the last"
    )


def _run(profile: Profile, parameters: MemoryLifetimesParameters, output_format: str) -> bytes:
    document = _document(profile, parameters)
    if output_format == "csv":
        return quoted_csv(_COLUMNS, map(dict.values, document["rows"]))
    return compact_json(document, ascii_only=False)


def _document(profile: Profile, parameters: MemoryLifetimesParameters) -> dict[str, Any]:
    from peakline.memory.lifespans import lifespans
    from peakline.memory.live import memory_records
    from peakline.tools.live_memory import no_records
    from peakline.tools.memory_stack import stretch_of

    document: dict[str, Any] = {
        "host": profile.host,
        "allocator": None,
        "start_ps": parameters.start_ps,
        "end_ps": parameters.end_ps,
        "rows": [],
    }
    records = memory_records(profile)
    if records is None:
        no_records(profile, parameters.allocator)
        return document
    number = records.number_of(parameters.allocator)
    if number is None:
        return document
    start, end, _ = stretch_of(records, parameters.start_ps, parameters.end_ps, 1)
    if end <= start:
        raise UsageError("memory_lifetimes: end_ps is not after start_ps")
    rows = [vars(one) for one in lifespans(records, number, start, end)]
    return document | {
        "allocator": records.allocators[number],
        "start_ps": start,
        "end_ps": end,
        "rows": rows,
    }


TOOL = Tool(
    name="memory_lifetimes",
    doc="How long buffers live, by their bytes (docs/memory-over-time.md).",
    parameters=MemoryLifetimesParameters,
    formats=("json", "csv"),
    shows=(("allocator_events",),),
    run=_run,
)
