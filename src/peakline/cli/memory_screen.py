"""The memory answer as a person reads it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.text import Text

from peakline.cli.screen import indented, plain_table, show
from peakline.cli.text import bytes_text, one_line, time_text

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.table import Table

    from peakline.analysis.memory import MemoryAnswer
    from peakline.analysis.peak import AllocatorPeak, PeakBuffer
    from peakline.api import Profile
    from peakline.profile.columns import Columns

__all__ = ["print_memory"]

_ROWS = 20
_COLUMNS = ("SIZE", "SHARE", "COUNT", "OP", "REGION", "TYPE", "SHAPE", "STEP")


def print_memory(profile: Profile, answer: MemoryAnswer, steps: Columns) -> None:
    """Print every allocator's peak and what was live at it, then the findings."""
    ids, names = steps.array("step_id").tolist(), steps.names("name").to_list()
    labels = {number: name or "" for number, name in zip(ids, names, strict=True)}
    host = f", host {profile.host}" if profile.host else ""
    head = f"{profile.path} ({profile.format}{host}, {time_text(profile.duration_ps)})"
    parts: list[RenderableType] = [Text(one_line(head))]
    for peak in answer.allocators:
        parts += ["", *_allocator(peak, answer.step, labels)]
    for finding in answer.findings:
        title = Text(one_line(f"{finding.severity}: {finding.title}"), style="bold yellow")
        parts += ["", title, indented(Text(one_line(finding.suggestion)))]
    show(parts)


def _allocator(
    peak: AllocatorPeak, step: int | None, labels: dict[int, str]
) -> list[RenderableType]:
    facts = plain_table(("", ""), _facts(peak, step, labels))
    facts.show_header = False
    parts: list[RenderableType] = [
        Text(one_line(peak.allocator or "(unnamed allocator)"), style="bold"),
        indented(facts),
        "",
        indented(Text("live at the peak")),
        indented(_live(peak, labels)),
    ]
    hidden = peak.peak_buffers[_ROWS:]
    if hidden:
        size = bytes_text(sum(buffer.bytes for buffer in hidden))
        parts.append(indented(Text(f"and {len(hidden)} more rows, {size} (all with --json)")))
    return parts


def _facts(peak: AllocatorPeak, step: int | None, labels: dict[int, str]) -> list[tuple[str, str]]:
    when = f"at {time_text(peak.peak_time_ps)}"
    if peak.peak_step is not None:
        when += f" in step {_step_text(peak.peak_step, labels)}"
    title = "peak" if step is None else f"peak while step {_step_text(step, labels)} ran"
    facts = [(title, f"{bytes_text(peak.peak_bytes)} ({peak.peak_bytes:,} bytes) {when}")]
    if peak.capacity_bytes:
        share = peak.peak_bytes / peak.capacity_bytes
        facts.append(("capacity", f"{bytes_text(peak.capacity_bytes)}, the peak takes {share:.1%}"))
    if peak.lifetime_peak_bytes is not None:
        size = bytes_text(peak.lifetime_peak_bytes)
        facts.append(("lifetime peak", f"{size} as the allocator reported"))
    if peak.fragmentation_at_peak is not None:
        facts.append(("fragmentation", f"{peak.fragmentation_at_peak:.1%} at the peak"))
    counts = f"{peak.allocations:,} allocations, {peak.deallocations:,} deallocations"
    if peak.unmatched_deallocations:
        counts += f", {peak.unmatched_deallocations:,} of them unmatched"
    if peak.untracked_allocations:
        counts += f"; {peak.untracked_allocations:,} records untracked"
    facts.append(("records", counts))
    facts.append(("live at the end", bytes_text(peak.live_at_end_bytes)))
    return facts


def _live(peak: AllocatorPeak, labels: dict[int, str]) -> Table:
    def row(buffer: PeakBuffer) -> tuple[str, ...]:
        share = buffer.bytes / peak.peak_bytes if peak.peak_bytes else 0
        return (
            bytes_text(buffer.bytes),
            f"{share:.1%}",
            f"{buffer.count:,}" if buffer.count else "",
            buffer.op or "(no op)",
            buffer.region_type,
            buffer.data_type,
            buffer.shape,
            "" if buffer.start_step is None else _step_text(buffer.start_step, labels),
        )

    rows = [row(buffer) for buffer in peak.peak_buffers[:_ROWS]]
    return plain_table(_COLUMNS, rows, right=("SIZE", "SHARE", "COUNT"))


def _step_text(step: int, labels: dict[int, str]) -> str:
    """A step's id, and its name where it says more."""
    name = labels.get(step, "")
    return str(step) if name in ("", str(step)) else f"{step} ({name})"
