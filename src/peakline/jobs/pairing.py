"""Which collectives of several participants are one, when each came to it, and who waited.

A collective is known by its group and its number in it where both are recorded, or by what XLA
calls each of its executions; else by its group, kind and size, the step that it lies in, and which
of those it is in the step. A message is the n-th from one rank to another in the step.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from peakline.arrays import AnyArray, BoolArray, Float64Array, Int32Array, Int64Array
from peakline.jobs.clocks import Clocks, aligned
from peakline.jobs.members import Member
from peakline.timing.collectives import SYNCHRONISING

SYNCHRONISE = frozenset(
    (
        "all-reduce", "all-gather", "reduce-scatter", "all-to-all", "ragged-all-to-all", "barrier",
        "send-recv", "send", "recv", "collective-permute",
    )
)  # fmt: skip
"""Kinds that nobody leaves before all have come; of a broadcast, a reduction to one, a scatter or a
gather that holds for some of the members only, which the files do not name."""
UNEVEN = ("all-to-all", "ragged-all-to-all")
_MESSAGES = ("send", "recv")
_NONE = -1


@dataclass(frozen=True, eq=False)
class Rows:
    """The collectives of all participants, a row for each participant of each; times in ps on the
    clock of the participant's profile, from the zero of the job's first clock.

    ``texts`` are what the codes ``kind`` and ``group`` stand for. ``step`` is the place among the
    steps of the job (-1: in none), ``place`` that of the row in its participant's own.
    """

    texts: tuple[str, ...]
    member: Int64Array
    place: Int64Array
    kind: Int64Array
    group: Int64Array
    key: Int64Array
    sequence: Int64Array
    peer: Int64Array
    size_bytes: Int64Array
    step: Int64Array
    arrive: Int64Array
    end: Int64Array

    def of(self, member: int) -> slice:
        """The rows of a member: in order of ``place``, and those of all members in theirs."""
        return slice(*np.searchsorted(self.member, [member, member + 1]).tolist())

    def is_kind(self, kinds: frozenset[str] | Sequence[str]) -> BoolArray:
        """Which rows are of one of ``kinds``."""
        table = np.array([*(text in kinds for text in self.texts), False], np.bool_)
        return np.asarray(table[self.kind])


@dataclass(frozen=True, eq=False)
class Paired:
    """The collectives of a job: rows as `Rows`, with ``collective``, the same number for the rows
    of one; times in ps on the job's clock.

    ``last`` and ``first_end`` are of the whole collective: the last arrival, and the median end.
    ``late`` is how long after the median of the others a member came (negative: before),
    ``wait`` how long it was there before the last one came, ``transfer`` what it was in there for
    after that; -1 for ``wait`` and ``transfer`` of kinds that do not hold their members up, and
    where it is the only member whose profile there is.
    """

    rows: Rows
    clocks: Clocks
    collective: Int64Array
    arrive: Int64Array
    end: Int64Array
    late: Int64Array
    wait: Int64Array
    transfer: Int64Array
    last: Int64Array
    members: Int64Array

    @property
    def count(self) -> int:
        """How many collectives there are."""
        return self.last.size

    @cached_property
    def order(self) -> Int64Array:
        """The rows, those of one collective together."""
        return np.argsort(self.collective, kind="stable")

    @cached_property
    def bounds(self) -> Int64Array:
        """Where the rows of each collective begin in `order`, and the end of the last."""
        return np.searchsorted(self.collective[self.order], np.arange(self.count + 1))

    @cached_property
    def is_paired(self) -> BoolArray:
        """Which rows have another member's beside them."""
        return np.asarray(self.members[self.collective] > 1)


def rows_of(members: Sequence[Member], steps: Mapping[str, int]) -> Rows:
    """The collectives of all ``members``; ``steps`` are the job's, by name."""
    texts: dict[str, int] = {}
    # The ranks of a job have the same texts, but for the ranks in their groups.
    tables: dict[tuple[bool, tuple[str, ...]], Int64Array] = {}

    def coded(member: Member, column: Int32Array, *, canonical: bool = False) -> Int64Array:
        key = canonical, member.calls.texts
        if key not in tables:
            own = [_canonical(text) if canonical else text for text in key[1]]
            table = [texts.setdefault(text, len(texts)) for text in own]
            tables[key] = np.array([*table, _NONE], np.int64)
        return tables[key][column]

    columns: list[list[AnyArray]] = []
    for number, member in enumerate(members):
        calls = member.calls
        group = coded(member, calls.group)
        ranks = coded(member, calls.ranks, canonical=True)
        step = np.array([*(steps.get(name, _NONE) for name in member.labels), _NONE], np.int64)
        own = [
            np.full(calls.rows, number, np.int64), np.arange(calls.rows),
            coded(member, calls.kind), np.where(ranks >= 0, ranks, group),
            coded(member, calls.key), calls.sequence, calls.peer.astype(np.int64),
            calls.size_bytes, step[calls.step],
            calls.arrive + member.zero_ps, calls.end + member.zero_ps,
        ]  # fmt: skip
        columns.append(own)
    joined = [
        np.concatenate([np.zeros(0, np.int64), *(own[k] for own in columns)])
        for k in range(len(columns[0]) if columns else 11)
    ]
    return Rows(tuple(texts), *joined)


def _canonical(ranks: str) -> str:
    """Ranks as text whatever the spaces."""
    return "".join(ranks.split())


def pair(members: Sequence[Member], steps: Mapping[str, int]) -> Paired:
    """The collectives of a job. Clocks are put where what ends on all members at once does."""
    rows = rows_of(members, steps)
    collective, unequal = _numbered(rows, members)
    sure = rows.is_kind(SYNCHRONISING) & ~unequal
    clocks = aligned(members, rows.member[sure], collective[sure], rows.end[sure])
    end = rows.end - clocks.ahead(rows.member, rows.end)
    if unequal.any():
        collective = _by_ends(rows, collective, unequal, end)
        clocks = aligned(
            members,
            *(one[rows.is_kind(SYNCHRONISING)] for one in (rows.member, collective, rows.end)),
        )
        end = rows.end - clocks.ahead(rows.member, rows.end)
    arrive = rows.arrive - clocks.ahead(rows.member, rows.arrive)
    return _measured(rows, clocks, collective, arrive, end)


def _number(*columns: AnyArray) -> Int64Array:
    """One number for equal rows of ``columns``, from 0."""
    result = np.zeros(columns[0].size, np.int64)
    for column in columns:
        _, code = np.unique(column, return_inverse=True)
        result = result * (int(code.max(initial=0)) + 1) + code
        _, result = np.unique(result, return_inverse=True)
    return result


def _nth(same: Int64Array, when: Int64Array) -> Int64Array:
    """Which of those with its number each is, in order of time."""
    order = np.lexsort((when, same))
    first = np.searchsorted(same[order], same[order], side="left")
    result = np.empty(same.size, np.int64)
    result[order] = np.arange(same.size) - first
    return result


def _numbered(rows: Rows, members: Sequence[Member]) -> tuple[Int64Array, BoolArray]:
    """The collective of each row, and which rows were counted where members have different
    numbers of them.
    """
    none = np.full(rows.member.size, _NONE, np.int64)
    is_message = rows.is_kind(_MESSAGES) & (rows.peer >= 0)
    # Each rank counts its own messages.
    is_counted_apart = rows.is_kind(_MESSAGES)
    has_key = (rows.key >= 0) & ~is_counted_apart
    has_number = (rows.sequence >= 0) & ~is_counted_apart
    ranks = np.array([-2 if one.number is None else one.number for one in members], np.int64)
    mine = ranks[rows.member] if len(members) else none
    sends = rows.is_kind(("send",))
    source, target = np.where(sends, mine, rows.peer), np.where(sends, rows.peer, mine)
    counted = ~has_key & ~has_number
    label = _number(
        rows.group * ~is_message,
        np.where(is_message, _NONE, rows.kind),
        np.where(is_message, source, none), np.where(is_message, target, none),
        # What a rank gives to and gets of an all-to-all may be another amount on each.
        np.where(rows.is_kind(UNEVEN), _NONE, rows.size_bytes), rows.step, is_message,
    )  # fmt: skip
    own = _number(label, rows.member)
    nth = _nth(own, rows.arrive)
    collective = _number(
        np.where(has_key, 0, np.where(has_number, 1, 2)),
        np.where(counted, label, rows.group),
        np.where(has_key, rows.key, np.where(has_number, rows.sequence, nth)),
    )
    # How many of a label each member has: where that differs, the n-th may be another's n+1-th.
    _, of_pair, often = np.unique(own[counted], return_index=True, return_counts=True)
    least = np.full(int(label.max(initial=0)) + 1, np.iinfo(np.int64).max)
    most = np.zeros(least.size, np.int64)
    at = label[counted][of_pair]
    np.minimum.at(least, at, often)
    np.maximum.at(most, at, often)
    return collective, counted & (least[label] < most[label])


def _by_ends(rows: Rows, collective: Int64Array, unequal: BoolArray, end: Int64Array) -> Int64Array:
    """The collectives again, those that were counted wrongly by what ended together."""
    result = collective.copy()
    next_number = int(collective.max(initial=0)) + 1
    where = np.flatnonzero(unequal)
    label = _number(
        rows.group[where], rows.kind[where], rows.size_bytes[where], rows.step[where],
        np.where(rows.is_kind(_MESSAGES)[where], rows.peer[where], _NONE),
    )  # fmt: skip
    order = np.argsort(label, kind="stable")
    for own in np.split(where[order], np.flatnonzero(np.diff(label[order])) + 1):
        by_member = {
            number: own[rows.member[own] == number]
            for number in np.unique(rows.member[own]).tolist()
        }
        most = max(by_member.values(), key=len)
        most = most[np.argsort(end[most], kind="stable")]
        anchors = end[most]
        result[most] = next_number + np.arange(most.size)
        for mine in by_member.values():
            if mine.size and mine[0] not in most:
                ordered = mine[np.argsort(end[mine], kind="stable")]
                result[ordered] = next_number + _nearest(anchors, end[ordered])
        next_number += most.size
    return _number(result)


def _nearest(anchors: Int64Array, ends: Int64Array) -> Int64Array:
    """For each of ``ends`` (ascending, no more than there are anchors) the anchor that it goes
    with: in order, none twice, the sum of distances least.
    """
    many, few = anchors.size, ends.size
    room = many - few
    cost = np.zeros(room + 1)
    steps = np.zeros((few, room + 1), np.int64)
    for k in range(few):
        # Having skipped j anchors so far, the k-th end goes with anchor k + j.
        here = np.abs(anchors[k : k + room + 1] - ends[k]).astype(np.float64)
        best = np.minimum.accumulate(cost)
        steps[k] = np.maximum.accumulate(np.where(cost <= best, np.arange(room + 1), 0))
        cost = best + here
    result, skipped = np.zeros(few, np.int64), int(cost.argmin())
    for k in range(few - 1, -1, -1):
        result[k] = k + skipped
        skipped = int(steps[k, skipped])
    return result


def _measured(
    rows: Rows, clocks: Clocks, collective: Int64Array, arrive: Int64Array, end: Int64Array
) -> Paired:
    count = int(collective.max(initial=-1)) + 1
    last = np.full(count, np.iinfo(np.int64).min)
    np.maximum.at(last, collective, arrive)
    members = np.bincount(collective, minlength=count)
    is_paired, holds = members[collective] > 1, rows.is_kind(SYNCHRONISE)
    late = np.where(is_paired, arrive - _median_of_others(collective, arrive, count), 0)
    known = is_paired & holds
    duration = end - arrive
    wait = np.where(known, np.clip(last[collective] - arrive, 0, np.maximum(duration, 0)), _NONE)
    transfer = np.where(known, np.maximum(duration - np.maximum(wait, 0), 0), _NONE)
    return Paired(rows, clocks, collective, arrive, end, late, wait, transfer, last, members)


def _median_of_others(collective: Int64Array, values: Int64Array, count: int) -> Int64Array:
    """The median of what the other members of each row's collective have; its own, where it has
    none.
    """
    order = np.lexsort((values, collective))
    ordered, of = values[order], collective[order]
    first = np.searchsorted(of, np.arange(count + 1))
    size, place = np.diff(first)[of], np.arange(of.size) - first[:-1][of]
    others = size - 1

    def other(k: Int64Array) -> Int64Array:
        """The k-th of the others, in order."""
        at = np.clip(np.where(k < place, k, k + 1), 0, np.maximum(size - 1, 0))
        return np.asarray(ordered[first[:-1][of] + at])

    low, high = other((others - 1) // 2), other(others // 2)
    result = np.empty(values.size, np.int64)
    result[order] = np.where(others > 0, low + (high - low) // 2, ordered)
    return result


def medians(code: Int64Array, values: Float64Array, count: int) -> Float64Array:
    """The median of ``values`` for each number of ``code``; NaN for one without any."""
    order = np.lexsort((values, code))
    ordered, of = values[order], code[order]
    first = np.searchsorted(of, np.arange(count + 1))
    size = np.diff(first)
    low, high = first[:-1] + (size - 1) // 2, first[:-1] + size // 2
    most = max(ordered.size - 1, 0)
    result = np.full(count, np.nan)
    known = size > 0
    if ordered.size:
        middle = (ordered[np.clip(low, 0, most)] + ordered[np.clip(high, 0, most)]) / 2
        result[known] = middle[known]
    return result
