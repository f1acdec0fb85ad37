"""What is said of the memory of a job's ranks: peaks, who stands out and by what, categories, what
dividing them would give, and the JSON.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from peakline.compare.rows import signed_size
from peakline.document.job_members import (
    MOST_RANKS,
    Line,
    job_part,
    member_lines,
    names_text,
    warnings_of,
    who_text,
)
from peakline.document.model import Column, Table
from peakline.jobs.answer import JobAnswer
from peakline.jobs.memory import HeldMore, JobMemory
from peakline.text import allocator_text, counted, size_text, time_text

_HELD = 8
_LINES = 3
_WORTH = 0.1
"""A second kind of buffers is named that makes so much of what the first does."""
NO_MEMORY = "no memory is recorded of any rank"
_NO_CATEGORY = "not known"


def memory_line(memory: JobMemory) -> str:
    """The peaks of all ranks in one line."""
    peaks = memory.peaks
    if peaks.size == 1:
        return f"peak {size_text(int(peaks[0]))} on {memory.members[0].title}"
    low, high = memory.members[memory.emptiest].title, memory.members[memory.fullest].title
    if int(peaks.max()) == int(peaks.min()):
        return f"peak {size_text(int(peaks[0]))} on {who_text(memory.members, peaks.size)}"
    return (
        f"peak {size_text(int(np.median(peaks)))} (median of {peaks.size}), "
        f"{size_text(int(peaks.min()))} on {low} to {size_text(int(peaks.max()))} on {high}"
    )


def memory_lines(memory: JobMemory) -> list[str]:
    """What the ranks that stand out by their memory hold more, or less, than their peers."""
    result = [_apart_text(memory, place) for place in memory.apart[:2]]
    others = memory.apart[2:]
    if others:
        members = [memory.members[place] for place in others]
        result.append(f"and {counted(len(others), 'rank')} more: {names_text(members)}")
    return result


def _apart_text(memory: JobMemory, place: int) -> str:
    beyond = int(memory.peaks[place]) - memory.usual(place)
    word = "more" if beyond > 0 else "less"
    text = (
        f"{memory.members[place].title} needs {size_text(abs(beyond))} {word} memory than its peers"
    )
    more = [one for one in memory.held_more(place) if (one.more_bytes > 0) == (beyond > 0)]
    worth = [one for one in more[:2] if abs(one.more_bytes) >= _WORTH * abs(more[0].more_bytes)]
    named = [_held_text(one) for one in worth]
    return f"{text}: {'; '.join(named)}" if named else text


def _held_text(one: HeldMore) -> str:
    what = " ".join(filter(None, (one.kind.title, one.purpose.category)))
    most = "at most " if one.is_bound else ""
    usual = f", {most}{size_text(one.usual_bytes)} on the others" if one.usual_bytes else ""
    return f"{size_text(one.own_bytes)} of {what}{usual}"


def memory_headline(answer: JobAnswer) -> str:
    """The one sentence that matters most about the memory of a job."""
    memory = answer.memory
    if not memory.members:
        return NO_MEMORY
    if memory.apart:
        return _apart_text(memory, memory.apart[0])
    return memory_line(memory)


def memory_facts(answer: JobAnswer) -> list[Line]:
    """The labelled lines under the headline."""
    job, memory = answer.job, answer.memory
    result = member_lines(job)
    if memory.members:
        result.append(("memory", "peak", memory_line(memory)))
        result.append(("", "fullest", _peak_text(memory, memory.fullest)))
        if memory.peaks.min() < memory.peaks.max():
            result.append(("", "emptiest", _peak_text(memory, memory.emptiest)))
        result.append(("", "headroom", headroom_text(memory)))
        result += [("", "differs", text) for text in memory_lines(memory)]
        result += [("", label, text) for label, text in _notes(memory)]
    result += [("", "not recorded", text) for text in _unknown(answer)]
    return result


def _peak_text(memory: JobMemory, place: int) -> str:
    one = memory.own[place]
    when = "" if one.peak_step is None else f" in step {one.peak_step}"
    at = f" at {time_text(one.peak_time_ps)}{when}" if one.peak_time_ps else when
    return (
        f"{memory.members[place].title}, {allocator_text(one.name)}: "
        f"{size_text(one.peak_bytes)} ({one.peak_bytes:,} bytes){at}"
    )


def headroom_text(memory: JobMemory) -> str:
    """How much of their capacity the ranks have left at their peaks."""
    left = memory.headroom
    if not np.isfinite(left).any():
        return "the capacity is not recorded in these profiles: peakline fit PATH --limit SIZE"
    place = int(np.nanargmin(left))
    capacity = memory.own[place].capacity_bytes or 0
    share = int(left[place]) / capacity if capacity else 0.0
    least, most = int(left[place]), int(np.nanmax(left))
    text = f"{size_text(least)} ({share:.0%} of {size_text(capacity)})"
    if least == most:
        return text
    return f"least {text} on {memory.members[place].title}, most {size_text(most)}"


def _notes(memory: JobMemory) -> Iterable[tuple[str, str]]:
    """Stages of a pipeline, second contexts, what could be divided and what is not."""
    if memory.stages is not None:
        sizes, kind = memory.stages.sizes, memory.stages.kind
        yield (
            "pipeline",
            (
                f"{kind.title} falls from {size_text(sizes[0])} in the first of {len(sizes)} "
                f"stages to {size_text(sizes[-1])} in the last: a microbatch less in each, as 1F1B "
                "has it"
            ),
        )
    for device in memory.second_devices[:_LINES]:
        yield (
            "second device",
            (
                f"{memory.members[device.place].title} allocates "
                f"{size_text(device.memory.peak_bytes)} on {allocator_text(device.memory.name)} "
                "too, which is another rank's: its process has a context there; choose the device "
                "first (torch.cuda.set_device)"
            ),
        )
    for whole in memory.whole[:_LINES]:
        yield (
            "not divided",
            (
                f"{memory.members[whole.place].title} holds {size_text(whole.own_bytes)} of "
                f"{whole.category}, its peers {size_text(whole.usual_bytes)}: as much as all "
                f"{len(memory.members)} ranks together"
            ),
        )
    if memory.shardings:
        texts = [
            f"{one.scheme} {_range_text(one.least_bytes, one.most_bytes)}"
            for one in memory.shardings
        ]
        yield (
            "replicated",
            (
                f"{memory.shardings[0].ranks} ranks reduce the gradients of all weights; with them "
                f"divided the peak would be: {', '.join(texts)}"
            ),
        )


def _range_text(low: int, high: int) -> str:
    return size_text(high) if low == high else f"{size_text(low)} to {size_text(high)}"


def _unknown(answer: JobAnswer) -> list[str]:
    """Of which ranks no memory is recorded, and how to record it; whose peak is not known."""
    known = {id(member) for member in answer.memory.members}
    reasons: dict[str, list[Any]] = {}
    for member in answer.job.firsts:
        if id(member) not in known:
            one = member.profile
            text = "; ".join(filter(None, (one.no_memory, one.to_record)))
            reasons.setdefault(text or "no memory", []).append(member)
    for member, own in zip(answer.memory.members, answer.memory.own, strict=True):
        if own.peak_unknown:
            reasons.setdefault(own.peak_unknown, []).append(member)
    return [f"{names_text(members)}: {text}" for text, members in reasons.items()][:_LINES]


_HELD_COLUMNS = (
    Column("more", "signed"), Column("bytes", "bytes"), Column("others", "bytes"),
    Column("count", "count"), Column("op", "name"), Column("type", "form"),
    Column("shape", "form"), Column("category", "form"), Column("steps", "form"),
)  # fmt: skip


def held_table(memory: JobMemory) -> Table | None:
    """What the fullest rank holds beside the emptiest, or a rank that stands out beside its peers;
    None where all hold the same.
    """
    if memory.peaks.size < 2:
        return None
    if memory.apart:
        place = memory.apart[0]
        rows, others = memory.held_more(place), "its peers"
    else:
        place = memory.fullest
        rows = memory.held_more(place, [memory.emptiest])
        others = memory.members[memory.emptiest].title
    if not rows:
        return None
    title = f"what {memory.members[place].title} holds at its peak beside {others}"
    shown = [
        (
            signed_size(one.more_bytes), one.own_bytes, one.usual_bytes, one.own_count,
            one.kind.op or "(no op)", one.kind.data_type, one.kind.shape, one.purpose.category,
            _steps_text(one.steps),
        )
        for one in rows[:_HELD]
    ]  # fmt: skip
    more = rows[_HELD:]
    rest = (f"{len(more)} more kinds, {signed_size(sum(r.more_bytes for r in more))}",)
    return Table(title, _HELD_COLUMNS, shown, rest if more else ()).without_empty()


def _steps_text(steps: tuple[int, int] | None) -> str:
    if steps is None:
        return ""
    return str(steps[0]) if steps[0] == steps[1] else f"{steps[0]}-{steps[1]}"


_CATEGORY_COLUMNS = (
    Column("category"), Column("least", "bytes"), Column("median", "bytes"),
    Column("most", "bytes"), Column("most on"), Column("", "remark"),
)  # fmt: skip


def categories_table(memory: JobMemory) -> Table | None:
    """What the ranks hold for what at their peaks; None where nothing says it."""
    rows = []
    for one in memory.categories:
        low, high = float(np.nanmin(one.sizes)), float(np.nanmax(one.sizes))
        most = memory.members[int(np.nanargmax(one.sizes))].title
        rows.append(
            (
                one.name or _NO_CATEGORY, round(low), round(one.median), round(high),
                "" if one.is_equal else most, "equal on all" if one.is_equal else "",
            )
        )  # fmt: skip
    if not rows:
        return None
    return Table("by category, at the peak of each rank", _CATEGORY_COLUMNS, rows).trimmed()


_RANK_COLUMNS = (
    Column("rank"), Column("peak", "bytes"), Column("beside peers", "signed"),
    Column("headroom", "bytes"), Column("step"), Column("allocator"), Column("machine", "name"),
)  # fmt: skip


def peaks_table(memory: JobMemory, most: int = MOST_RANKS) -> Table | None:
    """The ranks as rows: all where there are at most ``most``; else those that stand out, the
    fullest and the emptiest.
    """
    many = len(memory.members)
    if many < 2:
        return None
    places: Sequence[int] = range(many)
    if many > most:
        ends = [memory.fullest, *memory.apart, memory.emptiest]
        places = list(dict.fromkeys(ends))[:MOST_RANKS]
    rows = [_peak_row(memory, place) for place in places]
    rest = many - len(rows)
    title = "ranks" if not rest else "ranks, the fullest first"
    more = ""
    if rest:
        others = np.delete(memory.peaks, places)
        between = f"{size_text(int(others.min()))} to {size_text(int(others.max()))}"
        more = f"{rest:,} more, {between}"
    table = Table(title, _RANK_COLUMNS, rows, (more,) if rest else ())
    return table.without_empty()


def _peak_row(memory: JobMemory, place: int) -> tuple[Any, ...]:
    one, left = memory.own[place], memory.headroom[place]
    beyond = one.peak_bytes - memory.usual(place)
    return (
        memory.members[place].title,
        one.peak_bytes,
        signed_size(beyond) if beyond and memory.peers(place).size else "",
        "" if np.isnan(left) else int(left),
        "" if one.peak_step is None else str(one.peak_step),
        allocator_text(one.name),
        memory.members[place].machine,
    )


def memory_document(memory: JobMemory) -> dict[str, Any] | None:
    """``memory`` in the JSON of a job; None where no rank has any."""
    if not memory.members:
        return None
    left = memory.headroom
    known = bool(np.isfinite(left).any())
    return {
        "peak_bytes": {
            "min": int(memory.peaks.min()),
            "median": round(float(np.median(memory.peaks))),
            "max": int(memory.peaks.max()),
            "max_rank": memory.members[memory.fullest].title,
            "min_rank": memory.members[memory.emptiest].title,
        },
        "headroom_bytes": {
            "min": int(np.nanmin(left)),
            "max": int(np.nanmax(left)),
            "min_rank": memory.members[int(np.nanargmin(left))].title,
        }
        if known
        else None,
        "differences": [
            {
                "rank": memory.members[place].title,
                "peak_bytes": int(memory.peaks[place]),
                "usual_bytes": memory.usual(place),
                "held": [_held_json(one) for one in memory.held_more(place)[:10]],
            }
            for place in memory.apart[:MOST_RANKS]
        ],
        "fullest_beside_emptiest": [
            _held_json(one) for one in memory.held_more(memory.fullest, [memory.emptiest])[:10]
        ],
        "categories": [
            {
                "category": one.name,
                "min_bytes": round(float(np.nanmin(one.sizes))),
                "median_bytes": round(one.median),
                "max_bytes": round(float(np.nanmax(one.sizes))),
                "max_rank": memory.members[int(np.nanargmax(one.sizes))].title,
                "is_equal": one.is_equal,
            }
            for one in memory.categories
        ],
        "stages": None
        if memory.stages is None
        else {**memory.stages.kind.as_json(), "bytes": list(memory.stages.sizes)},
        "divided": [vars(one) for one in memory.shardings],
        "not_divided": [
            {
                "rank": memory.members[one.place].title, "category": one.category,
                "bytes": one.own_bytes, "usual_bytes": one.usual_bytes,
            }
            for one in memory.whole
        ],
        "second_devices": [
            {
                "rank": memory.members[one.place].title, "allocator": one.memory.allocator,
                "peak_bytes": one.memory.peak_bytes,
            }
            for one in memory.second_devices
        ],
    }  # fmt: skip


def _held_json(one: HeldMore) -> dict[str, object]:
    return {
        **one.kind.as_json(), **one.purpose._asdict(), "bytes": one.own_bytes,
        "usual_bytes": one.usual_bytes, "count": one.own_count, "usual_count": one.usual_count,
        "is_bound": one.is_bound,
        "steps": None if one.steps is None else list(one.steps),
    }  # fmt: skip


def job_memory_document(answer: JobAnswer) -> dict[str, Any]:
    """What ``peakline memory --json`` prints of a job."""
    memory = answer.memory
    places = {id(member): place for place, member in enumerate(memory.members)}
    ranks = []
    for member in answer.job.firsts:
        place = places.get(id(member))
        own = None if place is None else memory.own[place]
        left = None if place is None else memory.headroom[place]
        ranks.append(
            {
                "rank": member.number, "title": member.title, "host": member.host,
                "machine": member.machine, "path": member.profile.path,
                "peak_bytes": None if own is None else own.peak_bytes,
                "headroom_bytes": None if left is None or np.isnan(left) else int(left),
                "nothing": member.profile.no_memory,
                "allocators": [
                    {
                        "allocator": one.allocator, "peak_bytes": one.peak_bytes,
                        "capacity_bytes": one.capacity_bytes, "peak_time_ps": one.peak_time_ps,
                        "peak_step": one.peak_step, "categories": dict(one.categories),
                        "peak_unknown": one.peak_unknown,
                    }
                    for one in member.profile.memory
                ],
            }
        )  # fmt: skip
    return {
        "job": job_part(answer.job, answer.groups),
        "headline": memory_headline(answer),
        "memory": memory_document(memory),
        "ranks": ranks,
        "warnings": warnings_of(answer.job),
    }
