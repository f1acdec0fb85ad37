"""The memory answer as a person reads it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from rich.text import Text

from peakline.cli.screen import indented, plain_table, show
from peakline.cli.text import bytes_text, one_line, time_text

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.table import Table

    from peakline.analysis.answer import MemoryAnswer
    from peakline.analysis.findings import Finding
    from peakline.analysis.peak import AllocatorPeak, PeakBuffer
    from peakline.api import Profile
    from peakline.profile.columns import Columns

__all__ = ["print_memory"]

_ROWS = 20
_NAME = 28
"""Characters of a step's name that are shown; sessions' handles can be hundreds long."""
_COLUMNS = ("SIZE", "SHARE", "COUNT", "OP", "REGION", "TYPE", "SHAPE", "STEP")


def print_memory(
    profile: Profile, answer: MemoryAnswer, steps: Columns, *, moment: bool = False
) -> None:
    """Print what failed, every allocator's peak and what was live at it, then the findings.

    ``moment``: the file tells what there was at one moment, and no records of how it came about.
    """
    ids, names = steps.array("step_id").tolist(), steps.names("name").to_list()
    labels = {number: name or "" for number, name in zip(ids, names, strict=True)}
    host = f", host {profile.host}" if profile.host else ""
    length = "" if moment else f", {time_text(profile.duration_ps)}"
    parts: list[RenderableType] = [
        Text(one_line(f"{profile.path} ({profile.format}{host}{length})"))
    ]
    errors = [finding for finding in answer.findings if finding.severity == "error"]
    parts += _findings(errors)
    for peak in answer.allocators:
        parts += ["", *_allocator(peak, answer.step, labels, moment=moment)]
    parts += _findings([finding for finding in answer.findings if finding not in errors])
    show(parts)


def _findings(findings: list[Finding]) -> list[RenderableType]:
    parts: list[RenderableType] = []
    for finding in findings:
        title = Text(one_line(f"{finding.severity}: {finding.title}"), style="bold yellow")
        parts += ["", title, indented(Text(one_line(finding.suggestion)))]
    return parts


def _allocator(
    peak: AllocatorPeak, step: int | None, labels: dict[int, str], *, moment: bool
) -> list[RenderableType]:
    told = _moment_facts(peak) if moment else _facts(peak, step, labels)
    facts = plain_table(("", ""), told)
    facts.show_header = False
    parts: list[RenderableType] = [
        Text(one_line(peak.allocator or "(unnamed allocator)"), style="bold"),
        indented(facts),
    ]
    if not peak.peak_buffers:
        return parts
    rows = _merged(peak.peak_buffers, labels)
    parts += [
        "",
        indented(Text("held by" if moment else "live at the peak")),
        indented(_live(peak, rows[:_ROWS])),
    ]
    hidden = rows[_ROWS:]
    if hidden:
        size = bytes_text(sum(row.bytes for row in hidden))
        parts.append(indented(Text(f"and {len(hidden)} more rows, {size} (all with --json)")))
    return parts


def _moment_facts(peak: AllocatorPeak) -> list[tuple[str, str]]:
    count = sum(buffer.count for buffer in peak.peak_buffers)
    size = f"{bytes_text(peak.peak_bytes)} ({peak.peak_bytes:,} bytes)"
    return [("in use", f"{size} in {_counted(count, 'buffer')}")]


def _facts(peak: AllocatorPeak, step: int | None, labels: dict[int, str]) -> list[tuple[str, str]]:
    when = f"at {time_text(peak.peak_time_ps)}"
    if peak.peak_step is not None:
        when += f" in step {_step_text(peak.peak_step, labels)}"
    title = "peak" if step is None else f"peak while step {_step_text(step, labels)} ran"
    if peak.untracked_allocations and not peak.peak_bytes:
        facts = [(title, "not known: its records have no ids, so no buffer can be followed")]
    else:
        facts = [(title, f"{bytes_text(peak.peak_bytes)} ({peak.peak_bytes:,} bytes) {when}")]
    if peak.capacity_bytes:
        share = peak.peak_bytes / peak.capacity_bytes
        facts.append(("capacity", f"{bytes_text(peak.capacity_bytes)}, the peak takes {share:.1%}"))
    if peak.lifetime_peak_bytes is not None:
        size = bytes_text(peak.lifetime_peak_bytes)
        facts.append(("lifetime peak", f"{size} as the allocator reported"))
    if peak.fragmentation_at_peak is not None:
        facts.append(("fragmentation", f"{peak.fragmentation_at_peak:.1%} at the peak"))
    ends = _counted(peak.deallocations, "deallocation")
    counts = f"{_counted(peak.allocations, 'allocation')}, {ends}"
    if peak.unmatched_deallocations:
        counts += f", {peak.unmatched_deallocations:,} of them unmatched"
    if peak.untracked_allocations:
        counts += f"; {_counted(peak.untracked_allocations, 'record')} untracked"
    facts.append(("records", counts))
    facts.append(("live at the end", bytes_text(peak.live_at_end_bytes)))
    return facts


@dataclass
class _Row:
    """One line of what was live."""

    bytes: int
    count: int
    what: tuple[str, str, str, str]
    step: str
    steps: int = 1


def _merged(buffers: tuple[PeakBuffer, ...], labels: dict[int, str]) -> list[_Row]:
    """The rows, those of nameless steps (an eager program's, one per call) in one."""
    rows: list[_Row] = []
    nameless: dict[tuple[str, str, str, str], _Row] = {}
    for buffer in buffers:
        what = (buffer.op or "(no op)", buffer.region_type, buffer.data_type, buffer.shape)
        step = buffer.start_step
        told = "" if step is None else _step_text(step, labels)
        row = _Row(buffer.bytes, buffer.count, what, told)
        if step is None or labels.get(step, "") not in {"", str(step)}:
            rows.append(row)
        elif what in nameless:
            before = nameless[what]
            before.bytes += row.bytes
            before.count += row.count
            before.steps += 1
            before.step = f"{before.steps} steps"
        else:
            nameless[what] = row
            rows.append(row)
    return sorted(rows, key=lambda row: -row.bytes)


def _live(peak: AllocatorPeak, rows: list[_Row]) -> Table:
    def cells(row: _Row) -> tuple[str, ...]:
        share = row.bytes / peak.peak_bytes if peak.peak_bytes else 0
        count = f"{row.count:,}" if row.count else ""
        return (bytes_text(row.bytes), f"{share:.1%}", count, *row.what, row.step)

    told = [cells(row) for row in rows]
    return plain_table(_COLUMNS, told, right=("SIZE", "SHARE", "COUNT"))


def _counted(number: int, what: str) -> str:
    return f"{number:,} {what}{'' if number == 1 else 's'}"


def _step_text(step: int, labels: dict[int, str]) -> str:
    """A step's id, and its name where it says more."""
    name = labels.get(step, "")
    if len(name) > _NAME:
        name = f"{name[: _NAME - 1]}…"
    return str(step) if name in ("", str(step)) else f"{step} ({name})"
