"""Which profiles are one job, and who took part in it: by what the files say, then by their names.

Every profile that answered stands in exactly one place: as a rank, or among those that are left
out with the reason.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import NamedTuple

import numpy as np

from peakline.jobs.contribution import Calls, Contribution, Participant, Steps, Work
from peakline.repository.names import newest_of_workers
from peakline.repository.rank_names import rank_name, ranks_of_all
from peakline.text import counted, spans_of, time_text
from peakline.timing.step_breakdown import PARTS

_SHORT = 0.5
"""A rank with less than this share of the steps that most have is called short."""
_CUT = frozenset(("truncated", "damaged", "bad_checksum", "profiler_error"))
"""The kinds of warnings that say that a part of a file is missing or wrong."""


@dataclass(frozen=True, eq=False)
class Member:
    """A rank of the job, or one of several devices of a rank.

    ``number`` is the rank, None where neither the file nor its name says it; ``title`` is what it
    is called (``rank 3``; else the host, with the device where it has several). ``clock`` names
    the machine whose clock its times are by, and ``zero_ps`` is where its profile's zero lies by
    that, in ps from the earliest of the job.
    """

    number: int | None
    title: str
    host: str
    machine: str
    clock: str
    zero_ps: int
    profile: Contribution
    participant: Participant

    @property
    def steps(self) -> Steps:
        """Its steps."""
        return self.participant.steps

    @property
    def calls(self) -> Calls:
        """Its collectives."""
        return self.participant.calls

    @property
    def work(self) -> Work:
        """What its steps spend on what."""
        return self.participant.work

    @cached_property
    def labels(self) -> tuple[str, ...]:
        """What its steps are called, a name each: with a count where names repeat."""
        return labels_of(self.steps.name)


def labels_of(names: Sequence[str]) -> tuple[str, ...]:
    """Names of steps, each once: the n-th of a name is that name and the number."""
    if len(set(names)) == len(names) and "" not in names:
        return tuple(names)
    seen: Counter[str] = Counter()
    result = []
    for name in names:
        result.append(f"{name or 'step'} {seen[name]}")
        seen[name] += 1
    return tuple(result)


@dataclass(frozen=True)
class LeftOut:
    """A profile that is not looked at as a rank of the job, and why."""

    host: str
    reason: str


@dataclass(frozen=True, eq=False)
class Job:
    """The members of a job by rank, and what is missing of it.

    ``world_size`` is how many ranks the files say there were, None where they do not. ``missing``
    are the ranks below that, or below the highest, that have no profile. ``notes`` are lines for a
    person: disagreements, short and damaged profiles.
    """

    members: tuple[Member, ...]
    world_size: int | None
    missing: tuple[int, ...]
    left_out: tuple[LeftOut, ...]
    short: tuple[str, ...]
    damaged: tuple[str, ...]
    notes: tuple[str, ...]

    @property
    def profiles(self) -> tuple[Contribution, ...]:
        """Those of the members, each once."""
        return tuple(dict.fromkeys(member.profile for member in self.members))

    @cached_property
    def firsts(self) -> tuple[Member, ...]:
        """One member of each profile: what is of a process and not of a device counts once."""
        return tuple({id(member.profile): member for member in reversed(self.members)}.values())[
            ::-1
        ]

    @cached_property
    def steps(self) -> dict[str, int]:
        """The place of each step of the job, by its name, in order of time."""
        when: dict[str, list[int]] = {}
        for member in self.members:
            for label, begin in zip(member.labels, member.steps.begin.tolist(), strict=True):
                when.setdefault(label, []).append(begin + member.zero_ps)
        order = sorted(when, key=lambda label: (_natural(label), float(np.median(when[label]))))
        return {label: place for place, label in enumerate(order)}


_Natural = tuple[str, tuple[int, ...]]


def _natural(label: str) -> _Natural:
    """Numbers in a name by their value; equal names but for these stand together."""
    numbers = tuple(int(text) for text in re.findall(r"\d{1,18}", label))
    return re.sub(r"\d+", "#", label), numbers


def job_of(parts: Sequence[tuple[str, Contribution]]) -> Job:
    """The job that profiles are of; ``parts`` are what a host is called, and what it gives.

    Raises nothing: what does not fit is left out, with the reason.
    """
    left_out: list[LeftOut] = []
    notes: list[str] = []
    newest = newest_of_workers(parts)
    left_out += [
        LeftOut(host, "is an earlier recording of a worker")
        for host, _ in parts
        if host not in {name for name, _ in newest}
    ]
    own = _of_one_kind(newest, left_out)
    own = _of_one_world(own, left_out)
    named = ranks_of_all([rank_name(host) for host, _ in own])
    ranked = [
        (_number(host, one, rank, notes), host, one)
        for (host, one), rank in zip(own, named, strict=True)
    ]
    ranked = _of_one_time(_newest(ranked, left_out), left_out)
    ranked.sort(key=lambda row: (row[0] is None, row[0] or 0, _natural(row[1])))
    world = Counter(one.facts.world_size for _, _, one in ranked if one.facts.world_size)
    world_size = world.most_common(1)[0][0] if world else None
    numbers = {number for number, _, _ in ranked if number is not None}
    missing: tuple[int, ...] = ()
    if numbers and (world_size or len(numbers) == len(ranked)):
        missing = tuple(sorted(set(range(world_size or max(numbers) + 1)) - numbers))
    members = tuple(_members(ranked))
    return Job(
        members, world_size, missing, tuple(left_out), tuple(_short(members)),
        tuple(_damaged(ranked)), tuple(notes),
    )  # fmt: skip


def _of_one_kind(
    parts: Sequence[tuple[str, Contribution]], left_out: list[LeftOut]
) -> list[tuple[str, Contribution]]:
    """Those of the format that most have; a folder may hold others beside."""
    many = Counter(one.format for _, one in parts)
    if len(many) < 2:
        return list(parts)
    of_time = {one.format for _, one in parts if one.has_time}
    usual = max(many, key=lambda form: (many[form], form in of_time))
    result = []
    for host, one in parts:
        if one.format == usual:
            result.append((host, one))
        else:
            left_out.append(LeftOut(host, f"is a {one.format} file, the others are {usual}"))
    return result


def _of_one_world(
    parts: Sequence[tuple[str, Contribution]], left_out: list[LeftOut]
) -> list[tuple[str, Contribution]]:
    """Those of the world size, and the run, that most say."""
    result = list(parts)
    for what in ("ranks", "run"):
        said = {
            host: f"{one.facts.world_size} ranks" if what == "ranks" else f"run {one.facts.run}"
            for host, one in result
            if (one.facts.world_size if what == "ranks" else one.facts.run)
        }
        many = Counter(said.values())
        # Profiles that were recorded one by one have each a run of their own.
        if len(many) < 2 or (what == "run" and len(many) == len(result)):
            continue
        usual = many.most_common(1)[0][0]
        left_out += [
            LeftOut(host, f"is of a job of {own}, the others of {usual}")
            for host, own in said.items()
            if own != usual
        ]
        result = [(host, one) for host, one in result if said.get(host, usual) == usual]
    return result


def _number(host: str, one: Contribution, named: int | None, notes: list[str]) -> int | None:
    """The rank: by the content, else by the name."""
    stated = one.facts.rank
    if stated is not None and named is not None and stated != named:
        notes.append(f"{host}: the file says rank {stated}, its name {named}; the file counts")
    return named if stated is None else stated


_Ranked = tuple[int | None, str, Contribution]


def _newest(ranked: Sequence[_Ranked], left_out: list[LeftOut]) -> list[_Ranked]:
    """One profile of each rank: of recordings one after the other the last, of those of the same
    time the one that holds most.
    """
    best: dict[int, _Ranked] = {}
    result: list[_Ranked] = []
    for row in ranked:
        number, _, one = row
        if number is None:
            result.append(row)
            continue
        other = best.get(number)
        if other is None:
            best[number] = row
            continue
        apart = _apart(one, other[2])
        if apart:
            newer = (one.start_ns or 0) > (other[2].start_ns or 0)
        else:
            newer = _amount(one) > _amount(other[2])
        winner, loser = (row, other) if newer else (other, row)
        best[number] = winner
        why = "an earlier recording of" if apart else "another profile of"
        left_out.append(LeftOut(loser[1], f"is {why} rank {number}, which {winner[1]} is too"))
    return [*result, *best.values()]


def _of_one_time(ranked: Sequence[_Ranked], left_out: list[LeftOut]) -> list[_Ranked]:
    """Those that were recorded at the same time, where one machine's clock says it: of recordings
    that lie further apart than they are long the most, or the newest. Clocks of other machines may
    be wrong by as much; and workers that do not say of how many they are may not wait for each
    other, and are of one session however far apart.
    """
    by_machine: dict[str, list[_Recorded]] = {}
    for _, host, one in ranked:
        if one.start_ns is None or not one.facts.world_size or one.span[1] <= one.span[0]:
            continue
        begin, end = (one.start_ns + at // 1000 for at in one.span)
        by_machine.setdefault(one.facts.host_name, []).append(_Recorded(begin, end, host))
    by_machine.pop("", None)
    gone: dict[str, str] = {}
    for machine, recorded in by_machine.items():
        runs: list[list[_Recorded]] = []
        until = longest = 0
        for each in sorted(recorded):
            longest = max(longest, each.end - each.begin)
            if runs and each.begin - until <= longest:
                runs[-1].append(each)
            else:
                runs.append([each])
            until = max(until, each.end)
        most = max(runs, key=lambda run: (len(run), run[0].begin))
        for each in (each for run in runs if run is not most for each in run):
            apart = time_text(abs(each.begin - most[0].begin) * 1000)
            when = "before" if each.begin < most[0].begin else "after"
            gone[each.host] = f"was recorded {apart} {when} the others of {machine}"
    left_out += [LeftOut(host, reason) for host, reason in gone.items()]
    return [row for row in ranked if row[1] not in gone]


class _Recorded(NamedTuple):
    """From when to when a profile was recorded, in ns since 1970."""

    begin: int
    end: int
    host: str


def _apart(one: Contribution, other: Contribution) -> bool:
    """Whether two recordings lie one after the other by their own clocks."""
    if one.start_ns is None or other.start_ns is None:
        return False
    spans = [
        (each.start_ns + each.span[0] // 1000, each.start_ns + each.span[1] // 1000)
        for each in (one, other)
        if each.start_ns is not None
    ]
    first, second = sorted(spans)
    return first[1] <= second[0]


def _amount(one: Contribution) -> tuple[int, int, int]:
    return (
        max((len(own.steps.name) for own in one.participants), default=0),
        sum(own.calls.rows for own in one.participants),
        -len(_CUT.intersection(one.warnings)),
    )


def _members(ranked: Sequence[_Ranked]) -> Iterable[Member]:
    starts = [one.start_ns for _, _, one in ranked if one.start_ns is not None]
    base = min(starts, default=0)
    for number, host, one in ranked:
        known = one.start_ns is not None
        machine = one.facts.host_name or (host if number is None else "")
        title = host if number is None else f"rank {number}"
        several = len(one.participants) > 1
        for own in one.participants or (_NOBODY,):
            yield Member(
                number,
                f"{title} {own.device}" if several else title,
                host,
                machine,
                one.facts.host_name if known and one.facts.host_name else host,
                (one.start_ns - base) * 1000 if one.start_ns is not None else 0,
                one,
                own,
            )


_NO_ROWS = np.zeros(0, np.int64)
_NO_CODES = np.zeros(0, np.int32)
_NO_FLAGS = np.zeros(0, np.bool_)
_NOBODY = Participant(
    "",
    Steps(
        name=(), step_id=_NO_ROWS, begin=_NO_ROWS, end=_NO_ROWS,
        parts=np.zeros((0, len(PARTS)), np.int64), is_cut_off=_NO_FLAGS,
        worked_begin=_NO_ROWS, worked_end=_NO_ROWS,
    ),
    Calls(
        texts=(), kind=_NO_CODES, group=_NO_CODES, ranks=_NO_CODES, key=_NO_CODES,
        data_type=_NO_CODES, group_size=_NO_CODES, peer=_NO_CODES, line=_NO_CODES,
        sequence=_NO_ROWS, size_bytes=_NO_ROWS, arrive=_NO_ROWS, end=_NO_ROWS,
        step=_NO_CODES, worked_arrive=_NO_ROWS, worked_end=_NO_ROWS, holds=_NO_FLAGS,
        follows=_NO_FLAGS,
    ),
    Work((), (), np.zeros((0, 0), np.int64), np.zeros((0, 0), np.int32), _NO_ROWS, ()),
)  # fmt: skip
"""What takes part in nothing: a rank of which only memory is known."""


def _short(members: Sequence[Member]) -> Iterable[str]:
    many = [len(member.labels) for member in members]
    if not many:
        return
    usual = int(np.median(many))
    for member, own in zip(members, many, strict=True):
        if own < _SHORT * usual:
            yield f"{member.title} has {counted(own, 'step')} of {usual}"


def _damaged(ranked: Sequence[_Ranked]) -> Iterable[str]:
    for number, host, one in ranked:
        for kind, detail in one.warnings.items():
            if kind in _CUT:
                title = host if number is None else f"rank {number}"
                yield f"{title}: {detail}"


def numbers_text(numbers: Sequence[int]) -> str:
    """Ranks in order, what follows each other as a range.

    >>> numbers_text([0, 1, 2, 3, 7])
    '0-3, 7'
    """
    return ", ".join(spans_of(sorted(numbers)))


_NUMBER = re.compile(r"\d{1,18}")
_RANKS = re.compile(r"\[\d{1,18}(?:, ?\d{1,18})*\]")


@lru_cache(1 << 10)
def group_text(text: str | None) -> str | None:
    """A group as it is called, or its ranks: of a thousand ``0-999``.

    >>> group_text("[0, 1, 2, 3]")
    '0-3'
    """
    if text is None or not _RANKS.fullmatch(text):
        return text
    return numbers_text([int(number) for number in _NUMBER.findall(text)])
