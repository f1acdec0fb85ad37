"""One pass over a trace: what its events say, as columns."""

from __future__ import annotations

import secrets
from collections.abc import Iterator

import numpy as np

from peakline.arrays import AnyArray, Int32Array, Int64Array, UInt8Array, UInt64Array
from peakline.deadline import checked
from peakline.formats.chrome_trace import phases
from peakline.formats.chrome_trace.kineto import DEVICE, UNSAID, device_word, place_of
from peakline.formats.chrome_trace.lines import Lines
from peakline.formats.chrome_trace.phases import EXPORTER, EXPORTER_KEY, STEP_ARGUMENT
from peakline.formats.chrome_trace.texts import Texts
from peakline.formats.common.files import SourceFile
from peakline.kernels import json_kinds
from peakline.kernels.json_layout import TIME_BAD, TIME_OK
from peakline.kernels.json_numbers import floats
from peakline.kernels.trace_events import hash_spans
from peakline.wire import ahead
from peakline.wire.json_events import JsonEvents, Objects, members_of

NO_TIME = np.iinfo(np.int64).min
"""The start of an event whose ``ts`` is missing or cannot be read."""

MEMORY_NUMBERS = ("Bytes", "Addr", "Device Type", "Device Id", "Total Allocated", "Total Reserved")
"""Arguments of PyTorch's ``[memory]`` events."""

_MEMORY = "[memory]"
_OWN = f'"{EXPORTER_KEY}":"{EXPORTER}"'.encode()
_GROUP = f"args.{STEP_ARGUMENT}"
_KEYS = (
    "name", "cat", "ph", "pid", "tid", "ts", "dur", "id", "id2", "bp", "scope", "args",
    "id2.local", "id2.global", "args.name", "args.labels", "args.step_num", "args.device",
    "args.stream",
    *(f"args.{key}" for key in MEMORY_NUMBERS),
)  # fmt: skip
_MOST_MICROSECONDS = 9 * 10**12
"""From the first events: 104 days, within the range of int64 picoseconds."""


def objects_of(
    file: SourceFile, keys: tuple[str, ...] = _KEYS
) -> tuple[JsonEvents, Iterator[Objects]]:
    """The file's events, to be read once, and what knows the damage afterwards."""
    head = file.head.lstrip(b"\xef\xbb\xbf \t\r\n")
    lines = head[:1] == b"{" and b'"traceEvents"' not in head and b'"ph"' in head
    times = tuple(key for key in ("ts", "dur") if key in keys)
    events = JsonEvents(keys, times=times, anchor="ph", lines=lines)

    def read() -> Iterator[Objects]:
        for block in checked(ahead(file.blocks_of_whole(), 1), 1):
            yield from events.feed(block)
        yield from events.finish()

    return events, read()


def phases_of(result: Objects) -> UInt8Array:
    """The letter of every event, 0 where there is none."""
    spans = result.spans("ph")
    there = (result.kind("ph") == json_kinds.STRING) & (spans.length == 1)
    return np.where(there, result.buffer[np.where(there, spans.start, 0)], 0).astype(np.uint8)


class _Parts:
    """Equally long columns that grow."""

    __retained__ = "_parts"

    def __init__(self, **dtypes: str) -> None:
        self._dtypes = dtypes
        self._parts: dict[str, list[AnyArray]] = {name: [] for name in dtypes}

    def add(self, **columns: AnyArray) -> None:
        for name, dtype in self._dtypes.items():
            self._parts[name].append(columns[name].astype(dtype))

    def take(self, name: str) -> AnyArray:
        """The whole column; its parts are given up."""
        parts, self._parts[name] = self._parts[name], []
        return np.concatenate([np.zeros(0, self._dtypes[name]), *parts])


class Collected:
    """What one pass found. Times are picoseconds after ``base_us``, which is arbitrary.

    ``events`` has a row for every begin and every end; ``operations`` has the rows of
    asynchronous ones and which operation (a hash) they belong to.
    """

    __retained__ = (
        "names categories ids series lines _place_of seen events operations flows"
        " counters memory numbered_steps groups"
    )

    def __init__(self, *, is_own: bool = False) -> None:
        self.is_own = is_own
        """Whether ``peakline export`` wrote the file: it names the step of every event."""
        self.names, self.categories = Texts(), Texts()
        self.ids, self.series = Texts(), Texts()
        self.lines = Lines(self.ids, self.categories)
        self._place_of = np.full(1, UNSAID, np.uint8)
        self.base_us: int | None = None
        self.first_ps: int | None = None
        self.seen = np.zeros(256, np.int64)
        """How many events of each phase, by its letter; 0 stands for none."""
        self.bad_times = self.bad_durations = self.bad_counters = self.bad_memory = 0
        self.rows = 0
        self.events = _Parts(
            phase="uint8", line="int32", name="int32", category="int32", start="int64",
            duration="int64",
        )  # fmt: skip
        self.operations = _Parts(row="int64", key="uint64")
        self.flows = _Parts(
            key="uint64", name="int32", phase="uint8", line="int32", time="int64", binds="bool"
        )
        self.counters = _Parts(
            pid="int32", name="int32", series="int32", time="int64", value="float64"
        )
        self.memory = _Parts(
            line="int32", time="int64", **dict.fromkeys(MEMORY_NUMBERS, "int64"),
            **{f"has {key}": "bool" for key in MEMORY_NUMBERS},
        )  # fmt: skip
        self.numbered_steps = _Parts(row="int64", number="int32")
        self.groups = _Parts(row="int64", number="int32")
        # The ids of operations are held as hashes only; nobody may choose ones that collide.
        self._seed = np.uint64(secrets.randbits(64))
        self._memory_name = self.names.add(_MEMORY)
        self._binds_enclosing = self.series.add("e")

    def add(self, result: Objects) -> None:
        """Take over some objects."""
        phase = phases_of(result)
        of_class = phases.CLASS_OF[phase]
        # Some writers end the list with an empty object.
        phase_seen = phase[(phase != 0) | (result.size > 2)]
        self.seen += np.bincount(phase_seen, minlength=256)
        pid, tid = (
            self.ids.codes(result.buffer, result.kind(k), result.spans(k)) for k in ("pid", "tid")
        )
        for row in np.flatnonzero(of_class == phases.META).tolist():
            self._add_meta(result, row, int(pid[row]), int(tid[row]))
        rows = np.flatnonzero((of_class >= phases.EVENT) & (of_class <= phases.COUNTER))
        if not rows.size:
            return
        of_class, phase, pid, tid = of_class[rows], phase[rows], pid[rows], tid[rows]
        start = self._starts(result, rows)
        name = self._texts(self.names, result, "name", rows)
        category = self._texts(self.categories, result, "cat", rows)
        is_async = of_class == phases.ASYNC
        has_line = of_class != phases.COUNTER
        line = np.zeros(rows.size, np.int32)
        place, device = self._places(result, rows, pid, category, of_class)
        line[has_line] = self.lines.numbers(
            *(of[has_line] for of in (pid, tid, category, is_async, place, device))
        )
        key = None
        if (is_async | (of_class == phases.FLOW)).any():
            key = self._keys(result, rows, pid, category)
        is_event = is_async | (of_class == phases.EVENT)
        event_row = self.rows + np.cumsum(is_event) - 1
        if key is not None and is_async.any():
            self.operations.add(row=event_row[is_async], key=key[is_async])
        row_of = np.where(is_event, event_row, -1)
        self._add_numbers(self.numbered_steps, "args.step_num", result, rows, row_of)
        if self.is_own:
            self._add_numbers(self.groups, _GROUP, result, rows, row_of)
        if is_event.any():
            self.events.add(
                phase=phase[is_event], line=line[is_event], name=name[is_event],
                category=category[is_event], start=start[is_event],
                duration=self._durations(result, rows[is_event], phase[is_event]),
            )  # fmt: skip
            self.rows = int(event_row[-1]) + 1
        timed = start != NO_TIME
        flow = np.flatnonzero((of_class == phases.FLOW) & timed)
        if key is not None and flow.size:
            self._add_flows(result, rows, flow, key, name, phase, line, start)
        counter = np.flatnonzero((of_class == phases.COUNTER) & timed)
        if counter.size:
            self._add_counters(result, rows[counter], pid[counter], name[counter], start[counter])
        memory = np.flatnonzero((name == self._memory_name) & (of_class == phases.EVENT) & timed)
        if memory.size:
            self._add_memory(result, rows[memory], line[memory], start[memory])

    def _places(
        self,
        result: Objects,
        rows: Int64Array,
        pid: Int32Array,
        category: Int32Array,
        of_class: UInt8Array,
    ) -> tuple[UInt8Array, Int32Array]:
        """Where each event happened, and the code of its device, -1 where it does not name one.

        An event of a category that nobody knows is work of a device if it names the device and
        the stream; arrows and counters do not say where they belong.
        """
        values = self.categories.values
        new = [place_of(value) for value in values[self._place_of.size - 1 :]]
        # The last one is that of events without a category.
        self._place_of = np.concatenate([self._place_of[:-1], np.array([*new, UNSAID], np.uint8)])
        is_event = (of_class == phases.EVENT) | (of_class == phases.ASYNC)
        place = np.where(is_event, self._place_of[category], np.uint8(UNSAID))
        device = np.full(rows.size, -1, np.int32)
        names_device, names_stream = (
            result.kind(f"args.{key}")[rows] != json_kinds.ABSENT for key in ("device", "stream")
        )
        named = is_event & names_device & ((place == DEVICE) | ((place == UNSAID) & names_stream))
        place[named] = DEVICE
        if named.any():
            device[named] = self._texts(self.ids, result, "args.device", rows[named])
        for code in np.unique(category[place == DEVICE]).tolist():
            word = device_word(values[code] if code >= 0 else "")
            self.lines.note_devices(pid[(place == DEVICE) & (category == code)], word)
        return place, device

    @staticmethod
    def _texts(texts: Texts, result: Objects, key: str, rows: Int64Array) -> Int32Array:
        return texts.codes(result.buffer, result.kind(key)[rows], result.spans(key).take(rows))

    def _starts(self, result: Objects, rows: Int64Array) -> Int64Array:
        whole, part, state = (column[rows] for column in result.microseconds("ts"))
        good = state == TIME_OK
        if self.base_us is None and good.any():
            # The middle one, so that one wild time among the first events does no harm.
            middle = np.sort(whole[good])
            self.base_us = int(middle[middle.size // 2])
        away = whole - np.int64(self.base_us or 0)
        good &= np.abs(away) <= _MOST_MICROSECONDS
        self.bad_times += int(good.size - np.count_nonzero(good))
        start = np.where(good, away * 10**6 + part, NO_TIME)
        if good.any():
            first = int(start[good].min())
            self.first_ps = first if self.first_ps is None else min(self.first_ps, first)
        return start

    def _durations(self, result: Objects, rows: Int64Array, phase: UInt8Array) -> Int64Array:
        whole, part, state = (column[rows] for column in result.microseconds("dur"))
        complete = phase == ord("X")
        good = complete & (state == TIME_OK) & (whole >= 0) & (whole <= _MOST_MICROSECONDS)
        self.bad_durations += int(np.count_nonzero(complete & ~good))
        return np.where(good, whole * 10**6 + part, 0)

    def _keys(
        self, result: Objects, rows: Int64Array, pid: Int32Array, category: Int32Array
    ) -> UInt64Array:
        """A hash of category, scope and id (and process, for an id that is local to it)."""
        local = result.kind("id2.local")[rows] != json_kinds.ABSENT
        keys = (category.astype(np.int64) + 1).astype(np.uint64) ^ self._seed
        keys ^= np.where(local, pid.astype(np.int64) + 2, 0).astype(np.uint64) << np.uint64(32)
        is_global = result.kind("id2.global")[rows] != json_kinds.ABSENT
        is_plain = (result.kind("id")[rows] != json_kinds.ABSENT) & ~local & ~is_global
        scope = result.kind("scope")[rows] != json_kinds.ABSENT
        for key, there in (
            ("scope", scope), ("id2.local", local), ("id2.global", is_global & ~local),
            ("id", is_plain),
        ):  # fmt: skip
            spans = result.spans(key).take(rows)
            hash_spans(result.buffer, spans.start, spans.length, there, keys)
        return keys

    def _add_meta(self, result: Objects, row: int, pid: int, tid: int) -> None:
        what = _text_of(result, "name", row)
        value = "args.labels" if what == "process_labels" else "args.name"
        if what in {"process_name", "process_labels", "thread_name"}:
            self.lines.note(what, pid, tid, _text_of(result, value, row))

    def _add_numbers(
        self, parts: _Parts, key: str, result: Objects, rows: Int64Array, event_row: Int64Array
    ) -> None:
        """Note the argument ``key`` of the events that have it."""
        numbered = (result.kind(key)[rows] != json_kinds.ABSENT) & (event_row >= 0)
        if numbered.any():
            number = self._texts(self.series, result, key, rows[numbered])
            parts.add(row=event_row[numbered], number=number)

    def _add_flows(
        self, result: Objects, rows: Int64Array, flow: Int64Array, key: UInt64Array,
        name: Int32Array, phase: UInt8Array, line: Int32Array, start: Int64Array,
    ) -> None:  # fmt: skip
        binding = self._texts(self.series, result, "bp", rows[flow])
        named = name[flow].astype(np.int64).astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)
        self.flows.add(
            key=key[flow] ^ named, name=name[flow], phase=phase[flow], line=line[flow],
            time=start[flow], binds=binding == self._binds_enclosing,
        )  # fmt: skip

    def _add_counters(
        self, result: Objects, rows: Int64Array, pid: Int32Array, name: Int32Array, time: Int64Array
    ) -> None:
        has_id = np.flatnonzero(result.kind("id")[rows] != json_kinds.ABSENT)
        for place in has_id.tolist():
            base = self.names.values[name[place]] if name[place] >= 0 else ""
            number = _text_of(result, "id", int(rows[place]))
            name[place] = self.names.add(f"{base}[{number}]")
        keep = result.kind("args")[rows] == json_kinds.OBJECT
        self.bad_counters += int(np.count_nonzero(~keep))
        rows, pid, name, time = rows[keep], pid[keep], name[keep], time[keep]
        members = members_of(result.buffer, result.spans("args").take(rows))
        numeric = (members.kind == json_kinds.NUMBER) | (members.kind == json_kinds.STRING)
        value, state = np.zeros(numeric.size), np.zeros(numeric.size, np.uint8)
        floats(result.buffer, members.value.start, members.value.length, value, state)
        for place in np.flatnonzero(numeric & (state == TIME_BAD)).tolist():
            try:
                value[place] = float(members.value.bytes(result.buffer, place))
            except ValueError:
                numeric[place] = False
        self.bad_counters += int(np.count_nonzero(~numeric))
        of = members.parent[numeric]
        series = self.series.codes(
            result.buffer, members.key_kind[numeric], members.key.take(numeric)
        )
        self.lines.note_processes(pid)
        self.counters.add(
            pid=pid[of], name=name[of], series=series, time=time[of], value=value[numeric]
        )

    def _add_memory(
        self, result: Objects, rows: Int64Array, line: Int32Array, time: Int64Array
    ) -> None:
        columns: dict[str, AnyArray] = {}
        for key in MEMORY_NUMBERS:
            columns[key], columns[f"has {key}"] = result.integers(f"args.{key}", rows)
        has_bytes = columns["has Bytes"] & (columns["Bytes"] != 0)
        self.bad_memory += int(np.count_nonzero(~has_bytes))
        self.memory.add(
            line=line[has_bytes], time=time[has_bytes],
            **{name: column[has_bytes] for name, column in columns.items()},
        )  # fmt: skip


def _text_of(result: Objects, key: str, row: int) -> str:
    one = np.array([row])
    texts = Texts()
    code = texts.codes(result.buffer, result.kind(key)[one], result.spans(key).take(one))[0]
    return texts.values[code] if code >= 0 else ""


def collect(file: SourceFile) -> tuple[Collected, JsonEvents]:
    """Read the whole trace once."""
    is_own = _OWN in file.head[:256]
    events, objects = objects_of(file, (*_KEYS, _GROUP) if is_own else _KEYS)
    collected = Collected(is_own=is_own)
    for result in objects:
        collected.add(result)
    return collected, events
