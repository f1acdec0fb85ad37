"""What compiled programs need of their devices, as a person reads it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from peakline.render.document.program_memory import (
    LOWER_BOUND,
    NOT_RUN,
    at_peak_title,
    failure_text,
    failure_title,
    need_sections,
)
from peakline.render.document.programs import LIVE_ROWS
from peakline.render.terminal.programs import live_parts
from peakline.render.terminal.screen import Shown, Text, drawn_facts, indented
from peakline.text import counted

if TYPE_CHECKING:
    from peakline.findings.failed_programs import Explained
    from peakline.findings.program_memory import DeviceNeed
    from peakline.timing.program_answer import ProgramAnswer

_SECTIONS = 32
_FAILURES = 3
"""So many different failures are shown with what their program has live."""


def program_parts(program: ProgramAnswer) -> list[Shown]:
    """What a program that ran at an allocator's peak had live at its own."""
    parts = live_parts(program, LIVE_ROWS)
    parts[1] = Text(at_peak_title(program))
    return ["", *(indented(part) for part in parts[1:])]


def need_parts(needs: Sequence[DeviceNeed]) -> list[Shown]:
    """Per device the program that needs most, and what is live then."""
    parts: list[Shown] = ["", Text(LOWER_BOUND if needs[0].is_run else NOT_RUN)]
    sections = need_sections(needs)
    for title, facts, need in sections[:_SECTIONS]:
        parts += ["", *([Text(title, "bold")] if title else []), drawn_facts(facts)]
        parts += live_parts(need.program, LIVE_ROWS)
    if len(sections) > _SECTIONS:
        more = counted(len(sections) - _SECTIONS, "more program")
        parts += ["", Text(f"and {more} on other devices; all of them with --json")]
    return [*parts, "", Text("every program: peakline programs PATH")]


def failure_parts(failures: Sequence[Explained]) -> list[Shown]:
    """Which programs failed requests can have been for, and what the first has live."""
    parts: list[Shown] = []
    shown: set[str] = set()
    for one in failures:
        text = failure_text(one)
        if text in shown:
            continue
        shown.add(text)
        parts += ["", Text(text, "bold")]
        if one.programs and len(shown) <= _FAILURES:
            program = one.programs[0].program
            live = live_parts(program, LIVE_ROWS)
            if live:
                live[1] = Text(failure_title(program))
            parts += [indented(part) for part in live[1:]]
    return parts
