"""Processes and threads: numbered as they are met, named by metadata."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from peakline.profile.columns import Columns, Names
from peakline.sources.chrome_trace.texts import Texts

__all__ = ["Lines"]

_DEVICE = re.compile(
    r"\b(gpus?|tpus?|npu|xpu|hpu|cuda|hip)\b|/device:(?!cpu)|\bstream\b", re.IGNORECASE
)
_THREAD, _ASYNC = 0, 1


@dataclass
class Lines:
    """Planes are processes, lines their threads.

    The events of asynchronous operations, which belong to no thread, have one line per process
    and category. All of them are keyed by codes of ``ids`` (of pid and tid) and ``categories``.
    """

    ids: Texts
    categories: Texts
    plane_of_pid: dict[int, int] = field(default_factory=dict)
    plane_of_line: list[int] = field(default_factory=list)
    process_names: dict[int, str] = field(default_factory=dict)
    process_labels: dict[int, str] = field(default_factory=dict)
    thread_names: dict[int, str] = field(default_factory=dict)
    _numbers: dict[tuple[int, int, int], int] = field(default_factory=dict)

    def plane(self, pid: int) -> int:
        """The plane of a process."""
        return self.plane_of_pid.setdefault(pid, len(self.plane_of_pid))

    def thread(self, pid: int, tid: int) -> int:
        """The line of a thread."""
        return self._line(_THREAD, pid, tid)

    def _line(self, kind: int, pid: int, other: int) -> int:
        key = kind, pid, other
        if key not in self._numbers:
            self._numbers[key] = len(self.plane_of_line)
            self.plane_of_line.append(self.plane(pid))
        return self._numbers[key]

    def numbers(
        self,
        pid: npt.NDArray[np.int32],
        tid: npt.NDArray[np.int32],
        category: npt.NDArray[np.int32],
        is_async: npt.NDArray[np.bool_],
    ) -> npt.NDArray[np.int32]:
        """The line of every event."""
        other = np.where(is_async, category, tid).astype(np.int64)
        key = ((pid.astype(np.int64) + 1) << 32) | ((other + 1) << 1) | is_async
        # One thread mostly writes many events in a row.
        change = np.ones(key.size, np.bool_)
        change[1:] = key[1:] != key[:-1]
        runs = np.flatnonzero(change)
        distinct, first, run = np.unique(key[runs], return_index=True, return_inverse=True)
        found = np.zeros(distinct.size, np.int32)
        for place in np.argsort(first).tolist():
            row = int(runs[first[place]])
            found[place] = self._line(int(is_async[row]), int(pid[row]), int(other[row]))
        return np.repeat(found[run], np.diff(np.append(runs, key.size)))

    def planes_of(self, pid: npt.NDArray[np.int32]) -> npt.NDArray[np.int32]:
        """The plane of every process."""
        distinct, place = np.unique(pid, return_inverse=True)
        return np.array([self.plane(code) for code in distinct.tolist()], np.int32)[place]

    def of_plane(self) -> npt.NDArray[np.int32]:
        """The plane of every line."""
        return np.array(self.plane_of_line, np.int32)

    def note(self, what: str, pid: int, tid: int, text: str) -> None:
        """Take over one metadata event; of two names the last one counts."""
        if what == "process_name":
            self.process_names[self.plane(pid)] = text
        elif what == "process_labels":
            self.process_labels[self.plane(pid)] = text
        elif what == "thread_name":
            self.thread_names[self.thread(pid, tid)] = text

    def planes_table(self, busy: npt.NDArray[np.bool_]) -> Columns:
        """The ``planes`` table; ``busy`` marks the lines that have events."""
        texts = self.ids.values
        line_names = self._line_names()
        streams, active = set(), set()
        for line, plane in enumerate(self.plane_of_line):
            if _DEVICE.match(line_names[line]):
                streams.add(plane)
            if busy[line]:
                active.add(plane)
        names, kinds = [], []
        for pid, plane in self.plane_of_pid.items():
            own = texts[pid] if pid >= 0 else ""
            name = self.process_names.get(plane) or (f"process {own}" if _is_number(own) else own)
            labels = self.process_labels.get(plane, "")
            if labels:
                name = f"{name} ({labels})"
            is_named = plane in self.process_names or _is_number(own)
            names.append(name)
            if _DEVICE.search(name) or plane in streams:
                kinds.append("device")
            else:
                kinds.append("host" if is_named and plane in active else "other")
        native, has_native = _numbers([texts[pid] if pid >= 0 else "" for pid in self.plane_of_pid])
        return Columns(
            {
                "plane_id": np.arange(len(names), dtype=np.int64),
                "name": Names.encode(names),
                "kind": Names.encode(kinds),
                "native_id": native,
            },
            {"native_id": has_native},
        )

    def lines_table(self) -> Columns:
        """The ``lines`` table: all on the profile's clock, so their own bases are 0."""
        count, texts = len(self.plane_of_line), self.ids.values
        native, has_native = _numbers(
            [texts[t] if k == _THREAD and t >= 0 else "" for k, _, t in self._numbers]
        )
        return Columns(
            {
                "line_id": np.arange(count, dtype=np.int64),
                "plane_id": self.of_plane(),
                "name": Names.encode(self._line_names()),
                "start_ps": np.zeros(count, np.int64),
                "native_id": native,
            },
            {"native_id": has_native},
        )

    def _line_names(self) -> list[str]:
        texts, categories = self.ids.values, self.categories.values
        names = []
        for (kind, _, other), line in self._numbers.items():
            own = (categories if kind == _ASYNC else texts)[other] if other >= 0 else ""
            if kind == _ASYNC:
                names.append(f"async {own}".rstrip())
            else:
                fallback = f"thread {own}" if _is_number(own) else own
                names.append(self.thread_names.get(line, "").strip() or fallback)
        return names


def _numbers(texts: list[str]) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.bool_]]:
    """The ids that are numbers, and which are."""
    known = np.array([_is_number(text) and len(text) <= 18 for text in texts], np.bool_)
    found = [int(text) if is_known else 0 for text, is_known in zip(texts, known, strict=True)]
    return np.array(found, np.int64), known


def _is_number(text: str) -> bool:
    return text.isascii() and text.removeprefix("-").isdecimal()
