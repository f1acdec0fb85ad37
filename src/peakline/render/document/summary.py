"""What is said of a whole profile in a few lines: memory, then time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from peakline.findings.headline.memory import peak_phrases
from peakline.findings.memory_answer import MemoryAnswer, failures_of
from peakline.findings.recording_advice import to_count_memory
from peakline.findings.step_names import labels_of
from peakline.findings.time_answer import TimeAnswer
from peakline.findings.top_ops import top_ops
from peakline.memory.allocator_names import shown_names
from peakline.render.document.steps import utilisation_facts
from peakline.tables import Profile
from peakline.text import allocator_text, counted, cut_middle, shares_text, size_text, time_text

if TYPE_CHECKING:
    from peakline.findings.program_memory import DeviceNeed

_ALLOCATORS, _DEVICES, _PARTS, _FAILED = 4, 4, 4, 2
_NAME = 60
_LEAST = 0.005
"""Half a per cent is the least that is shown as one."""
Line = tuple[str, str, str]
"""``memory`` or ``time`` in the first one of either, what it is, and what is said of it."""


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
        from peakline.render.document.fit import short_text

        rows += [
            ("it runs" if len(peaks) == 1 else f"{one.allocator} runs", short_text(one))
            for one in answer.fits
        ]
    # What explains programs is imported where there is something to explain.
    if failures_of(profile):
        from peakline.findings.failed_programs import explained_failures
        from peakline.render.document.program_memory import failure_text

        failed = dict.fromkeys(failure_text(one) for one in explained_failures(profile))
        rows += [("failed for", text) for text in list(failed)[:_FAILED]]
    if not peaks and profile.programs():
        from peakline.findings.program_memory import device_needs
        from peakline.render.document.program_memory import needs_by_program

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
    from peakline.render.document.program_memory import devices_text

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
    if rows and times is None:
        rows.append(("steps", "none are marked"))
    if rows:
        rows += [("to record", line) for line in answer.to_record]
    return [("time" if not place else "", *row) for place, row in enumerate(rows)]
