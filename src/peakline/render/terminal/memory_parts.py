"""Parts of the memory answer's screen: what would lower the peak, other full moments, evidence.

Each says only what its reader can act on, and is empty where there is nothing of that kind.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

from rich.text import Text

from peakline.render.terminal.screen import indented, plain_table
from peakline.text import size_text, time_text

if TYPE_CHECKING:
    from rich.console import RenderableType

    from peakline.findings.finding import Finding
    from peakline.memory.churn import AllocatorChurn
    from peakline.memory.details import MemoryDetails
    from peakline.memory.fragmentation import Fragmentation
    from peakline.memory.growth import AllocatorGrowth
    from peakline.memory.moments import HighMoment
    from peakline.memory.peak import AllocatorPeak
    from peakline.memory.savings import Saving
    from peakline.memory.signatures import History

__all__ = [
    "MOMENTS",
    "counted",
    "detail_facts",
    "evidence_part",
    "moments_part",
    "savings_part",
    "step_text",
    "step_words",
]

MOMENTS = 4
"""So many moments near the peak that are made of different buffers are looked for."""

_NAME = 28
"""Characters of a step's name that are shown; sessions' handles can be hundreds long."""
_RANDOM = 1 << 32
"""No runtime counts steps so far: such ids are random, and say nothing to a person."""
_TITLE = 72
_SAVINGS = 5
_WORTH = 0.1
"""Savings of this share of the peak are shown, ..."""
_WORTH_BYTES = 2**20
"""... from so many bytes on; other full moments are shown where the peak has so many."""
_NEAR = 0.95
_TURNS = 0.05
"""What is handed out in a step is told when it is this share of the peak."""
_OFTEN = 8
"""A signature is allocated often when a step does it so many times, ..."""
_MUCH = 0.05
"""... and it takes this share of all bytes handed out."""
_KNOWS_STEPS = 100
"""From so many allocations on it is worth a word that nothing tells steps apart."""
_ROWS = 8
_BESIDE = 0.01
"""Rows of a finding are shown when they have this share of the first one's bytes."""
_TELLING = 10
"""How long buffers live, and what steps leave, says something where there are so many records."""

_HOW = {
    "temporary": "compute it in pieces, or fused",
    "program": "see the program's buffers",
    "recompute": "recompute it after the peak",
    "offload": "move it to the host meanwhile",
    "older_copy": "drop the older ones first",
    "smaller_batch": "halve it, if it is the batch",
}


def counted(number: int, what: str) -> str:
    """``3 buffers``, ``1 buffer``."""
    return f"{number:,} {what}{'' if number == 1 else 's'}"


def step_text(step: int, labels: Mapping[int, str]) -> str:
    """A step's id, and its name where it says more; of an id that is a random number the name."""
    name = labels.get(step, "")
    name = _cut(name, _NAME)
    if abs(step) >= _RANDOM and name not in ("", str(step)):
        return name
    return str(step) if name in ("", str(step)) else f"{step} ({name})"


def step_words(step: int, labels: Mapping[int, str]) -> str:
    """``step 3 (train)`` within a sentence; ``run 3`` where that is its name alone."""
    text = step_text(step, labels)
    return text if text.startswith("run ") else f"step {text}"


def detail_facts(
    peak: AllocatorPeak, details: MemoryDetails, history: History
) -> list[tuple[str, str]]:
    """Lines about the whole profile: how many steps come near the peak, what they leave and take.

    An allocator that few records tell of gets none.
    """
    if peak.allocations + peak.deallocations < _TELLING:
        return []
    facts = []
    growth, steps = details.growth, details.churn.steps
    unit = "step" if growth is None else growth.marks.unit
    if growth is not None and unit != "step":
        facts.append(("steps found", growth.marks.detail))
    if growth is not None and steps is not None and growth.total.any():
        if growth.stride == 1:
            near = _steps_near(history, growth)
            what = counted(steps, unit)
            facts.append(("near the peak", f"within 5% of it in {near:,} of {what}"))
        facts.append((f"between {unit}s", _between_steps(growth, steps)))
    elif steps is None and peak.allocations >= _KNOWS_STEPS:
        facts.append(("between steps", "not known: neither steps nor a period in the allocations"))
    return facts + _handed_out(details.churn, unit)


def _steps_near(history: History, growth: AllocatorGrowth) -> int:
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


def _between_steps(growth: AllocatorGrowth, steps: int) -> str:
    first, last = size_text(int(growth.total[0])), size_text(int(growth.total[-1]))
    what = counted(steps, growth.marks.unit)
    return f"{first} in use after the first of {what}, {last} after the last"


def _handed_out(churn: AllocatorChurn, unit: str) -> list[tuple[str, str]]:
    turnover, per_step = churn.turnover, churn.bytes_per_step
    if turnover is None or per_step is None or (churn.steps or 0) < 2 or turnover < _TURNS:
        return []
    steps = churn.steps or 1
    count = counted(round(churn.allocations / steps), "allocation")
    told = f"{size_text(round(per_step))} per {unit} in {count}, {turnover:.1f} times the peak"
    often = [
        one
        for one in churn.signatures
        if one.allocations >= _OFTEN * steps and one.bytes >= _MUCH * churn.bytes
    ]
    if often:
        most = max(often, key=lambda one: one.allocations)
        each = f"{most.allocations / steps:,.0f} times"
        told += f"; {_end(most.signature.title)} {each}"
    return [("handed out", told)]


def savings_part(savings: Sequence[Saving], peak: AllocatorPeak) -> list[RenderableType]:
    """What would lower the peak, most bytes first.

    Not the pieces of the pool: they have a finding, and do not count at the peak.
    """
    if peak.allocations + peak.deallocations < _TELLING:
        return []
    least = max(_WORTH * peak.peak_bytes, _WORTH_BYTES)
    worth = [saving for saving in savings if saving.bytes >= least and saving.kind in _HOW]
    if not worth:
        return []
    rows = [
        (
            size_text(saving.bytes),
            size_text(saving.peak_after),
            _how(saving),
            saving.title,
        )
        for saving in worth[:_SAVINGS]
    ]
    table = plain_table(("SAVES", "PEAK THEN", "HOW", "WHAT"), rows, right=("SAVES", "PEAK THEN"))
    title = "what would lower the peak"
    return ["", indented(Text(f"{title}, each alone" if len(rows) > 1 else title)), indented(table)]


def _how(saving: Saving) -> str:
    how = _HOW[saving.kind]
    return how if saving.cost_ps is None else f"{how}, {time_text(saving.cost_ps)}"


def moments_part(moments: Sequence[HighMoment], labels: Mapping[int, str]) -> list[RenderableType]:
    """Other moments that are almost as full, of much that the fullest does not have."""
    if len(moments) < 2 or moments[0].memory.peak_bytes < _WORTH_BYTES:
        return []
    first, least = _by_buffer(moments[0].memory), _WORTH * moments[0].memory.peak_bytes
    rows = []
    for moment in moments[1:]:
        memory = moment.memory
        more = {what: size - first.get(what, 0) for what, size in _by_buffer(memory).items()}
        what, size = max(more.items(), key=lambda item: item[1], default=(("",), 0))
        if size < least:
            continue
        told = f"{size_text(size)} {' '.join(filter(None, what))}"
        step = "" if memory.peak_step is None else step_text(memory.peak_step, labels)
        rows.append(
            (
                size_text(memory.peak_bytes),
                f"{len(moment.times_ps):,}",
                time_text(memory.peak_time_ps),
                step,
                told,
            )
        )
    if not rows:
        return []
    columns = ("SIZE", "TIMES", "AT", "STEP", "MORE THAN AT THE PEAK")
    table = plain_table(columns, rows, right=("SIZE", "TIMES", "AT"))
    return ["", indented(Text("almost as full, of other buffers")), indented(table)]


def _by_buffer(memory: AllocatorPeak) -> dict[tuple[str, ...], int]:
    found: dict[tuple[str, ...], int] = {}
    for buffer in memory.peak_buffers:
        what = (buffer.op or "(no op)", buffer.data_type, buffer.shape)
        found[what] = found.get(what, 0) + buffer.bytes
    return found


def evidence_part(
    finding: Finding, fragmentation: Fragmentation | None, labels: Mapping[int, str]
) -> list[RenderableType]:
    """The rows behind a finding where there are several, and how the pool lay in pieces."""
    parts: list[RenderableType] = []
    if finding.kind == "fragmentation" and fragmentation is not None:
        parts.append(indented(Text(_pool(fragmentation))))
        parts.append(indented(Text(_holes(fragmentation))))
    if len(_large(finding.rows)) > 1:
        parts.append(indented(_rows(finding, labels)))
    return parts


def _pool(found: Fragmentation) -> str:
    return (
        f"Buffers of the profile lay on {size_text(found.touched_bytes)}, though they took at "
        f"most {size_text(found.peak_bytes)} at a time; {size_text(found.recoverable_bytes)} of "
        f"that only because of the pieces, in {counted(len(found.forced), 'allocation')}."
    )


def _holes(found: Fragmentation) -> str:
    sizes = [
        f"{hole.count:,} of {size_text(hole.from_bytes)} to {size_text(2 * hole.from_bytes)}"
        for hole in found.at_worst[:4]
    ]
    rest = sum(hole.count for hole in found.at_worst[4:])
    sizes += [f"{rest:,} smaller"] if rest else []
    when = "" if found.worst is None else f" at {time_text(found.worst.time_ps)}"
    return f"The free pieces{when}: {', '.join(sizes)}."


_NUMBERS = (
    ("PER STEP", "bytes_per_step"),
    ("KEPT", "kept_bytes"),
    ("SIZE", "bytes"),
    ("COUNT", "count"),
    ("TIMES A STEP", "allocations_per_step"),
)


def _rows(finding: Finding, labels: Mapping[int, str]) -> RenderableType:
    rows = _large(finding.rows)
    numbers = [(title, name) for title, name in _NUMBERS if any(row.get(name) for row in rows)]
    has_steps = finding.evidence.get("steps_found_by") != "period"
    since = "since_step" in rows[0] and has_steps and "steps_found_by" in finding.evidence
    told = []
    for row in rows:
        cells = [_number(name, row[name]) for _, name in numbers]
        cells += [str(row["op"]) or "(no op)", str(row["data_type"]), str(row["shape"])]
        step = row.get("since_step")
        cells += [step_text(step, labels) if isinstance(step, int) else ""] if since else []
        told.append(cells)
    titles = [title if has_steps else title.replace("STEP", "REPETITION") for title, _ in numbers]
    columns = (*titles, "OP", "TYPE", "SHAPE", *(["SINCE STEP"] if since else []))
    return plain_table(columns, told, right=titles)


def _large(rows: Sequence[Mapping[str, object]]) -> Sequence[Mapping[str, object]]:
    """The rows that matter beside the first, which has most bytes."""
    sizes = [
        name for name in ("bytes_per_step", "kept_bytes", "bytes") if name in (rows or ({},))[0]
    ]
    return [
        row
        for row in rows[:_ROWS]
        if any(_size(row, name) >= _BESIDE * _size(rows[0], name) > 0 for name in sizes)
    ]


def _size(row: Mapping[str, object], name: str) -> float:
    size = row[name]
    return size if isinstance(size, int | float) else 0


def _number(name: str, value: object) -> str:
    if name.endswith("bytes") or name == "bytes_per_step":
        return size_text(value) if isinstance(value, int) else ""
    return f"{value:,}" if isinstance(value, int | float) else ""


def _end(text: str) -> str:
    """The end of a title, which says most: the op's own name, and the shape."""
    return text if len(text) <= _TITLE else f"…{text[1 - _TITLE :]}"


def _cut(text: str, length: int) -> str:
    return text if len(text) <= length else f"{text[: length - 1]}…"
