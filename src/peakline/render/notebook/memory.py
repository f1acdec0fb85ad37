"""What a notebook shows of memory: allocators, what is live at the peak, what would lower it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from peakline.document import limits, programs
from peakline.document.live import category_table, live_rows, live_table
from peakline.document.memory import (
    explained,
    memory_headline,
    peak_facts,
    savings_table,
    worth_saving,
)
from peakline.document.model import Table, more_text
from peakline.document.program_memory import (
    LOWER_BOUND,
    NOT_RUN,
    at_peak_title,
    failure_text,
    failure_title,
    need_sections,
)
from peakline.errors import UsageError
from peakline.figures.drawn import drawn_allocators
from peakline.findings.failed_programs import explained_failures
from peakline.findings.memory_answer import MemoryAnswer
from peakline.findings.program_memory import device_needs, program_at_peak
from peakline.memory.allocator_names import shown_names
from peakline.memory.peak.explained import AllocatorPeak
from peakline.render.notebook.drawings import memory_drawing
from peakline.render.notebook.findings import finding_parts, listed_findings
from peakline.render.notebook.pieces import drawn, facts, headed, line, shown, table
from peakline.text import allocator_text, size_text

if TYPE_CHECKING:
    from peakline.findings.finding import Finding
    from peakline.tables import Profile


def memory_answer_parts(answer: MemoryAnswer) -> list[str]:
    """The answer of `Profile.memory`: while the profile is open what ``peakline memory`` prints."""
    profile = answer.profile
    if profile is None or not _is_open(profile):
        return [headed("Memory"), *_nothing(answer), *_in_short(answer, {})]
    if answer.nothing:
        needs = _needs(profile) if answer.step is None else []
        return [headed("Memory"), *_nothing(answer), *needs, *_findings(answer.findings, {})]
    return [*_explained(profile, answer)]


def _is_open(profile: Profile) -> bool:
    try:
        profile.check_open()
    except UsageError:
        return False
    return True


def _nothing(answer: MemoryAnswer) -> Iterator[str]:
    if answer.nothing:
        yield line(answer.nothing)
    if answer.to_record:
        yield line(answer.to_record, quiet=True)


def _in_short(answer: MemoryAnswer, drawings: Mapping[str, str]) -> Iterator[str]:
    yield from memory_parts(answer, drawings)
    yield listed_findings(answer.findings)


def _explained(profile: Profile, answer: MemoryAnswer) -> Iterator[str]:
    """What failed, the allocators, of the largest all that is known, then what else was found."""
    names = shown_names(profile)
    yield headed("Memory", memory_headline(profile, answer.allocators, answer.labels))
    errors = [one for one in answer.findings if one.severity == "error"]
    yield from _findings(errors, names)
    if errors:
        yield from _failures(profile)
    peaks = by_peak(answer.allocators)
    if len(peaks) > 1:
        yield allocators_table(answer, peaks, {}, names)
    drawings = allocator_drawings(profile, answer)
    details = {one.allocator: one for one in answer.details}
    for peak in peaks[: limits.IN_FULL.notebook]:
        yield headed(allocator_text(names.get(peak.allocator, peak.allocator)))
        detail = details.get(peak.allocator)
        said, tables = explained(profile, peak, detail, answer, answer.labels, moment=answer.moment)
        yield drawings.get(peak.allocator, "") + facts(said)
        if not peak.peak_buffers:
            continue
        yield from live_parts(peak, answer, "held by" if answer.moment else "live at the peak")
        if not answer.moment and (program := program_at_peak(profile, peak)) is not None:
            table = programs.live_table(program)
            yield _program(replace(table, title=at_peak_title(program)))
        yield from map(drawn, tables)
    yield from _findings([one for one in answer.findings if one.severity != "error"], names)
    if answer.to_record:
        yield line(answer.to_record, quiet=True)


def _findings(findings: Sequence[Finding], names: Mapping[str, str]) -> Iterator[str]:
    for one in findings[: limits.ROWS.notebook]:
        yield from finding_parts(replace(one, title=one.title_with(names)))
    if more := more_text(len(findings) - limits.ROWS.notebook, "finding", ": findings"):
        yield line(more, quiet=True)


def _failures(profile: Profile) -> Iterator[str]:
    """Which programs failed requests can have been for, and what the first of each has live."""
    failures = explained_failures(profile)
    for text, one in list({failure_text(one): one for one in failures}.items())[
        : limits.IN_FULL.notebook
    ]:
        yield line(text)
        if one.programs:
            program = one.programs[0].program
            yield _program(replace(programs.live_table(program), title=failure_title(program)))


def _needs(profile: Profile) -> Iterator[str]:
    """What compiled programs need, where no allocator recorded anything."""
    needs = device_needs(profile)
    if not needs:
        return
    yield line(LOWER_BOUND if needs[0].is_run else NOT_RUN, quiet=True)
    sections = need_sections(needs)
    for title, said, need in sections[: limits.IN_FULL.notebook]:
        yield headed(title) if title else ""
        yield facts(said)
        yield _program(programs.live_table(need.program))
    if more := more_text(len(sections) - limits.IN_FULL.notebook, "program", " on other devices"):
        yield line(more, quiet=True)


def _program(live: Table) -> str:
    """What a program has live, without columns that say nothing of it."""
    return drawn(replace(live, rest=live.rest[:1]).without_empty().numbers_first())


def by_peak(peaks: Sequence[AllocatorPeak]) -> list[AllocatorPeak]:
    """The allocators, the largest first."""
    return sorted(peaks, key=lambda peak: (-peak.peak_bytes, peak.allocator))


def allocator_drawings(profile: Profile, answer: MemoryAnswer) -> dict[str, str]:
    """Memory in use over time of each allocator that can be drawn; none of one moment."""
    if answer.moment or not answer.allocators:
        return {}
    result = drawn_allocators(profile, None, answer)
    return {one.peak.allocator: memory_drawing(one) for one in result}


def memory_parts(answer: MemoryAnswer, drawings: Mapping[str, str]) -> list[str]:
    """The allocators, each with its drawing where there is one; then those of the largest: what is
    live at the peak, and what would lower it.
    """
    peaks = by_peak(answer.allocators)
    if not peaks:
        return []
    most = peaks[0]
    title = "held by" if answer.moment else "live at the peak"
    if len(peaks) > 1:
        title += f" of {allocator_text(most.allocator)}"
    result = [allocators_table(answer, peaks, drawings, {}), *live_parts(most, answer, title)]
    savings = [one for of in answer.details if of.peak is most for one in of.savings]
    return [*result, drawn(savings_table(worth_saving(savings, most)))]


def live_parts(peak: AllocatorPeak, answer: MemoryAnswer, title: str) -> list[str]:
    """What is live at the peak: by category, and the largest buffers."""
    rows = live_rows(peak.peak_buffers, answer.labels)
    live = live_table(rows, title, limits.ROWS.notebook).numbers_first()
    return [drawn(category_table(peak)), drawn(live)]


def allocators_table(
    answer: MemoryAnswer,
    peaks: Sequence[AllocatorPeak],
    drawings: Mapping[str, str],
    names: Mapping[str, str],
) -> str:
    """The first allocators, a row each; ``names`` are those of screens by those in the file."""
    rows = []
    for peak in peaks[: limits.ALLOCATORS.notebook]:
        first = peak_facts(peak, answer.step, answer.labels)[0].text
        if answer.moment:
            first = size_text(peak.peak_bytes)
        room = ""
        if peak.capacity_bytes:
            share = peak.peak_bytes / peak.capacity_bytes
            room = f"{size_text(peak.capacity_bytes)}, the peak takes {share:.1%}"
        name = shown(allocator_text(names.get(peak.allocator, peak.allocator)), 80)
        rows.append([name, shown(first), shown(room), drawings.get(peak.allocator, "")])
    more = more_text(len(peaks) - len(rows), "allocator")
    capacity = "Capacity" if any(row[2] for row in rows) else ""
    heads = ["Allocator", "In use" if answer.moment else "Peak", capacity, ""]
    result = table(heads, rows)
    return result + (line(more, quiet=True) if more else "")


def program_parts(profile: Profile) -> list[str]:
    """What is live in the program that needs most, where no allocator recorded anything."""
    needs = device_needs(profile)
    if not needs:
        return []
    program = max(needs, key=lambda one: one.bytes).program
    live = programs.live_table(program)
    return [_program(replace(live, title=f"{live.title} of {program.label}"))]
