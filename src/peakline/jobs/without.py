"""How long the steps of a job would take if a rank worked as its peers do, or a wire were as the
others: its own dependencies replayed.

Between its events a member works for as long as it did; it comes to a collective when it has done
the work before, leaves it when the last member came and the data was transferred, and goes on then
unless it had other work to do meanwhile. That is the simulation of stragglers of arXiv:2505.05713,
with what was recorded in place of a schedule. Replayed unchanged it gives the recorded times: what
it does not is said (`Replay.error`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from peakline.arrays import BoolArray, Float64Array, Int64Array, UInt8Array
from peakline.jobs.causes import PEERS
from peakline.jobs.excess import Fault, OwnWork
from peakline.jobs.members import Job
from peakline.jobs.pairing import SYNCHRONISE, Paired
from peakline.kernels.waits import replay_waits
from peakline.kernels.waits_layout import BLOCKS, HOLDS

_MOSTLY = 0.5
_QUEUED_PS = 20_000_000
"""A collective that begins within 20 us of the end of the one before it on its stream was waiting
for that."""


@dataclass(frozen=True, eq=False)
class Replay:
    """What a job's collectives depend on, to be replayed with other work or transfers.

    Compared are the steps whose collectives all members recorded that record such: where one is
    missing, nobody can say what part of the others' time was waiting for it.
    """

    job: Job
    paired: Paired
    work: OwnWork

    @cached_property
    def _rows(self) -> _RowArrays:
        return _row_arrays(self.job, self.paired)

    @cached_property
    def recorded_ps(self) -> float:
        """How long a mean step took, over all members and steps."""
        rows = self._rows
        spans = rows.time[rows.until] - rows.time[rows.since]
        return float(np.mean(spans)) if spans.size else 0.0

    @cached_property
    def error(self) -> float:
        """By what share the replay of what was recorded misses it."""
        rows = self._rows
        if not rows.since.size:
            return 0.0
        own = self._replayed(rows.arrive, rows.end, self._transfer)
        recorded = (rows.time[rows.until] - rows.time[rows.since]).sum()
        return float(own.sum() / max(recorded, 1)) - 1

    @cached_property
    def _transfer(self) -> Int64Array:
        paired = self.paired
        own = np.where(paired.transfer >= 0, paired.transfer, paired.end - paired.arrive)
        edges = self._rows.member.size - own.size
        return np.concatenate([np.maximum(own, 0), np.zeros(edges, np.int64)])

    def without(self, *faults: Fault) -> float:
        """How long a mean step would take with these members' work at their peers', in ps."""
        arrive, end = self._rows.arrive.copy(), self._rows.end.copy()
        for fault in faults:
            for member in fault.members:
                self._mend(fault, member, arrive, end)
        steps = np.any([fault.steps for fault in faults], axis=0)
        return self._scaled(steps, arrive, end, self._transfer)

    def with_transfers(self, transfer: Mapping[int, float]) -> float:
        """How long a mean step would take with other transfers: by collective, in ps."""
        own = self._transfer.copy()
        times = np.full(self.paired.count, np.nan)
        times[list(transfer)] = list(transfer.values())
        other = times[self.paired.collective]
        known = np.flatnonzero(np.isfinite(other))
        own[known] = np.minimum(own[known], other[known].astype(np.int64))
        every = np.ones(max(len(self.job.steps), 1), np.bool_)
        return self._scaled(every, self._rows.arrive, self._rows.end, own)

    def _scaled(
        self, steps: BoolArray, arrive: Int64Array, end: Int64Array, transfer: Int64Array
    ) -> float:
        """The recorded step, by what the whole steps become of which some are among ``steps``."""
        rows = self._rows
        before = self._replayed(rows.arrive, rows.end, self._transfer)
        after = self._replayed(arrive, end, transfer)
        chosen = self._is_whole[rows.step]
        if not (chosen & steps[rows.step]).any():
            chosen = np.ones(rows.step.size, np.bool_)
        total = before[chosen].sum()
        return self.recorded_ps * float(after[chosen].sum() / total) if total else self.recorded_ps

    @cached_property
    def _is_whole(self) -> BoolArray:
        """Of which steps every collective is recorded by as many members as others of its kind."""
        rows, paired = self.paired.rows, self.paired
        first = paired.order[paired.bounds[:-1]]
        _, kind = np.unique(
            np.stack([rows.group[first], rows.kind[first], rows.size_bytes[first]]),
            axis=1, return_inverse=True,
        )  # fmt: skip
        most = np.zeros(int(kind.max(initial=-1)) + 1, np.int64)
        np.maximum.at(most, kind, paired.members)
        result = np.ones(max(len(self.job.steps), 1), np.bool_)
        lacking = (paired.members < most[kind]) & (rows.step[first] >= 0)
        result[rows.step[first][lacking]] = False
        return result

    def _replayed(self, arrive: Int64Array, end: Int64Array, transfer: Int64Array) -> Int64Array:
        """How long each step of each member takes."""
        rows = self._rows
        arrived = np.zeros(rows.member.size, np.int64)
        replay_waits(
            rows.events, rows.member, rows.collective, arrive, end, transfer, rows.flags,
            rows.behind, rows.begin.copy(), rows.first.copy(),
            np.full(int(rows.collective.max(initial=-1)) + 1, np.iinfo(np.int64).min), arrived,
            np.zeros(rows.member.size, np.int64),
        )  # fmt: skip
        return arrived[rows.until] - arrived[rows.since]

    def _mend(self, fault: Fault, number: int, arrive: Int64Array, end: Int64Array) -> None:
        """Let a member work as its peers do in the steps of the fault."""
        member, job = self.job.members[number], self.job
        mine = np.flatnonzero(self._rows.member == number)
        own_work, less = [np.zeros(0)], [np.zeros(0)]
        saved = 0.0
        for own, label in enumerate(member.labels):
            first = int(member.steps.worked_begin[own])
            length = int(member.steps.own_work[own])
            here, there = self._knots(fault, number, job.steps[label], length)
            own_work.append(first + here)
            less.append(saved + here - there)
            saved += float(here[-1] - there[-1])
        at = np.maximum.accumulate(np.concatenate(own_work))
        if at.size:
            shift = np.concatenate(less)
            for times in (arrive, end):
                times[mine] -= np.rint(np.interp(times[mine], at, shift)).astype(np.int64)

    def _knots(
        self, fault: Fault, number: int, step: int, own: int
    ) -> tuple[Float64Array, Float64Array]:
        """Moments of a step by what the member had worked since its begin, and by what its peers
        had then: begin, collectives and end; the member's own twice where the fault is not in this
        step.

        A collective that waited for another on its stream was ready at a moment that nobody knows.
        """
        peer = fault.peer_ps[step]
        ends = np.array([0, own], np.float64)
        if not fault.steps[step] or not np.isfinite(peer) or own <= 0:
            return ends, ends
        points, queued = self._points(number, step)
        alike, free = [], []
        same = np.flatnonzero(self.work.role == (-1 if fault.is_stage else self.work.role[number]))
        for other in same[:: max(same.size // PEERS, 1)].tolist():
            work = self.work.work_ps[other, step]
            if other == number or not work > 0:
                continue
            theirs, waits = self._points(other, step)
            if theirs.size == points.size:
                alike.append(theirs * (peer / work))
                free.append(~waits)
        usual = ~queued
        if alike:
            usual &= np.mean(free, axis=0) > _MOSTLY
        if not alike or not usual.any():
            return ends, ends * (peer / own)
        middle = np.median(alike, axis=0)[usual]
        order = np.argsort(points[usual], kind="stable")
        here = np.concatenate([[0], points[usual][order], [own]])
        there = np.maximum.accumulate(np.minimum(middle[order], peer))
        return here, np.concatenate([[0], there, [peer]])

    def _points(self, member: int, step: int) -> tuple[Float64Array, BoolArray]:
        """What a member had worked since the begin of a step when it came to each collective, by
        kind, size and order; and which of these waited for another on their stream.
        """
        order, bounds, steps = self._by_member_step
        at = member * steps + step
        rows = order[bounds[at] : bounds[at + 1]]
        first = self.job.members[member].steps.worked_begin[self._place[member][step]]
        return (self._rows.arrive[rows] - first).astype(np.float64), self._rows.behind[rows] >= 0

    @cached_property
    def _by_member_step(self) -> tuple[Int64Array, Int64Array, int]:
        rows, steps = self.paired.rows, max(len(self.job.steps), 1)
        inside = np.flatnonzero(rows.step >= 0)
        at = rows.member[inside] * steps + rows.step[inside]
        # On another rank those of one stream may come at other times among those of another.
        order = np.lexsort(
            (self._rows.arrive[inside], rows.size_bytes[inside], rows.kind[inside], at)
        )
        cells = len(self.job.members) * steps
        return inside[order], np.searchsorted(at[order], np.arange(cells + 1)), steps

    @cached_property
    def _place(self) -> list[dict[int, int]]:
        return [
            {self.job.steps[label]: own for own, label in enumerate(one.labels)}
            for one in self.job.members
        ]


@dataclass(frozen=True, eq=False)
class _RowArrays:
    """What happens, as `replay_waits` takes it: the rows of collectives, then two for each step of
    each member: its begin, and its end, at ``time`` on the job's clock. ``since`` and ``until`` are
    the rows between which each ``step`` lies; ``begin`` and ``first`` are when each member begins,
    and what it had worked by then.
    """

    member: Int64Array
    collective: Int64Array
    arrive: Int64Array
    end: Int64Array
    flags: UInt8Array
    behind: Int64Array
    events: Int64Array
    time: Int64Array
    begin: Int64Array
    first: Int64Array
    since: Int64Array
    until: Int64Array
    step: Int64Array


def _row_arrays(job: Job, paired: Paired) -> _RowArrays:
    rows, size = paired.rows, paired.rows.member.size
    arrive, end, line, flags = (np.zeros(size, np.int64) for _ in range(4))
    follows = np.zeros(size, np.bool_)
    for number, member in enumerate(job.members):
        mine, calls = rows.of(number), member.calls
        arrive[mine], end[mine] = calls.worked_arrive, calls.worked_end
        line[mine], flags[mine] = calls.line, np.where(calls.holds, BLOCKS, 0)
        follows[mine] = calls.follows
    holds = rows.is_kind(SYNCHRONISE) & paired.is_paired
    flags = (flags | np.where(holds, HOLDS, 0)).astype(np.uint8)
    edges = _edges(job, paired)
    begin, first, final = edges.bounds
    inside = np.flatnonzero((arrive >= first[rows.member]) & (arrive <= final[rows.member]))
    leave = np.where(holds, np.maximum(paired.end, paired.last[paired.collective]), paired.end)
    many = edges.member.size
    boundaries = size + np.arange(many)
    # What ends when the next one comes has ended before that; a step, before the next begins.
    numbers = np.concatenate([size + many + inside, boundaries, inside])
    when = np.concatenate(
        [np.maximum(leave, paired.arrive + 1)[inside], edges.time, paired.arrive[inside]]
    )
    return _RowArrays(
        np.concatenate([rows.member, edges.member]),
        np.concatenate([paired.collective, paired.count + np.arange(many)]),
        np.concatenate([arrive, edges.worked]),
        np.concatenate([end, edges.worked]),
        np.concatenate([flags, np.zeros(many, np.uint8)]),
        np.concatenate([_behind(rows.member, line, follows, paired), np.full(many, -1)]),
        numbers[np.argsort(when, kind="stable")],
        np.concatenate([paired.arrive, edges.time]),
        begin,
        first,
        size + edges.since,
        size + edges.until,
        edges.step,
    )


@dataclass(frozen=True, eq=False)
class _Edges:
    """Begins and ends of the members' steps: when, and what was worked by then. ``bounds`` are of
    each member its begin, what it had worked by then, and by the end of its last step.
    """

    member: Int64Array
    time: Int64Array
    worked: Int64Array
    since: Int64Array
    until: Int64Array
    step: Int64Array
    bounds: tuple[Int64Array, Int64Array, Int64Array]


def _edges(job: Job, paired: Paired) -> _Edges:
    columns: list[list[int]] = [[] for _ in range(3)]
    since: list[int] = []
    until: list[int] = []
    step: list[int] = []
    bounds = np.zeros((3, len(job.members)), np.int64)
    for number, member in enumerate(job.members):
        steps = member.steps
        if not member.labels:
            continue
        base = len(columns[0])
        for own in np.argsort(steps.begin, kind="stable").tolist():
            if steps.is_whole[own]:
                first = len(columns[0])
                since.append(first)
                # Two rows for each step: the next one's begin is two after this one's.
                until.append(first + (2 if steps.until[own] >= 0 else 1))
                step.append(job.steps[member.labels[own]])
            for time, worked in (
                (steps.begin[own], steps.worked_begin[own]),
                (steps.end[own], steps.worked_end[own]),
            ):
                columns[0].append(number)
                columns[1].append(int(time) + member.zero_ps)
                columns[2].append(int(worked))
        bounds[:, number] = (
            columns[1][base], int(steps.worked_begin.min()), int(steps.worked_end.max()),
        )  # fmt: skip
    own, time, worked = (np.array(column, np.int64) for column in columns)
    time -= paired.clocks.ahead(own, time)
    bounds[0] -= paired.clocks.ahead(np.arange(len(job.members)), bounds[0])
    return _Edges(
        own, time, worked, np.array(since, np.int64), np.array(until, np.int64),
        np.array(step, np.int64), (bounds[0], bounds[1], bounds[2]),
    )  # fmt: skip


def _behind(member: Int64Array, line: Int64Array, follows: BoolArray, paired: Paired) -> Int64Array:
    """The row of the same member that each was waiting for, -1 for none: the one before it on its
    stream, or on any where the member had nothing to do in between.
    """
    result = np.full(member.size, -1, np.int64)
    for streams in (np.zeros_like(line), line):
        order = np.lexsort((paired.arrive, streams, member))
        one, after = order[:-1], order[1:]
        gap = paired.arrive[after] - paired.end[one]
        queued = (member[one] == member[after]) & (streams[one] == streams[after])
        queued &= (gap >= 0) & (gap < _QUEUED_PS) & ((line[one] == line[after]) | follows[after])
        result[after[queued]] = one[queued]
    return result
