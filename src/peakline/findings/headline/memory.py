"""What is said first of memory: why it failed, the peak, and what would make it smaller."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from peakline.findings.headline.sentence import Phrase, Sentence
from peakline.findings.kinds.out_of_memory import headline_of, requester
from peakline.findings.memory_answer import failures_of
from peakline.findings.program_memory import device_needs
from peakline.memory.allocator_names import shown_names
from peakline.memory.fit.answer import SCARCE
from peakline.memory.fragmentation.segments import reserved_of
from peakline.memory.oom import OTHER_KINDS, only_listed, with_limits
from peakline.memory.origins.behind import described_records
from peakline.memory.over_time.live import memory_records
from peakline.memory.peak.explained import find_peaks
from peakline.safe_text import cut_middle
from peakline.tables.profile_facts import is_moment
from peakline.text import allocator_text, counted, size_text, time_text
from peakline.trace.steps import labels_of, step_phrase

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from peakline.findings.memory_answer import MemoryAnswer
    from peakline.memory.fragmentation.segments import Reserved
    from peakline.memory.oom import Failure
    from peakline.memory.peak.explained import AllocatorPeak
    from peakline.tables import Profile

_NAME = 60
_LEAST = 0.005
"""Half a per cent is the least that is shown as one."""
WASTED = 0.2
"""Memory taken by rounding is worth a sentence from this share of the peak on, ..."""
_WORTH_BYTES = 1 << 20
"""... and so many bytes."""
SAVED = 0.25
"""A saving of this share of a scarce memory stands out, ..."""
_SAVED_LEAST = 0.1
"""... one of this share of any peak is said, from as many bytes on."""


def peak_phrases(
    profile: Profile, peak: AllocatorPeak, labels: Mapping[int, str]
) -> tuple[Phrase, ...]:
    """How much an allocator has at its peak, when, and most of it by whom."""
    if peak.untracked_allocations and not peak.peak_bytes:
        return (Phrase("not known: its records have no ids, so no buffer can be followed"),)
    moment, reserved = is_moment(profile), reserved_of(profile, peak)
    here: dict[str, str | int] = {"allocator": peak.allocator}
    if not moment:
        here["at"] = peak.peak_time_ps
    size = Phrase(size_text(peak.peak_bytes), "memory", here)
    if moment:
        listed = only_listed(profile, peak.allocator)
        result = [Phrase("listed " if listed else "in use "), size]
    else:
        allocated = "" if reserved is None else " allocated"
        result = [Phrase("peak "), size, Phrase(f"{allocated} at ")]
        result.append(Phrase(time_text(peak.peak_time_ps), "timeline", {"at": peak.peak_time_ps}))
    if peak.peak_step is not None:
        name = labels.get(peak.peak_step) or str(peak.peak_step)
        text = step_phrase(peak.peak_step, labels)
        result += [Phrase(" in "), Phrase(text, "steps", {"name": name})]
    result.append(Phrase(_shares(peak, reserved)))
    result += _made_of(peak, here, moment=moment)
    return tuple(phrase for phrase in result if phrase.text)


def _made_of(peak: AllocatorPeak, here: dict[str, str | int], *, moment: bool) -> list[Phrase]:
    """The op with most of the peak; what was there without an op before it, where that is more."""
    if not peak.peak_bytes or not peak.peak_buffers:
        return []
    largest = peak.largest_op
    name, size = max(peak.op_bytes.items(), key=lambda one: one[1])
    result = []
    if largest is None or size > largest[1]:
        if not name:
            # Rows without an op may differ by what else is known of them.
            rows = (buffer for buffer in peak.peak_buffers if not buffer.op)
            row = max(rows, key=lambda buffer: buffer.bytes)
            size = row.bytes
            region = f"{row.region_type}, " if moment and row.region_type else "with "
            name = f"{region}no op recorded"
        result = [Phrase(f"; {size / peak.peak_bytes:.0%} of it "), Phrase(name)]
    if largest is not None and largest[1] >= _LEAST * peak.peak_bytes:
        share = f"{largest[1] / peak.peak_bytes:.0%} "
        result.append(Phrase(f", {share}" if result else f"; {share}of it "))
        op = cut_middle(largest[0], _NAME)
        result.append(Phrase(op, "memory", {**here, "op": largest[0]}))
    return result


def _shares(peak: AllocatorPeak, reserved: Reserved | None) -> str:
    text = ""
    if peak.capacity_bytes and peak.peak_bytes >= _LEAST * peak.capacity_bytes:
        text += f", {peak.peak_bytes / peak.capacity_bytes:.0%} of the capacity"
    if reserved is not None:
        text += f", {size_text(reserved.at_peak_bytes)} reserved"
    return text


def memory_headline(profile: Profile) -> tuple[Sentence, ...]:
    """The failure if there was one, the fullest allocator's peak, and what rounding takes of it;
    what compiled programs need where no allocator recorded anything. None of it takes the findings.

    Raises InputError when the profile cannot be read.
    """
    result = [failure_sentence(one.failures[0]) for one in failures_of(profile)[:1]]
    records = memory_records(profile)
    if records is None:
        return (*result, *_needs(profile))
    found_peaks = find_peaks(
        records.events, lifetimes=records.lifetimes, descriptions=described_records(profile)
    )
    peaks = with_limits(profile, found_peaks)
    fullest = max(peaks, key=_fullness, default=None)
    if fullest is None:
        return tuple(result)
    labels = labels_of(profile.columns_or_empty("steps"))
    result.append(Sentence("peak", _named(profile, fullest, peaks, labels)))
    moment = records.at_peak(records.allocators.index(fullest.allocator))
    if moment is not None and moment.buffers.size:
        requested = records.events.array("requested_bytes")[moment.buffers]
        known = records.events.is_valid("requested_bytes")[moment.buffers]
        wasted = int(np.where(known, moment.buffer_bytes - requested, 0).sum())
        result += _rounding(fullest, wasted)
    return tuple(result)


def notable_memory(answer: MemoryAnswer) -> tuple[Sentence, ...]:
    """What stands out of an answer's memory beside its findings: rounding, savings."""
    result = []
    for one in answer.details:
        if one.at_peak is not None:
            result += _rounding(one.peak, int((one.at_peak.bytes - one.at_peak.requested).sum()))
    return (*result, *(saving for saving in savings_headline(answer) if saving.is_notable))


def savings_headline(answer: MemoryAnswer) -> tuple[Sentence, ...]:
    """What would lower the peak of each allocator most, from a tenth of it on."""
    failed = {one.evidence.get("allocator") for one in answer.findings if one.severity == "error"}
    result = []
    for one in answer.details:
        least = max(_SAVED_LEAST * one.peak.peak_bytes, _WORTH_BYTES)
        lower = [s for s in one.savings if s.bytes >= least and s.kind != "fragmentation"]
        if not lower:
            continue
        best = max(lower, key=lambda saving: saving.bytes)
        peaks = [peak for peak in answer.allocators if peak.allocator == one.allocator]
        capacity = max((peak.capacity_bytes or 0 for peak in peaks), default=0)
        full = one.peak.peak_bytes
        # Where nothing says how much there is, it may be.
        is_scarce = one.allocator in failed or SCARCE * capacity <= full
        here: dict[str, str | int] = {"allocator": one.allocator, "at": one.peak.peak_time_ps}
        whose = f"{allocator_text(one.allocator)}: " if len(answer.details) > 1 else ""
        phrases = (
            Phrase(f"{whose}without "),
            Phrase(cut_middle(best.title, _NAME), "memory", here),
            Phrase(
                f" the peak would be {size_text(best.peak_after)} instead of {size_text(full)}"
                f" ({best.bytes / max(full, 1):.0%} less)"
            ),
        )
        result.append(Sentence("saving", phrases, is_scarce and best.bytes >= SAVED * full))
    return tuple(result)


def _fullness(peak: AllocatorPeak) -> tuple[float, int]:
    """What makes an allocator the one to say first: how near it is to its capacity, then bytes."""
    share = peak.peak_bytes / peak.capacity_bytes if peak.capacity_bytes else 0.0
    return (share if share >= SCARCE else 0.0, peak.peak_bytes)


def _named(
    profile: Profile, peak: AllocatorPeak, peaks: Sequence[AllocatorPeak], labels: Mapping[int, str]
) -> tuple[Phrase, ...]:
    phrases = peak_phrases(profile, peak, labels)
    if len(peaks) < 2:
        return phrases
    name = allocator_text(shown_names(profile).get(peak.allocator, peak.allocator))
    others = len(peaks) - 1
    more = Phrase(counted(others, "more allocator"), "memory", {})
    return (Phrase(f"{name}: "), *phrases, Phrase("; "), more)


def _rounding(peak: AllocatorPeak, wasted: int) -> list[Sentence]:
    """What allocations take beyond what was requested, where that is worth a sentence."""
    if wasted < max(WASTED * peak.peak_bytes, _WORTH_BYTES):
        return []
    here: dict[str, str | int] = {"allocator": peak.allocator, "at": peak.peak_time_ps}
    phrases = (
        Phrase("rounding takes "),
        Phrase(size_text(wasted), "memory", here),
        Phrase(f" of the {size_text(peak.peak_bytes)}: more than was requested"),
    )
    return [Sentence("rounding", phrases, is_notable=True)]


def failure_sentence(failure: Failure) -> Sentence:
    """Which allocator ran out of memory, for how much, and which op requested it."""
    size, op, allocator = failure.requested_bytes, failure.op, failure.allocator
    by = cut_middle(requester(failure) if size is not None else op or "", _NAME)
    what = headline_of(failure) if failure.kind in OTHER_KINDS else ""
    if what and size is None:
        first = Phrase(what, "memory", {"allocator": allocator})
        rest = [Phrase(f": {by}")] if by else []
        return Sentence("failure", (first, *rest), is_notable=True)
    wanted = "memory" if size is None else size_text(size)
    word = " needed" if failure.kind in {"program", "cache_budget"} else " requested"
    phrases = (
        Phrase(f"{what or allocator_text(allocator) + ' ran out of memory'}: "),
        Phrase(wanted, "memory", {"allocator": allocator}),
        Phrase(f"{word} {by}" if op else word),
    )
    return Sentence("failure", phrases, is_notable=True)


def _needs(profile: Profile) -> list[Sentence]:
    """What the largest compiled program needs, where nothing else says anything."""
    needs = device_needs(profile)
    if not needs:
        return []
    need = max(needs, key=lambda one: one.bytes)
    least = "at least " if need.is_run else ""
    phrases = (
        Phrase(f"compiled program {cut_middle(need.program.label, _NAME)} needs {least}"),
        Phrase(
            size_text(need.bytes), "memory", {"programs": "true", "program": need.program.graph}
        ),
    )
    return [Sentence("need", phrases)]
