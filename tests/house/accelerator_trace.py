"""A format of a third vendor's traces, which `test_additions` adds to a copy of the package.

Each event is a line, a JSON list: ``[line, name, kind, begin, length, step, stats]``; times are in
µs. Names and kinds are the vendor's own and say nothing to anyone else.
"""

import json
from functools import cached_property

import numpy as np

from peakline.formats.common.annotations import dim, steps_columns
from peakline.formats.common.format import Format
from peakline.formats.common.reader import FileReader
from peakline.tables.columns import Columns, Names
from peakline.tables.event_rules import (
    CollectiveStats,
    EventKind,
    EventRules,
    LaunchParameters,
    LaunchStats,
    LinkStats,
    StatedOps,
)

KINDS = {
    "op": EventKind.OP,
    "submit": EventKind.RUNTIME_CALL,
    "work": EventKind.KERNEL,
    "idle": EventKind.NO_WORK,
    "step": EventKind.ANNOTATION,
}


def kinds_of(profile):
    category = profile.columns("events", frozenset(("category",))).names("category")
    return category.per_row(KINDS.get, np.uint8)


def ops_of(profile):
    events = profile.columns("events", frozenset(("category", "name")))
    name, category = events.names("name"), events.names("category")
    is_op = category.codes == category.code_of("op")
    return StatedOps(np.where(is_op, name.codes, -1), [(n, "") for n in name.values], calls=False)


def parse_launch(texts):
    grid, _, block = texts[0].partition("/")
    return LaunchParameters(dim(grid), dim(block))


class AcceleratorReader(FileReader):
    """One trace."""

    tables = frozenset(("planes", "lines", "events", "event_stats", "steps"))
    event_rules = EventRules(
        kinds=kinds_of,
        ops=ops_of,
        links=(LinkStats("ticket", ("ticket",), ("ticket",)),),
        launches=LaunchStats(("shape",), parse_launch),
        collectives=CollectiveStats(
            name="exchange", group="ring", sequence="turn", elements_in="count", data_type="type",
            ranks="members",
        ),
    )  # fmt: skip

    @cached_property
    def _events(self):
        lines = bytes(self._file.buffer).decode().splitlines()[1:]
        return sorted(map(json.loads, lines), key=lambda event: event[0])

    def read(self, table, warnings, columns=None):  # noqa: ARG002
        """One table."""
        return getattr(self, f"_read_{table}")()

    def _read_planes(self):
        return Columns(
            {
                "plane_id": np.arange(2),
                "name": Names.encode(["node", "Accelerator 0"]),
                "kind": Names.encode(["host", "device"]),
                "native_id": np.zeros(2, np.int64),
            }
        )

    def _read_lines(self):
        return Columns(
            {
                "line_id": np.arange(2),
                "plane_id": np.arange(2),
                "name": Names.encode(["worker", "queue 0"]),
                "start_ps": np.zeros(2, np.int64),
            }
        )

    def _read_events(self):
        line, name, kind, begin, length, step, _ = zip(*self._events, strict=True)
        return Columns(
            {
                "event_id": np.arange(len(line), dtype=np.int32),
                "line_id": np.array(line, np.int32),
                "name": Names.encode(name),
                "category": Names.encode(kind),
                "start_ps": np.array(begin) * 10**6,
                "duration_ps": np.array(length) * 10**6,
                "step_id": np.array(step, np.int32),
            }
        )

    def _read_event_stats(self):
        rows = [
            (at, key, str(value))
            for at, event in enumerate(self._events)
            for key, value in event[6].items()
        ]
        event, name, value = zip(*rows, strict=True)
        return Columns(
            {
                "event_id": np.array(event, np.int32),
                "name": Names.encode(name),
                "value": Names.encode(value),
            }
        )

    def _read_steps(self):
        marks = [event for event in self._events if event[2] == "step"]
        begin = np.array([mark[3] for mark in marks]) * 10**6
        end = begin + np.array([mark[4] for mark in marks]) * 10**6
        count = len(marks)
        return steps_columns(
            np.array([mark[5] for mark in marks]),
            [mark[1] for mark in marks],
            begin,
            end,
            Names.constant("mark", count),
            np.zeros(count, np.bool_),
        )

    def duration_ps(self):
        """Until the last event ends."""
        return max(event[3] + event[4] for event in self._events) * 10**6


FORMAT = Format(
    name="accelerator_trace",
    what="traces of accelerators",
    written_by="this test",
    fills="`planes`, `lines`, `events`, `event_stats`, `steps`",
    reader="peakline.formats.accelerator_trace:AcceleratorReader",
    rank=20,
    begins=lambda head: head.startswith(b"ACCELERATOR TRACE"),
    is_text=True,
)
