"""The memory answer as a person reads it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from rich.text import Text

from peakline.memory.allocator_names import shown_names
from peakline.render.terminal.memory_parts import (
    MOMENTS,
    counted,
    detail_facts,
    evidence_part,
    moments_part,
    savings_part,
    step_text,
    step_words,
)
from peakline.render.terminal.screen import indented, plain_table, show
from peakline.text import one_line, shares_text, size_text, time_text

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.table import Table

    from peakline.api import Profile
    from peakline.findings.finding import Finding
    from peakline.findings.memory_answer import MemoryAnswer
    from peakline.memory.details import MemoryDetails
    from peakline.memory.moments import HighMoment
    from peakline.memory.peak import AllocatorPeak, PeakBuffer
    from peakline.memory.reserved import Reserved
    from peakline.memory.signatures import History
    from peakline.tables.columns import Columns

__all__ = ["heading", "labels_of", "live_part", "print_memory"]

_ROWS = 20
_NAMED, _NAMELESS = 3, 2
"""Buffers of one kind are one row when they come from so many steps with a name, or without."""
_WITHOUT_OPS = (
    "the dump has sizes alone; TensorFlow lists a step's tensors by op with "
    "RunOptions(report_tensor_allocations_upon_oom=True)"
)
_COLUMNS = ("SIZE", "SHARE", "COUNT", "OP", "REGION", "TYPE", "SHAPE", "STEP")


def print_memory(
    profile: Profile, answer: MemoryAnswer, steps: Columns, *, moment: bool = False
) -> None:
    """Print what failed, every allocator's peak and what was live at it, then the findings.

    ``moment``: the file tells what there was at one moment, and no records of how it came about.
    """
    from peakline.memory.oom import only_listed
    from peakline.memory.reserved import reserved_of

    labels, names = labels_of(steps), shown_names(profile)
    parts: list[RenderableType] = [heading(profile, moment=moment)]
    errors = [finding for finding in answer.findings if finding.severity == "error"]
    parts += _findings(errors, answer, labels, names)
    details = answer.details or (None,) * len(answer.allocators)
    for peak, detail in zip(answer.allocators, details, strict=True):
        if moment:
            facts = _moment_facts(peak, listed=only_listed(profile, peak.allocator))
        else:
            facts = _facts(peak, answer.step, labels)
        reserved = reserved_of(profile, peak)
        if reserved is not None:
            (title, size), *rest = facts
            facts = [(title if moment else f"{title} allocated", size), *rest]
            facts += _reserved_facts(reserved, moment=moment)
        name = names.get(peak.allocator, peak.allocator) or "(unnamed allocator)"
        parts += ["", Text(one_line(name), style="bold")]
        parts += _allocator(peak, detail, answer, labels, facts, moment=moment)
    others = [finding for finding in answer.findings if finding not in errors]
    parts += _findings(others, answer, labels, names)
    show(parts)


def heading(profile: Profile, *, moment: bool = False) -> Text:
    """Which profile it is, and how long: nothing of that where it tells one moment."""
    host = f", host {profile.host}" if profile.host else ""
    length = "" if moment else f", {time_text(profile.duration_ps)}"
    return Text(one_line(f"{profile.path} ({profile.format}{host}{length})"))


def labels_of(steps: Columns) -> dict[int, str]:
    """The names of the steps by id."""
    ids, names = steps.array("step_id").tolist(), steps.names("name").to_list()
    return {number: name or "" for number, name in zip(ids, names, strict=True)}


def _findings(
    findings: list[Finding],
    answer: MemoryAnswer,
    labels: dict[int, str],
    names: dict[str, str],
) -> list[RenderableType]:
    pools = {detail.allocator: detail.fragmentation for detail in answer.details}
    parts: list[RenderableType] = []
    for finding in findings:
        title = Text(
            one_line(f"{finding.severity}: {finding.title_with(names)}"), style="bold yellow"
        )
        parts += ["", title, indented(Text(one_line(finding.suggestion)))]
        pool = pools.get(str(finding.evidence.get("allocator")))
        parts += evidence_part(finding, pool, labels)
    return parts


def _allocator(
    peak: AllocatorPeak,
    details: MemoryDetails | None,
    answer: MemoryAnswer,
    labels: dict[int, str],
    facts: list[tuple[str, str]],
    *,
    moment: bool,
) -> list[RenderableType]:
    moments: tuple[HighMoment, ...] = ()
    if details is not None and answer.history is not None and not moment and answer.step is None:
        # With a step, all but the savings would speak of another time.
        moments = _high_moments(answer.history, peak)
        facts = facts + detail_facts(peak, details, answer.history)
    table = plain_table(("", ""), facts)
    table.show_header = False
    parts: list[RenderableType] = [indented(table)]
    if not peak.peak_buffers:
        return parts
    parts += live_part(peak, labels, "held by" if moment else "live at the peak")
    if details is not None:
        parts += savings_part(details.savings, peak)
    return [*parts, *moments_part(moments, labels)]


def _high_moments(history: History, peak: AllocatorPeak) -> tuple[HighMoment, ...]:
    from peakline.memory.moments import find_high_moments

    number = history.lifetimes.allocators.index(peak.allocator)
    return find_high_moments(history, number, most=MOMENTS)


def live_part(peak: AllocatorPeak, labels: dict[int, str], title: str) -> list[RenderableType]:
    """The table of what was live, cut to a page."""
    rows = _merged(peak.peak_buffers, labels)
    regions = {row.what[1] for row in rows}
    if len(rows) > 1 and len(regions) == 1 and regions != {""}:
        title += f" (region {one_line(regions.pop())})"
        rows = [replace(row, what=(row.what[0], "", *row.what[2:])) for row in rows]
    parts: list[RenderableType] = ["", indented(Text(title)), indented(_live(rows))]
    hidden = rows[_ROWS:]
    if hidden:
        size = size_text(sum(row.bytes for row in hidden))
        parts.append(indented(Text(f"and {len(hidden)} more rows, {size} (all with --json)")))
    return parts


def _moment_facts(peak: AllocatorPeak, *, listed: bool) -> list[tuple[str, str]]:
    count = sum(buffer.count for buffer in peak.peak_buffers)
    size = f"{size_text(peak.peak_bytes)} ({peak.peak_bytes:,} bytes)"
    held = f"{size} in {counted(count, 'buffer')}"
    if listed:
        return [("listed", f"{held}, which need not be all that was in use")]
    facts = [("in use", held)]
    if peak.capacity_bytes:
        share = peak.peak_bytes / peak.capacity_bytes
        facts.append(("capacity", f"{size_text(peak.capacity_bytes)}, {share:.1%} of it in use"))
    chunks = sum(b.count for b in peak.peak_buffers if not b.op and b.region_type[:5] == "chunk")
    if chunks:
        facts.append(("ops", f"no op recorded for {counted(chunks, 'chunk')}: {_WITHOUT_OPS}"))
    return facts


def _reserved_facts(reserved: Reserved, *, moment: bool) -> list[tuple[str, str]]:
    """What PyTorch's allocator has of the device, in PyTorch's words."""
    size = size_text(reserved.reserved_bytes)
    if not moment:
        size = f"{size_text(reserved.at_peak_bytes)} at the peak, {size} at the end"
    of_it = f"{size_text(reserved.allocated_bytes)} allocated"
    if reserved.awaiting_free_bytes:
        of_it += f", {size_text(reserved.awaiting_free_bytes)} awaiting free"
    of_it += f", {size_text(reserved.free_bytes)} free"
    of_it += f"; {size_text(reserved.requested_bytes)} were requested"
    return [
        ("reserved", f"{size}; nvidia-smi shows this and the CUDA context"),
        ("of it" if moment else "of it at the end", of_it),
    ]


def _facts(peak: AllocatorPeak, step: int | None, labels: dict[int, str]) -> list[tuple[str, str]]:
    from peakline.memory.peak import RESERVED

    when = f"at {time_text(peak.peak_time_ps)}"
    if peak.peak_step is not None:
        when += f" in {step_words(peak.peak_step, labels)}"
    title = "peak" if step is None else f"peak while {step_words(step, labels)} ran"
    if peak.untracked_allocations and not peak.peak_bytes:
        facts = [(title, "not known: its records have no ids, so no buffer can be followed")]
    else:
        facts = [(title, f"{size_text(peak.peak_bytes)} ({peak.peak_bytes:,} bytes) {when}")]
    if peak.capacity_bytes:
        share = peak.peak_bytes / peak.capacity_bytes
        facts.append(("capacity", f"{size_text(peak.capacity_bytes)}, the peak takes {share:.1%}"))
    if peak.lifetime_peak_bytes is not None:
        text = f"{size_text(peak.lifetime_peak_bytes)} as the allocator reported"
        reserved = sum(b.bytes for b in peak.peak_buffers if b.op == RESERVED)
        if peak.lifetime_peak_bytes < peak.peak_bytes and reserved:
            text += f" for its heap, without the {size_text(reserved)} reserved outside it"
        facts.append(("lifetime peak", text))
    if peak.fragmentation_at_peak is not None:
        facts.append(("fragmentation", f"{peak.fragmentation_at_peak:.1%} at the peak"))
    ends = counted(peak.deallocations, "deallocation")
    counts = f"{counted(peak.allocations, 'allocation')}, {ends}"
    if peak.unmatched_deallocations:
        counts += f", {peak.unmatched_deallocations:,} of them unmatched"
    if peak.untracked_allocations:
        counts += f"; {counted(peak.untracked_allocations, 'record')} untracked"
    facts.append(("records", counts))
    facts.append(("live at the end", size_text(peak.live_at_end_bytes)))
    return facts


@dataclass
class _Row:
    """One line of what was live."""

    bytes: int
    count: int
    what: tuple[str, str, str, str]
    step: str


def _merged(buffers: tuple[PeakBuffer, ...], labels: dict[int, str]) -> list[_Row]:
    """The rows; those of many steps, or of nameless ones (an eager program's calls), in one."""
    from peakline.memory.signatures import normal_shape

    rows: list[_Row] = []
    groups: dict[tuple[tuple[str, str, str, str], bool], list[_Row]] = {}
    for buffer in buffers:
        shape = normal_shape(buffer.shape)
        what = (buffer.op or "(no op)", buffer.region_type, buffer.data_type, shape)
        step = buffer.start_step
        row = _Row(
            buffer.bytes, buffer.count, what, "" if step is None else step_text(step, labels)
        )
        if step is None:
            rows.append(row)
        else:
            is_named = labels.get(step, "") not in {"", str(step)}
            groups.setdefault((what, is_named), []).append(row)
    for (what, is_named), group in groups.items():
        if len(group) < (_NAMED if is_named else _NAMELESS):
            rows += group
            continue
        size, count = sum(row.bytes for row in group), sum(row.count for row in group)
        rows.append(_Row(size, count, what, f"{len(group)} steps"))
    return sorted(rows, key=lambda row: -row.bytes)


def _live(rows: list[_Row]) -> Table:
    """The first rows; their shares add up with that of the others."""

    def cells(row: _Row, share: str) -> tuple[str, ...]:
        count = f"{row.count:,}" if row.count else ""
        return (size_text(row.bytes), share, count, *row.what, row.step)

    shown = rows[:_ROWS]
    rest = sum(row.bytes for row in rows[_ROWS:])
    shares = shares_text([*(row.bytes for row in shown), rest])
    told = [cells(row, share) for row, share in zip(shown, shares, strict=False)]
    # A column that says nothing in any row is left out.
    said = [n for n in range(len(_COLUMNS)) if any(row[n] for row in told)]
    table = [[row[n] for n in said] for row in told]
    return plain_table([_COLUMNS[n] for n in said], table, right=("SIZE", "SHARE", "COUNT"))
