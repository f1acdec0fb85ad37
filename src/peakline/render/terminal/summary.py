"""Memory and time on one screen."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich.text import Text

from peakline.findings.summary import FIRST, top_ops
from peakline.memory.allocator_names import shown_names
from peakline.render.document.profile import labels_of, step_phrase
from peakline.render.terminal.screen import indented, plain_table, show
from peakline.render.terminal.time_parts import cut_middle, profile_line
from peakline.text import counted, one_line, shares_text, size_text, time_text

if TYPE_CHECKING:
    from rich.console import RenderableType

    from peakline.api import Profile
    from peakline.findings.memory_answer import MemoryAnswer
    from peakline.findings.ranking import Priority
    from peakline.findings.time_answer import TimeAnswer

_ALLOCATORS, _DEVICES, _PARTS = 4, 4, 4
_NAME = 60
_LEAST = 0.005
"""Half a per cent is the least that is shown as one."""
_VERBS = {"memory": "peakline memory", "time": "peakline steps"}


def print_summary(
    profile: Profile, memory: MemoryAnswer, time: TimeAnswer, first: Sequence[Priority]
) -> None:
    """Print what memory and time do, then what to fix first."""
    told = _time(profile, time)
    parts: list[RenderableType] = [profile_line(profile, moment=not profile.duration_ps)]
    rows = [*_memory(profile, memory), *told]
    if rows:
        table = plain_table(("", "", ""), rows)
        table.show_header = False
        parts += ["", table]
    else:
        parts += ["", Text(_neither(profile))]
    unjudged = bool(told) and time.times is None
    parts += ["", *_first(first, shown_names(profile), unjudged=unjudged)] if rows or first else []
    show(parts)


def _neither(profile: Profile) -> str:
    graph = "; peakline graph tells of its graph" if "nodes" in profile.tables else ""
    return f"neither memory nor time in this profile{graph}"


def _memory(profile: Profile, answer: MemoryAnswer) -> list[tuple[str, str, str]]:
    from peakline.memory.oom import only_listed
    from peakline.memory.reserved import reserved_of
    from peakline.tables.profile_facts import is_moment

    moment, names = is_moment(profile), shown_names(profile)
    labels = labels_of(profile.columns_or_empty("steps")) if answer.allocators else {}
    peaks = sorted(answer.allocators, key=lambda peak: -peak.peak_bytes)
    rows: list[tuple[str, str, str]] = []
    for peak in peaks[:_ALLOCATORS]:
        name = names.get(peak.allocator, peak.allocator) or "(unnamed allocator)"
        if peak.untracked_allocations and not peak.peak_bytes:
            told = "not known: its records have no ids, so no buffer can be followed"
            rows.append(("memory" if not rows else "", name, told))
            continue
        size = size_text(peak.peak_bytes)
        # A file of one moment knows no peak.
        told = f"peak {size} at {time_text(peak.peak_time_ps)}"
        if moment:
            told = f"{'listed' if only_listed(profile, peak.allocator) else 'in use'} {size}"
        reserved = reserved_of(profile, peak)
        if peak.peak_step is not None:
            told += f" in {step_phrase(peak.peak_step, labels)}"
        if peak.capacity_bytes and peak.peak_bytes >= _LEAST * peak.capacity_bytes:
            told += f", {peak.peak_bytes / peak.capacity_bytes:.0%} of the capacity"
        if reserved is not None:
            told = told.replace(size, size if moment else f"{size} allocated", 1)
            told += f", {size_text(reserved.at_peak_bytes)} reserved"
        most = max(peak.peak_buffers, key=lambda buffer: buffer.bytes, default=None)
        if most is not None and peak.peak_bytes:
            share = most.bytes / peak.peak_bytes
            what = most.op or (f"{most.region_type}, no op recorded" if moment else "(no op)")
            told += f"; {share:.0%} of it {_cut(what.removeprefix(', '))}"
        rows.append(("memory" if not rows else "", name, told))
    if len(peaks) > _ALLOCATORS:
        rows.append(("", "", f"and {counted(len(peaks) - _ALLOCATORS, 'more allocator')}"))
    return rows


def _time(profile: Profile, answer: TimeAnswer) -> list[tuple[str, str, str]]:
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
        told = [f"{text} {part[1]}" for part, text in zip(parts, shares, strict=True)]
        rows.append(
            ("where it goes", ", ".join(one for one in told[:_PARTS] if not one.startswith("0%")))
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
        whose = (
            "of the ops' time on the host" if op["side"] == "host" else "of the devices' op time"
        )
        share = f" {op['share']:.0%}" + (f" {whose}" if not place else "")
        beside = " (input pipeline)" if op["is_input"] else ""
        head = "ops with the most self time" if not place else ""
        rows.append((head, f"{_cut(str(op['op']))}{share}{beside}"))
    if rows and times is None:
        rows.append(("steps", "none are marked"))
    if rows:
        rows += [("to record", line) for line in answer.to_record]
    return [("time" if not place else "", *row) for place, row in enumerate(rows)]


def _first(
    first: Sequence[Priority], names: dict[str, str], *, unjudged: bool
) -> list[RenderableType]:
    if not first:
        but = "; what a step takes is not judged, none are marked" if unjudged else ""
        return [Text(f"nothing stands out{but}", style="bold")]
    parts: list[RenderableType] = [Text("to fix first", style="bold")]
    for number, one in enumerate(first[:FIRST], 1):
        finding = one.finding
        words = f"{number}. {finding.severity} ({one.about}): {finding.title_with(names)}"
        parts += [
            indented(Text(one_line(words), style="bold yellow")),
            indented(indented(Text(one_line(finding.suggestion)))),
        ]
    if len(first) > FIRST:
        others = {one.about for one in first[FIRST:]}
        verbs = [verb for about, verb in _VERBS.items() if about in others]
        parts.append(indented(Text(f"and {len(first) - FIRST} more: {', '.join(verbs)}")))
    return parts


def _cut(text: str) -> str:
    return cut_middle(text, _NAME)
