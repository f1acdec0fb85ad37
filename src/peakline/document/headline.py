"""The first line of an answer: the answer in one sentence, before what it is about."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from peakline import findings
from peakline.document.model import text_of
from peakline.memory.oom import only_listed
from peakline.safe_text import cut_middle
from peakline.text import counted, shares_text, size_text, time_text

if TYPE_CHECKING:
    from peakline.api import Profile
    from peakline.compare.comparison import Comparison
    from peakline.document.diff import Change, Part
    from peakline.document.model import Table
    from peakline.findings.memory_answer import MemoryAnswer
    from peakline.findings.ranking import Priority
    from peakline.findings.time_answer import TimeAnswer

_PARTS, _NAME = 2, 60


def summary_headline(
    profile: Profile,
    memory: MemoryAnswer,
    time: TimeAnswer,
    first: Sequence[Priority],
    *,
    moment: bool,
) -> str:
    """What ran out of memory, how much there is, how long a step takes, how much there is to fix;
    empty where nothing of it is known.
    """
    failures = findings.failures_of(profile)
    said = [findings.failure_sentence(one.failures[0]).text for one in failures[:1]]
    peak = max(memory.allocators, key=lambda one: one.peak_bytes, default=None)
    if peak is not None and peak.peak_bytes:
        listed = moment and only_listed(profile, peak.allocator)
        word = "listed" if listed else "in use" if moment else "peak"
        said.append(f"{word} {size_text(peak.peak_bytes)}")
    devices = time.devices.to_pylist()
    if time.times is not None:
        said.append(f"step {time_text(time.times.median_ps)}")
    elif devices:
        most = max(devices, key=lambda one: one["busy_ps"])
        whose = "device" if len(devices) == 1 else f"busiest of {len(devices)} devices"
        share = most["busy_ps"] / max(most["end_ps"] - most["start_ps"], 1)
        said.append(f"{whose} busy {share:.0%}")
    if not said:
        return ""
    return f"{', '.join(said)}; {counted(len(first), 'finding') if first else 'no findings'}"


def steps_headline(answer: TimeAnswer) -> str:
    """How long a step takes, and the parts that take most of it."""
    if answer.times is None:
        return ""
    parts = answer.parts()
    shares = shares_text([answer.steps.main.total(name) for name, *_ in parts], 0)
    goes = [f"{text} {part[1]}" for part, text in zip(parts, shares, strict=True)]
    goes = [one for one in goes[:_PARTS] if not one.startswith("0%")]
    name = f" of {answer.by_name[0][0]}" if answer.by_name else ""
    step = "one step" if answer.times.count == 1 else f"median step{name}"
    length = f"{step} {time_text(answer.times.median_ps)}"
    return f"{length}: {', '.join(goes)}" if goes else length


_MOST = {
    "total": "{} in total",
    "runs": "{}",
    "median": "the median run takes {}",
    "max": "the longest run takes {}",
}


def rows_headline(tables: Mapping[str, Table], what: str, by: str = "self time") -> str:
    """What comes first in the first table: its last name, and its share or the column ``by`` which
    rows are ordered.
    """
    for side, table in tables.items():
        labels = [column.label for column in table.columns]
        if table.rows and "share" in labels:
            row = table.rows[0]
            name = cut_middle(str(row[labels.index("op") if what == "shape" else -1]), _NAME)
            if by in _MOST:
                value = row[labels.index(by)]
                text = counted(int(value or 0), "run") if by == "runs" else text_of(value, "run_ps")
                return f"{_MOST[by].format(text)}: {name}"
            of = f"the {side}'s self time" if side != "kernels" else "the kernels' time"
            return f"{row[labels.index('share')]} of {of}: {name}"
    return ""


def diff_headline(
    result: Comparison, memory: Sequence[Part], programs: Sequence[Part], time: Part | None
) -> str:
    """How the peaks and the step time changed."""
    if result.is_empty:
        return "nothing changed"
    several = len(memory) > 1
    said = [
        f"{part.title} peak {_moved(change)}" if several else f"peak {_moved(change)}"
        for part in memory[:_PARTS]
        for change in part.changes[:1]
    ]
    steps = [one for one in (time.changes if time is not None else ()) if one.label == "step time"]
    noise = result.time is not None and result.time.is_chance
    said += [
        "step time within the noise"
        if noise and one.change != "as before"
        else f"step time {_moved(one)}"
        for one in steps
    ]
    if not said:
        changed = [part for part in programs if part.changes]
        said = [
            f"{part.title}: {change.label} {_moved(change)}"
            for part in changed[:1]
            for change in part.changes[:1]
        ]
    return ", ".join(said) or "what changed is below"


def _moved(change: Change) -> str:
    return change.change or change.text
