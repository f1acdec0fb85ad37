"""Chrome traces (Trace Event Format, JSON): events, steps, arrows, counters."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from json.encoder import encode_basestring_ascii as quoted
from typing import TYPE_CHECKING, BinaryIO

import numpy as np

from peakline.export.registry import Options, Sink
from peakline.export.timeline import TIMELINE_TABLES, MemoryCounter, Timeline, read_timeline
from peakline.formats.chrome_trace.own import EXPORTER as OWN_NAME
from peakline.formats.chrome_trace.own import EXPORTER_KEY
from peakline.viewer.events import HOST_PID, TraceRows, name_texts, parts_of
from peakline.viewer.lines import Gap, Lines

if TYPE_CHECKING:
    from peakline.tables import Columns, Profile

__all__ = ["EXPORTER", "ChromeTrace"]

_HEAD = (
    '{"displayTimeUnit":"ns","metadata":{"highres-ticks":true,'
    f'"{EXPORTER_KEY}":"{OWN_NAME}"}},"traceEvents":[\n'
).encode()
_TAIL = b"\n]}\n"
_BETWEEN = b",\n"


@dataclass(frozen=True)
class ChromeTrace:
    """For chrome://tracing, Perfetto's page and TensorBoard.

    Processes and threads are numbered and named as XProf does; times are exact to the picosecond.
    """

    name: str = "chrome-trace"
    doc: str = "Chrome trace (JSON): events, steps, arrows, memory in use over time"
    suffix: str = ".trace.json"
    needs: tuple[tuple[str, ...], ...] = TIMELINE_TABLES
    over_time: bool = True

    def write(self, profile: Profile, sink: Sink, options: Options) -> None:
        """All rows, some at a time."""
        timeline = read_timeline(profile, args=options.args, allocator=options.allocator)

        def write(stream: BinaryIO) -> None:
            stream.writelines(_parts(timeline))

        sink(write)


def _parts(timeline: Timeline) -> Iterator[bytes | memoryview]:
    yield _HEAD
    last: bytes | memoryview = b""
    for part in _rows(timeline):
        if part:
            yield last
            last = part
    # JSON has no comma behind the last row.
    yield last[: -len(_BETWEEN)]
    yield _TAIL


def _rows(timeline: Timeline) -> Iterator[bytes | memoryview]:
    """All rows, each with the comma behind it."""
    rows = TraceRows(timeline.planes, timeline.lines)
    yield rows.metadata()
    for events, stats in timeline.event_sets():
        yield from rows.events(events, stats)
    yield from parts_of(_flows(timeline.flows, rows.owners))
    yield from parts_of(_counters(timeline.counters, timeline.planes, rows.pids))
    for counter in timeline.memory:
        yield from parts_of(_memory(counter))


def _flows(flows: Columns, owners: list[str]) -> Lines:
    """The ends of arrows."""
    phases = [f'{{"ph":{quoted(phase)},"cat":"flow",' for phase in flows.names("phase").values]
    binds = flows.array("binds_enclosing").astype(np.uint8)
    return Lines(
        flows.rows,
        [
            Gap("", flows.names("phase").codes, texts=phases),
            Gap('"id":', flows.array("flow_id"), ","),
            Gap("", flows.array("line_id"), texts=owners),
            Gap(',"ts":', flows.array("time_ps"), is_picoseconds=True),
            Gap("", binds, texts=["", ',"bp":"e"']),
            name_texts(',"name":', flows.names("name")),
            Gap("", np.zeros(flows.rows, np.uint8), texts=["},\n"]),
        ],
    )


def _counters(counters: Columns, planes: Columns, pids: list[int]) -> Lines:
    """The values of the profile's own counters."""
    pid_of = dict(zip(planes.array("plane_id").tolist(), pids, strict=True))
    plane, place = np.unique(counters.array("plane_id"), return_inverse=True)
    owners = [f'{{"ph":"C","pid":{pid_of[number]},"tid":0,"ts":' for number in plane.tolist()]
    distinct, value = np.unique(counters.array("value"), return_inverse=True)
    return Lines(
        counters.rows,
        [
            Gap("", place.reshape(-1), texts=owners),
            Gap("", counters.array("time_ps"), is_picoseconds=True),
            name_texts(',"name":', counters.names("name")),
            name_texts(',"args":{', counters.names("series")),
            Gap(":", value.reshape(-1), "}},\n", texts=[_number(v) for v in distinct.tolist()]),
        ],
    )


def _number(value: float) -> str:
    """A value as JSON; what JSON has no number for is a text."""
    return repr(value) if np.isfinite(value) else quoted(repr(value))


def _memory(counter: MemoryCounter) -> Lines:
    """Memory in use of one allocator."""
    name = quoted(f"Memory {counter.allocator}".rstrip())
    return Lines(
        counter.bytes.size,
        [
            Gap(f'{{"ph":"C","pid":{HOST_PID},"tid":0,"ts":', counter.time_ps, is_picoseconds=True),
            Gap(f',"name":{name},"args":{{"bytes_in_use":', counter.bytes, "}},\n"),
        ],
    )


EXPORTER = ChromeTrace()
