"""Threads as they are met while a trace is read, and what its metadata calls them."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from peakline.arrays import BoolArray, Int32Array, UInt8Array
from peakline.formats.chrome_trace.kineto import DEVICE, UNSAID
from peakline.formats.chrome_trace.texts import Texts

THREAD, ASYNC = 0, 1
LONGEST_NAME = 1000
"""One name may be that of every device and thread of a process: of longer ones it is the begin."""


class Thread(NamedTuple):
    """What a trace calls one thread, or the asynchronous events of one category of a process.

    ``pid`` and ``other`` are codes of ids; of categories where ``kind`` is ASYNC.
    """

    pid: int
    kind: int
    other: int


class Met(NamedTuple):
    """Events of one thread that happened in one ``place``: UNSAID, HOST or DEVICE.

    ``device`` is the code of the device's number among the ids, -1 where the events do not say it.
    """

    thread: Thread
    place: int
    device: int


@dataclass
class Lines:
    """All threads of a trace, keyed by codes of ``ids`` (of pid and tid) and ``categories``.

    One ``pid`` may be a process and a device, and several devices: what the events of a thread
    belong to is known only when all are read, see `peakline.formats.chrome_trace.planes`.
    """

    ids: Texts
    categories: Texts
    met: dict[Met, int] = field(default_factory=dict)
    pids: dict[int, None] = field(default_factory=dict)
    device_words: dict[int, str] = field(default_factory=dict)
    process_names: dict[int, list[str]] = field(default_factory=lambda: defaultdict(list))
    process_labels: dict[int, list[str]] = field(default_factory=lambda: defaultdict(list))
    thread_names: dict[Thread, list[str]] = field(default_factory=lambda: defaultdict(list))

    def numbers(
        self,
        pid: Int32Array,
        tid: Int32Array,
        category: Int32Array,
        is_async: BoolArray,
        place: UInt8Array,
        device: Int32Array,
    ) -> Int32Array:
        """For every event the number of its `Met`."""
        other = np.where(is_async, category, tid).astype(np.int64)
        key = ((pid.astype(np.int64) + 1) << 32) | ((other + 1) << 1) | is_async
        whose = np.where(place == DEVICE, device.astype(np.int64) + 1 + DEVICE, place)
        # One thread mostly writes many events in a row.
        change = np.ones(key.size, np.bool_)
        change[1:] = (key[1:] != key[:-1]) | (whose[1:] != whose[:-1])
        runs = np.flatnonzero(change)
        run_key, run_whose = key[runs], whose[runs]
        if run_whose.any():
            _, thread = np.unique(run_key, return_inverse=True)
            _, owner = np.unique(run_whose, return_inverse=True)
            run_key = thread * (np.int64(owner.max()) + 1) + owner
        distinct, first, run = np.unique(run_key, return_index=True, return_inverse=True)
        result = np.zeros(distinct.size, np.int32)
        for number in np.argsort(first).tolist():
            row = int(runs[first[number]])
            thread = Thread(int(pid[row]), int(is_async[row]), int(other[row]))
            on_device = place[row] == DEVICE
            result[number] = self._meet(
                thread, int(place[row]), int(device[row]) if on_device else -1
            )
        return np.repeat(result[run], np.diff(np.append(runs, key.size)))

    def _meet(self, thread: Thread, place: int, device: int) -> int:
        self.pids.setdefault(thread.pid)
        return self.met.setdefault(Met(thread, place, device), len(self.met))

    def note_processes(self, pids: Int32Array) -> None:
        """Take over that there are some processes."""
        for pid in np.unique(pids).tolist():
            self.pids.setdefault(pid)

    def note_devices(self, pids: Int32Array, word: str) -> None:
        """Take over what the devices of some processes are called, were no metadata to say it."""
        for pid in np.unique(pids).tolist():
            self.device_words.setdefault(pid, word)

    def note(self, what: str, pid: int, tid: int, text: str) -> None:
        """Take over one metadata event."""
        self.pids.setdefault(pid)
        text = text[:LONGEST_NAME]
        if what == "process_name":
            self.process_names[pid].append(text)
        elif what == "process_labels":
            self.process_labels[pid].append(text)
        elif what == "thread_name":
            thread = Thread(pid, THREAD, tid)
            self._meet(thread, UNSAID, -1)
            self.thread_names[thread].append(text)
