"""The answer of ``peakline fit``: each allocator of a profile, replayed."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from peakline.arrays import BoolArray
from peakline.errors import NotFoundError, UsageError
from peakline.memory.behind import Behind
from peakline.memory.fit.batch import scaled, scaling_buffers
from peakline.memory.fit.choice import replayed_of
from peakline.memory.fit.model import (
    Alternative,
    Batch,
    Fit,
    Limits,
    NoFit,
    Pin,
    Request,
    UnderLimit,
)
from peakline.memory.fit.pins import held_segments
from peakline.memory.fit.question import Question
from peakline.memory.fit.replayed import Outcome, Replayed
from peakline.memory.live import memory_records
from peakline.memory.peak import BEFORE_PROFILE
from peakline.memory.signatures import History, read_history
from peakline.replay.requests import MIB, NO_LIMIT
from peakline.suggest import there_is
from peakline.tables import Profile
from peakline.tables.once import once

_PINS = 5
MOST_ALLOCATORS = 16
"""So many are answered about, those with the largest peaks."""
NO_QUESTION = Question()
_LARGEST_BATCH = 1 << 16


def fits_of(
    profile: Profile, question: Question = NO_QUESTION, *, allocator: str | None = None
) -> tuple[list[Fit], list[NoFit]]:
    """The answer for every allocator, or the one that is named; for every compiled program where no
    allocator was recorded.

    Raises UsageError for settings that no model has, NotFoundError for an unknown allocator, and
    as `check_deadline`.
    """
    history = history_of(profile)
    if history is None:
        from peakline.memory.fit.programs import program_fits

        programs = program_fits(profile, question)
        if programs and (question.settings or question.batch):
            raise UsageError("--set and --batch are of a recorded allocator; these are programs")
        return [one for one in programs if allocator in {None, one.allocator}], []
    names = history.lifetimes.allocators
    if allocator is not None and allocator not in names:
        raise NotFoundError(
            f"no allocator {allocator!r} in the profile{there_is(allocator, names)}"
        )
    found: list[Fit] = []
    failed: list[NoFit] = []
    for number in _chosen(profile, history, allocator):
        one = fit_in(profile, history, number, question)
        if isinstance(one, NoFit):
            failed.append(one)
        else:
            found.append(one)
    if question.settings and not found and failed:
        raise UsageError(f"--set: {failed[0].allocator or 'the allocator'}: {failed[0].reason}")
    return found, failed


def _chosen(profile: Profile, history: History, allocator: str | None) -> list[int]:
    """The numbers of the allocators that are replayed, in the order of their names."""
    names = history.lifetimes.allocators
    if allocator is not None:
        return [names.index(allocator)]
    if len(names) <= MOST_ALLOCATORS:
        return list(range(len(names)))
    peaks = [-int(history.used[history.rows_of(n)].max(initial=0)) for n in range(len(names))]
    largest = sorted(range(len(names)), key=lambda n: (peaks[n], n))[:MOST_ALLOCATORS]
    detail = f"allocators beyond the {MOST_ALLOCATORS} largest are not replayed; choose one by name"
    profile.warn("many_allocators", detail, len(names) - MOST_ALLOCATORS, once=True)
    return sorted(largest)


def fit_in(
    profile: Profile,
    history: History,
    number: int,
    question: Question = NO_QUESTION,
    *,
    most_events: int | None = None,
) -> Fit | NoFit:
    """The answer for one allocator, by its number in ``history.lifetimes.allocators``.

    ``most_events`` bounds the work of a search over limits. Raises as `fits_of`.
    """
    replayed = replayed_of(profile, history, number, question.settings, most_events)
    if isinstance(replayed, NoFit):
        return replayed
    return _Answer(profile, history, number, replayed).fit(question)


@once
def history_of(profile: Profile) -> History | None:
    """The records of a profile as a replay reads them, made once; None where it has none."""
    records = memory_records(profile)
    return None if records is None else read_history(records.events, records.lifetimes)


class _Answer:
    """One allocator's answer."""

    def __init__(self, profile: Profile, history: History, number: int, replayed: Replayed) -> None:
        self._profile, self._history, self._number = profile, history, number
        self._replayed = replayed

    def fit(self, question: Question) -> Fit:
        replayed, history = self._replayed, self._history
        proof, limits = replayed.stated, replayed.limits()
        threads = self._threads()
        reason = self._reason(threads)
        outcomes = [replayed.under(limit) for limit in question.limits]
        safe = limits.safe_from
        deciding = None
        if safe is not None and safe - MIB >= limits.searched_from:
            outcomes.append(replayed.under(safe - MIB))
            deciding = self._under(outcomes[-1])
        pinned = next((one for one in outcomes if one.stopped_at >= 0), None)
        return Fit(
            allocator=history.lifetimes.allocators[self._number],
            model=replayed.name,
            settings=replayed.settings.as_json(),
            proof=proof,
            recorded_peak_bytes=int(history.used[history.rows_of(self._number)].max(initial=0)),
            live_peak_bytes=replayed.live_peak,
            threads=threads,
            limits=limits,
            exact=not (reason or limits.differs_by or limits.unsearched) and limits.is_whole,
            reason=reason or _undecided(limits),
            deciding=deciding,
            under=tuple(map(self._under, outcomes[: len(question.limits)])),
            alternatives=self._alternatives(question),
            pins=() if pinned is None else self._pins(pinned),
            batches=self._batches(question),
        )

    def _threads(self) -> int:
        """How many threads recorded allocations, 0 where that is not recorded."""
        events, rows = self._history.events, self._history.rows_of(self._number)
        known = events.is_valid("line_id")[rows]
        return int(np.unique(events.array("line_id")[rows][known]).size)

    def _reason(self, threads: int) -> str:
        """Why the answer is a bound; empty where it is exact for the recorded order."""
        if not self._replayed.stated.proved:
            return self._replayed.stated.reason
        if uncertain := self._replayed.uncertain():
            return uncertain
        if threads > 1:
            return (
                f"{threads} threads allocate: another run may order their requests otherwise, and "
                "a request that fails waits for what others free"
            )
        return ""

    def _under(self, outcome: Outcome) -> UnderLimit:
        failed = outcome.stopped_at >= 0
        return UnderLimit(
            limit_bytes=outcome.limit,
            fits=self._replayed.fits(outcome.limit) if failed else True,
            peak_bytes=outcome.peak,
            reserved_bytes=outcome.reserved,
            fails_at=self._request(outcome.stopped_at) if failed else None,
            cause=outcome.cause,
            live_bytes=outcome.live if failed else None,
            free_bytes=outcome.free if failed else None,
            largest_free_bytes=outcome.largest if failed else None,
            in_use_bytes=outcome.in_use if failed else None,
        )

    def _request(self, event: int) -> Request:
        replayed, events = self._replayed, self._history.events
        buffer = replayed.buffer_of(event)
        size = int(replayed.sizes[buffer])
        rounded = -(-size // replayed.granule) * replayed.granule
        row = replayed.row_of(buffer)
        if row < 0:
            return Request(0, size, rounded, BEFORE_PROFILE, "", "", None, "", "")
        return Request(
            index=replayed.index_of(event),
            bytes=size,
            rounded_bytes=rounded,
            op=events.names("op")[row] or "",
            shape=events.names("shape")[row] or "",
            data_type=events.names("data_type")[row] or "",
            time_ps=int(events.array("time_ps")[row]),
            step=self._step(row),
            source=self._source(row),
        )

    def _step(self, row: int) -> str:
        events = self._history.events
        if not events.is_valid("step_id")[row]:
            return ""
        number = int(events.array("step_id")[row])
        steps = self._profile.columns_or_empty("steps")
        found = np.flatnonzero(steps.array("step_id") == number)
        return (steps.names("name")[int(found[0])] if found.size else None) or str(number)

    def _source(self, row: int) -> str:
        origins = Behind(self._profile, self._history.rows).origins(self._history)
        if origins is None:
            return ""
        program = origins.of(np.array([row]))[0].program
        return "" if program is None else program.title

    def _alternatives(self, question: Question) -> tuple[Alternative, ...]:
        replayed = self._replayed
        limit = question.limits[0] if question.limits else None
        found = []
        for settings in replayed.others():
            limits = replayed.limits(settings)
            free = replayed.under(
                NO_LIMIT if limits.smallest is None else limits.smallest, settings
            )
            found.append(
                Alternative(
                    settings=settings.as_json(),
                    smallest_limit_bytes=limits.smallest,
                    safe_from_bytes=limits.safe_from,
                    is_whole=limits.is_whole,
                    peak_bytes=free.peak,
                    reserved_bytes=free.reserved,
                    fits=None if limit is None else replayed.fits(limit, settings),
                )
            )
        return tuple(
            sorted(
                found,
                key=lambda one: (
                    one.fits is not True,
                    NO_LIMIT if one.safe_from_bytes is None else one.safe_from_bytes,
                ),
            )
        )

    def _pins(self, outcome: Outcome) -> tuple[Pin, ...]:
        """The segments with most free memory that live blocks hold, when the replay ended."""
        return tuple(
            Pin(
                one.address,
                one.bytes,
                one.free_bytes,
                one.live_bytes,
                one.blocks,
                *self._owner(one.largest),
            )
            for one in held_segments(outcome, _PINS)
        )

    def _owner(self, buffer: int) -> tuple[str, str]:
        """The op and the source line of a buffer."""
        row = self._replayed.row_of(buffer) if buffer >= 0 else -1
        if row < 0:
            return BEFORE_PROFILE, ""
        return self._history.events.names("op")[row] or "", self._source(row)

    def _batches(self, question: Question) -> tuple[Batch, ...]:
        batch = question.batch
        if batch is None:
            return ()
        replayed = self._replayed
        mine = scaling_buffers(replayed, self._history, batch)
        if not mine.any():
            name = self._history.lifetimes.allocators[self._number]
            raise UsageError(
                f"--batch {batch}: no buffer of {name or 'the allocator'} that is freed again has "
                f"a first dimension that is a multiple of {batch}"
            )
        limit = question.limits[0] if question.limits else None
        wanted = question.wanted_batch
        if wanted is None:
            limit = self._history.capacities[self._number] if limit is None else limit
            if limit is None:
                raise UsageError(f"--batch {batch}: add --limit SIZE, or say which: {batch}:64")
            wanted = self._largest_batch(mine, batch, limit)
        sizes = scaled(replayed.sizes, mine, batch, wanted)
        limits = replayed.limits(sizes=sizes)
        return (
            Batch(
                recorded=batch,
                wanted=wanted,
                scaled_bytes=replayed.at_peak(mine),
                smallest_limit_bytes=limits.smallest,
                safe_from_bytes=limits.safe_from,
                fits=None if limit is None else replayed.fits(limit, sizes=sizes),
            ),
        )

    def _largest_batch(self, mine: BoolArray, batch: int, limit: int) -> int:
        """The largest batch, of those up to it that were tried all fit: doubling, then halving."""
        replayed = self._replayed

        def fits(size: int) -> bool:
            return replayed.fits(limit, sizes=scaled(replayed.sizes, mine, batch, size)) is True

        low, high = 0, batch
        while fits(high) and high < _LARGEST_BATCH:
            low, high = high, 2 * high
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if fits(middle) else (low, middle)
        return low


def _undecided(limits: Limits) -> str:
    """Why limits that a proved recording gives are not exact; empty where they are."""
    if limits.differs_by:
        return f"not recorded, and it decides: {', '.join(limits.differs_by)}"
    if limits.unsearched:
        return f"not recorded, and not compared: {', '.join(limits.unsearched)}"
    return "" if limits.is_whole else "the work was too much to look at all limits"


def range_over(fits: Sequence[Fit]) -> dict[str, object]:
    """Several recordings of one program: what the least and the most of them say."""
    smallest = [one.limits.smallest for one in fits if one.limits.smallest is not None]
    safe = [one.limits.safe_from for one in fits if one.limits.safe_from is not None]
    return {
        "allocator": fits[0].allocator,
        "recordings": len(fits),
        "smallest_limit_bytes": [min(smallest), max(smallest)] if smallest else None,
        "safe_from_bytes": [min(safe), max(safe)] if safe else None,
        "recorded_peak_bytes": [
            min(one.recorded_peak_bytes for one in fits),
            max(one.recorded_peak_bytes for one in fits),
        ],
    }
