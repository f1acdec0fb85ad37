"""What compiled programs need of their devices, as a person reads it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich.text import Text

from peakline.render.document.program_memory import (
    LOWER_BOUND,
    NOT_RUN,
    at_peak_title,
    need_sections,
)
from peakline.render.terminal.programs import live_parts
from peakline.render.terminal.screen import drawn_facts, indented, show

if TYPE_CHECKING:
    from rich.console import RenderableType

    from peakline.findings.program_memory import DeviceNeed
    from peakline.timing.program_answer import ProgramAnswer

_ROWS = 12


def program_parts(program: ProgramAnswer) -> list[RenderableType]:
    """What a program that ran at an allocator's peak had live at its own."""
    parts = live_parts(program, _ROWS)
    parts[1] = Text(at_peak_title(program))
    return ["", *(indented(part) for part in parts[1:])]


def print_needs(needs: Sequence[DeviceNeed]) -> None:
    """Print per device the program that needs most, and what is live then."""
    parts: list[RenderableType] = ["", Text(LOWER_BOUND if needs[0].is_run else NOT_RUN)]
    for title, facts, need in need_sections(needs):
        parts += ["", *([Text(title, style="bold")] if title else []), drawn_facts(facts)]
        parts += live_parts(need.program, _ROWS)
    parts += ["", Text("every program: peakline programs PATH")]
    show(parts)
