"""Compiled programs as a person reads them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich.text import Text

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
from peakline.render.terminal.screen import drawn_facts, indented, show
from peakline.render.terminal.time_parts import fitted_table, profile_line, screen_width
from peakline.text import counted, size_text

if TYPE_CHECKING:
    from rich.console import RenderableType

    from peakline.api import Profile
    from peakline.timing.program_answer import ProgramAnswer

_ROWS, _GROUPS = 20, 8
_NARROW = 120
_NAME = 56


def print_programs(profile: Profile, programs: Sequence[ProgramAnswer], top: int | None) -> None:
    """Print the list of programs; of the only one all there is."""
    parts: list[RenderableType] = [profile_line(profile, moment=not profile.duration_ps), ""]
    if not programs:
        show([*parts, Text("no compiled programs in this profile")])
    elif len(programs) == 1:
        show([*parts, *_details(programs[0], top)])
    else:
        table = programs_table(programs, top or _ROWS)
        parts += [Text(table.title, style="bold"), *_drawn(table, NARROW_WITHOUT, "program")]
        parts += ["", Text("one program in full: --module NAME")]
        show(parts)


def print_program(profile: Profile, one: ProgramAnswer, top: int | None) -> None:
    """Print all there is about one program."""
    parts: list[RenderableType] = [profile_line(profile, moment=not profile.duration_ps), ""]
    show([*parts, *_details(one, top, in_full=True)])


def _details(one: ProgramAnswer, top: int | None, *, in_full: bool = False) -> list[RenderableType]:
    parts: list[RenderableType] = [Text(one.label, style="bold"), drawn_facts(program_facts(one))]
    parts += live_parts(one, top or _ROWS)
    if one.live_count:
        if one.is_large and not in_full:
            parts += ["", Text(f"what would lower it: --module {one.name}")]
        elif (advice := advice_table(one)).rows:
            title = Text(advice.title, style="bold")
            parts += ["", title, fitted_table(advice, longest=_NAME)]
        for group in groups_tables(one, _GROUPS):
            parts += ["", Text(group.title, style="bold"), fitted_table(group, longest=_NAME)]
    return parts


def live_parts(one: ProgramAnswer, most: int) -> list[RenderableType]:
    """What is live when the program needs most."""
    if not one.live_count:
        return []
    table = live_table(one, most)
    title = Text(table.title, style="bold")
    return ["", title, *_drawn(table, LIVE_NARROW_WITHOUT, "value")]


def _drawn(table: Table, narrow_without: frozenset[str], what: str) -> list[RenderableType]:
    if 0 < (screen_width() or 0) < _NARROW:
        kept = [n for n, c in enumerate(table.columns) if c.label not in narrow_without]
        table = table.only(kept)
    parts: list[RenderableType] = [fitted_table(table.without_empty(), longest=_NAME)]
    if table.rest:
        size = f", {size_text(float(table.rest[1] or 0))}" if len(table.rest) > 1 else ""
        more = counted(int(table.rest[0] or 0), f"more {what}")
        parts.append(indented(Text(f"and {more}{size}")))
    return parts
