"""Events of any profile as Chrome trace JSON, in the shape of XProf's ``trace_viewer``.

The text is put together column by column: rows of text columns lie one behind the other in
memory, so a column of complete lines is the JSON itself.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from io import BytesIO
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from peakline.deadline import check_deadline

if TYPE_CHECKING:
    from peakline.profile import Columns, Profile
    from peakline.profile.columns import Names

__all__ = ["trace_events"]

_Array = npt.NDArray[Any]
_HEAD = b'{"displayTimeUnit":"ns","metadata":{"highres-ticks":true},"traceEvents":[\n'
_TAIL = b"{}]}\n"
_HOST_PLANE = "/host:CPU"
_HOST_PID = 701
_DEVICE_PID = 1
_OTHER_PID = 501
_ROWS = 1 << 16
"""Rows turned into text at a time."""


def trace_events(profile: Profile, *, show_args: bool, show_memory: bool) -> bytes:
    """Processes, threads and events, and where wanted their stats and the allocators' memory.

    Times are microseconds with six decimals, exact to the picosecond. Events without a time are
    left out. Host threads are process 701, devices 1 and up, everything else 501 and up, as in
    XProf.
    """
    planes, lines = profile.columns("planes"), profile.columns("lines")
    pids = _pids(planes)
    content = BytesIO()
    content.write(_HEAD)
    tids = _tids(lines)
    for line in _metadata(planes, lines, pids, tids.tolist()):
        content.write(line)
    events = profile.columns("events")
    names = _Quoted(events.names("name"))
    args = None
    if show_args and "event_stats" in profile.tables:
        args = _EventArgs(profile.columns("event_stats"))
    pid_of_line = np.zeros(lines.rows, np.int64)
    row_of_plane = {plane: row for row, plane in enumerate(planes.array("plane_id").tolist())}
    for row, plane in enumerate(lines.array("plane_id").tolist()):
        pid_of_line[row] = pids[row_of_plane[plane]]
    for first in range(0, events.rows, _ROWS):
        rows = slice(first, min(first + _ROWS, events.rows))
        check_deadline()
        for buffer in _event_lines(events, rows, names, pid_of_line, tids, args):
            content.write(buffer)
    if show_memory and "allocator_events" in profile.tables:
        for counters in _counters(profile.columns("memory_snapshots")):
            content.write(counters)
    content.write(_TAIL)
    return content.getvalue()


def _pids(planes: Columns) -> list[int]:
    """One process number per plane."""
    names, kinds = planes.names("name").to_list(), planes.names("kind").to_list()
    host = next((row for row, name in enumerate(names) if name == _HOST_PLANE), None)
    if host is None and "host" in kinds:
        host = kinds.index("host")
    native = planes.array("native_id").tolist()
    of_devices = [native[row] for row, kind in enumerate(kinds) if kind == "device"]
    by_id = len(set(of_devices)) == len(of_devices) and all(
        0 <= number < _OTHER_PID - _DEVICE_PID for number in of_devices
    )
    pids, devices, others = [], 0, 0
    for row, kind in enumerate(kinds):
        if row == host:
            pids.append(_HOST_PID)
        elif kind == "device":
            pids.append(_DEVICE_PID + (native[row] if by_id else devices))
            devices += 1
        else:
            pids.append(_OTHER_PID + others)
            others += 1
    return pids


def _tids(lines: Columns) -> _Array:
    """One thread number per line: its own where no two lines of a plane share one."""
    if not lines.is_valid("native_id").all():
        return lines.array("line_id")
    # As in XProf, whose thread numbers have 32 bits.
    own, plane = lines.array("native_id") & 0xFFFFFFFF, lines.array("plane_id")
    pairs = np.stack([plane, own])
    if np.unique(pairs, axis=1).shape[1] < lines.rows:
        return lines.array("line_id")
    return own


def _metadata(
    planes: Columns, lines: Columns, pids: Sequence[int], tids: Sequence[int]
) -> Iterator[bytes]:
    def event(what: str, pid: int, tid: int | None, args: str) -> bytes:
        thread = "" if tid is None else f'"tid":{tid},'
        return (
            f'{{"args":{{{args}}},"name":"{what}","ph":"M","pid":{pid},{thread}'.encode()[:-1]
            + b"},\n"
        )

    pid_of_plane = dict(zip(planes.array("plane_id").tolist(), pids, strict=True))
    for pid, name in zip(pids, planes.names("name").to_list(), strict=True):
        yield event("process_name", pid, None, f'"name":{json.dumps(name)}')
        yield event("process_sort_index", pid, None, f'"sort_index":{pid}')
    owners, names = lines.array("plane_id").tolist(), lines.names("name").to_list()
    for tid, owner, name in zip(tids, owners, names, strict=True):
        pid = pid_of_plane[owner]
        yield event("thread_name", pid, tid, f'"name":{json.dumps(name)}')
        yield event("thread_sort_index", pid, tid, f'"sort_index":{tid}')


def _event_lines(
    events: Columns,
    rows: slice,
    names: _Quoted,
    pid_of_line: _Array,
    tids: _Array,
    args: _EventArgs | None,
) -> Iterator[pa.Buffer]:
    line = events.array("line_id")[rows]
    start, length = events.array("start_ps")[rows], events.array("duration_ps")[rows]
    timed = events.is_valid("start_ps")[rows]
    instant = length <= 0
    head = _chosen(instant, '{"ph":"X","pid":', '{"ph":"i","s":"t","pid":')
    pieces = [
        head,
        _numbers(pid_of_line[line]),
        ',"tid":',
        _numbers(tids[line]),
        ',"ts":',
        _microseconds(start),
        pc.if_else(
            pa.array(instant),
            pa.scalar("", pa.large_string()),
            _joined([',"dur":', _microseconds(np.maximum(length, 0))]),
        ),
        ',"name":',
        names.of(rows),
    ]
    step_known = events.is_valid("step_id")[rows]
    group = _joined(['"group_id":"', _numbers(events.array("step_id")[rows]), '"'])
    group = pc.if_else(pa.array(step_known), group, pa.scalar("", pa.large_string()))
    if args is not None:
        stats, has_some = args.of(rows)
        both = step_known & has_some
        group = _joined([group, _chosen(both, "", ","), stats])
    pieces += [',"args":{', group, "}},\n"]
    text = _joined(pieces)
    if not timed.all():
        text = text.filter(pa.array(timed))
    yield _data_of(text)


class _EventArgs:
    """The stats of every event as the inside of a JSON object."""

    def __init__(self, stats: Columns) -> None:
        self._event = stats.array("event_id")
        self._names, self._values = _Quoted(stats.names("name")), _Quoted(stats.names("value"))

    def of(self, events: slice) -> tuple[pa.Array, npt.NDArray[np.bool_]]:
        """The text per event, and whether it has a stat."""
        ids = np.arange(events.start, events.stop + 1)
        bounds = np.searchsorted(self._event, ids)
        rows = slice(int(bounds[0]), int(bounds[-1]))
        event = self._event[rows]
        if not event.size:
            return pa.array([""] * (ids.size - 1), pa.large_string()), np.diff(bounds) > 0
        first = np.ones(event.size, np.bool_)
        first[1:] = event[1:] != event[:-1]
        text = _joined([_chosen(first, ",", ""), self._names.of(rows), ":", self._values.of(rows)])
        offsets = np.frombuffer(text.buffers()[1], np.int64)[: event.size + 1]
        ends = pa.py_buffer(np.ascontiguousarray(offsets[bounds - rows.start]))
        whole = pa.LargeStringArray.from_buffers(ids.size - 1, ends, text.buffers()[2])
        return whole, np.diff(bounds) > 0


def _counters(snapshots: Columns) -> Iterator[memoryview]:
    """One counter per allocator: the bytes in use."""
    names = _Quoted(snapshots.names("memory_id"), "Memory ")
    for first in range(0, snapshots.rows, _ROWS):
        check_deadline()
        rows = slice(first, min(first + _ROWS, snapshots.rows))
        text = _joined(
            [
                f'{{"ph":"C","pid":{_HOST_PID},"tid":0,"ts":',
                _microseconds(snapshots.array("time_offset_ps")[rows]),
                ',"name":',
                names.of(rows),
                ',"args":{"bytes_in_use":',
                _numbers(snapshots.array("heap_allocated_bytes")[rows]),
                "}},\n",
            ]
        )
        yield _data_of(text)


def _data_of(text: pa.Array) -> memoryview:
    offsets = np.frombuffer(text.buffers()[1], np.int64)
    first, last = offsets[text.offset], offsets[text.offset + len(text)]
    return memoryview(text.buffers()[2])[first:last]


def _joined(pieces: Sequence[pa.Array | str]) -> pa.Array:
    columns = [
        pa.scalar(piece, pa.large_string()) if isinstance(piece, str) else piece for piece in pieces
    ]
    return pc.binary_join_element_wise(*columns, pa.scalar("", pa.large_string()))


def _numbers(values: _Array) -> pa.Array:
    return pc.cast(pa.array(values), pa.large_string())


def _chosen(condition: npt.NDArray[np.bool_], no: str, yes: str) -> pa.Array:
    return pa.array([no, yes], pa.large_string()).take(pa.array(condition.astype(np.int8)))


def _microseconds(picoseconds: _Array) -> pa.Array:
    """Exact decimal microseconds."""
    whole, rest = np.divmod(np.abs(picoseconds), 1_000_000)
    fraction = pc.utf8_lpad(_numbers(rest), 6, "0")
    return _joined([_chosen(picoseconds < 0, "", "-"), _numbers(whole), ".", fraction])


class _Quoted:
    """A text column as JSON strings, each distinct one made once; a missing one is empty."""

    def __init__(self, names: Names, before: str = "") -> None:
        self._codes, self._last = names.codes, len(names.values)
        pieces = []
        for first in range(0, self._last, _ROWS):
            check_deadline()
            some = (json.dumps(before + names.values[k]) for k in _upto(first, self._last))
            pieces.append(pa.array(some, pa.large_string()))
        pieces.append(pa.array([json.dumps(before)], pa.large_string()))
        self._texts = pa.concat_arrays(pieces)

    def of(self, rows: slice) -> pa.Array:
        """The texts of ``rows``."""
        codes = self._codes[rows]
        return self._texts.take(pa.array(np.where(codes < 0, self._last, codes)))


def _upto(first: int, last: int) -> range:
    return range(first, min(first + _ROWS, last))
