"""What is said of an allocator besides its peak, in full.

Use over time, the largest buffers, growth from step to step, free memory in pieces, and what comes
and goes: each is a sentence, and where it matters a figure and a table that says the same.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from peakline.arrays import Int64Array
from peakline.document import limits
from peakline.document.finding import rows_table
from peakline.document.model import Row, Table, columns_of
from peakline.kernels.memory_layout import ALLOCATION
from peakline.memory.churn import AllocatorChurn
from peakline.memory.details import MemoryDetails
from peakline.memory.fragmentation.holes import Fragmentation
from peakline.memory.growth.pattern import STEADY, WARM_UP
from peakline.memory.growth.series import AllocatorGrowth
from peakline.memory.marks import Marks
from peakline.memory.peak.explained import AllocatorPeak
from peakline.memory.peak.moments import NEAR, find_high_moments
from peakline.memory.savings.answer import Saving
from peakline.memory.signatures import History
from peakline.safe_text import cut_middle
from peakline.text import counted, size_text, time_text

_LONGEST = 400
_PATTERNS = {
    "leak": "grows to the end",
    "one_pass": "grows to the end of one pass",
    "cache": "grew, and has stopped",
    "step_up": "rose once",
    "sawtooth": "gathers and is released",
    "warm_up": "grew in the first steps only",
    "steady": "steady",
}


@dataclass(frozen=True)
class Detail:
    """A sentence; ``figure`` is the name of one of `peakline.figures`, ``title`` what it shows, and
    ``table`` the same in numbers.
    """

    words: str
    figure: str = ""
    title: str = ""
    table: Table | None = None


def memory_over_time(
    peak: AllocatorPeak, history: History, number: int, growth: AllocatorGrowth | None
) -> Detail | None:
    """Memory over time; nothing where all records are of one moment."""
    rows = history.usage_rows(number)
    times = history.events.array("time_ps")[rows]
    if rows.size < 2 or times[0] == times[-1]:
        return None
    used = history.used[rows]
    words = (
        f"From {size_text(int(used[0]))} at {time_text(int(times[0]))} to "
        f"{size_text(int(used[-1]))} at {time_text(int(times[-1]))}; the most is "
        f"{size_text(peak.peak_bytes)} at {time_text(peak.peak_time_ps)}."
    )
    table = _by_time(times, used) if growth is None else _by_step(times, growth.marks, rows, used)
    return Detail(words, "memory_over_time", "Memory in use over time", table)


@dataclass(frozen=True)
class NearPeak:
    """How often memory comes near the peak: ``words``, then an op or a list of what it is of.

    ``of`` are texts with the op they end in, empty for none.
    """

    words: str
    of: Sequence[tuple[str, str]] = ()
    is_list: bool = False


def near_peak(
    peaks: Iterable[AllocatorPeak], peak: AllocatorPeak, history: History, number: int
) -> NearPeak | None:
    """How often memory comes near the peak, and of what it is then.

    Nothing for an allocator that is small beside the largest of ``peaks``, or at all.
    """
    largest = max(one.peak_bytes for one in peaks)
    if peak.peak_bytes < max(limits.SMALL_BYTES, limits.SMALL_SHARE * largest):
        return None
    moments = find_high_moments(history, number)
    times = sum(len(moment.times_ps) for moment in moments)
    if times < 2:
        return None
    words = f"Memory comes within {1 - NEAR:.0%} of the peak {times:,} times"
    if len(moments) == 1:
        return NearPeak(f"{words}, made of the same each time: what lowers one lowers all.")
    # Mixes that read the same are shown as one: nobody could distinguish them.
    mixes: dict[tuple[str, str], AllocatorPeak] = {}
    for moment in moments:
        op, most = moment.memory.largest_op or ("", 0)
        share = f"{most / max(moment.memory.peak_bytes, 1):.0%}" if op else ""
        mixes.setdefault((op, share), moment.memory)
    if len(mixes) == 1:
        (op, share), _ = mixes.popitem()
        if not op:
            return NearPeak(f"{words}.")
        return NearPeak(words, [(f", each time with {share} of it from ", op)])
    of = [
        (
            f"{size_text(memory.peak_bytes)} at {time_text(memory.peak_time_ps)}, "
            + (f"{share} of it from " if op else "from no op that is known"),
            op,
        )
        for (op, share), memory in mixes.items()
    ]
    words += f", made of {len(mixes)} different mixes. To lower the peak, all of them must fall:"
    return NearPeak(words, of, is_list=True)


def _by_step(times: Int64Array, marks: Marks, rows: Int64Array, used: Int64Array) -> Table:
    """Per step the most in use and what is left at its end; the step of the peak among them.

    In a step without a record memory stays as it was. Steps in a row that read the same are one
    row of the table.
    """
    bounds = np.searchsorted(rows, np.append(marks.start, marks.rows))
    places = np.flatnonzero(bounds[1:] > 0)
    if not places.size:
        return _by_time(times, used)
    left = used[bounds[places + 1] - 1]
    # What was in use before a step's first record still is when the step begins.
    first = np.maximum(bounds[places] - 1, 0)
    ends = bounds[places + 1]
    most = np.array(
        [used[a:b].max() for a, b in zip(first.tolist(), ends.tolist(), strict=True)], np.int64
    )
    runs = _alike(most, left)
    chosen = _evenly(len(runs), max(range(len(runs)), key=lambda k: int(most[runs[k][0]])))
    cells: list[Row] = []
    for begin, last in (runs[k] for k in chosen):
        name = marks.label(int(places[begin]))
        if last > begin:
            name += f" to {marks.label(int(places[last]))}"
        fullest = begin + int(most[begin : last + 1].argmax())
        cells.append((name, int(most[fullest]), int(left[last])))
    few = ""
    if len(chosen) < len(runs):
        few = f" ({len(chosen)} of {len(runs):,}, the one with the most among them)"
    columns = columns_of("step", most_in_use="bytes", in_use_at_its_end="bytes")
    caption = f"Memory in use by step{few}; steps are {cut_middle(marks.detail, _LONGEST)}"
    if len(runs) < places.size:
        caption += "; those in a row with the same values stand together"
    if places.size < len(marks):
        caption += f"; the first {len(marks) - places.size:,} end before the first record"
    return Table(caption, columns, cells)


def _alike(most: Int64Array, left: Int64Array) -> list[tuple[int, int]]:
    """The first and last place of every run of steps whose two values read the same."""
    runs: list[tuple[int, int]] = []
    before = None
    for k, (high, low) in enumerate(zip(most.tolist(), left.tolist(), strict=True)):
        shown = size_text(high), size_text(low)
        if shown == before:
            runs[-1] = (runs[-1][0], k)
        else:
            runs.append((k, k))
        before = shown
    return runs


def _by_time(times: Int64Array, used: Int64Array) -> Table:
    """The most and the least in use in equal parts of the time."""
    edges = np.linspace(int(times[0]), int(times[-1]), limits.ROWS.report + 1)
    bounds = np.searchsorted(times, edges)
    bounds[-1] = times.size
    cells: list[Row] = []
    for first, end, start, stop in zip(bounds, bounds[1:], edges, edges[1:], strict=False):
        # What was in use before the first record of a part still is when the part begins.
        own = used[max(int(first) - 1, 0) : max(int(end), 1)]
        cells.append((int(start), int(stop), int(own.max()), int(own.min())))
    columns = columns_of(**{"from": "ps"}, to="ps", most_in_use="bytes", least_in_use="bytes")
    return Table("Memory in use by time", columns, cells)


def _evenly(total: int, also: int) -> list[int]:
    """At most so many places as a table has rows, evenly, ``also`` among them."""
    if total <= limits.ROWS.report:
        return list(range(total))
    places = np.linspace(0, total - 1, limits.ROWS.report - 1).astype(int).tolist()
    return sorted({*places, also})


def largest_buffers(history: History, number: int) -> Detail | None:
    """The largest buffers, from when to when each lived."""
    lifetimes = history.lifetimes
    rows = history.rows_of(number)
    rows = rows[(lifetimes.kind[rows] == ALLOCATION) & (history.allocated[rows] > 0)]
    if not rows.size:
        return None
    most = min(limits.BUFFERS.report, rows.size)
    weight = history.allocated[rows]
    chosen = np.sort(np.argpartition(-weight, most - 1)[:most])
    chosen = rows[chosen[np.argsort(-weight[chosen], kind="stable")]]
    events = history.events
    times = events.array("time_ps")
    before = events.array("is_before") & events.is_valid("is_before")
    cells: list[Row] = []
    for row in chosen.tolist():
        signature = history.signatures[int(history.signatures.codes[row])]
        end = int(lifetimes.end[row])
        begun = "before the profile" if before[row] else int(times[row])
        ended = "not in the profile" if end < 0 else int(times[end])
        lived = "" if end < 0 or before[row] else int(times[end] - times[row])
        cells.append(
            [
                signature.op or "(no op)",
                int(history.allocated[row]),
                f"{signature.data_type} {signature.shape}".strip(),
                begun,
                ended,
                lived,
            ]
        )
    columns = columns_of("op", "size", type_and_shape="form", made="ps", freed="ps", lived="ps")
    caption = f"The {most} largest of {counted(rows.size, 'buffer')}"
    title = "Lifetimes of the largest buffers"
    return Detail("", "largest_buffers", title, Table(caption, columns, cells))


def growth(result: AllocatorGrowth, labels: Mapping[int, str], *, is_finding: bool) -> Detail:
    """What the steps leave: a sentence for a steady job, else the figure and what grew."""
    marks, total = result.marks, result.total
    steps = f"{len(marks):,} steps"
    words = (
        f"At the end of the first of {steps} {size_text(int(total[0]))} are in use, at the end "
        f"of the last {size_text(int(total[-1]))}. Steps are {cut_middle(marks.detail, _LONGEST)}."
    )
    grown = [one for one in result.groups if one.pattern.kind not in {STEADY, WARM_UP}]
    if not is_finding:
        small = ""
        if grown:
            small = " What grew is too little, or too uncertain, to be a finding."
        return Detail(f"{words}{small}")
    rows = [
        one.signature.as_row()
        | {
            "pattern": _PATTERNS.get(one.pattern.kind, one.pattern.kind),
            "since": marks.label(one.pattern.since),
            "bytes_per_step": round(one.pattern.bytes_per_step),
            "kept_bytes": one.pattern.bytes,
            "held_bytes": one.held_bytes,
        }
        for one in sorted(grown, key=lambda one: -one.pattern.bytes)[: limits.GROWN.report]
    ]
    more = (
        f"; the {limits.GROWN.report} that grew most of {len(grown)}"
        if len(grown) > limits.GROWN.report
        else ""
    )
    caption = f"What grew, by op{more}"
    table = rows_table(caption, rows, labels, {}) if rows else None
    return Detail(words, "growth_per_step", "Memory left at the end of each step", table)


def fragmentation(
    result: Fragmentation | None, peak: AllocatorPeak, *, moment: bool, is_finding: bool
) -> Detail | None:
    """Free memory in pieces: a sentence where it did no harm, else the figure and the pieces."""
    said = []
    if peak.fragmentation_at_peak is not None:
        said.append(
            f"At the peak the allocator reports a fragmentation of "
            f"{peak.fragmentation_at_peak:.1%}: that share of its pool's free memory is "
            "outside the largest free piece."
        )
    if result is None or moment:
        return Detail(said[0]) if said else None
    if result.worst is None:
        said.append(
            "No large allocation had to take new memory while enough was free in pieces: "
            "fragmentation cost nothing that the addresses show."
        )
    else:
        worst = result.worst
        many = f"{counted(len(result.forced), 'large allocation')} took new memory although enough"
        said.append(
            f"{many} was free, in pieces that were all too small; that cost "
            f"{size_text(result.recoverable_bytes)} at most. The costliest requested "
            f"{size_text(worst.bytes)} at {time_text(worst.time_ps)}, when "
            f"{size_text(worst.free)} were free, the largest piece {size_text(worst.largest)}."
        )
    words = " ".join(said)
    if not is_finding or result.worst is None:
        return Detail(words)
    columns = columns_of(pieces_of_at_least="bytes", how_many="count", together="bytes")
    cells = [(one.from_bytes, one.count, one.bytes) for one in result.at_worst]
    caption = f"Free pieces at {time_text(result.worst.time_ps)}, just before that allocation"
    table = Table(caption, columns, cells)
    return Detail(words, "fragmentation", "Free memory, and its largest piece", table)


def churn(result: AllocatorChurn, labels: Mapping[int, str], *, is_finding: bool) -> Detail | None:
    """What is allocated and freed within a step: a sentence, and a table where it is a finding."""
    if not result.allocations:
        return None
    words = (
        f"{counted(result.allocations, 'allocation')} of {size_text(result.bytes)} in all; "
        f"{result.short / result.allocations:.1%} are freed within 64 records."
    )
    per_step, turnover = result.bytes_per_step, result.turnover
    if result.steps and per_step is not None and turnover is not None:
        words = (
            f"A step makes {result.allocations / result.steps:,.1f} buffers on average, of "
            f"{size_text(per_step)} together: {turnover:,.1f} times the peak; "
            f"{result.same_step / result.allocations:.1%} of the buffers are freed in the step "
            "that made them."
        )
    if not is_finding:
        return Detail(words)
    rows = [
        one.signature.as_row()
        | {"allocations": one.allocations, "bytes": one.bytes, "most_live": one.most_live}
        for one in result.signatures[: limits.GROWN.report]
    ]
    caption = "What is allocated most, in bytes over the whole profile"
    table = rows_table(caption, rows, labels, {})
    return Detail(words, "churn", "Allocated in every step", table)


def sentences(details: MemoryDetails, peak: AllocatorPeak, *, moment: bool) -> dict[str, list[str]]:
    """What is said of each analysis of an allocator, and of each of its savings, by the names that
    they have in JSON: ``savings``, ``growth``, ``fragmentation``, ``churn``.
    """
    result = {
        "growth": None if details.growth is None else growth(details.growth, {}, is_finding=True),
        "fragmentation": fragmentation(
            details.fragmentation, peak, moment=moment, is_finding=False
        ),
        "churn": churn(details.churn, {}, is_finding=False),
    }
    said = {name: [one.words] if one is not None else [] for name, one in result.items()}
    return {"savings": [saving_sentence(one) for one in details.savings], **said}


def saving_sentence(saving: Saving) -> str:
    """What the peak would be, and what that costs."""
    cost = "" if saving.cost_ps is None else f", for {time_text(saving.cost_ps)} of computing again"
    return f"The peak would be {size_text(saving.peak_after)}{cost}."
