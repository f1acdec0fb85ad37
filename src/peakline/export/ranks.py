"""Several ranks of a job in one trace: on one clock, with who waited for whom.

Who came last to a collective is known of all ranks of the job alone, so the answer is about all of
them, however few are written.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace

import numpy as np

from peakline.arrays import AnyArray, Int64Array
from peakline.errors import UsageError
from peakline.export.timeline import Timeline, read_timeline
from peakline.jobs.answer import JobAnswer
from peakline.jobs.clocks import ProfileClock
from peakline.jobs.contribution import rows_of_participants
from peakline.jobs.members import Member, group_text, numbers_text
from peakline.jobs.pairing import Paired
from peakline.memory.allocator_names import recorded_name
from peakline.safe_text import one_line, valid_text
from peakline.suggest import there_is
from peakline.tables import Columns, Profile
from peakline.tables.columns import Names
from peakline.text import counted
from peakline.timing import collective_rows
from peakline.trace.activity import activity_of
from peakline.trace.activity_names import Activity
from peakline.trace.events import trace_of

MOST_AT_ONCE = 16
"""So many ranks are looked at beside each other where nobody chose."""
_NONE = -1


@dataclass(frozen=True, eq=False)
class RankCollectives:
    """The collectives of a rank that have members on other ranks too, a row for each.

    ``event`` is the row of the timeline's events that is it, ``ends`` the one that ends when it
    does (the same, but for what has a start and a done; -1: none). A number that is not known is
    -1; ``late_ps`` may be negative, and counts where ``is_paired``. ``into`` is the number of the
    arrow that comes from whom this rank waited for, and row k has the arrows
    ``out[first[k] : first[k + 1]]`` to those who waited for it.
    """

    event: Int64Array
    ends: Int64Array
    group: Names
    sequence: Int64Array
    size_bytes: Int64Array
    late_ps: Int64Array
    wait_ps: Int64Array
    into: Int64Array
    out: Int64Array
    first: Int64Array


@dataclass(frozen=True, eq=False)
class RankTimeline:
    """What is written of a rank: ``timeline`` is by the job's clock."""

    title: str
    timeline: Timeline
    collectives: RankCollectives


class JobTimelines:
    """The timelines of some ranks of a job, read one after the other.

    ``chosen`` are places in ``answer.job.members``, in the order in which they are written; those
    of one profile are written together. ``opened`` opens the profile of a host.
    """

    def __init__(
        self, answer: JobAnswer, chosen: Sequence[int],
        opened: Callable[[str], AbstractContextManager[Profile]],
    ) -> None:  # fmt: skip
        self._answer, self._opened = answer, opened
        members = answer.job.members
        self._profiles: dict[str, list[int]] = {}
        for number in chosen:
            self._profiles.setdefault(members[number].host, []).append(number)
        for host, own in self._profiles.items():
            # All devices of a process stand in its file.
            own[:] = [number for number, one in enumerate(members) if one.host == host]
        self._arrows = _Arrows(answer.paired, [n for own in self._profiles.values() for n in own])

    @property
    def notes(self) -> list[str]:
        """What a person should know of the clocks and the arrows, a line each."""
        job, result = self._answer.job, []
        clocks = self._answer.paired.clocks
        alone = sum(not one.matches for one in clocks.machines) - 1
        if clocks.aligned_by == "none":
            result.append("the clocks of these hosts are compared by nothing: each is as it is")
        elif alone > 0:
            result.append(
                f"{counted(alone, 'clock')} compared by no collective with the others: taken as "
                "it is"
            )
        if job.missing:
            ranks = f"rank{'s' * (len(job.missing) > 1)} {numbers_text(job.missing)}"
            result.append(
                f"no profile of {ranks}: who waited for it has an arrow from the last of the others"
            )
        waits = np.bincount(self._arrows.left_out)
        if waits.sum():
            most = job.members[int(waits.argmax())].title
            result.append(
                f"{counted(int(waits.sum()), 'wait')} without an arrow: who was waited for, most "
                f"often {most}, is not among these ranks"
            )
        elif len(self._profiles) > 1 and not (self._arrows.into >= 0).any():
            result.append(
                "no arrows: no collective that holds its members up is recorded on two of these "
                "ranks"
            )
        return result

    @property
    def zero_ps(self) -> int:
        """The earliest start of the profiles on the job's clock: nothing in them is before it."""
        starts = [self._clock(own).to_job(np.zeros(1)) for own in self._profiles.values()]
        return min((int(start[0]) for start in starts), default=0)

    def _clock(self, own: Sequence[int]) -> ProfileClock:
        return self._answer.clock(own[0])

    @contextmanager
    def _read(
        self, host: str, own: Sequence[int], allocator: str | None, *, args: bool
    ) -> Iterator[RankTimeline]:
        with self._opened(host) as profile:
            allocator = recorded_name(profile, allocator)
            timeline = read_timeline(profile, args=args, allocator=allocator)
            yield RankTimeline(
                _title(self._answer, own[0]),
                moved(timeline, self._clock(own)),
                self._arrows.of(profile, own),
            )

    def each(
        self, *, args: bool, allocator: str | None
    ) -> Iterator[AbstractContextManager[RankTimeline]]:
        """Every rank in order, each to be read, and released before the next is.

        Reading one raises NotFoundError where it has nothing that happened at a time, or no such
        allocator, and InputError when it cannot be read.
        """
        for host, own in self._profiles.items():
            yield self._read(host, own, allocator, args=args)


def _title(answer: JobAnswer, number: int) -> str:
    """``rank 3 (node1)``, or the host where the rank is not known."""
    member = answer.job.members[number]
    title = member.host if member.number is None else f"rank {member.number}"
    machine = member.machine if member.machine != title else ""
    return valid_text(one_line(f"{title} ({machine})" if machine else title))


def moved(timeline: Timeline, clock: ProfileClock) -> Timeline:
    """``timeline`` by the job's clock. What lies in another event lies there still."""

    def events(table: Columns) -> Columns:
        start, duration = table.array("start_ps"), table.array("duration_ps")
        begin = clock.to_job(start)
        long = clock.to_job(start + duration) - begin if clock.drift else duration
        return Columns({**table.data, "start_ps": begin, "duration_ps": long}, table.valid)

    def timed(table: Columns) -> Columns:
        if not table.rows:
            return table
        return Columns({**table.data, "time_ps": clock.to_job(table.array("time_ps"))}, table.valid)

    return replace(
        timeline,
        events=events(timeline.events),
        steps=events(timeline.steps),
        flows=timed(timeline.flows),
        counters=timed(timeline.counters),
        memory=tuple(replace(one, time_ps=clock.to_job(one.time_ps)) for one in timeline.memory),
    )


class _Arrows:
    """From whom was waited for to who waited: of a message from its sender to its receiver, of
    another collective that holds its members up from who came last to all others.

    An arrow has the number of the row that it leads ``into``. Only what was there before it ends
    has one: where clocks are less sure than a transfer is short, none is drawn.
    """

    def __init__(self, paired: Paired, members: Sequence[int]) -> None:
        self._paired = paired
        rows = paired.rows
        source = np.full(paired.count, _NONE, np.int64)
        holds = np.flatnonzero(paired.is_paired & (paired.wait >= 0))
        last = holds[paired.arrive[holds] == paired.last[paired.collective[holds]]]
        # The first of several that came last at the same moment.
        source[paired.collective[last[::-1]]] = last[::-1]
        sends = holds[rows.is_kind(("send",))[holds]]
        source[paired.collective[sends]] = sends
        of = source[paired.collective]
        is_written = np.zeros(max(int(rows.member.max(initial=0)), *members, 0) + 1, np.bool_)
        is_written[list(members)] = True
        waited = (of >= 0) & (of != np.arange(of.size)) & (paired.wait >= 0)
        waited &= is_written[rows.member]
        others = waited.copy()
        others[waited] &= ~is_written[rows.member[of[waited]]]
        self.left_out = rows.member[of[others]]
        waited &= ~others
        waited[waited] &= paired.arrive[of[waited]] < paired.end[waited]
        self.into = np.where(waited, np.arange(of.size), _NONE)
        targets = np.flatnonzero(waited)
        self._targets = targets[np.argsort(of[targets], kind="stable")]
        self._sources = of[self._targets]

    def of(self, profile: Profile, own: Sequence[int]) -> RankCollectives:
        """Those of the participants ``own`` of a profile."""
        paired, rows = self._paired, self._paired.rows
        events = events_of_collectives(profile)
        picked, places = [np.zeros(0, np.int64)], [np.zeros((2, 0), np.int64)]
        for number, where in zip(own, events, strict=False):
            mine = np.arange(rows.member.size)[rows.of(number)]
            if mine.size != where.shape[1]:
                # The file is another by now.
                continue
            picked.append(mine)
            places.append(where[:, rows.place[mine]])
        row, place = np.concatenate(picked), np.concatenate(places, axis=1)
        both = np.flatnonzero(paired.is_paired[row] & (place[0] >= 0))
        row, place = row[both], place[:, both]
        first = np.searchsorted(self._sources, row)
        end = np.searchsorted(self._sources, row, side="right")
        out = [self._targets[a:b] for a, b in zip(first.tolist(), end.tolist(), strict=True)]
        return RankCollectives(
            event=place[0],
            ends=place[1],
            group=_groups(rows.texts, rows.group[row]),
            sequence=rows.sequence[row],
            size_bytes=rows.size_bytes[row],
            late_ps=paired.late[row],
            wait_ps=paired.wait[row],
            into=np.where(place[1] >= 0, self.into[row], _NONE),
            out=np.concatenate([np.zeros(0, np.int64), *out]),
            first=np.cumsum([0, *(end - first).tolist()]),
        )


def _groups(texts: Sequence[str], codes: Int64Array) -> Names:
    """The groups of these ``codes``, as they are called."""
    used, place = np.unique(codes, return_inverse=True)
    return Names.encode([group_text(texts[n]) if n >= 0 else None for n in used.tolist()]).take(
        place
    )


def events_of_collectives(profile: Profile) -> list[Int64Array]:
    """Of each participant, for its collectives in order the row of the timeline's events that is
    it, and the row that ends when it does (-1: none).
    """
    rows, trace = collective_rows(profile), trace_of(profile)
    ends = np.where(trace.end[rows.event] == rows.end, rows.event, _NONE)
    apart = np.flatnonzero(ends < 0)
    if apart.size:
        # The done of a start: another event of the same plane.
        done = np.flatnonzero(activity_of(profile) == Activity.COMMUNICATION)
        done = done[np.argsort(trace.end[done], kind="stable")]
        first = np.searchsorted(trace.end[done], rows.end[apart])
        last = np.searchsorted(trace.end[done], rows.end[apart], side="right")
        plane = np.array([line.plane for line in trace.lines] or [0])
        of = plane[trace.lines_of(rows.event[apart])]
        for k, (a, b) in enumerate(zip(first.tolist(), last.tolist(), strict=True)):
            same = done[a:b][plane[trace.lines_of(done[a:b])] == of[k]]
            if same.size:
                ends[apart[k]] = same[0]
    table: AnyArray = np.stack(
        [trace.rows(rows.event), np.where(ends >= 0, trace.rows(np.maximum(ends, 0)), _NONE)]
    ) if rows.rows else np.zeros((2, 0), np.int64)  # fmt: skip
    return [table[:, mine] for _, mine in rows_of_participants(profile)]


def chosen_ranks(answer: JobAnswer, text: str | None) -> list[int]:
    """The places in the job's members of the ranks that ``--ranks`` names, one for each profile:
    numbers and ranges (``0-3,7``), hosts by name where a rank is not known. All, where it names
    none and they are few.

    Raises UsageError that says what there is.
    """
    members = answer.job.members
    firsts = [members.index(one) for one in answer.job.firsts]
    if text is None:
        if len(firsts) > MOST_AT_ONCE:
            raise UsageError(
                f"{len(firsts):,} ranks; choose some with --ranks, as {_suggested(answer)}"
            )
        return firsts
    by_number = {number: n for n in firsts if (number := members[n].number) is not None}
    by_host = {members[n].host: n for n in firsts}
    result: list[int] = []
    for part in filter(None, (part.strip() for part in text.split(","))):
        match = re.fullmatch(r"(\d{1,9})(?:-(\d{1,9}))?", part)
        if part in by_host:
            result.append(by_host[part])
        elif match is not None and int(match[2] or match[1]) < int(match[1]):
            raise UsageError(f"--ranks {part}: ends before it begins")
        elif match is None:
            raise UsageError(f"--ranks: no rank or host {part!r:.80}{there_is(part, by_host)}")
        else:
            low, high = int(match[1]), int(match[2] or match[1])
            own = [by_number[n] for n in sorted(by_number) if low <= n <= high]
            missing = high - low + 1 - len(own)
            if missing:
                known = numbers_text([*by_number])
                there = f"; there are: {known:.200}" if known else there_is(part, by_host)
                raise UsageError(f"--ranks {part}: {missing:,} of these have no profile{there}")
            result += own
    if not result:
        raise UsageError("--ranks takes numbers and ranges, such as 0-3,7")
    return sorted(dict.fromkeys(result))


def _suggested(answer: JobAnswer) -> str:
    """Who keeps the others waiting and who waits most for it, else the first few."""
    members, waiting = answer.job.members, answer.times.waiting
    late = answer.roots[0].members[:2] if answer.roots else ()
    if not late or not np.isfinite(waiting).any():
        return f"{_as_option(members[:2])} (nobody keeps the others waiting)"
    most = int(np.nanargmax(waiting))
    words = _as_option([members[n] for n in dict.fromkeys((*late, most))])
    return f"{words} ({members[late[0]].title} is waited for, {members[most].title} waits most)"


def _as_option(members: Sequence[Member]) -> str:
    """As ``--ranks`` takes them."""
    return ",".join(
        one.host if one.number is None else str(one.number)
        for one in sorted(members, key=lambda one: (one.number is None, one.number or 0))
    )
