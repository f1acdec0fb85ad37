"""Which process or device every event of a trace belongs to, decided when all are read."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from typing import NamedTuple

import numpy as np

from peakline.arrays import AnyArray, BoolArray, Int32Array, Int64Array
from peakline.formats.chrome_trace.kineto import DEVICE, HOST
from peakline.formats.chrome_trace.lines import ASYNC, LONGEST_NAME, THREAD, Lines, Met, Thread
from peakline.formats.chrome_trace.traced_devices import traced_rows
from peakline.tables.columns import Columns, Names
from peakline.text import whole_number

_DEVICE = re.compile(
    r"\b(gpus?|tpus?|npu|xpu|hpu|mtia|cuda|hip)\b|/device:(?!cpu)|\bstream\b", re.IGNORECASE
)
_NUMBER_AT_END = re.compile(r"(?<!\d)(\d++)\)?+\s*+$")


class _Plane(NamedTuple):
    """A process, or a device that is written as one; ``device`` is its number as a text."""

    pid: int
    device: str | None


class _Called:
    """What the metadata calls one process, looked through once for all its devices and threads."""

    __retained__ = "last _devices"

    def __init__(self, names: list[str]) -> None:
        self.last = names[-1] if names else ""
        self._devices: dict[str | None, tuple[int, str]] = {}
        """Of the names of devices the last with each number at its end, and its place."""
        for place, name in enumerate(names):
            if _DEVICE.search(name):
                number = _NUMBER_AT_END.search(name)
                self._devices[None if number is None else number[1]] = place, name

    @property
    def has_device(self) -> bool:
        """Whether a device is among the names."""
        return bool(self._devices)

    def device(self, number: str | None) -> str | None:
        """The last name of a device that may have that ``number``; None: of any."""
        numbers = self._devices.keys() if number is None else {None, number}
        fits = [self._devices[one] for one in numbers if one in self._devices]
        return max(fits)[1] if fits else None


class Planes:
    """Planes and lines of a trace.

    A plane is a process, or a device: where the categories of events say that they happened on
    one (PyTorch), each device that they name is a plane of its own, whatever its ``pid``. Of other
    events a device is what the metadata calls so. Lines are threads and streams; asynchronous
    events, which belong to no thread, have one line per process and category.
    """

    __retained__ = (
        "_lines _host_threads _hosts _devices_of_thread _devices_of_pid _names _labels _planes"
        " _numbers of_met plane_of_line is_process _traced _launching _homes _repeated"
    )

    def __init__(self, lines: Lines) -> None:
        self._lines = lines
        self._host_threads: set[Thread] = set()
        self._hosts: set[int] = set()
        self._devices_of_thread: dict[Thread, set[str]] = defaultdict(set)
        self._devices_of_pid: dict[int, set[str]] = defaultdict(set)
        self._names = {pid: _Called(names) for pid, names in lines.process_names.items()}
        self._labels = {pid: _Called(labels) for pid, labels in lines.process_labels.items()}
        self._traced, self._launching = traced_rows(lines.process_names)
        first: dict[tuple[tuple[str, str], bool], int] = {}
        self._homes = {
            pid: first.setdefault((row.key, row.is_again), pid) for pid, row in self._traced.items()
        }
        self._repeated: set[int] = set()
        for met in lines.met:
            self._survey(met)
        homes = [self._home(met) for met in lines.met]
        by_pid: dict[int, dict[_Plane, None]] = {pid: {} for pid in lines.pids}
        for met, plane in zip(lines.met, homes, strict=True):
            by_pid[met.thread.pid].setdefault(plane)
        every = list(
            dict.fromkeys(
                plane
                for pid, own in by_pid.items()
                for plane in own or (_Plane(self._homes.get(pid, pid), None),)
            )
        )
        self._planes = {plane: number for number, plane in enumerate(every)}
        self._numbers: dict[tuple[_Plane, Thread], int] = {}
        of_met = [
            self._numbers.setdefault((plane, met.thread), len(self._numbers))
            for met, plane in zip(lines.met, homes, strict=True)
        ]
        self.of_met: Int32Array = np.array(of_met, np.int32)
        """The line of every `Met`."""
        self.plane_of_line: Int32Array = np.array(
            [self._planes[plane] for plane, _ in self._numbers], np.int32
        )
        self.is_process: BoolArray = np.array(
            [plane.device is None and plane.pid in self._hosts for plane in every], np.bool_
        )
        """Which planes are processes by what the categories of their events say."""

    @property
    def line_count(self) -> int:
        """How many lines."""
        return len(self._numbers)

    def process(self) -> int | None:
        """The id of the only process that ran ops by the categories of its events; else None."""
        pids = {whole_number(self._text(pid)) for pid in self._hosts}
        return pids.pop() if len(pids) == 1 else None

    def same_thread(self) -> list[list[int]]:
        """The lines that the trace calls one thread, where those are several."""
        result: dict[Thread, list[int]] = defaultdict(list)
        for (_, thread), line in self._numbers.items():
            result[thread].append(line)
        return [lines for lines in result.values() if len(lines) > 1]

    def planes_of(self, pids: Int32Array) -> Int32Array:
        """The plane of the counters of processes: that of the process before that of a device."""
        distinct, place = np.unique(pids, return_inverse=True)
        result: dict[int, int] = {}
        for plane, number in self._planes.items():
            if plane.device is None or plane.pid not in result:
                result[plane.pid] = number
        homes = [result[self._homes.get(pid, pid)] for pid in distinct.tolist()]
        return np.array(homes, np.int32)[place]

    def note_repeats(self, line: Int32Array, *columns: AnyArray) -> None:
        """Take over which planes repeat others: what a tracer wrote twice counts once.

        ``line`` is that of every event, ``columns`` are what is equal in its repetition.
        """
        pairs: dict[tuple[str, str], dict[bool, int]] = {}
        for pid, row in self._traced.items():
            plane = _Plane(self._homes[pid], None)
            pairs.setdefault(row.key, {})[row.is_again] = self._planes[plane]
        plane_of = self.plane_of_line[line] if pairs else line
        for pair in pairs.values():
            if len(pair) == 2:
                own, again = (
                    set(zip(*(column[rows].tolist() for column in columns), strict=True))
                    for rows in (
                        np.flatnonzero(plane_of == pair[is_again]) for is_again in (False, True)
                    )
                )
                if again <= own:
                    self._repeated.add(pair[True])
                elif own <= again:
                    self._repeated.add(pair[False])

    def _survey(self, met: Met) -> None:
        thread = met.thread
        if met.place == HOST:
            self._host_threads.add(thread)
            self._hosts.add(thread.pid)
        elif met.place == DEVICE:
            said = {self._lines.ids.values[met.device]} if met.device >= 0 else set()
            self._devices_of_thread[thread] |= said
            self._devices_of_pid[thread.pid] |= said

    def _home(self, met: Met) -> _Plane:
        thread = met.thread
        if thread.pid in self._homes:
            return _Plane(self._homes[thread.pid], None)
        if met.place == HOST:
            return _Plane(thread.pid, None)
        if met.place == DEVICE:
            if met.device >= 0:
                return _Plane(thread.pid, self._lines.ids.values[met.device])
            return _Plane(thread.pid, self._device_of(thread))
        # What does not say where it happened did so where others of its thread did, else where its
        # process is, and on a device only where its metadata calls it that.
        if thread in self._devices_of_thread and thread not in self._host_threads:
            return _Plane(thread.pid, self._device_of(thread))
        on_device = thread.pid in self._devices_of_pid and thread.pid not in self._hosts
        if on_device and thread.kind == THREAD and self._is_called_device(thread):
            return _Plane(thread.pid, self._device_of(thread))
        return _Plane(thread.pid, None)

    def _device_of(self, thread: Thread) -> str:
        """The device of events that do not name it: that of others, else the number of the pid."""
        for said in (self._devices_of_thread.get(thread), self._devices_of_pid.get(thread.pid)):
            if said and len(said) == 1:
                return next(iter(said))
        return self._text(thread.pid)

    def _is_called_device(self, thread: Thread) -> bool:
        names = self._lines.thread_names.get(thread)
        if names:
            return any(_DEVICE.search(name) for name in names)
        called = self._names.get(thread.pid, _NOTHING), self._labels.get(thread.pid, _NOTHING)
        return any(one.has_device for one in called)

    def _text(self, code: int) -> str:
        return self._lines.ids.values[code] if code >= 0 else ""

    def planes_table(self, busy: BoolArray) -> Columns:
        """The ``planes`` table; ``busy`` marks the lines that have events."""
        line_names = self._line_names()
        streams, active = set(), set()
        for line, plane in enumerate(self.plane_of_line.tolist()):
            if _DEVICE.match(line_names[line]):
                streams.add(plane)
            if busy[line]:
                active.add(plane)
        # Kineto calls the homes of its own marks by words, beside processes; other writers these.
        by_words = not any(
            number in active and (plane.device is not None or self._is_process(plane.pid))
            for plane, number in self._planes.items()
        )
        names, kinds = [], []
        for plane, number in self._planes.items():
            name = self._device_name(plane) if plane.device is not None else self._name(plane.pid)
            names.append(name)
            is_named = self._is_process(plane.pid)
            if number in self._repeated:
                kinds.append("other")
            elif plane.pid in self._launching:
                kinds.append("host")
            elif plane.device is not None or plane.pid in self._traced:
                kinds.append("device")
            elif plane.pid in self._hosts:
                kinds.append("host")
            elif _DEVICE.search(name) or number in streams:
                kinds.append("device")
            else:
                is_named |= by_words
                kinds.append("host" if is_named and number in active else "other")
        self._make_distinct(names)
        native, has_native = _numbers([self._text(plane.pid) for plane in self._planes])
        return Columns(
            {
                "plane_id": np.arange(len(names), dtype=np.int64),
                "name": Names.encode(names),
                "kind": Names.encode(kinds),
                "native_id": native,
            },
            {"native_id": has_native},
        )

    def _is_process(self, pid: int) -> bool:
        return pid in self._lines.process_names or _is_number(self._text(pid))

    def _name(self, pid: int) -> str:
        """What the metadata calls a process; the last counts that is not said of a device."""
        names, labels = (
            notes.get(pid, []) for notes in (self._lines.process_names, self._lines.process_labels)
        )
        if pid in self._traced:
            return self._traced[pid].plane_name
        if pid in self._devices_of_pid or pid in self._hosts:
            names = [name for name in names if not _DEVICE.search(name)]
            labels = [label for label in labels if not _DEVICE.search(label)]
        own = self._text(pid)
        name = names[-1] if names and names[-1] else f"process {own}" if _is_number(own) else own
        return f"{name} ({labels[-1]})" if labels and labels[-1] else name

    def _device_name(self, plane: _Plane) -> str:
        """What the metadata calls a device, unless its events say that it is another."""
        is_said = plane.device in self._devices_of_pid.get(plane.pid, set())
        number = plane.device if is_said else None
        names = self._names.get(plane.pid, _NOTHING)
        name = names.device(number)
        if name is not None:
            return name
        label = self._labels.get(plane.pid, _NOTHING).device(number)
        if label is None:
            word = self._lines.device_words.get(plane.pid, "GPU")
            label = f"{word} {plane.device}".rstrip()
        return f"{names.last} ({label})" if names.last else label

    def _make_distinct(self, names: list[str]) -> None:
        """Devices of several processes that would be called alike get the number of theirs too."""
        count = Counter(names[n] for p, n in self._planes.items() if p.device is not None)
        for plane, number in self._planes.items():
            if plane.device is not None and count[names[number]] > 1:
                names[number] += f" of process {self._text(plane.pid)[:LONGEST_NAME]}"

    def lines_table(self) -> Columns:
        """The ``lines`` table: all on the profile's clock, so their own bases are 0."""
        native, has_native = _numbers(
            [
                self._text(thread.other) if thread.kind == THREAD else ""
                for _, thread in self._numbers
            ]
        )
        return Columns(
            {
                "line_id": np.arange(self.line_count, dtype=np.int64),
                "plane_id": self.plane_of_line,
                "name": Names.encode(self._line_names()),
                "start_ps": np.zeros(self.line_count, np.int64),
                "native_id": native,
            },
            {"native_id": has_native},
        )

    def _line_names(self) -> list[str]:
        result = []
        called = {thread: _last(names) for thread, names in self._lines.thread_names.items()}
        for plane, thread in self._numbers:
            if thread.kind == ASYNC:
                code = thread.other
                category = self._lines.categories.values[code] if code >= 0 else ""
                result.append(f"async {category[:LONGEST_NAME]}".rstrip())
                continue
            own = self._text(thread.other)[:LONGEST_NAME]
            if thread.pid in self._traced:
                part = self._traced[thread.pid].part
                result.append(part if own == "0" else f"{part} thread {own}")
                continue
            is_device = plane.device is not None
            word = "stream" if is_device else "thread"
            fallback = f"{word} {own}" if _is_number(own) else own
            name, stream, other = called.get(thread, ("", None, None))
            if is_device or plane.pid in self._hosts:
                # Where a stream and a thread have one number, each has a name of its own.
                better = stream if is_device else other
                name = name if better is None else better
            result.append(name or fallback)
        return result


_NOTHING = _Called([])


def _last(names: list[str]) -> tuple[str, str | None, str | None]:
    """Of the names of a thread the last, the last that is one of a stream, and the last that is
    not.
    """
    stripped = [name.strip() for name in names]
    is_stream = [_DEVICE.match(name) is not None for name in stripped]
    pairs = list(zip(stripped, is_stream, strict=True))
    stream = next((name for name, streams in reversed(pairs) if streams), None)
    other = next((name for name, streams in reversed(pairs) if not streams), None)
    return stripped[-1], stream, other


def _numbers(texts: list[str]) -> tuple[Int64Array, BoolArray]:
    """The ids that are numbers, and which are."""
    result = [whole_number(text) for text in texts]
    known = np.array([number is not None for number in result], np.bool_)
    return np.array([number or 0 for number in result], np.int64), known


def _is_number(text: str) -> bool:
    return text.isascii() and text.removeprefix("-").isdecimal()
