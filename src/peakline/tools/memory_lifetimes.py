"""The ``memory_lifetimes`` tool: how long buffers live, weighted by their bytes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from peakline import memory
from peakline.errors import UsageError
from peakline.toolbox.parameters import Parameters, parameter
from peakline.toolbox.registry import Tool
from peakline.toolbox.written import compact_json, quoted_csv
from peakline.tools.live_memory.recorded import MOST_PS, recorded, stretch_of

if TYPE_CHECKING:
    from peakline.tables import Profile

_COLUMNS = ("from_ps", "to_ps", "bytes", "buffers", "largest_op", "largest_op_bytes")


class MemoryLifetimesParameters(Parameters):
    """The parameters; text is accepted for every value."""

    allocator: str | None = parameter(
        None, description="of this allocator. Default: the one with the largest peak"
    )
    start_ps: int | None = parameter(
        None, ge=-MOST_PS, le=MOST_PS, description="allocated from here on. Default: the first"
    )
    end_ps: int | None = parameter(
        None, ge=-MOST_PS, le=MOST_PS, description="and before this. Default: past the last"
    )


def _run(profile: Profile, parameters: MemoryLifetimesParameters, output_format: str) -> bytes:
    document = _document(profile, parameters)
    if output_format == "csv":
        return quoted_csv(_COLUMNS, map(dict.values, document["rows"]))
    return compact_json(document, ascii_only=False)


def _document(profile: Profile, parameters: MemoryLifetimesParameters) -> dict[str, Any]:
    document: dict[str, Any] = {
        "host": profile.host,
        "allocator": None,
        "start_ps": parameters.start_ps,
        "end_ps": parameters.end_ps,
        "rows": [],
    }
    of_whom = recorded(profile, parameters.allocator)
    if of_whom is None:
        return document
    records, number = of_whom
    start, end = stretch_of(records, parameters.start_ps, parameters.end_ps)
    if end <= start:
        raise UsageError("memory_lifetimes: end_ps is not after start_ps")
    rows = [vars(one) for one in memory.lifespans(records, number, start, end)]
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
