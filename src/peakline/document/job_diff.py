"""What is said of the difference between two jobs: of all ranks, of those that changed otherwise,
and of what the jobs wait for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from peakline.arrays import Int64Array
from peakline.compare.rows import signed_size, signed_time
from peakline.document.diff import Change, Part, change_of, changed_table, ops_table
from peakline.document.job import (
    SharedFinding,
    collective_classes,
    headline,
    root_finding,
    root_title,
    shared_findings,
)
from peakline.document.job_members import job_part, names_text
from peakline.document.model import Table, columns_of
from peakline.jobs.answer import JobAnswer, Root
from peakline.jobs.compared import JobDiff, RankChange
from peakline.jobs.members import Member
from peakline.text import counted, size_text, time_text
from peakline.timing.steps.facts import FEWEST_STEPS, PARTS

_RANKS, _OPS, _COLLECTIVES, _KINDS = 6, 8, 4, 6
_CHANCE = 0.05
_LEAST = 0.005
"""Parts of a step, and classes of collectives, that change by less of a step are left out."""


def job_diff_headline(diff: JobDiff) -> str:
    """How the step and the fullest rank changed, and who is waited for now or no more."""
    said = [_step_text(diff), _peak_text(diff)]
    for which, words in (("new", "new: "), ("gone", "gone: ")):
        for before, after in diff.roots[which][:1]:
            answer = diff.after if after is not None else diff.before
            said.append(f"{words}{_who(answer, after or before)}")
    return "; ".join(filter(None, said)) or "neither time nor memory is in both jobs"


def _step_text(diff: JobDiff) -> str:
    before, after = diff.before.replay.recorded_ps, diff.after.replay.recorded_ps
    if not (before and after):
        return ""
    text = (
        f"step {time_text(round(before))} -> {time_text(round(after))} ({after / before - 1:+.1%})"
    )
    return f"{text}, no more than chance makes" if _is_chance(diff) else text


def _is_chance(diff: JobDiff) -> bool:
    return diff.chance is not None and diff.chance >= _CHANCE


def _peak_text(diff: JobDiff) -> str:
    before, after = diff.before.memory, diff.after.memory
    if not (before.members and after.members):
        return ""
    one, other = int(before.peaks.max()), int(after.peaks.max())
    if one == other:
        return f"largest peak {size_text(one)}, as before"
    return (
        f"largest peak {size_text(one)} -> {size_text(other)} ({signed_size(other - one)}), of "
        f"{after.members[after.fullest].title}"
    )


def _who(answer: JobAnswer, root: Root | None) -> str:
    if root is None:
        return ""
    if root.wire is not None:
        return f"slow transfers with {', '.join(root.wire.machines) or root.wire.title(answer.job)}"
    cause = "" if root.cause is None else f" ({root.cause.kind.replace('_', ' ')})"
    return f"{root_title(answer.job, root)}{cause}"


def job_diff_parts(diff: JobDiff) -> list[Part]:
    """Time and memory, each where both jobs have it: figures, what is behind them, and who changed
    otherwise than the others.
    """
    result = []
    if diff.steps_ps[0].size and diff.steps_ps[1].size:
        result.append(_time_part(diff))
    elif diff.ops:
        result.append(Part("time", [], _notes(diff), [_ops(diff)], is_empty=False))
    if diff.before.memory.members and diff.after.memory.members:
        result.append(_memory_part(diff))
    return result


def _time_part(diff: JobDiff) -> Part:
    tables = [_parts(diff), _ops(diff), _collectives(diff), _ranks(diff.slower_ranks, of_time=True)]
    shown = [table for table in tables if table.rows]
    return Part("time", list(_times(diff)), _notes(diff), shown, is_empty=False)


def _times(diff: JobDiff) -> Iterator[Change]:
    both, (one, other) = (diff.before, diff.after), diff.steps_ps
    means = diff.before.replay.recorded_ps, diff.after.replay.recorded_ps
    yield _change("step", *means, note=" (mean)")
    yield _change("median", float(np.median(one)), float(np.median(other)))
    shares = [(one.waiting_share, one.transfer_share) for one in both]
    for place, label in enumerate(("waiting", "transfers")):
        own = [one[place] for one in shares]
        if None not in own:
            before, after = (f"{share:.1%}" for share in own)
            yield Change(
                label, before, after, "as before" if before == after else "", " of the steps"
            )
    without = [one.step_without_ps for one in both]
    if any(one is not None for one in without):
        texts = (
            "nobody is waited for" if one is None else time_text(round(one)) for one in without
        )
        yield Change("without whom it waits for", *texts)


def _change(label: str, before: float, after: float, note: str = "") -> Change:
    text: Callable[[float], str] = lambda value: time_text(round(value))  # noqa: E731
    return change_of(label, before, after, text, note=note)


def _notes(diff: JobDiff) -> list[str]:
    result = []
    if not diff.by_step:
        result.append("not both jobs have steps: ops are of the whole profiles")
    elif diff.chance is None:
        one, other = diff.steps_ps
        result.append(
            f"{counted(one.size, 'step')} before, {other.size:,} after: fewer than {FEWEST_STEPS} "
            "do not show whether steps differ by chance"
        )
    elif _is_chance(diff):
        result.append(
            "the step times differ no more than chance makes them (Mann-Whitney U test, p = "
            f"{diff.chance:.2f})"
        )
    return result


def _parts(diff: JobDiff) -> Table:
    least = _LEAST * max(diff.before.replay.recorded_ps, diff.after.replay.recorded_ps)
    rows = [
        (signed_time(other - one), one, other, PARTS[f"{name}_ps"])
        for name, (one, other) in _by_change(diff)
        if abs(other - one) >= least
    ]
    columns = columns_of(change="signed", before="ps", after="ps", **{"": ""})
    return Table("where the mean step of a rank goes", columns, rows)


def _by_change(diff: JobDiff) -> list[tuple[str, tuple[int, int]]]:
    return sorted(diff.parts_ps.items(), key=lambda row: -abs(row[1][1] - row[1][0]))


def _ops(diff: JobDiff) -> Table:
    each = "per step" if diff.by_step else "in the whole profile"
    return ops_table(f"ops whose self time changed most, {each}, the median rank", diff.ops, _OPS)


_Class = dict[str, Any]


def _collectives(diff: JobDiff) -> Table:
    rows = [
        (
            signed_time(row["delta_ps"]),
            _spent(row["before"]),
            _spent(row["after"]),
            _class_text(row),
        )
        for row in changed_collectives(diff)[:_COLLECTIVES]
    ]
    columns = columns_of(change="signed", before="", after="", **{"": ""})
    return Table("collectives whose transfers changed most, a step", columns, rows)


def _spent(side: _Class) -> str:
    if not side["per_step"]:
        return "none"
    rate = side["bus_bytes_per_second"]
    speed = "" if rate is None else f", {rate / 1e9:.3g} GB/s"
    return f"{side['per_step']:.3g} x {time_text(side['transfer_ps'])}{speed}"


def _class_text(row: _Class) -> str:
    size = f" {size_text(row['size_bytes'])}" if row["size_bytes"] >= 0 else ""
    return f"{row['kind']}{size} of {row['members']} ranks"


_NOTHING: _Class = {"per_step": 0.0, "wait_ps": 0, "transfer_ps": 0, "bus_bytes_per_second": None}


def changed_collectives(diff: JobDiff) -> list[_Class]:
    """The collectives by kind, size and members whose transfers in a step changed: how many there
    are in a step, their median wait and transfer, and the bus bandwidth, in either job.
    """
    ours, theirs = _classes(diff.before), _classes(diff.after)
    least = _LEAST * max(diff.before.replay.recorded_ps, diff.after.replay.recorded_ps)
    result = []
    for key in dict.fromkeys([*theirs, *ours]):
        before, after = ours.get(key, _NOTHING), theirs.get(key, _NOTHING)
        spent = [one["per_step"] * one["transfer_ps"] for one in (before, after)]
        delta = round(spent[1] - spent[0])
        if abs(delta) >= least:
            kind, size, members = key
            result.append(
                {
                    "kind": kind, "size_bytes": size, "members": members, "before": before,
                    "after": after, "delta_ps": delta,
                }
            )  # fmt: skip
    return sorted(result, key=lambda row: -abs(row["delta_ps"]))


def _classes(answer: JobAnswer) -> dict[tuple[str, int, int], _Class]:
    steps = max(len(answer.job.steps), 1)
    return {
        (row["kind"], row["size_bytes"], row["members"]): {
            "per_step": row["count"] / steps,
            **{name: row[name] for name in ("wait_ps", "transfer_ps", "bus_bytes_per_second")},
        }
        for row in collective_classes(answer)
    }


def _ranks(ranks: Sequence[RankChange], *, of_time: bool) -> Table:
    unit, signed = ("ps", signed_time) if of_time else ("bytes", signed_size)
    rows = [
        (one.title, round(one.before), round(one.after), signed(round(one.delta)),
         signed(round(one.usual)))
        for one in ranks[:_RANKS]
    ]  # fmt: skip
    columns = columns_of(rank="", before=unit, after=unit, change="signed", median_change="signed")
    more = len(ranks) - len(rows)
    what = "own work in a step" if of_time else "peak"
    title = f"ranks whose {what} changed otherwise than the others'"
    return Table(title, columns, rows, (more,) if more else ())


def _memory_part(diff: JobDiff) -> Part:
    before, after = diff.before.memory, diff.after.memory
    changes = [
        change_of("largest peak", int(before.peaks.max()), int(after.peaks.max())),
        change_of("median peak", _median(before.peaks), _median(after.peaks)),
    ]
    left = [one[np.isfinite(one)] for one in (before.headroom, after.headroom)]
    if all(one.size for one in left):
        changes.append(change_of("least headroom", int(left[0].min()), int(left[1].min())))
    tables, notes = [_ranks(diff.fuller_ranks, of_time=False)], list[str]()
    for title, words in _held_of(diff):
        own = diff.held(title)
        more = len(own.groups) - _KINDS
        tables.append(
            changed_table(
                f"what changed at the peak of {title}{words}", own.groups[:_KINDS],
                (more, signed_size(sum(row.delta_bytes for row in own.groups[_KINDS:])))
                if more > 0
                else (),
            )
        )  # fmt: skip
        notes += own.notes
    shown = [table for table in tables if table.rows]
    return Part("memory", changes, list(dict.fromkeys(notes)), shown, is_empty=False)


def _median(peaks: Int64Array) -> int:
    return round(float(np.median(peaks)))


def _held_of(diff: JobDiff) -> list[tuple[str, str]]:
    """The rank that changed as the median, and the one that changed most otherwise."""
    result = [(diff.usual_rank, ", which changed as the median")] if diff.usual_rank else []
    return result + [(one.title, "") for one in diff.fuller_ranks[:1]]


def job_diff_lines(diff: JobDiff) -> list[str]:
    """Who is in one of the jobs only, a line for each."""
    result = []
    for which, members in (("before", diff.only_before), ("after", diff.only_after)):
        if members:
            result.append(f"only {which}: {names_text(members)}")
    if not diff.pairs:
        result.append("no rank is in both jobs by its number or name: they are compared as a whole")
    return result


def job_diff_findings(diff: JobDiff) -> dict[str, list[dict[str, Any]]]:
    """The findings of the later job that the earlier has not (``new``), and of the earlier that are
    ``gone``: whom the job waits for, then those of ranks by what they are about and their kind.
    """
    ours, theirs = (
        {(one.document["about"], one.document["kind"]): one for one in shared_findings(answer)}
        for answer in (diff.before, diff.after)
    )

    def only(mine: dict[Any, SharedFinding], others: dict[Any, SharedFinding]) -> Any:
        return [one.as_json() for key, one in mine.items() if key not in others]

    roots = diff.roots
    return {
        "new": [root_finding(diff.after, root) for _, root in roots["new"] if root is not None]
        + only(theirs, ours),
        "gone": [root_finding(diff.before, root) for root, _ in roots["gone"] if root is not None]
        + only(ours, theirs),
    }


def job_diff_document(diff: JobDiff, before: str, after: str) -> dict[str, Any]:
    """What ``peakline diff --json`` prints of two jobs, ``before`` and ``after`` their paths."""
    return {
        "headline": job_diff_headline(diff),
        "before": _side(diff.before, before),
        "after": _side(diff.after, after),
        "pairs": len(diff.pairs),
        "only_before": [one.title for one in diff.only_before],
        "only_after": [one.title for one in diff.only_after],
        "time": _time_document(diff),
        "memory": _memory_document(diff),
        "ranks": [_rank(diff, title) for title in diff.pairs],
        "findings": job_diff_findings(diff),
    }


def _side(answer: JobAnswer, path: str) -> dict[str, Any]:
    return {"path": path, "job": job_part(answer.job, answer.groups), "headline": headline(answer)}


def _time_document(diff: JobDiff) -> dict[str, Any] | None:
    both = {"before": diff.before, "after": diff.after}
    if not any(one.job.steps for one in both.values()):
        return None
    return {
        **{
            which: {
                "steps": len(one.job.steps),
                "step_ps": round(one.replay.recorded_ps) or None,
                "waiting_share": one.waiting_share,
                "transfer_share": one.transfer_share,
                "step_without_ps": None
                if one.step_without_ps is None
                else round(one.step_without_ps),
            }
            for which, one in both.items()
        },
        "chance": diff.chance,
        "parts": [
            {"part": name, "before_ps": one, "after_ps": other,
             "delta_ps": other - one}
            for name, (one, other) in _by_change(diff)
        ],
        "ops_per": "step" if diff.by_step else "profile",
        "ops": [one.as_json() for one in diff.ops],
        "collectives": changed_collectives(diff),
        "ranks_apart": [_apart(one, "ps") for one in diff.slower_ranks],
    }  # fmt: skip


def _apart(one: RankChange, unit: str) -> dict[str, Any]:
    figures = {"before": one.before, "after": one.after, "delta": one.delta, "median": one.usual}
    return {"rank": one.title} | {f"{name}_{unit}": round(v) for name, v in figures.items()}


def _memory_document(diff: JobDiff) -> dict[str, Any] | None:
    both = {"before": diff.before.memory, "after": diff.after.memory}
    if not all(one.members for one in both.values()):
        return None
    return {
        **{
            which: {
                "largest_peak_bytes": int(one.peaks.max()),
                "largest": one.members[one.fullest].title,
                "median_peak_bytes": _median(one.peaks),
            }
            for which, one in both.items()
        },
        "ranks_apart": [_apart(one, "bytes") for one in diff.fuller_ranks],
        "held": [{"rank": title} | diff.held(title).as_json() for title, _ in _held_of(diff)],
    }


def _rank(diff: JobDiff, title: str) -> dict[str, Any]:
    ours, theirs = diff.pairs[title]
    sides = (diff.before, ours), (diff.after, theirs)
    result: dict[str, Any] = {"rank": _number(sides), "title": title}
    for which, (answer, place) in zip(("before", "after"), sides, strict=True):
        work, step = (
            own[place][np.isfinite(own[place])]
            for own in (answer.work.work_ps, answer.work.wall_ps)
        )
        memory = answer.job.members[place].profile.memory
        result[which] = {
            "step_ps": round(float(step.mean())) if step.size else None,
            "own_work_ps": round(float(work.mean())) if work.size else None,
            "peak_bytes": max((one.peak_bytes for one in memory), default=None),
        }
    return result


def _number(sides: Sequence[tuple[JobAnswer, int]]) -> int | None:
    member: Member = sides[0][0].job.members[sides[0][1]]
    return member.number
