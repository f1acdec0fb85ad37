"""The memory answer as a person reads it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from peakline.document import memory as said
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
from peakline.document.model import Fact, Table
from peakline.document.wording import ALL_IN_JSON
from peakline.findings.failed_programs import explained_failures
from peakline.findings.program_memory import program_at_peak
from peakline.findings.step_names import labels_of, step_phrase
from peakline.memory.allocator_names import shown_names
from peakline.memory.fit.model import Fit, NoFit
from peakline.render.terminal.findings import finding_parts
from peakline.render.terminal.headline import headed, profile_line
from peakline.render.terminal.programs import failure_parts, program_parts
from peakline.render.terminal.screen import (
    Shown,
    Text,
    drawn,
    drawn_facts,
    fitting,
    indented,
    show,
)
from peakline.tables.profile_facts import is_moment
from peakline.text import allocator_text, counted, size_text, time_text

if TYPE_CHECKING:
    from peakline.api import Profile
    from peakline.findings.memory_answer import MemoryAnswer
    from peakline.memory.details import MemoryDetails
    from peakline.memory.peak.explained import AllocatorPeak

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
