"""Compiled programs as a person reads them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from peakline.render.document.model import Table
from peakline.render.document.programs import (
    LIVE_NARROW_WITHOUT,
    NARROW_WITHOUT,
    advice_table,
    groups_tables,
    live_table,
    program_facts,
    programs_table,
)
from peakline.render.terminal.headline import headed
from peakline.render.terminal.screen import Shown, Text, drawn, drawn_facts, indented, show
from peakline.render.terminal.time_parts import profile_line
from peakline.text import counted, size_text

if TYPE_CHECKING:
    from peakline.api import Profile
    from peakline.timing.program_answer import ProgramAnswer

_ROWS, _GROUPS = 20, 8


def print_programs(profile: Profile, programs: Sequence[ProgramAnswer], top: int | None) -> None:
    """Print the list of programs; of the only one all there is."""
    if not programs:
        show([profile_line(profile), "", "no compiled programs in this profile"])
    elif len(programs) == 1:
        show([*headed(_need(programs[0]), profile), "", *_details(programs[0], top)])
    else:
        table = programs_table(programs, top or _ROWS)
        parts = [*headed(table.title, profile), "", *_drawn(table, NARROW_WITHOUT, "program")]
        parts += ["", Text("one program in full: --module NAME")]
        show(parts)


def print_program(profile: Profile, one: ProgramAnswer, top: int | None) -> None:
    """Print all there is about one program."""
    show([*headed(_need(one), profile), "", *_details(one, top, in_full=True)])


def _need(one: ProgramAnswer) -> str:
    """What a program needs."""
    size = one.peak_bytes
    return f"{one.label} needs {size_text(size) if size is not None else 'an unknown size'}"


def _details(one: ProgramAnswer, top: int | None, *, in_full: bool = False) -> list[Shown]:
    parts: list[Shown] = [drawn_facts(program_facts(one))]
    parts += live_parts(one, top or _ROWS)
    if one.live_count:
        if one.is_large and not in_full:
            parts += ["", Text(f"what would lower it: --module {one.name}")]
        elif (advice := advice_table(one)).rows:
            title = Text(advice.title, "bold")
            parts += ["", title, drawn(advice)]
        for group in groups_tables(one, _GROUPS):
            parts += ["", Text(group.title, "bold"), drawn(group)]
    return parts


def live_parts(one: ProgramAnswer, most: int) -> list[Shown]:
    """What is live when the program needs most."""
    if not one.live_count:
        return []
    table = live_table(one, most)
    title = Text(table.title, "bold")
    return ["", title, *_drawn(table, LIVE_NARROW_WITHOUT, "value")]


def _drawn(table: Table, least: Sequence[str], what: str) -> list[Shown]:
    parts: list[Shown] = [drawn(table, least=least)]
    if table.rest:
        size = f", {size_text(float(table.rest[1] or 0))}" if len(table.rest) > 1 else ""
        more = counted(int(table.rest[0] or 0), f"more {what}")
        parts.append(indented(Text(f"and {more}{size}")))
    return parts
