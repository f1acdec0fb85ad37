"""The ``job_steps`` tool: the steps of a job as matrices, ranks by steps, and how the ranks are
grouped.

Made of the contributions of the ``job`` tool. Every number is one of that answer's: a step's time,
waiting and lateness by rank, whose mean (median) over the steps the document of the job has.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from peakline import jobs
from peakline.arrays import Float64Array
from peakline.document.job_members import names_text
from peakline.errors import NotFoundError
from peakline.jobs import JobAnswer
from peakline.jobs.contribution import Contribution
from peakline.jobs.excess import stages_of
from peakline.jobs.pairing import medians
from peakline.toolbox.parameters import Parameters, parameter
from peakline.toolbox.registry import Tool
from peakline.toolbox.written import compact_json

_LONGEST_NAME = 1000


class JobStepsParameters(Parameters):
    """The parameters; text is accepted for every value."""

    step: str | None = parameter(
        None,
        max_length=_LONGEST_NAME,
        description="only the step of this name, with its begin and end on each rank's own clock",
    )


def _combine(
    parts: Sequence[tuple[str, Contribution]], parameters: JobStepsParameters, _format: str
) -> bytes:
    answer = jobs.answer_of(parts)
    members, labels = answer.job.members, list(answer.job.steps)
    chosen = range(len(labels))
    document: dict[str, Any] = {}
    if parameters.step is not None:
        if parameters.step not in answer.job.steps:
            raise NotFoundError(f"no step of the job is called {parameters.step!r}")
        place = answer.job.steps[parameters.step]
        chosen = range(place, place + 1)
        document = _spans(answer, parameters.step)
    columns = slice(chosen.start, chosen.stop)
    stage = stages_of(answer.job, answer.paired.rows)
    peaks = [max((one.peak_bytes for one in own.profile.memory), default=None) for own in members]
    return compact_json(
        {
            "steps": labels[columns],
            "ranks": {
                "rank": [one.number for one in members],
                "title": [one.title for one in members],
                "host": [one.host for one in members],
                "machine": [one.machine or None for one in members],
                "stage": stage if any(stage) else None,
                "peak_bytes": peaks,
            },
            "groups": _groupings(answer),
            "step_ps": _matrix(answer.work.wall_ps[:, columns]),
            "excess_ps": _matrix(answer.work.excess_ps[:, columns]),
            # What a rank without peers does by itself is compared with nothing.
            "work_ps": _matrix(answer.work.work_ps[:, columns])
            if not answer.work.peers.all()
            else None,
            "waiting_ps": _matrix(_waiting(answer)[:, columns]),
            "late_ps": _matrix(_lateness(answer)[:, columns]),
            "peak_bytes": _matrix(_peaks(answer)[:, columns]),
        }
        | document
    )


def _matrix(values: Float64Array) -> dict[str, Any] | None:
    """Rows by rank, in units of ``unit``: the largest power of ten that all values, in whole ps or
    bytes, are multiples of. None where nothing is known.
    """
    known = np.isfinite(values)
    if not known.any():
        return None
    whole = np.rint(np.where(known, values, 0)).astype(np.int64)
    unit = 1
    while unit < 10**12 and not (whole % (10 * unit)).any():
        unit *= 10
    rows = (whole // unit).astype(object)
    rows[~known] = None
    return {"unit": unit, "rows": rows.tolist()}


def _waiting(answer: JobAnswer) -> Float64Array:
    """NaN where a rank has no such step, or nobody knows who was waited for."""
    shape = len(answer.job.members), len(answer.job.steps)
    result = np.full(shape, np.nan)
    if not answer.paired.is_paired.any():
        return result
    for number, member in enumerate(answer.job.members):
        own = [answer.job.steps[label] for label in member.labels]
        result[number, own] = answer.waiting_by_step[number, own]
    return result


def _lateness(answer: JobAnswer) -> Float64Array:
    """The median lateness of each rank in each step; NaN where it has none."""
    paired, rows = answer.paired, answer.paired.rows
    members, steps = len(answer.job.members), len(answer.job.steps)
    mine = paired.is_paired & (rows.step >= 0)
    cell = rows.member[mine] * steps + rows.step[mine]
    late = medians(cell, paired.late[mine].astype(np.float64), members * steps)
    return late.reshape(members, steps)


def _peaks(answer: JobAnswer) -> Float64Array:
    """The most in use in each step; NaN where that is not recorded."""
    result = np.full((len(answer.job.members), len(answer.job.steps)), np.nan)
    for number, member in enumerate(answer.job.members):
        peaks = member.profile.memory_by_step
        if peaks.size == len(member.labels):
            own = [answer.job.steps[label] for label in member.labels]
            result[number, own] = np.where(peaks >= 0, peaks, np.nan)
    return result


def _spans(answer: JobAnswer, step: str) -> dict[str, list[int | None]]:
    """When each rank's step begins and ends, on the clock of its profile."""
    places = [own.labels.index(step) if step in own.labels else None for own in answer.job.members]
    return {
        f"{name}_ps": [
            None if at is None else int(getattr(own.steps, name)[at])
            for own, at in zip(answer.job.members, places, strict=True)
        ]
        for name in ("begin", "end")
    }


def _groupings(answer: JobAnswer) -> list[dict[str, Any]]:
    """Each way in which the ranks are divided into process groups: what the program calls it, the
    ranks of each group, and of each rank which group is its.
    """
    members = answer.job.members
    divisions: dict[tuple[str, int], list[dict[int, int]]] = {}
    groups = [one for one in _groups(answer) if 0 < len(one[2]) < len(members)]
    for place, (description, size, own) in enumerate(groups):
        several = divisions.setdefault((description, size), [])
        fitting = next((one for one in several if not one.keys() & set(own)), None)
        if fitting is None:
            several.append(fitting := {})
        fitting.update(dict.fromkeys(own, place))
    result = []
    for (description, size), several in divisions.items():
        for of in several:
            places = list(dict.fromkeys(of[number] for number in sorted(of)))
            numbers = {place: number for number, place in enumerate(places)}
            result.append(
                {
                    "title": description or f"groups of {size}",
                    "labels": [names_text([members[n] for n in groups[at][2]]) for at in places],
                    "of": [numbers[of[n]] if n in of else None for n in range(len(members))],
                }
            )
    return result


def _groups(answer: JobAnswer) -> Iterator[tuple[str, int, tuple[int, ...]]]:
    """What each group is called, how many ranks it has, and which members: those that the files
    list, and others that collectives name.
    """
    job, rows = answer.job, answer.paired.rows
    by_rank: dict[int, list[int]] = {}
    for place, member in enumerate(job.members):
        if member.number is not None:
            by_rank.setdefault(member.number, []).append(place)
    listed = {one.ranks: one.description for one in answer.groups if one.ranks}
    for ranks, description in listed.items():
        yield description, len(ranks), tuple(n for rank in ranks for n in by_rank.get(rank, ()))
    known = rows.group >= 0
    pairs = np.unique(np.stack([rows.group[known], rows.member[known]]), axis=1)
    for code in np.unique(pairs[0]).tolist():
        text, own = rows.texts[code], tuple(pairs[1, pairs[0] == code].tolist())
        numbers = text.strip("[]").split(",") if text.startswith("[") else []
        ranks = tuple(int(number) for number in numbers if re.fullmatch(r"\d{1,18}", number))
        if ranks not in listed:
            yield "", len(ranks) or len(own), own


TOOL = Tool(
    name="job_steps",
    doc="Ranks by steps of a job: step time, own work beyond peers, waiting, lateness; groups.",
    parameters=JobStepsParameters,
    formats=("json",),
    shows=(("events",), ("op_runs",)),
    parts_of="job",
    combine=_combine,
)
