"""The steps and the ops of a job over its ranks: a row for each, with who stands out in it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from peakline.document.model import Column, Table
from peakline.jobs.answer import JobAnswer
from peakline.jobs.members import Member

_MOST = 20


def job_steps_rows(answer: JobAnswer) -> list[dict[str, Any]]:
    """The steps of a job in order: how long they take (the median of the ranks; without what lies
    between two of them), how long a rank waits in the mean, and whose own work exceeds its peers'
    most, by how much; times in ps.
    """
    members, work = answer.job.members, answer.work
    walls = np.full(work.work_ps.shape, np.nan)
    for number, member in enumerate(members):
        whole = ~member.steps.is_cut_off
        at = np.array([answer.job.steps[label] for label in member.labels], np.int64)
        walls[number, at[whole]] = member.steps.wall[whole]
    excess = work.excess_ps
    waits = answer.waiting_by_step
    result = []
    for label, place in answer.job.steps.items():
        wall = walls[:, place]
        known = np.isfinite(wall)
        row: dict[str, Any] = {"step": label, "ranks": int(known.sum()), "wall_ps": None}
        row |= {"max_wall_ps": None, "waiting_ps": None, "longest": None, "excess_ps": None}
        if known.any():
            row["wall_ps"] = round(float(np.median(wall[known])))
            row["max_wall_ps"] = round(float(wall[known].max()))
            if answer.paired.is_paired.any():
                row["waiting_ps"] = round(float(waits[known, place].mean()))
            own = np.where(np.isfinite(excess[:, place]), excess[:, place], -np.inf)
            if np.isfinite(own).any():
                most = int(own.argmax())
                row["longest"], row["excess_ps"] = members[most].title, round(float(own[most]))
        result.append(row)
    return result


def job_steps_table(answer: JobAnswer) -> Table:
    """The steps that take longest, in order of time, with what the rest are."""
    rows = job_steps_rows(answer)
    chosen = sorted(rows, key=lambda row: -(row["wall_ps"] or 0))[:_MOST]
    shown = [row for row in rows if row in chosen]
    columns = (
        Column("step", "name"), Column("time", "ps"), Column("longest", "ps"),
        Column("waiting", "ps"), Column("most own work"), Column("excess", "ps"),
    )  # fmt: skip
    names = ("step", "wall_ps", "max_wall_ps", "waiting_ps", "longest", "excess_ps")
    cells = [["" if row[name] is None else row[name] for name in names] for row in shown]
    more = len(rows) - len(shown)
    title = "steps" if not more else f"the {len(shown)} longest steps"
    return Table(title, columns, cells, (f"{more:,} more steps",) if more else ())


def job_ops_rows(answer: JobAnswer, side: str = "op") -> list[dict[str, Any]]:
    """The ops (``kernel``: the kernels; ``function``: the functions of the program) that take most
    self time: the median of the ranks, the least and the most, and on which rank; times in ps, of
    the whole profile of each. Of each rank those that take most are known; another is 0.
    """
    members = answer.job.firsts
    table: dict[tuple[str, str], list[tuple[int, int, int]]] = {}
    for number, member in enumerate(members):
        for where, name, ps, count in _own(member, side):
            table.setdefault((where, name), []).append((number, ps, count))
    result = []
    for (where, name), rows in table.items():
        values, counts = np.zeros(len(members), np.int64), np.zeros(len(members), np.int64)
        for number, ps, count in rows:
            values[number] += ps
            counts[number] += count
        most = members[int(values.argmax())].title
        result.append(
            {
                "op": name,
                "side": where,
                "self_ps": round(float(np.median(values))),
                "min_ps": int(values.min()),
                "max_ps": int(values.max()),
                "max_rank": most if np.ptp(values) else None,
                "occurrences": round(float(np.median(counts))),
            }
        )
    return sorted(result, key=lambda row: (row["side"], -row["self_ps"], -row["max_ps"], row["op"]))


def _own(member: Member, side: str) -> Iterator[tuple[str, str, int, int]]:
    """Side, name, self time and runs."""
    ops, work = member.profile.ops, member.work
    if side == "function":
        for k, name in enumerate(work.names):
            if work.side[k] == "function":
                yield "host", name, int(work.ps[k].sum()), int(work.count[k].sum())
        return
    for where, name, ps, count in zip(
        ops.side, ops.name, ops.self_ps.tolist(), ops.count.tolist(), strict=True
    ):
        if (where == "kernel") == (side == "kernel"):
            yield "device" if where == "kernel" else where, name, ps, count


def job_ops_table(answer: JobAnswer, side: str, top: int | None) -> Table:
    """The first of `job_ops_rows`."""
    rows = job_ops_rows(answer, side)
    sides = dict.fromkeys(row["side"] for row in rows)
    most = top or _MOST // max(len(sides), 1)
    shown = [row for one in sides for row in [r for r in rows if r["side"] == one][:most]]
    columns = (
        Column(side, "name"), Column("side"),
        Column("self time", "run_ps"), Column("least", "run_ps"), Column("most", "run_ps"),
        Column("on"), Column("runs", "count"),
    )  # fmt: skip
    names = ("op", "side", "self_ps", "min_ps", "max_ps", "max_rank", "occurrences")
    cells = [["" if row[name] is None else row[name] for name in names] for row in shown]
    more = len(rows) - len(shown)
    title = "self time in the whole profile, median of the ranks"
    return Table(title, columns, cells, (f"{more:,} more",) if more else ())
