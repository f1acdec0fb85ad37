"""Any profile as Chrome trace JSON, in the shape of XProf's ``trace_viewer``: who, what and when.

The text is made some rows at a time (`peakline.viewer.lines`): what is known once per line,
name or value is made once, and nothing is ever an object per event.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from io import BytesIO
from json.encoder import encode_basestring_ascii as quoted

import numpy as np

from peakline.arrays import AnyArray, Int64Array
from peakline.deadline import check_deadline, checked
from peakline.tables import Columns, Names, Profile
from peakline.text import check_length
from peakline.viewer.lines import Gap, Lines

HEAD = b'{"displayTimeUnit":"ns","metadata":{"highres-ticks":true},"traceEvents":[\n'
TAIL = b"{}]}\n"
_HOST_PID = 701
_HOST_PLANE = "/host:CPU"
_DEVICE_PID = 1
_OTHER_PID = 501
_ROWS = 1 << 17
"""Rows turned into text at a time."""


def trace_events(profile: Profile, *, show_args: bool, show_memory: bool) -> bytes:
    """Processes, threads and events, and where wanted their stats and the allocators' memory.

    Times are microseconds with six decimals, exact to the picosecond. Events without a time are
    left out. Host threads are process 701, devices 1 and up, everything else 501 and up, as in
    XProf.
    """
    stats = None
    if show_args and "event_stats" in profile.tables:
        stats = profile.columns("event_stats")
    rows = TraceRows(profile.columns("planes"), profile.columns("lines"))
    content = BytesIO()
    content.write(HEAD)
    content.write(rows.metadata())
    for part in rows.events(profile.columns("events"), stats):
        content.write(part)
    if show_memory and "allocator_events" in profile.tables:
        snapshots = profile.columns("memory_snapshots")
        name = name_texts(',"name":', snapshots.names("memory_id"), "Memory ")
        times, used = (snapshots.array(c) for c in ("time_offset_ps", "heap_allocated_bytes"))
        for part in memory_text(times, name, used):
            content.write(part)
    content.write(TAIL)
    return content.getvalue()


class TraceRows:
    """The rows of a trace whose processes and threads are those of ``planes`` and ``lines``."""

    def __init__(self, planes: Columns, lines: Columns) -> None:
        self.pids = _pids(planes)
        """One process number per plane."""
        self._planes, self._lines = planes, lines
        self._tids = _tids(lines).tolist()
        pid_of = dict(zip(planes.array("plane_id").tolist(), self.pids, strict=True))
        self._pid_of_line = [pid_of[plane] for plane in lines.array("plane_id").tolist()]

    @property
    def owners(self) -> list[str]:
        """``"pid":1,"tid":2`` for every line."""
        pairs = zip(self._pid_of_line, self._tids, strict=True)
        return [f'"pid":{pid},"tid":{tid}' for pid, tid in pairs]

    def metadata(self) -> bytes:
        """What names and orders the processes and threads."""
        result: list[str] = []
        for pid, name in zip(self.pids, self._planes.names("name").to_list(), strict=True):
            result += named("process", f'"pid":{pid}', name or "", pid)
        names = self._lines.names("name").to_list()
        for owner, tid, name in zip(self.owners, self._tids, names, strict=True):
            result += named("thread", owner, name or "", tid)
        return "".join(f"{row},\n" for row in result).encode("ascii")

    def events(self, events: Columns, stats: Columns | None) -> Iterator[memoryview]:
        """All of ``events`` that have a time, in their order, with the arguments of ``stats``."""
        timed = events.is_valid("start_ps")
        if not timed.all():
            events = events.take(timed)
            if stats is not None:
                stats = stats.take(timed[stats.array("event_id")])
        return events_text(events, self.owners, stats)

    def flows(self, flows: Columns) -> Iterator[memoryview]:
        """The ends of arrows."""
        names = flows.names("phase")
        phases = [f'{{"ph":{quoted(phase)},"cat":"flow",' for phase in names.values]
        binds = flows.array("binds_enclosing").astype(np.uint8)
        return parts_of(
            Lines(
                flows.rows,
                [
                    Gap("", names.codes, texts=phases),
                    Gap('"id":', flows.array("flow_id"), ","),
                    Gap("", flows.array("line_id"), texts=self.owners),
                    Gap(',"ts":', flows.array("time_ps"), is_picoseconds=True),
                    Gap("", binds, texts=["", ',"bp":"e"']),
                    name_texts(',"name":', flows.names("name")),
                    Gap("", np.zeros(flows.rows, np.uint8), texts=["},\n"]),
                ],
            )
        )

    def counters(self, counters: Columns) -> Iterator[memoryview]:
        """The values of the profile's counters."""
        planes = self._planes.array("plane_id").tolist()
        pid_of = dict(zip(planes, self.pids, strict=True))
        plane, place = np.unique(counters.array("plane_id"), return_inverse=True)
        owners = [_counter(pid_of[number]) for number in plane.tolist()]
        distinct, value = np.unique(counters.array("value"), return_inverse=True)
        texts = [repr(v) if np.isfinite(v) else quoted(repr(v)) for v in distinct.tolist()]
        return parts_of(
            Lines(
                counters.rows,
                [
                    Gap("", place.reshape(-1), texts=owners),
                    Gap("", counters.array("time_ps"), is_picoseconds=True),
                    name_texts(',"name":', counters.names("name")),
                    name_texts(',"args":{', counters.names("series")),
                    Gap(":", value.reshape(-1), "}},\n", texts=texts),
                ],
            )
        )


def named(what: str, owner: str, name: str, place: int, also: str = "") -> tuple[str, str]:
    """The rows that name a process or thread (``what``) and give its place in the order.

    ``owner`` is its number as ``"pid":1``, and ``also`` what stands behind it in the first row.
    """
    return (
        f'{{"args":{{"name":{quoted(name)}}},"name":"{what}_name","ph":"M",{owner}{also}}}',
        f'{{"args":{{"sort_index":{place}}},"name":"{what}_sort_index","ph":"M",{owner}}}',
    )


def memory_text(time_ps: AnyArray, name: Gap, used: AnyArray) -> Iterator[memoryview]:
    """Counters of the bytes in use at each time; ``name`` writes that of the counter."""
    return parts_of(
        Lines(
            used.size,
            [
                Gap(_counter(_HOST_PID), time_ps, is_picoseconds=True),
                name,
                Gap(',"args":{"bytes_in_use":', used, "}},\n"),
            ],
        )
    )


def _counter(pid: int) -> str:
    """What every value of a counter begins with."""
    return f'{{"ph":"C","pid":{pid},"tid":0,"ts":'


def events_text(
    events: Columns, owners: Sequence[str], stats: Columns | None
) -> Iterator[memoryview]:
    """The text of ``events``, all of which have a time; ``owners`` are process and thread by line,
    and ``stats`` the arguments, by event. Raises as `check_length`.
    """
    heads = _heads(events, owners)
    arguments = None if stats is None else _Arguments(stats, events)
    source_bytes = heads.source_bytes
    if arguments is not None:
        source_bytes += arguments.lines.source_bytes
    size = 0
    for first in range(0, events.rows, _ROWS):
        check_deadline()
        rows = slice(first, min(first + _ROWS, events.rows))
        head, inside = heads.part(rows), None
        lengths = head.lengths + len(_EVENT_END)
        if arguments is not None:
            inside, of_event = arguments.of(rows)
            before = np.append(0, np.cumsum(inside.lengths))
            lengths = lengths + before[of_event[1:]] - before[of_event[:-1]]
        ends = np.cumsum(lengths)
        size += int(ends[-1])
        check_length(size, source_bytes)
        out = np.empty(int(ends[-1]), np.uint8)
        head.write(out, ends - lengths)
        for place, letter in enumerate(_EVENT_END):
            out[ends - len(_EVENT_END) + place] = letter
        if inside is not None:
            own = np.repeat(
                ends - lengths + head.lengths - before[of_event[:-1]], np.diff(of_event)
            )
            inside.write(out, own + before[:-1])
        yield memoryview(out)  # type: ignore[arg-type]  # NumPy's types hide that it is a buffer


def _heads(events: Columns, owners: Sequence[str]) -> Lines:
    """Every event up to where its stats stand."""
    length = np.maximum(events.array("duration_ps"), 0)
    texts = ['{"ph":"X",', '{"ph":"i","s":"t",']
    pieces = [
        Gap("", (length == 0).view(np.uint8), texts=texts),
        Gap("", events.array("line_id"), texts=owners),
        Gap(',"ts":', events.array("start_ps"), is_picoseconds=True),
        Gap(',"dur":', length, is_picoseconds=True, unless_zero=True),
        name_texts(',"name":', events.names("name")),
    ]
    if "category" in events and events.is_valid("category").any():
        category = events.names("category")
        texts = ["", *(f',"cat":{quoted(value)}' for value in category.values)]
        pieces.append(Gap("", category.codes + 1, texts=texts))
    steps, texts = np.zeros(events.rows, np.int8), [""]
    if "step_id" in events:
        known = events.is_valid("step_id")
        distinct, place = np.unique(
            np.where(known, events.array("step_id"), 0), return_inverse=True
        )
        steps = np.where(known, place + 1, 0).astype(np.int32)
        texts += [f'"group_id":"{step}"' for step in distinct.tolist()]
    return Lines(events.rows, [*pieces, Gap(',"args":{', steps, texts=texts)])


_EVENT_END = b"}},\n"


class _Arguments:
    """The stats of every event as the inside of a JSON object, behind its step."""

    def __init__(self, stats: Columns, events: Columns) -> None:
        event = stats.array("event_id")
        self._first = np.searchsorted(event, events.array("event_id"))
        self._first = np.append(self._first, event.size)
        comma = np.ones(event.size, np.bool_)
        comma[1:] = event[1:] == event[:-1]
        if event.size:
            comma[0] = False
        if "step_id" in events:
            begins = np.flatnonzero(~comma)
            has_stats = np.diff(self._first) > 0
            comma[begins] = events.is_valid("step_id")[has_stats]
        self.lines = Lines(
            event.size,
            [
                Gap("", comma.view(np.uint8), texts=["", ","]),
                name_texts("", stats.names("name")),
                name_texts(":", stats.names("value")),
            ],
        )

    def of(self, events: slice) -> tuple[Lines, Int64Array]:
        """The stats of some events, and for each where its own begin among them, and the end."""
        first = self._first[events.start : events.stop + 1]
        return self.lines.part(slice(int(first[0]), int(first[-1]))), first - first[0]


def parts_of(lines: Lines) -> Iterator[memoryview]:
    """The text of ``lines``, one after the other. Raises as `check_length`."""
    size = 0
    for first in range(0, lines.rows, _ROWS):
        check_deadline()
        part = lines.part(slice(first, first + _ROWS))
        ends = np.cumsum(part.lengths)
        size += int(ends[-1])
        check_length(size, lines.source_bytes)
        out = np.empty(int(ends[-1]), np.uint8)
        part.write(out, ends - part.lengths)
        yield memoryview(out)  # type: ignore[arg-type]  # NumPy's types hide that it is a buffer


def name_texts(before: str, names: Names, prefix: str = "") -> Gap:
    """``before`` and a text column as JSON strings that begin with ``prefix``.

    A missing text is empty.
    """
    texts: Iterable[str] = (quoted(prefix + value) for value in names.values)
    known = [*checked(texts, _ROWS), quoted(prefix)]
    codes = names.codes
    if codes.size and int(codes.min()) < 0:
        codes = np.where(codes < 0, np.int32(len(known) - 1), codes)
    return Gap(before, codes, texts=known)


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


def _tids(lines: Columns) -> Int64Array:
    """One thread number per line: its own where no two lines of a plane share one."""
    if not lines.is_valid("native_id").all():
        return lines.array("line_id")
    # As in XProf, whose thread numbers have 32 bits.
    own, plane = lines.array("native_id") & 0xFFFFFFFF, lines.array("plane_id")
    pairs = np.stack([plane, own])
    if np.unique(pairs, axis=1).shape[1] < lines.rows:
        return lines.array("line_id")
    return own
