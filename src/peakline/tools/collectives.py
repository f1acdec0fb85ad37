"""The ``collectives`` tool: the collectives of a job on one clock, a row for each and each of its
ranks, for each, or for each kind in each group.

Made of the contributions of the ``job`` tool; of one profile alone nobody knows who was waited for.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from peakline import jobs, timing
from peakline.jobs.members import group_text
from peakline.jobs.wires import transfers_of
from peakline.toolbox.parameters import Parameters, parameter
from peakline.toolbox.registry import Tool
from peakline.toolbox.written import compact_json, quoted_csv

if TYPE_CHECKING:
    from peakline.arrays import AnyArray, Int64Array
    from peakline.jobs import JobAnswer
    from peakline.jobs.contribution import Contribution

_LONGEST_NAME = 1000
_MOST = 1 << 40


class CollectivesParameters(Parameters):
    """The parameters; text is accepted for every value."""

    kind: str | None = parameter(
        None, max_length=_LONGEST_NAME, description="only this kind, such as all-reduce"
    )
    rank: int | None = parameter(None, ge=0, le=_MOST, description="only the rows of this rank")
    step: str | None = parameter(
        None, max_length=_LONGEST_NAME, description="only what lies in the step of this name"
    )
    collective: int | None = parameter(
        None, ge=0, le=_MOST, description="only the rows of the collective of this number"
    )
    from_ps: int | None = parameter(
        None, ge=-(1 << 62), le=1 << 62, description="only what ends then or later"
    )
    to_ps: int | None = parameter(
        None, ge=-(1 << 62), le=1 << 62, description="only what has begun by then"
    )
    by: Literal["rank", "collective", "group"] = parameter(
        "rank", description="a row per collective and rank, per collective, or per kind and group"
    )
    arrivals: bool = parameter(
        default=False, description="by collective: also when each of its ranks came and left"
    )
    sort: Literal["arrival", "late", "wait", "transfer", "size", "bandwidth"] = parameter(
        "arrival", description="by time of arrival, or those with most in front"
    )
    offset: int = parameter(0, ge=0, le=_MOST, description="leave out so many rows in front")
    limit: int = parameter(1000, ge=1, le=_MOST, description="at most so many rows")


def _combine(
    parts: Sequence[tuple[str, Contribution]], parameters: CollectivesParameters, output_format: str
) -> bytes:
    answer = jobs.answer_of(parts)
    chosen = _chosen(answer, parameters)
    page = slice(parameters.offset, parameters.offset + parameters.limit)
    if parameters.by == "rank":
        columns, total = _columns(answer, chosen[page]), chosen.size
    elif parameters.by == "collective":
        columns, total = _by_collective(answer, chosen, page, with_arrivals=parameters.arrivals)
    else:
        columns, total = _by_group(answer, chosen, page)
    rows = zip(*columns.values(), strict=True)
    if output_format == "csv":
        return quoted_csv(columns, rows)
    clocks, kinds = answer.paired.clocks, answer.paired.rows
    return compact_json(
        {
            "rows_total": int(total),
            "kinds": sorted({kinds.texts[code] for code in set(kinds.kind.tolist()) if code >= 0}),
            "clocks": {
                "aligned_by": clocks.aligned_by, "uncertainty_ps": clocks.uncertainty_ps,
            },
            "rows": [dict(zip(columns, row, strict=True)) for row in rows],
        }
    )  # fmt: skip


def _chosen(answer: JobAnswer, parameters: CollectivesParameters) -> Int64Array:
    """The rows that are wanted, in order."""
    job, paired, rows = answer.job, answer.paired, answer.paired.rows
    keep = np.ones(rows.member.size, np.bool_)
    if parameters.kind is not None:
        keep &= rows.is_kind((parameters.kind,))
    if parameters.rank is not None:
        is_rank = np.array([one.number == parameters.rank for one in job.members], np.bool_)
        keep &= is_rank[rows.member]
    if parameters.step is not None:
        place = job.steps.get(parameters.step)
        keep &= rows.step == place if place is not None else np.False_
    if parameters.collective is not None:
        keep &= paired.collective == parameters.collective
    if parameters.from_ps is not None:
        keep &= paired.end >= parameters.from_ps
    if parameters.to_ps is not None:
        keep &= paired.arrive <= parameters.to_ps
    by: AnyArray = {
        "late": paired.late, "wait": paired.wait, "transfer": paired.transfer,
        "size": rows.size_bytes,
    }.get(parameters.sort, paired.arrive)  # fmt: skip
    if parameters.sort == "bandwidth":
        by = np.nan_to_num(_bandwidths(answer))
    chosen = np.flatnonzero(keep)
    first = by[chosen] if parameters.sort == "arrival" else -by[chosen]
    return chosen[np.lexsort((chosen, paired.arrive[chosen], first))]


def _columns(answer: JobAnswer, chosen: Int64Array) -> dict[str, list[Any]]:
    """The columns of these rows; None for what is not recorded, or not known."""
    job, paired, rows = answer.job, answer.paired, answer.paired.rows
    members = [job.members[number] for number in rows.member[chosen].tolist()]
    labels, place = list(job.steps), rows.place[chosen].tolist()
    calls = [(one.calls, at) for one, at in zip(members, place, strict=True)]
    rates = _bandwidths(answer)[chosen]
    return {
        "collective": paired.collective[chosen].tolist(),
        "rank": [one.number for one in members],
        "host": [one.host for one in members],
        "device": [one.participant.device or None for one in members],
        "group": [group_text(_text(rows.texts, code)) for code in rows.group[chosen].tolist()],
        "members": paired.members[paired.collective[chosen]].tolist(),
        "kind": [_text(rows.texts, code) for code in rows.kind[chosen].tolist()],
        "sequence": _known(rows.sequence[chosen]),
        "step": [labels[at] if at >= 0 else None for at in rows.step[chosen].tolist()],
        "size_bytes": _known(rows.size_bytes[chosen]),
        "data_type": [_text(own.texts, int(own.data_type[at])) for own, at in calls],
        "arrive_ps": paired.arrive[chosen].tolist(),
        "end_ps": paired.end[chosen].tolist(),
        "late_ps": [
            own if both else None
            for own, both in zip(
                paired.late[chosen].tolist(), paired.is_paired[chosen].tolist(), strict=True
            )
        ],
        "wait_ps": _known(paired.wait[chosen]),
        "transfer_ps": _known(paired.transfer[chosen]),
        "bus_bytes_per_second": [rate if known else None for rate, known in _finite(rates)],
    }


def _by_collective(
    answer: JobAnswer, chosen: Int64Array, page: slice, *, with_arrivals: bool
) -> tuple[dict[str, list[Any]], int]:
    """The collectives that have rows among ``chosen``, in the order of the first of these, and how
    many there are: each with its last member, the longest wait and the median transfer.
    """
    job, paired, rows = answer.job, answer.paired, answer.paired.rows
    numbers, first = np.unique(paired.collective[chosen], return_index=True)
    numbers = numbers[np.argsort(first)]
    of = [paired.order[paired.bounds[n] : paired.bounds[n + 1]] for n in numbers[page].tolist()]
    heads = np.array([own[0] for own in of], np.int64)
    columns = _columns(answer, heads)
    transfer = transfers_of(paired)[numbers[page]]
    result = {
        name: columns[name]
        for name in (
            "collective", "group", "members", "kind", "sequence", "step", "size_bytes", "data_type",
        )
    }  # fmt: skip
    latest = [int(own[paired.arrive[own].argmax()]) for own in of]
    result |= {
        "arrive_ps": [int(paired.arrive[own].min()) for own in of],
        "last_ps": [int(paired.arrive[own].max()) for own in of],
        "end_ps": [int(paired.end[own].max()) for own in of],
        "last_rank": [
            job.members[rows.member[row]].title if own.size > 1 else None
            for own, row in zip(of, latest, strict=True)
        ],
        "wait_ps": _known(np.array([paired.wait[own].max() for own in of], np.int64)),
        "transfer_ps": [round(value) if known else None for value, known in _finite(transfer)],
        "bus_bytes_per_second": columns["bus_bytes_per_second"],
    }
    if with_arrivals:
        result |= {
            # Places among the ranks of the job, and times since the first arrival.
            "ranks": [rows.member[own].tolist() for own in of],
            "arrive_after_ps": [
                (paired.arrive[own] - paired.arrive[own].min()).tolist() for own in of
            ],
            "end_after_ps": [(paired.end[own] - paired.arrive[own].min()).tolist() for own in of],
        }
    return result, numbers.size


def _by_group(
    answer: JobAnswer, chosen: Int64Array, page: slice
) -> tuple[dict[str, list[Any]], int]:
    """The collectives that have rows among ``chosen`` by kind and group, those that take most in
    front: how many, their bytes, and medians over them. A collective waits as long as the first of
    its members.
    """
    paired, rows = answer.paired, answer.paired.rows
    numbers = np.unique(paired.collective[chosen])
    first = paired.order[paired.bounds[numbers]]
    wait = np.full(paired.count, -1, np.int64)
    np.maximum.at(wait, paired.collective, paired.wait)
    transfer, rate = transfers_of(paired)[numbers], _bandwidths(answer)[first]
    keys = np.stack([rows.kind[first], rows.group[first]], axis=1)
    result: list[dict[str, Any]] = []
    for kind, group in np.unique(keys, axis=0).tolist():
        mine = np.flatnonzero((keys == (kind, group)).all(axis=1))
        sizes, waits = rows.size_bytes[first[mine]], wait[numbers[mine]]
        result.append(
            {
                "kind": _text(rows.texts, kind),
                "group": group_text(_text(rows.texts, group)),
                "members": int(paired.members[numbers[mine]].max()),
                "count": int(mine.size),
                "size_bytes": int(sizes.sum()) if (sizes >= 0).all() else None,
                "wait_ps": _median(waits[waits >= 0]),
                "transfer_ps": _median(transfer[mine]),
                "bus_bytes_per_second": _median(rate[mine]),
            }
        )
    result.sort(key=lambda row: -(row["transfer_ps"] or 0) * row["count"])
    names = (
        "kind", "group", "members", "count", "size_bytes", "wait_ps", "transfer_ps",
        "bus_bytes_per_second",
    )  # fmt: skip
    return {name: [row[name] for row in result[page]] for name in names}, len(result)


def _median(values: AnyArray) -> int | None:
    """The median of those that are known."""
    known = values[np.isfinite(values)]
    return round(float(np.median(known))) if known.size else None


def _finite(values: AnyArray) -> Iterator[tuple[float, bool]]:
    return zip(values.tolist(), np.isfinite(values).tolist(), strict=True)


def _bandwidths(answer: JobAnswer) -> AnyArray:
    """Of each row the bus bandwidth of its collective: of all members, also of those whose profile
    is missing, in the time that the transfer took.
    """
    paired, rows = answer.paired, answer.paired.rows
    stated = [member.calls.group_size for member in answer.job.members]
    size = np.concatenate([np.zeros(0, np.int64), *stated])
    size = np.maximum(size, paired.members[paired.collective])
    time = transfers_of(paired)[paired.collective]
    result = np.full(rows.member.size, np.nan)
    for code in set(rows.kind.tolist()) - {-1}:
        mine = rows.kind == code
        result[mine] = timing.bus_bandwidth(
            rows.texts[code], rows.size_bytes[mine], size[mine], time[mine]
        )
    return result


def _text(texts: Sequence[str], code: int) -> str | None:
    return texts[code] if code >= 0 else None


def _known(values: Int64Array) -> list[int | None]:
    """The values; None for those below 0."""
    return [value if value >= 0 else None for value in values.tolist()]


TOOL = Tool(
    name="collectives",
    doc="Collectives of all ranks on one clock: who came late, who waited, how fast the transfer.",
    parameters=CollectivesParameters,
    formats=("json", "csv"),
    shows=(("events",), ("op_runs",)),
    parts_of="job",
    combine=_combine,
)
