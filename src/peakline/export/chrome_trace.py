"""Chrome traces (Trace Event Format, JSON): events, steps, arrows, counters."""

from __future__ import annotations

from collections.abc import Iterator

from peakline.export.registry import Exporter, Options, Sink
from peakline.export.timeline import TIMELINE_TABLES, Timeline, read_timeline
from peakline.formats.chrome_trace.phases import EXPORTER as OWN_NAME
from peakline.formats.chrome_trace.phases import EXPORTER_KEY
from peakline.tables import Profile
from peakline.tables.columns import Names
from peakline.viewer.events import TraceRows, memory_text, name_texts

_HEAD = (
    '{"displayTimeUnit":"ns","metadata":{"highres-ticks":true,'
    f'"{EXPORTER_KEY}":"{OWN_NAME}"}},"traceEvents":[\n'
).encode()
_TAIL = b"\n]}\n"
_BETWEEN = b",\n"


def _export(profile: Profile, sink: Sink, options: Options) -> None:
    """For chrome://tracing, Perfetto's page and TensorBoard: all rows, some at a time.

    Processes and threads are numbered and named as XProf does; times are exact to the picosecond.
    """
    timeline = read_timeline(profile, args=options.args, allocator=options.allocator)
    sink(lambda stream: stream.writelines(_parts(timeline)))


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
    yield from rows.flows(timeline.flows)
    yield from rows.counters(timeline.counters)
    for counter in timeline.memory:
        name = Names.constant(f"Memory {counter.allocator}".rstrip(), counter.bytes.size)
        yield from memory_text(counter.time_ps, name_texts(',"name":', name), counter.bytes)


EXPORTER = Exporter(
    name="chrome-trace",
    doc="Chrome trace (JSON): events, steps, arrows, memory in use over time",
    suffix=".trace.json",
    is_text=True,
    needs=TIMELINE_TABLES,
    over_time=True,
    write=_export,
)
