"""What is said of the memory of devices by the programs that ran on them."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

from peakline.document.model import Fact
from peakline.document.programs import buffer_document
from peakline.document.wording import PEAK
from peakline.findings.failed_programs import BY_NAME, Explained
from peakline.findings.program_memory import DeviceNeed
from peakline.text import counted, size_text, time_text
from peakline.timing.programs.answer import ProgramAnswer

LOWER_BOUND = (
    "what the compiled programs need: a device holds at least this while they run, and what else "
    "lives beside it"
)
_NAMED = 4
MOST_BUFFERS = 50_000
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


class ProgramDocuments:
    """Programs in the JSON of one answer, with `MOST_BUFFERS` of what they have live in all:
    devices without number may have run one program.
    """

    def __init__(self) -> None:
        self._room = MOST_BUFFERS
        self._live: dict[int, list[dict[str, object]]] = {}

    def program(self, program: ProgramAnswer) -> dict[str, object]:
        """A program and what it has live when it needs most."""
        count = min(program.live_count, self._room)
        self._room -= count
        # Each program's rows once: what is made of them does not change them.
        live = self._live.get(program.number, [])
        if len(live) < count:
            live = [buffer_document(row) for row in program.largest(count)]
            self._live[program.number] = live
        return {
            "module": program.name,
            "program_id": program.program_id,
            "peak_bytes": program.peak_bytes,
            "peak_found_by": program.memory.found_by,
            "peak_buffers": live[:count],
            "peak_buffers_left_out": program.live_count - count,
        }

    def need(self, need: DeviceNeed) -> dict[str, object]:
        """A row of ``programs``."""
        return {**need.as_json(), **self.program(need.program)}

    def failure(self, one: Explained) -> dict[str, object]:
        """A row of ``failed_programs``."""
        return {
            "report_id": one.moment.report_id,
            "allocator": one.failure.allocator,
            "requested_bytes": one.failure.requested_bytes,
            "matched_by": one.by if one.programs else None,
            "programs": [
                self.program(result.program)
                | {"allocation_bytes": result.bytes or None, "allocation_kinds": list(result.kinds)}
                for result in one.programs
            ],
            "programs_left_out": one.count - len(one.programs),
        }


def at_peak_title(program: ProgramAnswer) -> str:
    """What is said of a program that ran at an allocator's peak."""
    size = size_text(program.peak_bytes or 0)
    return f"{program.label} ran at the peak; when it needs most, {size}, it has live"


def failure_text(one: Explained) -> str:
    """Which program a failed request was for, or may have been."""
    size = one.failure.requested_bytes
    wanted = "an unknown size" if size is None else f"{size_text(size)} ({size:,} bytes)"
    if not one.programs:
        return f"no compiled program has an allocation of {wanted}"
    first = one.programs[0]
    if one.by == BY_NAME:
        return f"the report names {first.program.label}"
    held = " and ".join(_HELD.get(kind, kind) for kind in first.kinds)
    exactly = f"exactly {size_text(first.bytes)} ({first.bytes:,} bytes)"
    if one.count == 1:
        return f"{first.program.label} has an allocation of {exactly}, of its {held}"
    names = ", ".join(program.program.label for program in one.programs[:_NAMED])
    more = one.count - _NAMED
    names += f" and {more} more" if more > 0 else ""
    return f"{counted(one.count, 'program')} have an allocation of {exactly}: {names}"


_HELD = {"temporary": "temporaries", "output": "outputs", "parameter": "arguments"}
_HELD |= {"constant": "constants"}


def failure_title(program: ProgramAnswer) -> str:
    """What heads the values of a program that a failed request can have been for."""
    size = "" if program.peak_bytes is None else f", {size_text(program.peak_bytes)}"
    return f"when {program.label} needs most{size}, it has live"
