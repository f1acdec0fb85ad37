"""The ``program_memory`` tool: what a compiled program holds in memory while it runs, and at its
peak, by HLO op, scope of the framework or line of the source.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from peakline import hlo, memory
from peakline.errors import NotFoundError
from peakline.suggest import there_is
from peakline.toolbox.parameters import Parameters, parameter
from peakline.toolbox.registry import Tool
from peakline.toolbox.written import compact_json

if TYPE_CHECKING:
    from peakline.tables import Profile

_LONGEST_NAME = 1000
_MOST_PROGRAMS = 500
_NOT_BY_VALUE = (
    "the program has no buffer assignment: its order gives the sum at each place, and what is live "
    "at the peak, but not which values are live at every place"
)
_NOT_KNOWN = "the program has neither a buffer assignment nor a schedule"


class ProgramMemoryParameters(Parameters):
    """The parameters; text is accepted for every value."""

    program: str | None = parameter(
        None,
        max_length=_LONGEST_NAME,
        description="the program, as ``programs`` of the answer names it. Default: the one that "
        "needs most",
    )
    by: Literal["opcode", "scope", "source"] = parameter(
        "opcode", description="a layer per opcode, scope of the framework, or line of the source"
    )
    width: int = parameter(600, ge=1, le=4096, description="at most so many places of the schedule")
    limit: int = parameter(200, ge=0, le=5000, description="at most so many rows")


def _run(profile: Profile, parameters: ProgramMemoryParameters, _output_format: str) -> bytes:
    return compact_json(_document(profile, parameters), ascii_only=False)


def _document(profile: Profile, parameters: ProgramMemoryParameters) -> dict[str, Any]:
    labels = hlo.labels_of(profile)
    known = [hlo.memory_of(profile, number) for number in range(len(labels))]
    peaks = [usage.peak_bytes if usage.is_known else 0 for usage in known]
    order = sorted(range(len(labels)), key=lambda one: (-peaks[one], one))
    document: dict[str, Any] = {
        "host": profile.host,
        "programs": [
            {"name": labels[one], "peak_bytes": peaks[one] if known[one].is_known else None}
            for one in order[:_MOST_PROGRAMS]
        ],
        "programs_total": len(labels),
        "program": None,
        "by": parameters.by,
        "reason": None,
        "peak_bytes": None,
        "found_by": None,
        "instructions": 0,
        "peak": -1,
        "place": [],
        "live_bytes": [],
        "layers": [],
        "bytes": [],
        "tree": memory.columns_of_tree(None),
        "rows": [],
        "rows_total": 0,
    }
    if parameters.program is not None and parameters.program not in labels:
        named = there_is(parameters.program, labels)
        raise NotFoundError(f"no program {parameters.program!r} in the profile{named}")
    if not labels:
        return document
    number = order[0] if parameters.program is None else labels.index(parameters.program)
    usage, schedule = known[number], hlo.schedule_of(profile, number)
    document |= {"program": labels[number], "instructions": int(schedule.rows.size)}
    if not usage.is_known:
        return document | {"reason": _NOT_KNOWN}
    result = memory.program_layers(profile, number, parameters.by, parameters.width)
    if result is None:
        document["reason"] = _NOT_BY_VALUE
    else:
        document |= {
            "place": result.places.tolist(),
            "live_bytes": schedule.live_bytes[result.places].tolist(),
            "layers": [vars(layer) for layer in result.layers],
            "bytes": result.bytes.tolist(),
        }
    tree = memory.peak_tree(profile, number, parameters.by, labels[number])
    rows, total = _rows(profile, number, parameters.limit)
    return document | {
        "peak_bytes": usage.peak_bytes,
        "found_by": usage.found_by,
        "peak": schedule.peak,
        "tree": memory.columns_of_tree(tree),
        "rows": rows,
        "rows_total": total,
    }


def _rows(profile: Profile, number: int, limit: int) -> tuple[list[dict[str, Any]], int]:
    """What holds memory at the peak, the largest first; ``item`` is its node in `graph_scopes`."""
    import numpy as np

    usage, table = hlo.memory_of(profile, number), memory.instructions_of(profile, number)
    live, lives = usage.live_set, usage.lives
    shown = live.take(np.arange(min(limit, live.bytes.size)))
    texts = {name: table.names(name) for name in ("name", "opcode", "op_name", "source_file")}
    is_line = table.is_valid("source_line")
    has_place = usage.need is None and lives.start.size > 0
    rows = []
    for size, buffer, item, kind in zip(
        shown.bytes.tolist(), shown.buffer.tolist(), shown.instruction.tolist(),
        shown.kind.to_list(), strict=True,
    ):  # fmt: skip
        own = {name: texts[name][item] if item >= 0 else None for name in texts}
        is_placed = has_place and buffer >= 0 and bool(lives.is_known[buffer])
        rows.append(
            {
                "item": item if item >= 0 else None,
                "instruction": own["name"],
                "opcode": own["opcode"],
                "op_name": own["op_name"],
                "source_file": own["source_file"],
                "source_line": int(table.array("source_line")[item])
                if item >= 0 and is_line[item]
                else None,
                "kind": kind,
                "bytes": size,
                "start": int(lives.start[buffer]) if is_placed else None,
                "end": int(lives.end[buffer]) if is_placed else None,
            }
        )
    return rows, int(live.bytes.size)


TOOL = Tool(
    name="program_memory",
    doc="What a compiled program holds in memory over its schedule and at its peak, by HLO op, "
    "scope or source line (docs/memory-over-time.md).",
    parameters=ProgramMemoryParameters,
    formats=("json",),
    shows=(("hlo_modules",),),
    run=_run,
)
