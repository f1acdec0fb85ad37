"""Compiled programs as a person reads them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from peakline.document import limits
from peakline.document.model import Table, more_text, rest_text
from peakline.document.program_memory import (
    LOWER_BOUND,
    NOT_RUN,
    at_peak_title,
    failure_text,
    failure_title,
    need_sections,
)
from peakline.document.programs import (
    LIVE_NARROW_WITHOUT,
    LIVE_ROWS,
    NARROW_WITHOUT,
    advice_table,
    groups_tables,
    live_table,
    program_facts,
    programs_table,
)
from peakline.document.wording import ALL_IN_JSON
from peakline.findings.program_memory import device_needs
from peakline.memory.allocator_names import shown_names
from peakline.render.terminal.findings import finding_parts
from peakline.render.terminal.headline import headed, profile_line
from peakline.render.terminal.screen import Shown, Text, drawn, drawn_facts, indented, show
from peakline.text import size_text

if TYPE_CHECKING:
    from peakline.api import Profile
    from peakline.findings.failed_programs import Explained
    from peakline.findings.memory_answer import MemoryAnswer
    from peakline.findings.program_memory import DeviceNeed
    from peakline.timing.programs.answer import ProgramAnswer


def print_programs(profile: Profile, programs: Sequence[ProgramAnswer], top: int | None) -> None:
    """Print the list of programs; of the only one all there is."""
    if not programs:
        show([profile_line(profile), "", "no compiled programs in this profile"])
    elif len(programs) == 1:
        show([*headed(_need(programs[0]), profile), "", *_details(programs[0], top)])
    else:
        table = programs_table(programs, top or limits.PROGRAMS.terminal)
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
    parts += live_parts(one, top or limits.PROGRAMS.terminal)
    if one.live_count:
        if one.is_large and not in_full:
            parts += ["", Text(f"what would lower it: --module {one.name}")]
        elif (advice := advice_table(one)).rows:
            title = Text(advice.title, "bold")
            parts += ["", title, drawn(advice)]
        for group in groups_tables(one, limits.PROGRAM_GROUPS.terminal):
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
        parts.append(indented(Text(rest_text(table, what, "bytes"))))
    return parts


def program_parts(program: ProgramAnswer) -> list[Shown]:
    """What a program that ran at an allocator's peak had live at its own."""
    parts = live_parts(program, LIVE_ROWS)
    parts[1] = Text(at_peak_title(program))
    return ["", *(indented(part) for part in parts[1:])]


def need_parts(needs: Sequence[DeviceNeed]) -> list[Shown]:
    """Per device the program that needs most, and what is live then."""
    parts: list[Shown] = ["", Text(LOWER_BOUND if needs[0].is_run else NOT_RUN)]
    sections = need_sections(needs)
    for title, facts, need in sections[: limits.NEEDS.terminal]:
        parts += ["", *([Text(title, "bold")] if title else []), drawn_facts(facts)]
        parts += live_parts(need.program, LIVE_ROWS)
    if len(sections) > limits.NEEDS.terminal:
        left = len(sections) - limits.NEEDS.terminal
        parts += ["", Text(more_text(left, "program", f" on other devices{ALL_IN_JSON}"))]
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
        if one.programs and len(shown) <= limits.FAILURES.terminal:
            program = one.programs[0].program
            live = live_parts(program, LIVE_ROWS)
            if live:
                live[1] = Text(failure_title(program))
            parts += [indented(part) for part in live[1:]]
    return parts


def print_no_memory(profile: Profile, answer: MemoryAnswer, *, with_programs: bool) -> None:
    """Print that no allocator recorded anything, and what compiled programs say in its place."""
    how = answer.to_record and f"; {answer.to_record}"
    parts: list[Shown] = [Text(f"{profile.path}: {answer.nothing}{how}", hang=2)]
    if with_programs and (needs := device_needs(profile)):
        parts += need_parts(needs)
    show([*parts, *finding_parts(answer.findings, answer, {}, shown_names(profile))])
