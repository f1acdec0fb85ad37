"""Rows of TensorFlow's own timeline that a tracer of the hardware wrote, and those that launch.

``timeline.Timeline(step_stats).generate_chrome_trace_format()`` makes a process of every entry of
StepStats. A tracer saves a kernel under ``stream:K`` and again under ``stream:all``, a copy under
``stream:K`` and again under ``memcpy``; what the executor ran for such a device
(``/job:w/replica:0/task:0/gpu:0 Compute``), it ran on the host, which launched.

Sources: ``tensorflow/python/client/timeline.py`` and ``device_tracer.cc`` of TensorFlow 1.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from peakline.arrays import UInt8Array
from peakline.tables.event_rules import EventKind
from peakline.tables.table_source import TableSource

_ROW = re.compile(
    r"(?s)(?P<name>(?P<task>/job:[^/]*+(?:/replica:[^/]*+)?(?:/task:[^/]*+)?)?/(?:device:)?"
    r"(?P<device>[A-Za-z][A-Za-z_]*+:\d++))(?:/(?P<part>stream:[^/ ]++|memcpy|sync))? Compute"
)
_COPIES = "memcpy"
_AGAIN = ("stream:all", _COPIES)
_WAITS = "sync"
_PART = re.compile(r"(stream:[^/ ]++|memcpy|sync)(?: thread .*)?", re.DOTALL)
_REPEATS = " (stream:all, memcpy)"


@dataclass(frozen=True)
class Traced:
    """A row that a tracer wrote: of which device (task and name), and which ``part`` of it."""

    key: tuple[str, str]
    name: str
    part: str

    @property
    def is_again(self) -> bool:
        """Whether the row is of the kind that repeats numbered streams."""
        return self.part in _AGAIN

    @property
    def plane_name(self) -> str:
        """What the plane of all such rows of the device is called."""
        return f"{self.name}{_REPEATS}" if self.is_again else self.name


def traced_rows(names: Mapping[int, Sequence[str]]) -> tuple[dict[int, Traced], set[int]]:
    """Of processes and what they are called: the tracer's rows, and those that launch for them."""
    traced: dict[int, Traced] = {}
    executors: dict[int, tuple[str, str]] = {}
    for pid, called in names.items():
        row = _ROW.fullmatch(called[-1]) if called else None
        if row is None:
            continue
        key = row["task"] or "", row["device"].lower()
        if row["part"]:
            traced[pid] = Traced(key, row["name"], row["part"])
        else:
            executors[pid] = key
    keys = {row.key for row in traced.values() if row.part != _WAITS}
    return traced, {pid for pid, key in executors.items() if key in keys or ("", key[1]) in keys}


def note_kinds(profile: TableSource, kinds: UInt8Array) -> None:
    """Enter into ``kinds``, an `EventKind` for every row of ``events``, what the row that it
    stands in says: that a host launches, or that a device copies.
    """
    called = dict(profile.columns("planes").each("plane_id", "name"))
    parts: dict[int, str] = {}
    names: dict[int, list[str]] = {plane: [name] for plane, name in called.items()}
    device_of: dict[int, str] = {}
    for line, plane, name in profile.columns("lines").each("line_id", "plane_id", "name"):
        part = _PART.fullmatch(name or "")
        device = called[plane].removesuffix(_REPEATS)
        if part and _ROW.fullmatch(f"{device}/{part[1]} Compute"):
            parts[line], device_of[line] = part[1], device
            names[plane].append(f"{device}/{part[1]} Compute")
    if not parts:
        return
    _, launching = traced_rows(names)
    plane_of = dict(profile.columns("lines").each("line_id", "plane_id"))
    events = profile.columns("events", frozenset(("line_id", "name", "start_ps", "duration_ps")))
    line_id = events.array("line_id")
    launches = [line for line, plane in plane_of.items() if plane in launching]
    kinds[np.isin(line_id, launches)] = EventKind.LAUNCH
    device = {name: number for number, name in enumerate(dict.fromkeys(device_of.values()))}
    rows = np.flatnonzero(np.isin(line_id, list(parts)))
    same = np.stack([
        np.array([device[device_of[line]] for line in line_id[rows].tolist()], np.int64),
        events.names("name").codes[rows],
        events.array("start_ps")[rows],
        events.array("duration_ps")[rows],
    ])  # fmt: skip
    _, group = np.unique(same, axis=1, return_inverse=True)
    copies = group[np.isin(line_id[rows], [n for n, part in parts.items() if part == _COPIES])]
    kinds[rows[np.isin(group, copies)]] = EventKind.COPY
