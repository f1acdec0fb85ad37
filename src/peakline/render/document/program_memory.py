"""What is said of the memory of devices by the programs that ran on them."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

from peakline.findings.program_memory import DeviceNeed
from peakline.render.document.model import Fact
from peakline.render.document.programs import PEAK, buffer_document
from peakline.text import counted, size_text, time_text
from peakline.timing.program_answer import ProgramAnswer

LOWER_BOUND = (
    "what the compiled programs need: a device holds at least this while they run, and what else "
    "lives beside it"
)
_NAMED = 4
NOT_RUN = "what the compiled programs need: nothing here says which of them ran"


def need_sections(needs: Sequence[DeviceNeed]) -> list[tuple[str, list[Fact], DeviceNeed]]:
    """Per program and need the devices that have it, in one line, and the facts."""
    return [
        (devices_text([one.device for one in group]), _facts(group), group[0])
        for group in needs_by_program(needs)
    ]


def needs_by_program(needs: Sequence[DeviceNeed]) -> list[list[DeviceNeed]]:
    """Devices next to each other that need the same, together."""
    return [list(same) for _, same in groupby(needs, key=lambda one: one.program.number)]


def devices_text(names: Sequence[str]) -> str:
    """The devices in one line."""
    return ", ".join(names) if len(names) <= _NAMED else f"{names[0]} to {names[-1]}"


def _facts(group: Sequence[DeviceNeed]) -> list[Fact]:
    one = group[0]
    how = PEAK[one.program.memory.found_by]
    facts = [
        Fact("at least" if one.is_run else "needs", one.bytes, "bytes", f" ({one.bytes:,} bytes)"),
        Fact("program", one.program.label, "", f", {how}"),
    ]
    if one.is_run:
        each = " on each device" if len(group) > 1 else ""
        runs = counted(one.runs, "run")
        facts.append(Fact("ran", f"{runs}{each}, the first at {time_text(one.first_ps)}"))
    return facts


def need_document(need: DeviceNeed) -> dict[str, object]:
    """A row of ``programs`` in JSON."""
    return {
        **need.as_json(),
        **program_document(need.program),
    }


def program_document(program: ProgramAnswer) -> dict[str, object]:
    """A program and what it has live when it needs most, in JSON."""
    return {
        "module": program.name,
        "program_id": program.program_id,
        "peak_bytes": program.peak_bytes,
        "peak_found_by": program.memory.found_by,
        "peak_buffers": [buffer_document(row) for row in program.live],
    }


def at_peak_title(program: ProgramAnswer) -> str:
    """What is said of a program that ran at an allocator's peak."""
    size = size_text(program.peak_bytes or 0)
    return f"{program.label} ran at the peak; when it needs most, {size}, it has live"
