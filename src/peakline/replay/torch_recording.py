"""Recordings of PyTorch's caching allocator as events to replay.

A snapshot (``torch.cuda.memory._snapshot``) has the segments at its end and a history that may
begin late: the state at its begin follows backwards from the end. A trace of PyTorch's profiler has
neither segments nor streams: a segment is taken where the total that is reserved grows.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from peakline.arrays import AnyArray, BoolArray, Int64Array
from peakline.errors import NotFoundError
from peakline.kernels import caching_layout as layout
from peakline.replay.torch_caching import CachingMachine
from peakline.replay.torch_events import CachingEvents, CachingStart
from peakline.replay.torch_segments import TAKES, Final, Takes, first_state, pools_of, takes_of
from peakline.replay.torch_settings import CachingSettings
from peakline.tables import Profile
from peakline.tables.columns import Columns

FREED_BY_PROGRAM, FREED_FOR_MEMORY = 0, 1
NOT_ALLOCATED = -2
"""The buffer of a free before which nothing was allocated there."""


@dataclass(frozen=True, eq=False)
class CachingRecording:
    """What one allocator did.

    ``events`` has what was returned to the device where it was recorded, for a proof; ``what_if``
    has in its place the program's own ``empty_cache``, and nothing where memory was short: that is
    for the model to decide. ``row_of_event`` and ``row_of_what_if`` are rows of
    ``allocator_events`` (-1 for none), ``row_of_buffer`` those of allocations. ``before`` are the
    buffers that were live at the begin, in order of their addresses; ``start`` is the state then.

    ``final`` is the state at the end, None where it is not recorded. ``is_whole``: the history
    begins with the first allocation. ``gap`` says in one sentence what the recording lacks to be
    replayed exactly, empty where nothing is known to lack. ``unmatched`` counts frees of what was
    not allocated before, and allocations where something was live. ``guessed_returns`` counts times
    at which memory was returned and it is not recorded why.
    """

    events: CachingEvents
    what_if: CachingEvents
    row_of_event: Int64Array
    row_of_what_if: Int64Array
    row_of_buffer: Int64Array
    settings: CachingSettings
    start: CachingStart
    before: Int64Array
    final: Final | None
    is_whole: bool
    gap: str
    unmatched: int
    guessed_returns: int

    def machine(
        self,
        settings: CachingSettings,
        limit: int | None = None,
        *,
        device_bytes: int | None = None,
        placement: str = "ascending",
        has_results: bool = True,
    ) -> tuple[CachingMachine, int, bool]:
        """A replay under other settings and limits; how many requests of buffers that were live
        before come before the first event; and whether it is an estimate.

        Under the settings of the recording it begins in the recorded state. Under others what was
        live then is placed afresh, in the order of addresses: it is not known in which order it
        was allocated.
        """
        is_same = self.final is not None and settings == self.settings
        machine = CachingMachine(
            self.what_if if is_same else self.what_if.preceded_by(self.before),
            settings,
            limit,
            self.start if is_same else None,
            device_bytes=device_bytes,
            placement=placement,
            has_results=has_results,
        )
        if is_same:
            return machine, 0, not self.is_known
        return machine, int(self.before.size), bool(self.before.size) or not self.is_known

    @property
    def is_known(self) -> bool:
        """Whether nothing had to be guessed."""
        return not self.gap and not self.guessed_returns and not self.unmatched


@dataclass(frozen=True, eq=False)
class _Rows:
    """The records of one allocator in order: of each its row in the table."""

    row: Int64Array
    events: Columns

    def array(self, name: str) -> AnyArray:
        """A column, with 0 for null."""
        values = self.events.array(name)[self.row]
        return np.where(self.events.is_valid(name)[self.row], values, 0)


def read_recording(
    profile: Profile, allocator: str, settings: CachingSettings | None = None
) -> CachingRecording:
    """What ``allocator`` did, under ``settings`` (None: those that PyTorch begins with, and
    expandable segments where the recording has some).

    Raises NotFoundError where it has no records with addresses, InputError as the profile.
    """
    events = profile.columns("allocator_events")
    names = events.names("allocator")
    code = names.code_of(allocator) if allocator in names.values else -2
    row = np.flatnonzero((names.codes == code) & events.is_valid("address"))
    if row.size == 0:
        raise NotFoundError(
            f"no records of {allocator!r} with addresses; "
            f"there are {', '.join(name for name in names.values if name) or 'none'}"
        )
    has_returns = events.is_valid("returned_sequence")[row].any()
    keys = [events.array("sequence")[row]]
    if not has_returns:
        keys.append(events.array("time_ps")[row])
    rows = _Rows(row[np.lexsort(keys)].astype(np.int64), events)
    if "segments" in profile.tables and not profile.is_derived("segments"):
        final: Final | None = Final.of(profile, allocator)
    else:
        final = None
    action = events.names("region_type")
    action_of = np.array([*(TAKES.get(name, 0) for name in action.values), 0], np.int64)
    takes = action_of[action.codes[rows.row]]
    if settings is None:
        has_pages = bool((np.abs(takes) == TAKES["segment_map"]).any())
        has_pages |= final is not None and bool(final.is_expandable.any())
        settings = CachingSettings(expandable_segments=has_pages)
    return _recording(rows, takes, final, settings)


def _recording(
    rows: _Rows, takes: Int64Array, final: Final | None, settings: CachingSettings
) -> CachingRecording:
    kind = rows.events.names("activity")
    of_kind = {"allocation": 1, "deallocation": 2}
    what = np.array([*(of_kind.get(name, 0) for name in kind.values), 0], np.int64)
    what = what[kind.codes[rows.row]].copy()
    address = rows.array("address").astype(np.uint64).view(np.int64)
    what[takes != 0] = 0
    buffer_of, again, unmatched = _paired(address, what)
    # Buffers of which only the free is recorded follow those that were allocated.
    lone = np.flatnonzero((what == 2) & (buffer_of == NOT_ALLOCATED))
    allocations = np.concatenate([np.flatnonzero(what == 1), lone])
    buffer_of[lone] = np.arange(allocations.size - lone.size, allocations.size)
    count = allocations.size
    is_before = rows.array("is_before").astype(np.bool_)
    is_first = is_before[allocations]
    is_first[count - lone.size :] = True
    size = rows.array("allocated_bytes").astype(np.int64)
    requested = rows.array("requested_bytes").astype(np.int64)
    # A trace of the profiler has the block's size alone: as a request it finds the same block.
    requested = np.where(rows.events.is_valid("requested_bytes")[rows.row], requested, size)
    stream = rows.array("stream").astype(np.int64)
    where = np.arange(rows.row.size, dtype=np.int64)
    if final is not None:
        of_takes = takes_of(takes, address, size, stream, where, allocations, is_first)
    else:
        of_takes = _grown(rows, what, size, allocations, is_first)
    pool = np.zeros(count, np.int64)
    if final is not None:
        pool = pools_of(final, of_takes, address[allocations], allocations)
    made, of_row = _ordered(rows, what, takes, buffer_of, again, of_takes, is_before)
    lanes = None
    if final is not None:
        # Segments that nothing is allocated in count too.
        lanes = np.concatenate(
            [
                np.stack([final.pool, final.stream], axis=1),
                np.stack([of_takes.stream * 0, of_takes.stream], axis=1),
            ]
        )
    events = CachingEvents.of(
        made[0], made[1], requested[allocations], stream[allocations], pool, lanes
    )
    events = replace(
        events,
        returned=of_takes.returned,
        address=address[allocations],
        segment_base=of_takes.base,
        segment_bytes=of_takes.bytes,
    )
    reasons, guessed = _reasons(rows, takes, of_takes, settings, final)
    what_if, of_what_if = _without_returns(events, of_row, reasons)
    before = np.flatnonzero(is_first)
    before = before[np.argsort(address[allocations][before], kind="stable")]
    start, gap = CachingStart.empty(), ""
    if final is None:
        gap = _gap(rows, size, allocations, int(before.size), unmatched)
    else:
        if final.pool.any() and (of_takes.kind == TAKES["segment_free"]).any():
            gap = "It has private pools, and does not say of which pool the returned segments were."
        start = first_state(
            final, of_takes, events, before, address[allocations][before],
            size[allocations][before],
        )  # fmt: skip
    return CachingRecording(
        events=events,
        what_if=what_if,
        row_of_event=rows.row[of_row],
        row_of_what_if=rows.row[of_what_if],
        row_of_buffer=rows.row[allocations],
        settings=settings,
        start=start,
        before=before,
        final=final,
        is_whole=not before.size
        and not start.base.size
        and not unmatched
        and (final is not None or not gap),
        gap=gap,
        unmatched=unmatched,
        guessed_returns=guessed,
    )


def _paired(address: Int64Array, what: Int64Array) -> tuple[Int64Array, Int64Array, int]:
    """Of each row the buffer it is about, numbered by allocation, `NOT_ALLOCATED` for a first free;
    of each row the buffer that must have been freed before it, -1 for none; and how many rows
    contradict those before them.
    """
    number = np.cumsum(what == 1) - 1
    by = np.flatnonzero(what > 0)
    by = by[np.argsort(address[by], kind="stable")]
    at, kind = address[by], what[by]
    is_same, follows = np.zeros(by.size, np.bool_), np.zeros(by.size, np.bool_)
    is_same[1:] = at[1:] == at[:-1]
    follows[1:] = is_same[1:] & (kind[:-1] == 1)
    buffer, again = np.full((2, address.size), -1, np.int64)
    is_first = kind == 1
    buffer[by[is_first]] = number[by[is_first]]
    ends = np.flatnonzero(follows & (kind == 2))
    buffer[by[ends]] = number[by[ends - 1]]
    buffer[by[~is_same & (kind == 2)]] = NOT_ALLOCATED
    twice = np.flatnonzero(follows & is_first)
    again[by[twice]] = number[by[twice - 1]]
    lost = is_same & ~follows & (kind == 2)
    return buffer, again, int(twice.size + lost.sum())


def _ordered(
    rows: _Rows,
    what: Int64Array,
    takes: Int64Array,
    buffer_of: Int64Array,
    again: Int64Array,
    of_takes: Takes,
    is_before: BoolArray,
) -> tuple[tuple[Int64Array, Int64Array], Int64Array]:
    """Kind and subject of the events in order, and of each the row that it comes from."""
    sequence = rows.events.array("sequence")[rows.row]
    place = np.arange(rows.row.size, dtype=np.float64)
    allocated = np.flatnonzero((what == 1) & ~is_before)
    freed = np.flatnonzero((what == 2) & (buffer_of >= 0))
    deferred = rows.array("deferred").astype(np.bool_)[freed]
    has_end = rows.events.is_valid("returned_sequence")[rows.row][freed] & deferred
    ends = rows.events.array("returned_sequence")[rows.row][freed][has_end]
    # What follows the end of a wait has a later number.
    end_place = np.searchsorted(sequence, ends).astype(np.float64) - 0.5
    returns = of_takes.return_row
    twice = np.flatnonzero(again >= 0)
    ended = freed[has_end]
    is_whole = takes[returns] == TAKES["segment_free"]
    free = np.where(deferred, layout.FREE_REQUESTED, layout.FREE)
    parts = [
        (np.full(twice.size, layout.FREE), again[twice], place[twice] - 0.25, twice),
        (
            np.full(allocated.size, layout.ALLOCATE),
            buffer_of[allocated],
            place[allocated],
            allocated,
        ),
        (free, buffer_of[freed], place[freed], freed),
        (np.full(ends.size, layout.FREE_COMPLETED), buffer_of[ended], end_place, ended),
        (
            np.where(is_whole, layout.RELEASE, layout.UNMAP),
            np.arange(returns.size),
            place[returns],
            returns,
        ),
    ]
    kind, subject, at, row = (np.concatenate(column) for column in zip(*parts, strict=True))
    by = np.argsort(at, kind="stable")
    return (kind[by], subject[by]), row[by]


def _reasons(
    rows: _Rows, takes: Int64Array, of_takes: Takes, settings: CachingSettings, final: Final | None
) -> tuple[Int64Array, int]:
    """Of each return why it was, and how many times it is a guess.

    Memory that is returned because it is short, or as garbage, is returned within the request that
    then takes a segment: both have its call stack. Without call stacks: what could be taken
    besides all that was reserved, as at another time it was, was not short.
    """
    returns = of_takes.return_row
    reason = np.full(returns.size, FREED_BY_PROGRAM, np.int64)
    if not returns.size:
        return reason, 0
    stack = np.where(
        rows.events.is_valid("stack_id")[rows.row], rows.events.array("stack_id")[rows.row], -1
    )
    size = rows.array("allocated_bytes").astype(np.int64)
    change = np.sign(takes) * size
    total = (0 if final is None else int(final.mapped)) - int(change.sum()) + np.cumsum(change)
    most = int(total.max())
    # Runs of returns, and the row behind each.
    starts = np.flatnonzero(np.append(True, returns[1:] != returns[:-1] + 1))
    ends = np.append(starts[1:], returns.size) - 1
    guessed = 0
    for first, last in zip(starts.tolist(), ends.tolist(), strict=True):
        behind = int(returns[last]) + 1
        if behind >= takes.size or takes[behind] <= 0:
            continue
        row = int(returns[first])
        if stack[row] >= 0 or stack[behind] >= 0:
            is_short = stack[row] == stack[behind]
        else:
            guessed += 1
            is_short = settings.garbage_collection_threshold > 0
            is_short |= int(total[row]) + int(size[row]) + int(size[behind]) > most
        reason[first : last + 1] = FREED_FOR_MEMORY if is_short else FREED_BY_PROGRAM
    return reason, guessed


def _without_returns(
    events: CachingEvents, of_row: Int64Array, reasons: Int64Array
) -> tuple[CachingEvents, Int64Array]:
    """The events with one emptying of the cache for each run of returns by the program."""
    is_return = (events.kind == layout.RELEASE) | (events.kind == layout.UNMAP)
    follows = np.append(False, is_return[:-1])[: is_return.size]
    by_program = np.zeros(is_return.size, np.bool_)
    by_program[is_return] = reasons[events.subject[is_return]] == FREED_BY_PROGRAM
    stays = ~is_return | (by_program & ~follows)
    kind = np.where(is_return, layout.EMPTY_CACHE, events.kind).astype(np.uint8)
    return replace(events, kind=kind[stays], subject=events.subject[stays]), of_row[stays]


def _grown(
    rows: _Rows, what: Int64Array, size: Int64Array, allocations: Int64Array, is_first: BoolArray
) -> Takes:
    """Segments of a profiler's trace, where what is reserved grows at an allocation."""
    known = rows.events.is_valid("pool_bytes")[rows.row]
    reserved = np.where(known, rows.array("pool_bytes").astype(np.int64), -1)
    grown = np.zeros(reserved.size, np.int64)
    grown[1:] = np.where((reserved[1:] >= 0) & (reserved[:-1] >= 0), np.diff(reserved), 0)
    change = np.sign(reserved[0]) * reserved[0] if reserved.size and what[0] == 1 else 0
    if reserved.size and known[0] and int(rows.array("in_use_bytes")[0]) == int(size[0]):
        # Nothing was live before: what is reserved was taken for this.
        grown[0] = change
    taken = np.where(is_first, 0, np.maximum(grown, 0)[allocations])
    address = rows.array("address").astype(np.uint64).view(np.int64)[allocations]
    none = np.zeros(0, np.int64)
    return Takes(np.where(taken > 0, address, -1), taken, none, none, none, none, none, none, none)


def _gap(
    rows: _Rows, size: Int64Array, allocations: Int64Array, before: int, unmatched: int
) -> str:
    """What a profiler's trace lacks."""
    if not allocations.size:
        return "It has no allocation."
    if not rows.events.is_valid("pool_bytes")[rows.row].any():
        return "It does not say how much was reserved, so the segments are not known."
    first = int(allocations[0])
    if before or unmatched or int(rows.array("in_use_bytes")[first]) != int(size[first]):
        return "It begins after the first allocation, and does not say which segments there were."
    return ""
