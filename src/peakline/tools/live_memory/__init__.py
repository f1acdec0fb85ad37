"""The ``live_memory`` tool: what is in memory at any moment, buffer by buffer or grouped.

The first question matches the records, which the opened profile keeps.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from peakline import findings, memory
from peakline.errors import NotFoundError
from peakline.toolbox.registry import Tool
from peakline.toolbox.written import compact_json, quoted_csv
from peakline.tools.live_memory.parameters import MOST_ROWS, LiveMemoryParameters

if TYPE_CHECKING:
    from peakline.memory.over_time.live import MemoryRecords
    from peakline.memory.over_time.trees import TreeKind
    from peakline.tables import Profile
    from peakline.tools.live_memory.rows import LiveRows

__all__ = ["MOST_ROWS", "TOOL", "LiveMemoryParameters", "no_records"]


def _run(profile: Profile, parameters: LiveMemoryParameters, output_format: str) -> bytes:
    document = _document(profile, parameters)
    if output_format == "csv":
        return quoted_csv(document["columns"], map(dict.values, document["rows"]))
    return compact_json(document)


def no_records(profile: Profile, allocator: str | None) -> None:
    """Warn that the profile has no records of memory; raises NotFoundError for an allocator."""
    profile.warn(findings.NOTHING, "no memory events in this profile", once=True)
    if allocator is not None:
        raise NotFoundError("no memory events in this profile, and so no allocator")


def _document(profile: Profile, parameters: LiveMemoryParameters) -> dict[str, Any]:
    from peakline.tools.live_memory.rows import LiveRows, columns_of

    records, number, moment = memory.memory_records(profile), None, None
    if records is None:
        no_records(profile, parameters.allocator)
    else:
        if records.implausible:
            profile.warn(
                "implausible_size",
                "records with a size below 0 or above 2^48 bytes, which is taken as unknown",
                records.implausible,
                once=True,
            )
        number = records.number_of(parameters.allocator)
        if number is not None:
            at_ps = parameters.at_ps
            moment = records.at_peak(number) if at_ps is None else records.at(number, at_ps)
    document: dict[str, Any] = {
        "host": profile.host,
        "start_ps": None,
        "end_ps": None,
        "allocators": [],
        "allocator": None,
        "at_ps": parameters.at_ps,
        "record_ps": None,
        "bytes_in_use": None,
        "fragmentation": None,
        "step_id": None,
        "step_name": None,
        "is_peak": False,
        "is_described": False,
        "has_stacks": False,
        "group": parameters.group,
        "columns": list(columns_of(parameters.group, parameters.sort)),
        "rows": [],
        "rows_total": 0,
        "rows_bytes": 0,
    }
    if parameters.scopes:
        document["scopes"] = memory.columns_of_tree(None)
    if parameters.tree is not None:
        document["tree"] = memory.columns_of_tree(None)
    if records is None:
        return document
    time = records.events.array("time_ps")
    document |= {"start_ps": int(time.min()), "end_ps": int(time.max())}
    document["allocators"] = _allocators(records, memory.limits_of(profile))
    descriptions = memory.described_records(profile)
    document["is_described"] = descriptions is not None
    document["has_stacks"] = bool(records.events.is_valid("stack_id").any())
    if number is None:
        return document
    document["allocator"] = records.allocators[number]
    if moment is None:
        return document
    steps = profile.columns_or_empty("steps")
    live = LiveRows(records, moment, steps, descriptions)
    document |= {
        "at_ps": moment.time_ps if parameters.at_ps is None else parameters.at_ps,
        "record_ps": moment.time_ps,
        "bytes_in_use": moment.bytes_in_use,
        "fragmentation": moment.fragmentation,
        "step_id": moment.step_id,
        "step_name": live.step_name(moment.step_id),
        "is_peak": moment.row == records.usages[number].peak_row,
    }
    document |= live.table(parameters)
    if parameters.scopes:
        document["scopes"] = _tree(profile, records, live, "scope", records.allocators[number])
    if parameters.tree is not None:
        label = records.allocators[number]
        document["tree"] = _tree(profile, records, live, parameters.tree, label)
    return document


def _allocators(records: MemoryRecords, limits: dict[str, int]) -> list[dict[str, object]]:
    result: list[dict[str, object]] = []
    for name, usage in zip(records.allocators, records.usages, strict=True):
        row = usage.peak_row
        if row < 0:
            continue
        capacity = records.capacity(row) if usage.reported else None
        result.append(
            {
                "allocator": name,
                "capacity_bytes": limits.get(name) if capacity is None else capacity,
                "peak_bytes": usage.peak,
                "peak_time_ps": int(records.events.array("time_ps")[row]),
                "peak_step": records.number("step_id", row),
                "lifetime_peak_bytes": usage.lifetime_peak,
                "live_at_end_bytes": usage.live_at_end,
                "untracked_allocations": usage.untracked,
            }
        )
    return result


def _tree(
    profile: Profile, records: MemoryRecords, live: LiveRows, kind: TreeKind, label: str
) -> dict[str, list[Any]]:
    """The tree of all that is live, by scope or by call stack, as columns."""
    if kind == "scope":
        ops = [(op, *both) for op, both in live.ops().items()]
        return memory.columns_of_tree(memory.scope_tree(label, ops))
    return memory.columns_of_tree(memory.tree_of(profile, records, *live.buffers(), kind, label))


TOOL = Tool(
    name="live_memory",
    doc="What is in memory at any moment, by buffer, op, scope, category, module or step "
    "(docs/live-memory.md).",
    parameters=LiveMemoryParameters,
    formats=("json", "csv"),
    shows=(("allocator_events",),),
    run=_run,
)
