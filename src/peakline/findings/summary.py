"""Memory and time in short, and what to fix first: what ``peakline summary`` says."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from typing import TYPE_CHECKING

from peakline.findings.finding import SEVERITIES
from peakline.findings.headline.memory import notable_memory
from peakline.findings.headline.time import notable_time
from peakline.findings.memory_answer import answer_memory, memory_of
from peakline.findings.program_memory import device_needs
from peakline.findings.ranking import priorities
from peakline.findings.time_answer import answer_time, top_ops
from peakline.memory.oom import with_limits
from peakline.memory.over_time.live import memory_records
from peakline.memory.peak.explained import find_peaks
from peakline.tables.profile_facts import facts_of, warnings_document

if TYPE_CHECKING:
    from peakline.findings.headline.sentence import Sentence
    from peakline.findings.memory_answer import MemoryAnswer
    from peakline.findings.time_answer import TimeAnswer
    from peakline.memory.peak.explained import AllocatorPeak
    from peakline.tables import Profile

_RECORDS = "allocator_events"

FIRST = 3
"""So many findings are shown in full: whoever fixes three things profiles again."""
_PEAK = (
    "allocator",
    "peak_bytes",
    "peak_time_ps",
    "peak_step",
    "capacity_bytes",
    "untracked_allocations",
)

Document = dict[str, object]


def answers_of(
    profile: Profile, *, is_last: bool = False, seen: Callable[[MemoryAnswer], object] | None = None
) -> tuple[MemoryAnswer, TimeAnswer]:
    """What memory does and what time does, from one pass over the file where it can give both.

    ``is_last`` says that nobody asks for the memory's records any more: they are given up before
    the events are looked at, and the answer is without its history. ``seen`` is called with the
    memory's answer before.
    """
    profile.expect("events", _RECORDS)
    memory = answer_memory(profile)
    if seen is not None:
        seen(memory)
    if is_last and _RECORDS in profile.tables:
        memory = replace(memory, history=None)
        profile.release(_RECORDS)
    return memory, answer_time(profile)


def notable_of(memory: MemoryAnswer, time: TimeAnswer) -> tuple[Sentence, ...]:
    """What stands out besides the findings: as long as there is any, not nothing does."""
    return (*notable_memory(memory), *notable_time(time.steps))


def summary_document(
    profile: Profile, *, path: str | None = None, is_last: bool = False
) -> Document:
    """What ``peakline summary --json`` prints; ``path`` stands in place of the profile's.

    ``is_last`` is that of `answers_of`. Raises InputError when the profile cannot be read.
    """
    memory, time = answers_of(profile, is_last=is_last)
    facts, judged = facts_of(profile, path).as_json(), _judged(profile, memory, time)
    return {
        "profile": facts,
        "memory": _allocators(memory.allocators),
        "fits": judged.pop("fits"),
        "programs": [] if memory.allocators else _needs(profile),
        "time": _time(profile, time),
        **judged,
    }


def summary_part(profile: Profile, part: str, *, path: str | None = None) -> Document:
    """One part of `summary_document`, so that what is quick is there before the findings are.

    ``facts`` has ``profile``; ``memory`` what is called so and ``programs``; ``time`` what is
    called so; ``findings`` all the rest. Raises InputError when the profile cannot be read.
    """
    # Whichever comes first reads the file once for all of them.
    profile.expect("events", _RECORDS)
    if part == "facts":
        return {"profile": facts_of(profile, path).as_json()}
    if part == "memory":
        peaks = _peaks(profile)
        return {"memory": peaks, "programs": [] if peaks else _needs(profile)}
    time = answer_time(profile)
    if part == "time":
        return {"time": _time(profile, time)}
    return _judged(profile, memory_of(profile), time)


def _judged(profile: Profile, memory: MemoryAnswer, time: TimeAnswer) -> Document:
    """What takes the findings of both."""
    first = priorities(memory.findings, time.findings)
    counts = Counter(one.finding.severity for one in first)
    return {
        "fits": [one.as_short_json() for one in memory.fits],
        "notable": [one.as_json() for one in notable_of(memory, time)],
        "first": [one.as_json() for one in first[:FIRST]],
        "further_findings": len(first[FIRST:]),
        "findings": {severity: counts[severity] for severity in SEVERITIES},
        "warnings": warnings_document(profile.concerning),
    }


def _peaks(profile: Profile) -> Document | None:
    """As the whole answer has them, from the records alone."""
    records = memory_records(profile)
    if records is None:
        return None
    peaks = with_limits(profile, find_peaks(records.events, lifetimes=records.lifetimes))
    return _allocators(peaks)


def _needs(profile: Profile) -> list[Document]:
    """What each device needs by its programs, where the profile has no memory events."""
    return [need.as_json() for need in device_needs(profile)]


def _allocators(peaks: Sequence[AllocatorPeak]) -> Document | None:
    if not peaks:
        return None
    return {"allocators": [{name: getattr(peak, name) for name in _PEAK} for peak in peaks]}


def _time(profile: Profile, answer: TimeAnswer) -> Document | None:
    ops = top_ops(profile)
    if answer.times is None and not answer.devices.rows and not ops:
        return None
    return {
        "steps": answer.steps.number_of_steps,
        **answer.in_short(),
        "top_ops": [asdict(op) for op in ops],
    }
