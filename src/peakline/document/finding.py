"""What is shown behind a finding: its rows and its numbers, and how the pool lay in pieces."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING

from peakline.document.model import Column, Fact, Table, Value
from peakline.findings.catalogue import kinds
from peakline.findings.kind import Column as Declared
from peakline.findings.kind import heading_of, unit_of
from peakline.text import counted, size_text, time_text
from peakline.timing.steps.facts import PARTS
from peakline.trace.steps import step_text

if TYPE_CHECKING:
    from peakline.findings.finding import Finding
    from peakline.memory.fragmentation.holes import Fragmentation

EvidenceRow = Mapping[str, object]

_ROWS = 8
_TIME_ROWS = 5
_SHORT = frozenset(("step", "device", "occurrences"))
_BESIDE = 0.01
"""Rows of a finding are on a screen when they have this share of the first one's bytes."""
_SIZES = ("bytes_per_step", "kept_bytes", "bytes")
_ON_SCREEN = (*_SIZES, "count", "allocations_per_step", "op", "data_type", "shape", "since_step")
_SAID_BY_ROWS = {"op", "region_type", "data_type", "shape", "buffer_bytes", "bytes"}
_SAID_ELSEWHERE = {"since_step", "steps", "steps_found_by", "allocator"}
_SAYS_NOTHING = {"forms": (1,)}
_CAUSES = {
    "larger_than_limit": "the request alone exceeds the limit",
    "held_back": "a free piece was large enough, but held back",
    "fragmented": "enough was free, but in pieces",
    "device_full": "the device had no more to give",
    "full": "not enough was free",
    "unknown": "the report does not say",
    "refused": "the device had enough free, and the request still failed",
    "process_limit": "this process may not take more",
    "other_processes": "other processes hold most of the device",
    "outside_allocator": "this process holds much outside the allocator",
    "private_pools": "private pools of CUDA graphs hold most of it",
    "other_allocations": "Metal's other allocations hold most of it",
    "driver": "the driver had no more",
    "library": "a library found no memory",
    "cache_budget": "the cache's share is too small",
    "budget": "no failure",
    "summary": "no failure",
    "host_memory": "the host had no memory for it",
    "host_limit": "a limit of the host's memory was reached",
    "host_full": "the host's memory was full",
    "killed": "not known: a process was killed",
    "shared_memory": "the shared memory of the workers was full",
    "padding": "the layout pads the tensors",
}
_UNITS = {"op": "name", "asked_by": "name", "region_type": "form", "data_type": "form"}
_UNITS |= {"shape": "form", "since_step": "form", "until_step": "form"}


def evidence(finding: Finding, labels: Mapping[int, str]) -> tuple[list[Table], list[Fact]]:
    """The tables behind a finding, and the numbers that no row of them has."""
    declared = kinds()[finding.kind].columns
    tables, skipped = [], set(_SAID_ELSEWHERE)
    if finding.rows:
        tables.append(
            rows_table("the buffers behind it", finding.rows, labels, declared, {"pattern"})
        )
        skipped |= _SAID_BY_ROWS
        if len(finding.rows) == 1:
            # One row says the same as the numbers about it.
            (row,) = finding.rows
            skipped |= {
                name for name in finding.evidence if finding.evidence[name] == row.get(name)
            }
            skipped |= {"since_step_name"} if row.get("since_step") is not None else set()
    facts: list[Fact] = []
    for name, value in finding.evidence.items():
        label = _heading(name, finding.evidence, declared)
        if isinstance(value, list) and value and all(isinstance(one, dict) for one in value):
            tables.append(rows_table(label, value, labels, declared))
        elif name not in skipped and value not in (None, ""):
            facts.append(Fact(label, _value(name, value, labels), _unit(name)))
    return tables, facts


def rows_table(
    title: str,
    rows: Sequence[EvidenceRow],
    labels: Mapping[int, str],
    declared: Mapping[str, Declared],
    without: Collection[str] = (),
) -> Table:
    """Rows of evidence, but for the columns ``without`` and those that say nothing.

    ``declared`` are the columns of the kind of finding that they are of.
    """
    names = [
        name
        for name in rows[0]
        # The op's name begins with its scope.
        if name not in {"scope", *without}
        and any(row[name] not in _SAYS_NOTHING.get(name, (None, "")) for row in rows)
    ]
    return _table(title, names, rows, labels, declared).without_empty()


def screen_table(finding: Finding, labels: Mapping[int, str]) -> Table | None:
    """The rows behind a finding that matter beside the first, where there are several, with the
    columns that a screen has room for.
    """
    sizes = [name for name in _SIZES if name in finding.table[0]]
    rows = [
        row
        for row in finding.rows[:_ROWS]
        if any(_number(row, name) >= _BESIDE * _number(finding.rows[0], name) > 0 for name in sizes)
    ]
    if len(rows) < 2:
        return None
    has_steps = finding.evidence.get("steps_found_by", "period") != "period"
    names = [
        name
        for name in _ON_SCREEN
        if name in rows[0]
        and (any(row[name] for row in rows) or _unit(name) in {"name", "form"})
        and (has_steps or name != "since_step")
    ]
    table = _table("", names, rows, labels, kinds()[finding.kind].columns)
    if finding.evidence.get("steps_found_by") != "period":
        return table
    columns = [Column(one.label.replace("step", "repetition"), one.unit) for one in table.columns]
    return Table("", columns, table.rows)


def time_tables(finding: Finding) -> list[Table]:
    """The first rows behind a finding of time, then the same with fewer and fewer columns, for a
    screen that has no room for all. Long names come last, where cutting them costs least.
    """
    rows = finding.rows[:_TIME_ROWS]
    named = [name for name in rows[0] if any(row[name] for row in rows)]
    numbers = [
        name
        for name in named
        if all(isinstance(row[name], int | float) and row[name] is not True for row in rows)
    ]
    texts = [name for name in named if name not in numbers]
    last = [name for name in texts if name not in _SHORT]
    names = [*(name for name in texts if name in _SHORT), *numbers, *last]
    declared = kinds()[finding.kind].columns
    # Parts of a step are called as everywhere on the screens of time.
    columns = [
        Column(_heading(name, rows[0], declared), _unit(name) if name in numbers else "")
        for name in names
    ]
    cells = [
        ["" if row[name] is None else _value(name, row[name], {}) for name in names] for row in rows
    ]
    result, places = [Table("", columns, cells)], list(range(len(names)))
    for name in [*last[:0:-1], *numbers[:1:-1]]:
        places.remove(names.index(name))
        result.append(result[0].only(places))
    return result


def _heading(name: str, beside: Mapping[str, object], declared: Mapping[str, Declared]) -> str:
    """What a number is called.

    Beside the time that a device is busy, idle is all the rest of it, and no part of a step.
    """
    is_part = name in PARTS and "busy_ps" not in beside
    return PARTS[name] if is_part else heading_of(name, declared)


def pieces_text(result: Fragmentation) -> list[str]:
    """How the pool lay in pieces: a line about what it cost, and one about the free pieces."""
    sizes = [
        f"{hole.count:,} of {size_text(hole.from_bytes)} to {size_text(2 * hole.from_bytes)}"
        for hole in result.at_worst[:4]
    ]
    rest = sum(hole.count for hole in result.at_worst[4:])
    sizes += [f"{rest:,} smaller"] if rest else []
    when = "" if result.worst is None else f" at {time_text(result.worst.time_ps)}"
    cost = (
        f"Buffers of the profile lay on {size_text(result.touched_bytes)}, though they took at "
        f"most {size_text(result.peak_bytes)} at a time; {size_text(result.recoverable_bytes)} of "
        f"that only because of the pieces, in {counted(len(result.forced), 'allocation')}."
    )
    return [cost, f"The free pieces{when}: {', '.join(sizes)}."]


def _table(
    title: str,
    names: Sequence[str],
    rows: Sequence[EvidenceRow],
    labels: Mapping[int, str],
    declared: Mapping[str, Declared],
) -> Table:
    columns = [Column(heading_of(name, declared), _unit(name)) for name in names]
    return Table(
        title, columns, [[_value(name, row[name], labels) for name in names] for row in rows]
    )


def _number(row: EvidenceRow, name: str) -> float:
    value = row[name]
    return value if isinstance(value, int | float) else 0


def _unit(name: str) -> str:
    unit = unit_of(name) or _UNITS.get(name, "")
    return unit or "count"


def _value(name: str, value: object, labels: Mapping[int, str]) -> Value:
    """One value of evidence as a cell."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if name in {"since_step", "until_step"}:
        return step_text(value, labels) if isinstance(value, int) else ""
    if value is None or isinstance(value, int | float):
        return value
    if isinstance(value, list | tuple):
        return ", ".join(map(str, value))
    if name == "op":
        return str(value) or "(no op)"
    if name == "most":
        return PARTS.get(f"{value}_ps", str(value))
    return _CAUSES.get(str(value), str(value)) if name == "cause" else str(value)
