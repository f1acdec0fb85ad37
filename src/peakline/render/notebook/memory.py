"""What a notebook shows of memory: allocators, what is live at the peak, what would lower it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from peakline.findings.memory_answer import MemoryAnswer
from peakline.memory.peak import AllocatorPeak
from peakline.render.document.live import category_table, live_rows, live_table
from peakline.render.document.memory import peak_facts, savings_table, worth_saving
from peakline.render.notebook.finding import listed_findings
from peakline.render.notebook.pieces import ROWS, drawn, headed, line, shown, table
from peakline.text import allocator_text, size_text

if TYPE_CHECKING:
    from peakline.tables import Profile

_ALLOCATORS = 6


def parts(answer: MemoryAnswer) -> list[str]:
    """The answer of `Profile.memory`."""
    return [
        headed("Memory"),
        *([line(answer.nothing)] if answer.nothing else ()),
        *([line(answer.to_record, quiet=True)] if answer.to_record else ()),
        *memory_parts(answer, {}),
        listed_findings(answer.findings),
    ]


def memory_parts(answer: MemoryAnswer, drawings: Mapping[str, str]) -> list[str]:
    """The allocators, each with its drawing where there is one; then those of the largest: what is
    live at the peak, and what would lower it.
    """
    peaks = sorted(answer.allocators, key=lambda peak: (-peak.peak_bytes, peak.allocator))
    if not peaks:
        return []
    most = peaks[0]
    title = "held by" if answer.moment else "live at the peak"
    if len(peaks) > 1:
        title += f" of {allocator_text(most.allocator)}"
    rows = live_rows(most.peak_buffers, answer.labels)
    found = [_allocators(answer, peaks, drawings), drawn(category_table(most))]
    found.append(drawn(live_table(rows, title, ROWS).numbers_first(), ROWS))
    savings = [one for of in answer.details if of.peak is most for one in of.savings]
    return [*found, drawn(savings_table(worth_saving(savings, most)))]


def _allocators(
    answer: MemoryAnswer, peaks: Sequence[AllocatorPeak], drawings: Mapping[str, str]
) -> str:
    rows = []
    for peak in peaks[:_ALLOCATORS]:
        first = peak_facts(peak, answer.step, answer.labels)[0].text
        if answer.moment:
            first = size_text(peak.peak_bytes)
        room = ""
        if peak.capacity_bytes:
            share = peak.peak_bytes / peak.capacity_bytes
            room = f"{size_text(peak.capacity_bytes)}, the peak takes {share:.1%}"
        name = shown(allocator_text(peak.allocator), 80)
        rows.append([name, shown(first), shown(room), drawings.get(peak.allocator, "")])
    more = len(peaks) - len(rows)
    capacity = "Capacity" if any(row[2] for row in rows) else ""
    heads = ["Allocator", "In use" if answer.moment else "Peak", capacity, ""]
    found = table(heads, rows)
    return found + (line(f"and {more} more allocators", quiet=True) if more else "")


def program_parts(profile: Profile) -> list[str]:
    """What is live in the program that needs most, where no allocator recorded anything."""
    from peakline.findings.program_memory import device_needs
    from peakline.render.document.programs import live_table as program_table

    needs = device_needs(profile)
    if not needs:
        return []
    program = max(needs, key=lambda one: one.bytes).program
    live = replace(program_table(program, ROWS), rest=()).without_empty()
    titled = replace(live, title=f"{live.title} of {program.label}")
    return [drawn(titled.numbers_first())]
