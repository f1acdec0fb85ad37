"""What is said of a whole profile in a few lines: memory, then time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from peakline.document import limits
from peakline.document.fit import short_text, verb_of
from peakline.document.model import capital
from peakline.document.ops import printed_text
from peakline.document.program_memory import devices_text, failure_text, needs_by_program
from peakline.document.steps import utilisation_facts
from peakline.findings.catalogue import kinds
from peakline.findings.failed_programs import explained_failures
from peakline.findings.headline.memory import peak_phrases
from peakline.findings.memory_answer import MemoryAnswer, failures_of
from peakline.findings.program_memory import device_needs
from peakline.findings.recording_advice import to_count_memory
from peakline.findings.time_answer import TimeAnswer, top_ops
from peakline.memory.allocator_names import shown_names
from peakline.safe_text import cut_middle
from peakline.tables import Profile
from peakline.text import allocator_text, counted, shares_text, size_text, time_text
from peakline.timing.ops.printed import printed_times
from peakline.trace.activity import activity_of
from peakline.trace.activity_names import Activity
from peakline.trace.distribution import distribution
from peakline.trace.events import trace_of
from peakline.trace.steps import labels_of

if TYPE_CHECKING:
    from peakline.findings.program_memory import DeviceNeed
    from peakline.findings.ranking import Priority
    from peakline.memory.details import MemoryDetails
    from peakline.memory.peak.explained import AllocatorPeak

_ALLOCATORS, _DEVICES, _PARTS, _FAILED = 4, 4, 4, 2
_NAME = 60
_PRINTED = 3
_LEAST = 0.005
"""Half a per cent is the least that is shown as one."""
Line = tuple[str, str, str]
"""``memory`` or ``time`` in the first one of either, what it is, and what is said of it."""


def is_unread(profile: Profile, answer: TimeAnswer) -> bool:
    """Whether events ran and none of them is known as an op, a step or work of a device."""
    if answer.times is not None or answer.devices.rows or top_ops(profile):
        return False
    trace = trace_of(profile)
    takes_time = trace.end > trace.start
    return bool((activity_of(profile)[takes_time] != Activity.NOTHING).any())


def is_printed(profile: Profile, answer: TimeAnswer) -> bool:
    """Whether nothing is known of time but what a profiler printed."""
    if answer.times is not None or answer.devices.rows or top_ops(profile):
        return False
    return "printed_ops" in profile.tables


def _events(profile: Profile) -> list[tuple[str, str]]:
    """The names that take most time, of events of which nothing else is known."""
    trace = trace_of(profile)
    spread = distribution(trace.name.codes, trace.end - trace.start, len(trace.name.values))
    most = np.argsort(-spread.total, kind="stable")[:_PARTS].tolist()
    names = counted(int(np.count_nonzero(spread.count)), "name")
    first, last = trace.span()
    rows = [("events", f"{counted(trace.size, 'event')} of {names} in {time_text(last - first)}")]
    for place, code in enumerate(most):
        took, median = (time_text(int(of[code])) for of in (spread.total, spread.median))
        runs = counted(int(spread.count[code]), "run")
        name = cut_middle(trace.name.values[code], _NAME)
        if spread.total[code]:
            said = f"{name} {took} in {runs}, {median} each (median)"
            rows.append(("" if place else "most time", said))
    return rows


def _printed(profile: Profile) -> list[tuple[str, str]]:
    """What the tables say that a profiler printed: sums without events."""
    tables = printed_times(profile)
    rows: list[tuple[str, str]] = []
    for one in tables[:_PARTS]:
        about = f" for {cut_middle(one.part, _NAME)}" if one.part else ""
        rows.append((f"{one.side}, printed", f"by {one.source}{about}: {printed_text(one)}"))
        for place, row in enumerate(one.rows[:_PRINTED]):
            head = "" if place else f"most {'self ' if one.has_self else ''}time"
            rows.append((head, f"{cut_middle(row['op'], _NAME)} {one.share(row):.0%}"))
    if len(tables) > _PARTS:
        rows.append(("", f"and {counted(len(tables) - _PARTS, 'more table')}: peakline ops"))
    instead = ", or ".join(dict.fromkeys(one.instead for one in tables))
    return [*rows, ("to record", f"a table has no events, steps or peaks: {instead}")]


def summary_lines(profile: Profile, memory: MemoryAnswer, time: TimeAnswer) -> list[Line]:
    """What memory and time do; none where the profile has neither."""
    return [*_memory(profile, memory), *_time(profile, time)]


def _memory(profile: Profile, answer: MemoryAnswer) -> list[Line]:
    names = shown_names(profile)
    labels = labels_of(profile.columns_or_empty("steps")) if answer.allocators else {}
    peaks = sorted(answer.allocators, key=lambda peak: -peak.peak_bytes)
    rows = [
        (
            allocator_text(names.get(one.allocator, one.allocator)),
            "".join(phrase.text for phrase in peak_phrases(profile, one, labels)),
        )
        for one in peaks[:_ALLOCATORS]
    ]
    if len(peaks) > _ALLOCATORS:
        rows.append(("", f"and {counted(len(peaks) - _ALLOCATORS, 'more allocator')}"))
    if answer.fits:
        rows += [
            (f"{'it' if len(peaks) == 1 else one.allocator} {verb_of(one)}", short_text(one))
            for one in answer.fits
        ]
    # What explains programs is imported where there is something to explain.
    if failures_of(profile):
        failed = dict.fromkeys(failure_text(one) for one in explained_failures(profile))
        rows += [("failed for", text) for text in list(failed)[:_FAILED]]
    if not peaks and profile.programs():
        rows += [_need(devices) for devices in needs_by_program(device_needs(profile))]
        rows[_ALLOCATORS:] = []
    missing = to_count_memory(profile, peaks)
    if not rows and answer.to_record:
        rows = [("events", "none are recorded"), ("to record", answer.to_record)]
    elif missing:
        rows.append(("to record", missing))
    return [("" if place else "memory", *row) for place, row in enumerate(rows)]


def _need(devices: Sequence[DeviceNeed]) -> tuple[str, str]:
    """What the programs that ran on some devices say, where nothing else does."""
    one = devices[0]
    where = devices_text([need.device for need in devices]) or "compiled programs"
    least = f"at least {size_text(one.bytes)}" if one.is_run else size_text(one.bytes)
    return where, f"{least}, which {one.program.label} needs"


def _time(profile: Profile, answer: TimeAnswer) -> list[Line]:
    rows: list[tuple[str, str]] = []
    times, facts = answer.times, answer.steps
    if times is not None:
        span = f", {time_text(times.min_ps)} to {time_text(times.max_ps)}"
        inferred = ", inferred" if facts.is_inferred else ""
        of = f" of {answer.by_name[0][0]}" if answer.by_name else ""
        median = f"{time_text(times.median_ps)}{f' (median{of}){span}' if times.count > 1 else ''}"
        rows.append((f"{counted(facts.number_of_steps, 'step')}{inferred}", median))
        parts = answer.parts()
        shares = shares_text([facts.main.total(name) for name, _, _, _ in parts], 0)
        goes = [f"{text} {part[1]}" for part, text in zip(parts, shares, strict=True)]
        rows += [(fact.label, fact.text) for fact in utilisation_facts(answer)]
        rows.append(
            ("where it goes", ", ".join(one for one in goes[:_PARTS] if not one.startswith("0%")))
        )
    devices = answer.devices.to_pylist()
    for place, row in enumerate(devices[:_DEVICES]):
        span = row["end_ps"] - row["start_ps"]
        busy = row["busy_ps"] / max(span, 1)
        head = "" if place else "device" if len(devices) == 1 else "devices"
        rows.append((head, f"{row['device']} busy {busy:.0%} of {time_text(span)}"))
    if len(devices) > _DEVICES:
        rows.append(("", f"and {counted(len(devices) - _DEVICES, 'more device')}"))
    ops = top_ops(profile)
    for place, op in enumerate(ops):
        if place and op.share < _LEAST:
            break
        whose = "of the ops' time on the host" if op.side == "host" else "of the devices' op time"
        share = f" {op.share:.0%}" + (f" {whose}" if not place else "")
        beside = " (input pipeline)" if op.is_input else ""
        head = "most self time" if not place else ""
        rows.append((head, f"{cut_middle(op.op, _NAME)}{share}{beside}"))
    if is_unread(profile, answer):
        rows = _events(profile)
    elif is_printed(profile, answer):
        rows = _printed(profile)
    elif rows:
        if times is None:
            rows.append(("steps", "none are marked"))
        rows += [("to record", line) for line in answer.to_record]
    return [("time" if not place else "", *row) for place, row in enumerate(rows)]


def verdict(findings: Sequence[Priority]) -> str:
    """What the findings come to, in one sentence."""
    phrases = list(dict.fromkeys(kinds()[one.finding.kind].phrase for one in findings))
    most = limits.PHRASES.report
    listed = _listed(phrases) if len(phrases) <= most else f"{', '.join(phrases[:most])} and more"
    return f"{capital(listed)}."


def no_memory_text(profile: Profile, time: TimeAnswer) -> str:
    """What is said of memory where no record is about it."""
    if profile.programs():
        return (
            "There are no records of memory in this profile; its compiled programs say what they "
            "need."
        )
    if not time.nothing:
        return "There is nothing about memory in this profile."
    return (
        "What records memory: a profile of TensorFlow, of JAX on a GPU or of PyTorch with "
        "profile_memory=True, a memory snapshot of PyTorch, a memory log, RunMetadata."
    )


def looked_for(parts: Sequence[tuple[AllocatorPeak, MemoryDetails]], *, moment: bool) -> str:
    """What was looked for in vain, and what could not be looked for."""
    if moment:
        return (
            "The file says what was in memory at one moment. Whether memory grows, and how it is "
            "used within a step, cannot be seen in it."
        )
    steps = max((len(details.growth.marks) for _, details in parts if details.growth), default=0)
    looked = ["one kind of temporary that makes the peak"]
    missing = []
    if steps:
        looked.insert(0, f"memory that grows ({steps:,} steps)")
        looked.append("buffers made over and over within a step")
    else:
        missing.append("growth (no steps, and no pattern that repeats)")
    if any(details.fragmentation is not None for _, details in parts):
        looked.append("free memory in pieces")
    else:
        missing.append("fragmentation (no addresses)")
    if any(peak.capacity_bytes for peak, _ in parts):
        looked.append("a peak near the capacity")
    else:
        missing.append("how near the peak is to the capacity (the file does not record it)")
    text = f"Looked for, and not found: {_listed(looked)}."
    return text if not missing else f"{text} Could not be looked for: {_listed(missing)}."


def _listed(words: Sequence[str]) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"
