"""The ``memory_between`` tool: what was allocated from one moment to another, and what is left."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from peakline import document as documents
from peakline import memory
from peakline.errors import UsageError
from peakline.toolbox.parameters import Parameters, parameter
from peakline.toolbox.registry import Tool
from peakline.toolbox.written import compact_json, quoted_csv
from peakline.tools.live_memory.recorded import MOST_PS, recorded

if TYPE_CHECKING:
    from peakline.memory.over_time.ranges import Amount, Part
    from peakline.tables import Profile

_MOST_ROWS = 5000
_COLUMNS = (
    "key", "allocated_bytes", "allocated_buffers", "live_bytes", "live_buffers",
    "live_at_end_bytes", "live_at_end_buffers",
)  # fmt: skip


class MemoryBetweenParameters(Parameters):
    """The parameters; text is accepted for every value."""

    allocator: str | None = parameter(
        None, description="of this allocator. Default: the one with the largest peak"
    )
    start_ps: int | None = parameter(
        None, ge=-MOST_PS, le=MOST_PS, description="the moment A. Default: the first record"
    )
    end_ps: int | None = parameter(
        None,
        ge=-MOST_PS,
        le=MOST_PS,
        description="the moment B, included. Default: the last record",
    )
    group: Literal[
        "op", "scope", "region_type", "data_type", "shape", "category", "module", "function",
        "input_shape", "stack", "step", "program",
    ] = parameter("op", description="a row per op, scope, ... of buffers")  # fmt: skip
    limit: int = parameter(200, ge=0, le=_MOST_ROWS, description="at most so many rows")
    tree: Literal["scope", "stack"] | None = parameter(
        None, description="add a tree of the buffers, by scope or by Python call stack"
    )
    tree_of: Literal["live", "allocated"] = parameter(
        "live", description="the tree of what is still live at B, or of all that was allocated"
    )


def _run(profile: Profile, parameters: MemoryBetweenParameters, output_format: str) -> bytes:
    document = _document(profile, parameters)
    if output_format == "csv":
        return quoted_csv(_COLUMNS, map(dict.values, document["rows"]))
    return compact_json(document, ascii_only=False)


def _document(profile: Profile, parameters: MemoryBetweenParameters) -> dict[str, Any]:
    document: dict[str, Any] = {
        "host": profile.host,
        "allocator": None,
        "start_ps": parameters.start_ps,
        "end_ps": parameters.end_ps,
        "used_at_start_bytes": None,
        "used_at_end_bytes": None,
        "allocated": None,
        "live": None,
        "freed": None,
        "live_at_end": None,
        "freed_older": None,
        "group": parameters.group,
        "rows": [],
        "rows_total": 0,
        "sentence": "",
    }
    if parameters.tree is not None:
        document["tree"] = memory.columns_of_tree(None)
    of_whom = recorded(profile, parameters.allocator)
    if of_whom is None:
        return document
    records, number = of_whom
    time = records.events.array("time_ps")
    start = int(time.min()) if parameters.start_ps is None else parameters.start_ps
    end = int(time.max()) if parameters.end_ps is None else parameters.end_ps
    if end < start:
        raise UsageError("memory_between: end_ps is before start_ps")
    result = memory.between(records, number, start, end)
    parts = memory.parts_of(profile, number, result, parameters.group)
    document |= {
        "allocator": records.allocators[number],
        "start_ps": start,
        "end_ps": end,
        "used_at_start_bytes": result.used_a,
        "used_at_end_bytes": result.used_b,
        "allocated": _amount(result.amount()),
        "live": _amount(result.amount(result.at_b)),
        "freed": _amount(result.amount(~result.at_b)),
        "live_at_end": _amount(result.amount(result.at_end)),
        "freed_older": _amount(result.freed_older),
        "rows": [_row(part) for part in parts[: parameters.limit]],
        "rows_total": len(parts),
        "sentence": documents.between_sentence(result),
    }
    if parameters.tree is not None:
        chosen = result.at_b if parameters.tree_of == "live" else slice(None)
        document["tree"] = memory.columns_of_tree(
            memory.tree_of(
                profile,
                records,
                result.rows[chosen],
                result.bytes[chosen],
                result.count[chosen],
                parameters.tree,
                records.allocators[number],
            )
        )
    return document


def _amount(amount: Amount) -> dict[str, int]:
    return {"bytes": amount.bytes, "buffers": amount.buffers}


def _row(part: Part) -> dict[str, Any]:
    numbers = [
        number
        for one in (part.allocated, part.live_b, part.live_end)
        for number in (one.bytes, one.buffers)
    ]
    return dict(zip(_COLUMNS, (part.key, *numbers), strict=True))


TOOL = Tool(
    name="memory_between",
    doc="What was allocated from one moment to another, and what of it is still live "
    "(docs/memory-over-time.md).",
    parameters=MemoryBetweenParameters,
    formats=("json", "csv"),
    shows=(("allocator_events",),),
    run=_run,
)
