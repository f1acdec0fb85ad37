"""The answer of ``peakline fit``: each allocator of a profile, replayed; compiled programs by what
XLA assigned before they ran; another batch size; which segments cannot be returned; where buffers
lie under another limit or other settings; and, within other answers, the allocators whose memory is
scarce.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from peakline.arrays import BoolArray, Int64Array
from peakline.deadline import checked
from peakline.errors import NotFoundError, UsageError
from peakline.hlo.memory import ProgramMemory
from peakline.hlo.packing import packed_heaps
from peakline.kernels.memory_layout import ALLOCATION
from peakline.memory.fit.bfc import BfcFit
from peakline.memory.fit.model import (
    Alternative,
    Batch,
    Failed,
    Fit,
    Limits,
    NoFit,
    Pin,
    Proof,
    Question,
    Request,
    UnderLimit,
)
from peakline.memory.fit.replayed import Outcome, Replayed, recording_of
from peakline.memory.fragmentation.address_map import Blocks, Regions
from peakline.memory.origins.behind import Behind
from peakline.memory.over_time.live import memory_records
from peakline.memory.peak.explained import BEFORE_PROFILE, AllocatorPeak
from peakline.memory.signatures import History, dimensions, read_history
from peakline.replay.requests import LARGEST_REQUEST, MIB, NO_LIMIT
from peakline.suggest import there_is
from peakline.tables import Profile
from peakline.tables.event_rules import CACHING, MALLOC
from peakline.tables.once import once
from peakline.tables.profile_facts import is_moment
from peakline.text import size_text

_PINNED = "host"
"""The allocator of pinned memory in a snapshot of PyTorch."""
_BFC_NAMES = "_bfc", "bfc_cpu_allocator_for_gpu"
"""How best-fit allocators are called: ``GPU_0_bfc``, ``xla_gpu_host_bfc``, and that of TensorFlow's
host.
"""


def replayed_of(
    profile: Profile,
    history: History,
    number: int,
    settings: tuple[tuple[str, str], ...] = (),
    most_events: int | None = None,
) -> Replayed | NoFit:
    """The model of an allocator, by what the file says of it, and its recording."""
    name = history.lifetimes.allocators[number]
    # Only snapshots of PyTorch have segments.
    is_snapshot = "segments" in profile.tables and not profile.is_derived("segments")
    if is_moment(profile):
        how = "; call torch.cuda.memory._record_memory_history() first" if is_snapshot else ""
        return NoFit(
            name, f"the file is of one moment: in what order memory was requested is not in it{how}"
        )
    if is_snapshot and name == _PINNED:
        return NoFit(name, "pinned memory of the host has an allocator that is not modelled")
    allocator_of = profile.event_rules.allocator_of
    allocator = "" if allocator_of is None else allocator_of(name)
    if allocator == MALLOC:
        return NoFit(name, "PyTorch allocates on the host with malloc, which has no pool to model")
    if allocator == CACHING:
        return _caching(profile, history, number, settings, most_events)
    recording = recording_of(history, number)
    if not (recording.address >= 0).any():
        return NoFit(name, "no allocation has an address, which a replay is checked with")
    result = BfcFit(
        recording, history.capacities[number], name.startswith("GPU_"), settings, most_events
    )
    if not name.endswith(_BFC_NAMES) and not result.is_proved:
        proof = result.stated
        return NoFit(
            name,
            f"{proof.equal_addresses:,} of {proof.allocations:,} addresses are those of the "
            "best-fit allocator with coalescing: it is another one",
        )
    return result


def _caching(
    profile: Profile,
    history: History,
    number: int,
    given: tuple[tuple[str, str], ...],
    most_events: int | None,
) -> Replayed | NoFit:
    """The model of PyTorch's allocator."""
    # Its kernels take long to load, and most files have nothing of it.
    from peakline.memory.fit.caching import CachingFit
    from peakline.replay.torch_recording import read_recording
    from peakline.replay.torch_settings import CachingSettings

    events, name = profile.columns("allocator_events"), history.lifetimes.allocators[number]
    if events.rows != history.rows:
        return NoFit(name, "the file has too many allocators to replay one")
    if not events.is_valid("address").any():
        return NoFit(name, "no allocation has an address, which a replay is checked with")
    recorded = profile.allocator_settings
    try:
        settings = CachingSettings.of_snapshot(recorded) if recorded else None
    except UsageError as error:
        return NoFit(name, f"its settings are not those of the allocator that is modelled: {error}")
    recording = read_recording(profile, name, settings)
    if not len(recording.events):
        return NoFit(name, "it has no history")
    # A snapshot lists what was there before.
    unknown = recording_of(history, number).unknown_bytes if recording.final is None else 0
    return CachingFit(recording, unknown, given, most_events)


@dataclass(frozen=True)
class HeldSegment:
    """``free_bytes`` of its ``bytes`` are free; ``live_bytes`` in ``blocks`` blocks are not, the
    largest of which has the buffer ``largest`` (-1: not known).
    """

    address: int
    bytes: int
    free_bytes: int
    live_bytes: int
    blocks: int
    largest: int


def held_segments(outcome: Outcome, most: int) -> tuple[HeldSegment, ...]:
    """The segments, or regions, with most free memory behind blocks in use when a replay ended, at
    most so many. Those that are wholly free are held by nothing.
    """
    number, address, size = outcome.segments.T
    live = outcome.blocks[outcome.blocks[:, 3] > 0]
    live = live[np.isin(live[:, 0], number)]
    # The largest last, so that it is what stays of several.
    live = live[np.argsort(live[:, 2], kind="stable")]
    order = np.argsort(number)
    place = order[np.searchsorted(number[order], live[:, 0])]
    used, blocks = np.zeros((2, number.size), np.int64)
    largest = np.full(number.size, -1, np.int64)
    np.add.at(used, place, live[:, 2])
    np.add.at(blocks, place, 1)
    largest[place] = live[:, 4]
    rows = np.flatnonzero((blocks > 0) & (size > used))
    rows = rows[np.argsort((used - size)[rows], kind="stable")][:most]
    columns = (address, size, size - used, used, blocks, largest)
    return tuple(
        HeldSegment(*row)
        for row in zip(*(column[rows].tolist() for column in columns), strict=True)
    )


NAME = "xla"
_MOST = 20
"""So many programs are said, those that need most."""


def program_fits(profile: Profile, question: Question) -> list[Fit]:
    """The programs of a profile that has any, those that need most first.

    A program needs what its buffer assignment says, always and exactly: its temporaries are packed
    by XLA's heap simulator (`peakline.replay.xla_heap`), which is replayed. Raises as
    `check_deadline`.
    """
    programs = profile.programs()
    if not programs:
        return []
    known = [ProgramMemory(programs, number) for number in checked(range(len(programs)))]
    known = [one for one in known if one.is_known and one.peak_bytes]
    known.sort(key=lambda one: -one.peak_bytes)
    return [_fit(one, programs.label(one.number), question) for one in known[:_MOST]]


def _fit(memory: ProgramMemory, label: str, question: Question) -> Fit:
    heaps = packed_heaps(memory)
    values = sum(int((one.trace.piece >= 0).sum()) for one in heaps)
    is_same = all(one.is_same for one in heaps)
    peak, packing = memory.peak_bytes, memory.packing
    smallest = -(-peak // MIB) * MIB
    fits = ((smallest, None),)
    reason = ""
    if not memory.is_assigned:
        reason = "the file has no buffer assignment, and the need is computed"
    elif not is_same:
        reason = "the recorded places of its temporaries do not come out again"
    return Fit(
        allocator=label,
        model=NAME,
        settings={},
        proof=Proof(values, values if is_same else 0, not reason, reason),
        recorded_peak_bytes=peak,
        live_peak_bytes=peak - max(packing.heap_bytes - packing.live_bytes, 0),
        threads=0,
        limits=Limits(fits, fits, smallest, is_whole=True),
        exact=not reason,
        reason=reason,
        deciding=None,
        under=tuple(UnderLimit(limit, limit >= peak, peak, peak) for limit in question.limits),
    )


def scaling_buffers(replayed: Replayed, history: History, batch: int) -> BoolArray:
    """The buffers that scale with the batch.

    Those whose first dimension is a multiple of it (tokens are batch times length) and that are
    freed again: what lives to the end are parameters, whatever their shape.
    """
    shapes = history.events.names("shape")
    scales = np.array(
        [_scales(dimensions(text), batch) for text in shapes.values] + [False], np.bool_
    )
    return replayed.scaling(scales[shapes.codes])


def _scales(shape: tuple[int, ...] | None, batch: int) -> bool:
    return shape is not None and len(shape) > 0 and shape[0] >= batch and shape[0] % batch == 0


def scaled(size: Int64Array, chosen: BoolArray, batch: int, wanted: int) -> Int64Array:
    """The sizes, those of the chosen buffers for another batch size."""
    result = np.minimum(size, LARGEST_REQUEST)
    # Rounded up: a part of an element is one.
    whole, rest = np.divmod(result[chosen], batch)
    whole = np.minimum(whole, LARGEST_REQUEST // max(wanted, 1))
    result[chosen] = np.minimum(whole * wanted + -(-rest * wanted // batch), LARGEST_REQUEST)
    return result


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
        programs = program_fits(profile, question)
        if programs and (question.settings or question.batch):
            raise UsageError("--set and --batch are of a recorded allocator; these are programs")
        return [one for one in programs if allocator in {None, one.allocator}], []
    names = history.lifetimes.allocators
    if allocator is not None and allocator not in names:
        raise NotFoundError(
            f"no allocator {allocator!r} in the profile{there_is(allocator, names)}"
        )
    result: list[Fit] = []
    failed: list[NoFit] = []
    for number in _chosen(profile, history, allocator):
        one = fit_in(profile, history, number, question)
        if isinstance(one, NoFit):
            failed.append(one)
        else:
            result.append(one)
    if question.settings and not result and failed:
        raise UsageError(f"--set: {failed[0].allocator or 'the allocator'}: {failed[0].reason}")
    return result, failed


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
        replayed, history, failed = self._replayed, self._history, self._failed
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
        under = [self._under(one) for one in outcomes[: len(question.limits)]]
        if failed is not None:
            if limits.smallest is None or failed.needed_bytes > limits.smallest:
                least = replayed.under(-(-failed.needed_bytes // MIB) * MIB - MIB)
                deciding = failed.under(self._under(least))
            under = [failed.under(one) for one in under]
            limits = limits.at_least(failed.needed_bytes)
        return Fit(
            allocator=history.lifetimes.allocators[self._number],
            model=replayed.name,
            settings=replayed.settings.as_json(),
            proof=proof,
            recorded_peak_bytes=int(history.used[history.rows_of(self._number)].max(initial=0)),
            live_peak_bytes=replayed.live_peak,
            threads=threads,
            limits=limits,
            exact=failed is None
            and limits.is_whole
            and not (reason or limits.differs_by or limits.unsearched),
            reason=reason or _undecided(limits),
            deciding=deciding,
            under=tuple(under),
            alternatives=self._alternatives(question),
            pins=() if pinned is None else self._pins(pinned),
            batches=self._batches(question),
            failed=failed,
        )

    @cached_property
    def _failed(self) -> Failed | None:
        """The request that failed in the recording and needs most, None where none did.

        A request that a program made smaller when it failed counts too: served as it was made, it
        would have needed so much.
        """
        if "oom_reports" not in self._profile.tables:
            return None
        names = self._history.lifetimes.allocators
        # A report that names no allocator is of the only one.
        mine = [names[self._number], *([] if len(names) > 1 else [""])]
        failed = [
            self._failed_request(row)
            for row in self._profile.columns("oom_reports").to_pylist()
            if row["allocator"] in mine and (row["rounded_bytes"] or row["requested_bytes"])
        ]
        return max(failed, key=lambda one: one.needed_bytes, default=None)

    def _failed_request(self, row: Mapping[str, Any]) -> Failed:
        """A row of ``oom_reports``. What does not say how much was in use failed at the peak."""
        history, rows = self._history, self._history.rows_of(self._number)
        before = history.events.array("time_ps")[rows] <= row["time_ps"]
        allocations = history.lifetimes.kind[rows] == ALLOCATION
        live = row["in_use_bytes"]
        requested, rounded = row["requested_bytes"], row["rounded_bytes"]
        request = Request(
            index=int((allocations & before).sum()),
            bytes=rounded if requested is None else requested,
            rounded_bytes=requested if rounded is None else rounded,
            op=row["op"] or "",
            shape=row["shape"] or "",
            data_type=row["data_type"] or "",
            time_ps=row["time_ps"] or None,
            step="",
            source="",
        )
        return Failed(request, int(history.used[rows].max(initial=0)) if live is None else live)

    def _threads(self) -> int:
        """How many threads recorded allocations, 0 where that is not recorded."""
        events, rows = self._history.events, self._history.rows_of(self._number)
        known = events.is_valid("line_id")[rows]
        return int(np.unique(events.array("line_id")[rows][known]).size)

    def _reason(self, threads: int) -> str:
        """Why the answer is a bound; empty where it is exact for the recorded order."""
        if not self._replayed.stated.proved:
            return self._replayed.stated.reason
        if (failed := self._failed) is not None:
            return (
                f"a request of {size_text(failed.request.bytes)} failed with "
                f"{size_text(failed.live_bytes)} in use, and what follows it is not recorded"
            )
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
        result = np.flatnonzero(steps.array("step_id") == number)
        return (steps.names("name")[int(result[0])] if result.size else None) or str(number)

    def _source(self, row: int) -> str:
        origins = Behind(self._profile, self._history.rows).origins(self._history)
        if origins is None:
            return ""
        program = origins.of(np.array([row]))[0].program
        return "" if program is None else program.title

    def _alternatives(self, question: Question) -> tuple[Alternative, ...]:
        replayed, failed = self._replayed, self._failed
        limit = question.limits[0] if question.limits else None
        result = []
        for settings in replayed.others():
            limits = replayed.limits(settings)
            fits = None if limit is None else replayed.fits(limit, settings)
            free = replayed.under(
                NO_LIMIT if limits.smallest is None else limits.smallest, settings
            )
            if failed is not None:
                limits = limits.at_least(failed.needed_bytes)
                fits = None if limit is None else failed.fits(limit, replayed=fits)
            result.append(
                Alternative(
                    settings=settings.as_json(),
                    smallest_limit_bytes=limits.smallest,
                    safe_from_bytes=limits.safe_from,
                    is_whole=limits.is_whole,
                    peak_bytes=free.peak,
                    reserved_bytes=free.reserved,
                    fits=fits,
                )
            )
        return tuple(
            sorted(
                result,
                key=lambda one: (
                    one.fits is not True,
                    NO_LIMIT if one.safe_from_bytes is None else one.safe_from_bytes,
                    NO_LIMIT if one.smallest_limit_bytes is None else one.smallest_limit_bytes,
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
        fits = None if limit is None else replayed.fits(limit, sizes=sizes)
        if self._failed is not None:
            failed = self._failed_of(self._failed, mine, batch, wanted)
            limits = limits.at_least(failed.needed_bytes)
            fits = None if limit is None else failed.fits(limit, replayed=fits)
        return (
            Batch(
                recorded=batch,
                wanted=wanted,
                scaled_bytes=replayed.at_peak(mine),
                smallest_limit_bytes=limits.smallest,
                safe_from_bytes=limits.safe_from,
                fits=fits,
            ),
        )

    def _failed_of(self, failed: Failed, mine: BoolArray, batch: int, wanted: int) -> Failed:
        """A request that failed, with another batch size: it and the buffers that scale."""
        scaling = min(self._replayed.at_peak(mine), failed.live_bytes)
        size = failed.request.rounded_bytes * wanted // batch
        return replace(
            failed,
            request=replace(failed.request, rounded_bytes=size),
            live_bytes=failed.live_bytes - scaling + scaling * wanted // batch,
        )

    def _largest_batch(self, mine: BoolArray, batch: int, limit: int) -> int:
        """The largest batch, of those up to it that were tried all fit: doubling, then halving."""
        replayed = self._replayed

        def fits(size: int) -> bool:
            if (failed := self._failed) is not None:
                failed = self._failed_of(failed, mine, batch, size)
                if limit < failed.needed_bytes:
                    return False
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
    if any(one.limits.needs for one in fits):
        safe = []
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


SCARCE = 0.7
"""Memory is scarce where the peak takes this share of the capacity or more, or a request failed."""
_MOST_RECORDS = 200_000
"""A replay of more takes longer than the rest of the answer: `peakline fit` says it, ..."""
_MOST_EVENTS = 4_000_000
"""... as it does where the search over limits takes longer."""
_MOST_SCARCE = 4


def scarce_fits(
    profile: Profile, history: History, peaks: Iterable[AllocatorPeak], failed: Collection[str]
) -> tuple[Fit, ...]:
    """The answers for allocators whose memory is scarce; ``failed`` are those that say so."""
    result: list[Fit] = []
    for peak in peaks:
        capacity = peak.capacity_bytes or 0
        is_scarce = peak.allocator in failed or 0 < SCARCE * capacity <= peak.peak_bytes
        if not is_scarce or len(result) == _MOST_SCARCE:
            continue
        one = quick_fit(profile, history, history.lifetimes.allocators.index(peak.allocator))
        if one is not None:
            result.append(one)
    return tuple(result)


def quick_fit(profile: Profile, history: History, number: int) -> Fit | None:
    """The answer for one allocator where it takes no longer than other answers; None where it would
    or where nothing can be replayed. Raises as `check_deadline`.
    """
    if not 0 < history.rows_of(number).size <= _MOST_RECORDS:
        return None
    result = fit_in(profile, history, number, most_events=_MOST_EVENTS)
    return None if isinstance(result, NoFit) else result


@dataclass(frozen=True, eq=False)
class ReplayedMap:
    """The address space at the end of a replay, or when a request failed.

    ``settings`` are those of the replay, ``failed_row`` the record of the request that failed (-1:
    none did, or it has none), ``failed_bytes`` its bytes, rounded up (0: none failed).
    """

    regions: Regions
    blocks: Blocks
    limit: int
    settings: dict[str, object]
    failed_row: int
    failed_bytes: int
    outcome: Outcome


@once
def replayed_map(
    profile: Profile, number: int, limit: int | None, settings: tuple[tuple[str, str], ...]
) -> ReplayedMap | NoFit:
    """An allocator of `memory_records`, by its number, under a limit in bytes and settings.

    Without a limit it is the largest that fails, by which one sees why more is needed; where all
    fit, the smallest. NoFit where the recording cannot be replayed, or is not proved. Raises
    UsageError for settings that the model does not have.
    """
    history = history_of(profile)
    if history is None:
        return NoFit("", "the file has no records of an allocator")
    replayed = replayed_of(profile, history, number, settings)
    if isinstance(replayed, NoFit):
        return replayed
    if not replayed.stated.proved:
        return NoFit(history.lifetimes.allocators[number], replayed.stated.reason)
    outcome = replayed.under(_deciding(replayed) if limit is None else limit)
    return _map_of(replayed, outcome)


def _deciding(replayed: Replayed) -> int:
    """The largest limit that fails; where none is known, the smallest that fits."""
    limits = replayed.limits()
    safe = limits.safe_from
    if safe is not None and safe - MIB >= limits.searched_from:
        return safe - MIB
    return limits.smallest or replayed.live_peak


def _map_of(replayed: Replayed, outcome: Outcome) -> ReplayedMap:
    segments = outcome.segments[np.argsort(outcome.segments[:, 1], kind="stable")]
    regions = Regions(segments[:, 1], segments[:, 2])
    order = np.argsort(outcome.blocks[:, 1], kind="stable")
    _, address, size, in_use, buffer = outcome.blocks[order].T
    region, offset = regions.place(address)
    rows = [replayed.row_of(one) if one >= 0 else -1 for one in buffer.tolist()]
    states = tuple("in_use" if used else "free" for used in in_use.tolist())
    blocks = Blocks(region, offset, size, np.array(rows, np.intp), states)
    failed_row, failed_bytes = -1, 0
    if outcome.stopped_at >= 0:
        failed = replayed.buffer_of(outcome.stopped_at)
        failed_row = replayed.row_of(failed)
        wanted, granule = int(replayed.sizes[failed]), max(replayed.granule, 1)
        failed_bytes = -(-wanted // granule) * granule
    settings = replayed.settings.as_json()
    return ReplayedMap(
        regions, blocks, outcome.limit, dict(settings), failed_row, failed_bytes, outcome
    )
