"""What is said of an allocator's memory: its facts, what was live, what would lower the peak."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, replace
from itertools import pairwise

from peakline.document.memory_json import at_json, details_json, moments_json
from peakline.document.model import Fact, Row, Table, columns_of, value_of
from peakline.document.profile import answer_document
from peakline.document.program_memory import ProgramDocuments
from peakline.findings.failed_programs import explained_failures
from peakline.findings.headline.memory import peak_phrases
from peakline.findings.memory_answer import MemoryAnswer, answer_memory
from peakline.findings.program_memory import device_needs, program_at_peak
from peakline.memory.allocator_names import shown_names
from peakline.memory.churn import AllocatorChurn
from peakline.memory.details import MemoryDetails
from peakline.memory.fragmentation.segments import Reserved, reserved_of
from peakline.memory.growth.series import AllocatorGrowth
from peakline.memory.oom import only_listed
from peakline.memory.peak.explained import RESERVED, AllocatorPeak
from peakline.memory.peak.moments import HighMoment, find_high_moments, memory_at
from peakline.memory.savings.answer import Saving
from peakline.memory.signatures import History
from peakline.tables import Profile
from peakline.text import allocator_text, counted, share_text, size_text, time_text
from peakline.trace.steps import step_phrase, step_text

_WITHOUT_OPS = (
    "the dump has sizes alone; TensorFlow lists a step's tensors by op with "
    "RunOptions(report_tensor_allocations_upon_oom=True)"
)
_TITLE = 72
_SAVINGS = 5
_WORTH = 0.1
"""Savings of this share of the peak are shown, ..."""
_WORTH_BYTES = 2**20
"""... from so many bytes on; other full moments are shown where the peak has so many."""
_NEAR = 0.95
_TURNS = 0.05
"""What is allocated in a step is said when it is this share of the peak."""
_OFTEN = 8
"""A signature is allocated often when a step does it so many times, ..."""
_MUCH = 0.05
"""... and it takes this share of all bytes allocated."""
_KNOWS_STEPS = 100
"""From so many allocations on it is worth a word that nothing sets steps apart."""
_TELLING = 10
"""How long buffers live, and what steps leave, says something where there are so many records."""

_MOMENTS = 4
"""So many moments near the peak that are made of different buffers are looked for."""

_BEHIND = ("op", "bytes", "count", "data_type", "shape")
HOW = {
    "temporary": "compute it in pieces, or fused",
    "program": "see the program's buffers",
    "recompute": "recompute it after the peak",
    "offload": "move it to the host meanwhile",
    "older_copy": "drop the older ones first",
    "smaller_batch": "halve it, if it is the batch",
}
"""What each kind of saving takes."""


def memory_headline(
    profile: Profile, peaks: Sequence[AllocatorPeak], labels: Mapping[int, str]
) -> str:
    """How much the fullest allocator holds at its peak, when, and the op with most of it."""
    if not peaks:
        return ""
    peak = max(peaks, key=lambda one: one.peak_bytes)
    text = "".join(phrase.text for phrase in peak_phrases(profile, peak, labels))
    if len(peaks) < 2:
        return text
    name = shown_names(profile).get(peak.allocator, peak.allocator)
    return f"{allocator_text(name)}: {text} ({counted(len(peaks) - 1, 'more allocator')})"


def allocator_facts(
    profile: Profile,
    peak: AllocatorPeak,
    answer: MemoryAnswer,
    labels: Mapping[int, str],
    *,
    moment: bool,
) -> list[Fact]:
    """What is known of an allocator at its peak, or at the one ``moment`` of a file."""
    if moment:
        facts = _moment_facts(peak, listed=only_listed(profile, peak.allocator))
    else:
        facts = peak_facts(peak, answer.step, labels)
    reserved = reserved_of(profile, peak)
    if reserved is None:
        return facts
    first = facts[0] if moment else replace(facts[0], label=f"{facts[0].label} allocated")
    return [first, *facts[1:], *_reserved_facts(reserved, moment=moment)]


def explained(
    profile: Profile,
    peak: AllocatorPeak,
    details: MemoryDetails | None,
    answer: MemoryAnswer,
    labels: Mapping[int, str],
    *,
    moment: bool,
) -> tuple[list[Fact], list[Table]]:
    """All that is said of an allocator but for what is live at its peak: facts, what would lower
    the peak, and other moments that are almost as full. Tables may have no rows.
    """
    facts = allocator_facts(profile, peak, answer, labels, moment=moment)
    if details is None:
        return facts, []
    tables = [savings_table(worth_saving(details.savings, peak))]
    if answer.history is not None and not moment and answer.step is None:
        # With a step, all but the savings would be of another time.
        facts += detail_facts(peak, details, answer.history)
        number = answer.history.lifetimes.allocators.index(peak.allocator)
        moments = find_high_moments(answer.history, number, most=_MOMENTS)
        tables.append(moments_table(moments, labels))
    return facts, tables


def peak_facts(peak: AllocatorPeak, step: int | None, labels: Mapping[int, str]) -> list[Fact]:
    """The peak and what the allocator's records say; with a ``step``, of the time it ran."""
    title = "peak" if step is None else f"peak while {step_phrase(step, labels)} ran"
    if peak.untracked_allocations and not peak.peak_bytes:
        facts = [Fact(title, "not known: its records have no ids, so no buffer can be followed")]
    else:
        when = f" ({peak.peak_bytes:,} bytes) at {time_text(peak.peak_time_ps)}"
        if peak.peak_step is not None:
            when += f" in {step_phrase(peak.peak_step, labels)}"
        facts = [Fact(title, peak.peak_bytes, "bytes", when)]
    if peak.capacity_bytes:
        share = f", the peak takes {share_text(peak.peak_bytes, peak.capacity_bytes)}"
        facts.append(Fact("capacity", peak.capacity_bytes, "bytes", share))
    if peak.pool_bytes is not None:
        facts.append(Fact("reserved", peak.pool_bytes, "bytes", " of the device at the peak"))
    if peak.lifetime_peak_bytes is not None:
        note = " as the allocator reported"
        reserved = sum(b.bytes for b in peak.peak_buffers if b.op == RESERVED)
        if peak.lifetime_peak_bytes < peak.peak_bytes and reserved:
            note += f" for its heap, without the {size_text(reserved)} reserved outside it"
        facts.append(Fact("lifetime peak", peak.lifetime_peak_bytes, "bytes", note))
    if peak.fragmentation_at_peak is not None:
        facts.append(Fact("fragmentation", peak.fragmentation_at_peak, "share", " at the peak"))
    ends = counted(peak.deallocations, "deallocation")
    counts = f"{counted(peak.allocations, 'allocation')}, {ends}"
    if peak.unmatched_deallocations:
        counts += f", {peak.unmatched_deallocations:,} of them unmatched"
    if peak.untracked_allocations:
        counts += f"; {counted(peak.untracked_allocations, 'record')} untracked"
    return [
        *facts,
        Fact("records", counts),
        Fact("live at the end", peak.live_at_end_bytes, "bytes"),
    ]


def _moment_facts(peak: AllocatorPeak, *, listed: bool) -> list[Fact]:
    """What was in use at the one moment of a file; ``listed``: it lists but a part of it."""
    count = sum(buffer.count for buffer in peak.peak_buffers)
    held = f" ({peak.peak_bytes:,} bytes) in {counted(count, 'buffer')}"
    if listed:
        held += ", which need not be all that was in use"
        return [Fact("listed", peak.peak_bytes, "bytes", held)]
    facts = [Fact("in use", peak.peak_bytes, "bytes", held)]
    if peak.capacity_bytes:
        share = f", {peak.peak_bytes / peak.capacity_bytes:.1%} of it in use"
        facts.append(Fact("capacity", peak.capacity_bytes, "bytes", share))
    chunks = sum(b.count for b in peak.peak_buffers if not b.op and b.region_type[:5] == "chunk")
    if chunks:
        facts.append(Fact("ops", f"no op recorded for {counted(chunks, 'chunk')}: {_WITHOUT_OPS}"))
    return facts


def _reserved_facts(reserved: Reserved, *, moment: bool) -> list[Fact]:
    """What PyTorch's allocator has of the device, in PyTorch's words."""
    size = size_text(reserved.reserved_bytes)
    if not moment:
        size = f"{size_text(reserved.at_peak_bytes)} at the peak, {size} at the end"
    of_it = f"{size_text(reserved.allocated_bytes)} allocated"
    if reserved.awaiting_free_bytes:
        of_it += f", {size_text(reserved.awaiting_free_bytes)} awaiting free"
    of_it += f", {size_text(reserved.free_bytes)} free"
    of_it += f"; {size_text(reserved.requested_bytes)} were requested"
    return [
        Fact("reserved", f"{size}; nvidia-smi shows this and the CUDA context"),
        Fact("of it" if moment else "of it at the end", of_it),
    ]


def detail_facts(peak: AllocatorPeak, details: MemoryDetails, history: History) -> list[Fact]:
    """How many steps of the profile come near the peak, what they leave and take.

    An allocator with few records gets none.
    """
    if peak.allocations + peak.deallocations < _TELLING:
        return []
    facts = []
    growth, steps = details.growth, details.churn.steps
    unit = "step" if growth is None else growth.marks.unit
    if growth is not None and unit != "step":
        facts.append(Fact("steps found", growth.marks.detail))
    if growth is not None and steps is not None and growth.total.any():
        what = counted(steps, unit)
        if growth.stride == 1:
            near = steps_near(history, growth)
            facts.append(Fact("near the peak", f"within 5% of it in {near:,} of {what}"))
        first, last = (size_text(int(growth.total[at])) for at in (0, -1))
        left = f"{first} in use after the first of {what}, {last} after the last"
        facts.append(Fact(f"between {unit}s", left))
    elif steps is None and peak.allocations >= _KNOWS_STEPS:
        unknown = "not known: neither steps nor a period in the allocations"
        facts.append(Fact("between steps", unknown))
    return facts + _handed_out(details.churn, unit)


def steps_near(history: History, growth: AllocatorGrowth) -> int:
    """In how many steps the memory in use came within 5 % of the most of the whole profile."""
    import numpy as np

    own = history.rows_of(history.lifetimes.allocators.index(growth.allocator))
    used = history.used[own]
    bounds = np.searchsorted(own, np.append(growth.marks.start, growth.marks.rows))
    # What is in use when a step begins is in use in it, whether or not it has records.
    tops = [
        used[max(first - 1, 0) : end].max(initial=0) for first, end in pairwise(bounds.tolist())
    ]
    return int((np.array(tops) >= _NEAR * used.max(initial=0)).sum())


def _handed_out(churn: AllocatorChurn, unit: str) -> list[Fact]:
    turnover, per_step = churn.turnover, churn.bytes_per_step
    if turnover is None or per_step is None or (churn.steps or 0) < 2 or turnover < _TURNS:
        return []
    steps = churn.steps or 1
    count = counted(round(churn.allocations / steps), "allocation")
    note = f" per {unit} in {count}, {turnover:.1f} times the peak"
    often = [
        one
        for one in churn.signatures
        if one.allocations >= _OFTEN * steps and one.bytes >= _MUCH * churn.bytes
    ]
    if often:
        most = max(often, key=lambda one: one.allocations)
        title = most.signature.title
        # The end of a title says most: the op's name, and the shape.
        title = title if len(title) <= _TITLE else f"…{title[1 - _TITLE :]}"
        note += f"; {title} {most.allocations / steps:,.0f} times"
    return [Fact("allocated", round(per_step), "bytes", note)]


def worth_saving(savings: Iterable[Saving], peak: AllocatorPeak) -> list[Saving]:
    """The savings that are shown, most bytes first.

    Not the pieces of the pool: they have a finding, and do not count at the peak.
    """
    if peak.allocations + peak.deallocations < _TELLING:
        return []
    least = max(_WORTH * peak.peak_bytes, _WORTH_BYTES)
    worth = [saving for saving in savings if saving.bytes >= least and saving.kind in HOW]
    return worth[:_SAVINGS]


def savings_table(worth: Sequence[Saving]) -> Table:
    """What would lower the peak, and where it differs how much of that is sure."""
    is_sure = all(one.lower_bytes == one.bytes for one in worth)
    sure = {} if is_sure else {"at_least": "bytes"}
    columns = columns_of(saves="bytes", **sure, peak_then="bytes", how="", what="name")
    rows = [
        (
            one.bytes,
            *(() if is_sure else (one.lower_bytes,)),
            one.peak_after,
            HOW[one.kind] + ("" if one.cost_ps is None else f", {time_text(one.cost_ps)}"),
            one.title,
        )
        for one in worth
    ]
    title = "what would lower the peak"
    return Table(f"{title}, each alone" if len(rows) > 1 else title, columns, rows)


def behind_table(worth: Iterable[Saving], title: str) -> Table:
    """The buffers behind savings."""
    columns = columns_of("op", "size", "count", "type", "shape", saving="name")
    rows: list[Row] = [
        [
            *(value_of(row[name]) or ("(no op)" if name == "op" else "") for name in _BEHIND),
            saving.title,
        ]
        for saving in worth
        for row in saving.rows
    ]
    return Table(title, columns, rows)


def less_fragmentation(saving: Saving) -> str:
    """What is said of a saving of the pool, which is none of the peak."""
    return (
        f"Less fragmentation would let the allocator's pool be up to {size_text(saving.bytes)} "
        f"smaller, which is needed only because what was free lay in pieces; the peak of memory "
        f"in use stays as it is. {saving.suggestion}"
    )


def moments_table(moments: Sequence[HighMoment], labels: Mapping[int, str]) -> Table:
    """Other moments that are almost as full, of much that the fullest does not have."""
    rows: list[Row] = []
    peak = moments[0].memory.peak_bytes if moments else 0
    if peak >= _WORTH_BYTES:
        first = _by_buffer(moments[0].memory)
        for moment in moments[1:]:
            memory = moment.memory
            more = {what: size - first.get(what, 0) for what, size in _by_buffer(memory).items()}
            what, size = max(more.items(), key=lambda item: item[1], default=(("",), 0))
            if size < _WORTH * peak:
                continue
            sentence = f"{size_text(size)} {' '.join(filter(None, what))}"
            step = step_text(memory.peak_step, labels)
            rows.append(
                (memory.peak_bytes, len(moment.times_ps), memory.peak_time_ps, step, sentence)
            )
    columns = columns_of(size="bytes", times="count", at="ps", step="", more_than_at_the_peak="")
    return Table("almost as full, of other buffers", columns, rows)


def _by_buffer(memory: AllocatorPeak) -> dict[tuple[str, ...], int]:
    result: dict[tuple[str, ...], int] = {}
    for buffer in memory.peak_buffers:
        what = (buffer.op or "(no op)", buffer.data_type, buffer.shape)
        result[what] = result.get(what, 0) + buffer.bytes
    return result


def memory_document(
    profile: Profile,
    answer: MemoryAnswer | None = None,
    *,
    at_ps: int | None = None,
    live: Sequence[AllocatorPeak] = (),
) -> dict[str, object]:
    """What ``peakline memory --json`` prints, of ``answer`` where it is known already.

    With a time ``at_ps``, in picoseconds, also what was ``live`` then, under ``at``.
    """
    answer = answer_memory(profile) if answer is None else answer
    programs = ProgramDocuments()
    document = answer_document(
        profile,
        {
            "allocators": _allocators(profile, answer, programs),
            "programs": [programs.need(need) for need in device_needs(profile)],
            "failed_programs": [programs.failure(one) for one in explained_failures(profile)],
            "findings": [finding.as_json() for finding in answer.findings],
            "to_record": [answer.to_record] if answer.to_record else [],
        },
    )
    if at_ps is None:
        return document
    return document | {"at": at_json(at_ps, live)}


def _allocators(
    profile: Profile, answer: MemoryAnswer, programs: ProgramDocuments
) -> list[dict[str, object]]:
    """Every allocator's peak, and the analyses of what led to it."""
    if answer.history is None:
        return [peak.as_json() for peak in answer.allocators]
    allocators = []
    for peak, details in zip(answer.allocators, answer.details, strict=True):
        number = answer.history.lifetimes.allocators.index(peak.allocator)
        moments = find_high_moments(answer.history, number)
        reserved = reserved_of(profile, peak)
        program = program_at_peak(profile, peak)
        behind = details_json(details, peak) | {
            "program_at_peak": None if program is None else programs.program(program),
            "high_moments": moments_json(moments),
            "reserved": None if reserved is None else asdict(reserved),
        }
        allocators.append(peak.as_json() | behind)
    return allocators


def live_at(answer: MemoryAnswer, at_ps: int, allocator: str | None) -> Sequence[AllocatorPeak]:
    """What every allocator, or that one, held at a time in picoseconds; nothing where the profile
    has no records.
    """
    if answer.history is None:
        return ()
    return memory_at(answer.history, at_ps, allocator=allocator)
