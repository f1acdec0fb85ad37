"""Events files (``events.out.tfevents.*``): graphs, and one traced run per tag."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from peakline import schema
from peakline.arrays import Int32Array
from peakline.errors import DamagedError
from peakline.formats.common.files import SourceFile
from peakline.formats.common.reader import warn_of_damage
from peakline.formats.graph_def.source import GraphSpan
from peakline.formats.run_metadata.reader import RunsFile
from peakline.formats.run_metadata.runs import Run
from peakline.formats.run_metadata.tables import RunTables
from peakline.kernels.tfrecord import checksums, walk_records
from peakline.tables.columns import Columns
from peakline.tables.reader import Warnings
from peakline.wire import Buffer, Damage, Decoded, Plan, Spans, WireTable, decode

_FEW = 1024
_PLUGINS = frozenset({"graph_run_metadata", "graph_run_metadata_graph"})
"""What a summary is for whose tensor is a RunMetadata: ``tf.summary.trace_export`` writes it
(``tensorflow/python/ops/summary_ops_v2.py``).
"""


def _tables() -> npt.NDArray[np.uint32]:
    """Row k: the CRC-32C of a byte with k zero bytes behind it."""
    tables = np.zeros((8, 256), np.uint32)
    crc = np.arange(256, dtype=np.uint32)
    for _ in range(8):
        crc = np.where(crc & 1, (crc >> 1) ^ np.uint32(0x82F63B78), crc >> 1).astype(np.uint32)
    tables[0] = crc
    for k in range(1, 8):
        tables[k] = tables[0][tables[k - 1] & 0xFF] ^ (tables[k - 1] >> 8)
    return tables


TABLES = _tables()


@dataclass(frozen=True)
class Events:
    """What an events file holds, in file order, and what of it is lost.

    ``bad_checksums``: records whose length or content is not what its checksum says;
    ``first_bad`` is where the first one begins. ``missing_bytes``: what the last record lacks.
    """

    records: int
    runs: tuple[Run, ...]
    graphs: tuple[GraphSpan, ...]
    bad_checksums: int
    first_bad: int
    missing_bytes: int
    damage: Damage


def read_events(buffer: Buffer) -> Events:
    """Find runs and graphs; contents of other events are not looked at more than needed."""
    room = _FEW
    while True:
        starts, lengths = np.empty(room, np.int64), np.empty(room, np.int64)
        count, result, bad, first_bad, missing = walk_records(buffer, TABLES, starts, lengths)
        if result <= room:
            break
        room = result
    starts, lengths = starts[:result], lengths[:result]
    plan = Plan(
        schema.shape("tensorflow.Event"),
        [
            "wall_time",
            "step",
            "graph_def",
            "meta_graph_def",
            "tagged_run_metadata.tag",
            "tagged_run_metadata.run_metadata",
            "summary.value.tag",
            "summary.value.metadata.plugin_data.plugin_name",
            "summary.value.tensor.string_val",
        ],
    )
    decoded = decode(buffer, plan, Spans(starts, lengths))
    events, tagged = decoded[""], decoded["tagged_run_metadata"]
    holds = {name: events.spans(name).length > 0 for name in ("graph_def", "meta_graph_def")}
    used = holds["graph_def"] | holds["meta_graph_def"]
    exported = _exported(buffer, decoded)
    places = sorted([*_tagged(buffer, tagged), *exported], key=lambda place: place.event)
    used[[place.event for place in places]] = True
    rows = np.flatnonzero(used)
    record = events.parent[rows]
    good = np.ones(rows.size, np.bool_)
    checksums(buffer, TABLES, starts[record], lengths[record], good)
    if not good.all():
        worst = int(starts[record[~good]].min()) - 12
        first_bad = worst if first_bad < 0 else min(first_bad, worst)
    used[rows[~good]] = False
    return Events(
        records=count,
        runs=_runs([place for place in places if used[place.event]], events),
        graphs=(
            *_graphs(events.spans("graph_def").take(holds["graph_def"] & used)),
            *_meta_graphs(
                buffer, events.spans("meta_graph_def").take(holds["meta_graph_def"] & used)
            ),
        ),
        bad_checksums=bad + int((~good).sum()),
        first_bad=first_bad,
        missing_bytes=missing,
        damage=decoded.damage,
    )


@dataclass(frozen=True)
class _Place:
    """Where a RunMetadata lies, and the row of its event."""

    event: int
    tag: str
    start: int
    length: int


def _tagged(buffer: Buffer, tagged: WireTable) -> Iterator[_Place]:
    """What TensorFlow 1 writes (``FileWriter.add_run_metadata``)."""
    tags = tagged.spans("tag").texts(buffer)
    return _places(tagged.parent, tags, tagged.spans("run_metadata"))


def _exported(buffer: Buffer, decoded: Decoded) -> Iterator[_Place]:
    """What TensorFlow 2 writes: the first text in the tensor of a summary for `_PLUGINS`."""
    summary, value = decoded["summary"], decoded["summary.value"]
    about = decoded["summary.value.metadata"]
    plugin, tensor = (
        decoded["summary.value.metadata.plugin_data"],
        decoded["summary.value.tensor"],
    )
    names = plugin.spans("plugin_name").texts(buffer)
    wanted = np.array([name in _PLUGINS for name in names], np.bool_)
    mine = about.parent[plugin.parent[wanted]]
    texts = decoded["summary.value.tensor.string_val"]
    owner, first = np.unique(tensor.parent[texts.parent], return_index=True)
    first = first[np.isin(owner, mine)]
    rows = tensor.parent[texts.parent[first]]
    tags = value.spans("tag").take(rows).texts(buffer)
    return _places(summary.parent[value.parent[rows]], tags, texts.spans("value").take(first))


def _places(events: Int32Array, tags: Sequence[str], content: Spans) -> Iterator[_Place]:
    columns = (events.tolist(), tags, content.start.tolist(), content.length.tolist())
    return (_Place(*place) for place in zip(*columns, strict=True))


def _runs(places: Sequence[_Place], events: WireTable) -> tuple[Run, ...]:
    times, steps = events.array("wall_time").tolist(), events.array("step").tolist()
    return tuple(
        Run(
            one.tag or f"run {number}", number, one.start, one.length,
            times[one.event], steps[one.event],
        )
        for number, one in enumerate(places)
    )  # fmt: skip


def _graphs(spans: Spans) -> list[GraphSpan]:
    places = zip(spans.start.tolist(), spans.length.tolist(), strict=True)
    return [GraphSpan(f"graph_def {n}", "graph_def", *place) for n, place in enumerate(places)]


def _meta_graphs(buffer: Buffer, spans: Spans) -> list[GraphSpan]:
    plan = Plan(schema.shape("tensorflow.MetaGraphDef"), ["meta_info_def.tags", "graph_def"])
    decoded = decode(buffer, plan, spans)
    info, tags = decoded["meta_info_def"], decoded["meta_info_def.tags"]
    words: list[list[str]] = [[] for _ in range(len(spans))]
    texts = tags.spans("value").texts(buffer)
    for word, graph in zip(texts, info.parent[tags.parent].tolist(), strict=True):
        words[graph].append(word)
    content = decoded[""].spans("graph_def")
    places = zip(content.start.tolist(), content.length.tolist(), strict=True)
    return [
        GraphSpan(f"meta_graph {n}", "meta_graph", *place, ",".join(words[n]))
        for n, place in enumerate(places)
    ]


class EventsFileReader(RunsFile):
    """All runs and graphs of an events file; summaries are passed over."""

    __retained__ = "_events _file _tables"

    def __init__(self, file: SourceFile, form: str = "tfevents") -> None:
        self._events = read_events(file.buffer)
        if not self._events.records:
            raise DamagedError(f"{file.path}: no whole record of an events file is left", 0)
        tables = RunTables(file.buffer, self._events.runs, graphs=self._events.graphs)
        super().__init__(file, tables, form)
        self._is_reported = False

    def read(
        self, table: str, warnings: Warnings, columns: AbstractSet[str] | None = None
    ) -> Columns:
        """Read one table."""
        if not self._is_reported:
            self._is_reported = True
            self._warn(warnings)
        return super().read(table, warnings, columns)

    def _warn(self, warnings: Warnings) -> None:
        events = self._events
        warnings.add(
            "bad_checksum",
            f"records whose checksum is wrong are left out; the first at offset {events.first_bad}",
            events.bad_checksums,
        )
        if events.missing_bytes:
            warnings.add(
                "truncated",
                f"the file ends {events.missing_bytes} bytes before its last record does; "
                "answered from what is whole",
            )
        warn_of_damage(warnings, events.damage)
