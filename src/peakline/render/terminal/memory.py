"""The memory answer as a person reads it, and that of compiled programs, with their findings."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from peakline.document import limits
from peakline.document import memory as said
from peakline.document.finding import pieces_text, screen_table
from peakline.document.fit import (
    NOTHING_TO_REPLAY,
    alternatives_table,
    batch_facts,
    fit_facts,
    fit_headline,
    no_fit_facts,
    pins_table,
    together_fact,
)
from peakline.document.live import category_table, live_rows, live_table, narrower
from peakline.document.model import Fact, Table, more_text, rest_text
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
    program_facts,
    programs_table,
)
from peakline.document.programs import live_table as program_rows
from peakline.document.wording import ALL_IN_JSON
from peakline.findings.failed_programs import explained_failures
from peakline.findings.program_memory import device_needs, program_at_peak
from peakline.memory.allocator_names import shown_names
from peakline.memory.fit.model import Fit, NoFit
from peakline.render.terminal.screen import (
    Shown,
    Text,
    drawn,
    drawn_facts,
    fitting,
    headed,
    indented,
    profile_line,
    severity_style,
    show,
)
from peakline.tables.profile_facts import is_moment
from peakline.text import allocator_text, counted, size_text, time_text
from peakline.trace.steps import labels_of, step_phrase

if TYPE_CHECKING:
    from peakline.api import Profile
    from peakline.findings.failed_programs import Explained
    from peakline.findings.finding import Finding
    from peakline.findings.memory_answer import MemoryAnswer
    from peakline.findings.program_memory import DeviceNeed
    from peakline.memory.details import MemoryDetails
    from peakline.memory.fragmentation.holes import Fragmentation
    from peakline.memory.peak.explained import AllocatorPeak
    from peakline.timing.programs.answer import ProgramAnswer


def finding_parts(
    findings: Iterable[Finding],
    answer: MemoryAnswer,
    labels: Mapping[int, str],
    names: Mapping[str, str],
) -> list[Shown]:
    """Findings of ``answer``; ``labels`` are the names of steps, ``names`` of allocators."""
    pools = {detail.allocator: detail.fragmentation for detail in answer.details}
    parts: list[Shown] = []
    for finding in findings:
        title = f"{finding.severity}: {finding.title_with(names)}"
        parts += ["", Text(title, severity_style(finding.severity), 2)]
        parts.append(indented(finding.suggestion))
        pool = pools.get(str(finding.evidence.get("allocator")))
        parts += evidence_part(finding, pool, labels)
    return parts


def evidence_part(
    finding: Finding, fragmentation: Fragmentation | None, labels: Mapping[int, str]
) -> list[Shown]:
    """The rows behind a finding where there are several, and how the pool lay in pieces."""
    parts: list[Shown] = []
    if finding.kind == "fragmentation" and fragmentation is not None:
        parts += [indented(Text(line)) for line in pieces_text(fragmentation)]
    table = screen_table(finding, labels)
    return parts if table is None else [*parts, drawn(table)]


_LEAST = ("step", "type", "region", "shape")
"""Columns that a narrow screen does without, in this order."""
_LEAST_OF_SAVINGS = ("at least",)


def print_memory(profile: Profile, answer: MemoryAnswer) -> None:
    """Print what failed, every allocator's peak and what was live at it, then the findings."""
    # Without records of how it came about, what there was is of one moment.
    moment = is_moment(profile)
    labels, names = labels_of(profile.columns_or_empty("steps")), shown_names(profile)
    sentence = said.memory_headline(profile, answer.allocators, labels)
    parts = headed(sentence, profile, moment=moment)
    errors = [finding for finding in answer.findings if finding.severity == "error"]
    parts += finding_parts(errors, answer, labels, names)
    if errors and (failures := explained_failures(profile)):
        parts += failure_parts(failures)
    details = answer.details or (None,) * len(answer.allocators)
    for peak, detail in zip(answer.allocators, details, strict=True):
        parts += _name(peak, names)
        parts += _allocator(profile, peak, detail, answer, labels, moment=moment)
    others = [finding for finding in answer.findings if finding.severity != "error"]
    parts += finding_parts(others, answer, labels, names)
    if answer.to_record:
        parts += ["", Text(answer.to_record)]
    show(parts)


def print_memory_at(profile: Profile, time_ps: int, memory: Sequence[AllocatorPeak]) -> None:
    """Print what every allocator held at ``time_ps``, and what it was made of."""
    labels, names = labels_of(profile.columns_or_empty("steps")), shown_names(profile)
    parts: list[Shown] = [profile_line(profile)]
    if not memory:
        parts += ["", Text(f"no memory is known of at {time_text(time_ps)}: records begin later")]
    for one in memory:
        count = sum(buffer.count for buffer in one.peak_buffers)
        held = f" ({one.peak_bytes:,} bytes) in {counted(count, 'buffer')}"
        record = f"at {time_text(one.peak_time_ps)}"
        if one.peak_step is not None:
            record += f" in {step_phrase(one.peak_step, labels)}"
        facts = [
            Fact(f"in use at {time_text(time_ps)}", one.peak_bytes, "bytes", held),
            Fact("record before it", record),
        ]
        parts += [*_name(one, names), drawn_facts(facts)]
        parts += _live(one, labels, "live then")
    show(parts)


def _name(peak: AllocatorPeak, names: Mapping[str, str]) -> list[Shown]:
    name = allocator_text(names.get(peak.allocator, peak.allocator))
    return ["", Text(name, "bold")]


def _allocator(
    profile: Profile,
    peak: AllocatorPeak,
    details: MemoryDetails | None,
    answer: MemoryAnswer,
    labels: Mapping[int, str],
    *,
    moment: bool,
) -> list[Shown]:
    facts, tables = said.explained(profile, peak, details, answer, labels, moment=moment)
    parts: list[Shown] = [drawn_facts(facts)]
    if not peak.peak_buffers:
        return parts
    parts += _live(peak, labels, "held by" if moment else "live at the peak")
    if not moment and (program := program_at_peak(profile, peak)) is not None:
        parts += program_parts(program)
    return parts + [part for table in tables if table.rows for part in _titled(table)]


def _live(peak: AllocatorPeak, labels: Mapping[int, str], title: str) -> Sequence[Shown]:
    categories = category_table(peak)
    parts = _titled(categories) if categories.rows else []
    table = live_table(live_rows(peak.peak_buffers, labels), title)
    choices = [one.numbers_first() for one in narrower(table)]
    shown = fitting(choices) if len(choices) > 1 else drawn(table, least=_LEAST)
    parts = [*parts, "", indented(table.title), shown]
    if table.rest:
        size = size_text(float(table.rest[1] or 0))
        parts.append(indented(Text(f"and {table.rest[0]}, {size}{ALL_IN_JSON}")))
    return parts


def _titled(table: Table) -> list[Shown]:
    return ["", indented(table.title), drawn(table, least=_LEAST_OF_SAVINGS)]


def print_fit(profile: Profile, fits: Sequence[Fit], failed: Sequence[NoFit]) -> None:
    """Print the answer for every allocator."""
    if not (fits or failed):
        show([Text(f"{profile.path}: {NOTHING_TO_REPLAY}", hang=2)])
        return
    parts = headed(fit_headline(fits), profile)
    for fit in fits:
        parts += ["", Text(allocator_text(fit.allocator), "bold")]
        parts.append(drawn_facts([*fit_facts(fit), *batch_facts(fit)]))
        if fit.alternatives:
            table = alternatives_table(fit)
            parts += ["", Text(table.title, "bold"), drawn(table.trimmed())]
        if fit.pins:
            table = pins_table(fit)
            parts += ["", Text(table.title, "bold"), drawn(table)]
    if failed:
        parts += ["", drawn_facts(no_fit_facts(failed))]
    show(parts)


def print_together(together: Iterable[dict[str, object]]) -> None:
    """Print what several recordings of a program say of each allocator."""
    for summed in together:
        show(["", Text(f"{summed['allocator']}, {together_fact(summed).text}", hang=2)])


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
    table = program_rows(one, most)
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
