"""Requests that waited for memory until another thread freed some.

TensorFlow's best-fit allocator retries a request that fails for up to ten seconds
(``AllocatorRetry``, tensorflow/tensorflow ``tensorflow/core/common_runtime/allocator_retry.cc``).
Nothing records that, but the op runs meanwhile, and its thread does nothing else: its first
allocation comes late after the last event before it, and then, at the begin of the wait, the
allocator could not have served it, by its own figure of what is available or by the replay of what
was recorded.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from peakline.arrays import Int64Array
from peakline.deadline import checked
from peakline.memory.fit.late_allocations import late_allocations
from peakline.memory.fit.replayed import Recording, recording_of
from peakline.memory.over_time.live import memory_records
from peakline.memory.signatures import History, read_history
from peakline.replay.bfc import GRANULE, BfcMachine, prove
from peakline.tables import Profile

_MOST_EVENTS = 2_000_000
"""Longer recordings are not replayed: only the allocator's own figures count then."""


@dataclass(frozen=True)
class Wait:
    """A request that waited from ``begin_ps`` for ``wait_ps``: ``row`` is its record."""

    allocator: str
    row: int
    begin_ps: int
    wait_ps: int
    bytes: int
    op: str
    shape: str
    step_id: int | None


def waits_of(profile: Profile) -> list[Wait]:
    """The requests that waited, in the order of their records. Raises as `check_deadline`."""
    late = late_allocations(profile)
    if not late:
        return []
    records = memory_records(profile)
    if records is None or not records.events.is_valid("line_id").any():
        return []
    events = records.events
    key = {(line, time): begin for line, time, begin in late}
    line_id, time_ps = events.array("line_id"), events.array("time_ps")
    some = np.flatnonzero(np.isin(time_ps, np.array([time for _, time, _ in late], np.int64)))
    places = zip(line_id[some].tolist(), time_ps[some].tolist(), strict=True)
    begins = {
        row: key[place] for row, place in zip(some.tolist(), places, strict=True) if place in key
    }
    if not begins:
        return []
    late_rows = np.array(list(begins), np.int64)
    history = read_history(events, records.lifetimes)
    result: list[Wait] = []
    for number in range(len(history.lifetimes.allocators)):
        rows = history.rows_of(number)
        if np.unique(events.array("line_id")[rows]).size > 1:
            mine = {row: begins[row] for row in rows[np.isin(rows, late_rows)].tolist()}
            result += _waits(history, number, mine)
    return sorted(result, key=lambda wait: wait.row)


def _waits(history: History, number: int, begins: dict[int, int]) -> Iterator[Wait]:
    """Those of one allocator's late requests that could not be served when their ops began."""
    if not begins:
        return
    events, rows = history.events, history.rows_of(number)
    time = events.array("time_ps")[rows]
    recording = recording_of(history, number)
    replay = _Replay.of(recording, history.capacities[number])
    known = events.is_valid("free_bytes")[rows]
    free = events.array("free_bytes")[rows]
    for row, begin in checked(sorted(begins.items(), key=lambda item: item[1])):
        before = int(np.searchsorted(time, begin, "right")) - 1
        wanted = -(-int(history.requested[row]) // GRANULE) * GRANULE
        # More is in use than leaves room, or the replay says that what is free is in pieces.
        is_full = before >= 0 and bool(known[before]) and int(free[before]) < wanted
        if not is_full and (replay is None or replay.serves(int(rows[before]), wanted)):
            continue
        valid = bool(events.is_valid("step_id")[row])
        yield Wait(
            allocator=history.lifetimes.allocators[number],
            row=row,
            begin_ps=begin,
            wait_ps=int(events.array("time_ps")[row]) - begin,
            bytes=int(history.requested[row]),
            op=events.names("op")[row] or "",
            shape=events.names("shape")[row] or "",
            step_id=int(events.array("step_id")[row]) if valid else None,
        )


class _Replay:
    """The recording, replayed as far as a moment."""

    def __init__(self, machine: BfcMachine, event_row: Int64Array) -> None:
        self._machine, self._event_row = machine, event_row

    @classmethod
    def of(cls, recording: Recording, limit: int | None) -> _Replay | None:
        """None where the recording is not proved, or too long."""
        if limit is None or not recording.starts_empty or len(recording.requests) > _MOST_EVENTS:
            return None
        proof = prove(recording.requests, recording.address, recording.granted, limit)
        if not proof.is_same:
            return None
        machine = BfcMachine(recording.requests, proof.settings, limit, recorded=recording.address)
        return cls(machine, recording.event_row)

    def serves(self, row: int, wanted: int) -> bool:
        """Whether a request can be served after record ``row``; rows must ascend."""
        stop = int(np.searchsorted(self._event_row, row, "right"))
        machine = self._machine
        machine.advance(max(stop, machine.position))
        free = machine.free_sizes()
        room = (machine.limit - machine.reserved) // GRANULE * GRANULE
        return int(free.max(initial=0)) >= wanted or room >= wanted
