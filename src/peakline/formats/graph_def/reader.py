"""GraphDef, MetaGraphDef and SavedModel files."""

from __future__ import annotations

from collections.abc import Sequence
from collections.abc import Set as AbstractSet

import numpy as np

from peakline import schema
from peakline.formats.common.files import SourceFile
from peakline.formats.common.reader import FileReader, warn_of_cut, warn_of_damage
from peakline.formats.graph_def.source import GraphSpan, broken_fields, submessages
from peakline.formats.graph_def.tables import GRAPH_TABLES, GraphTables
from peakline.tables.columns import Columns
from peakline.tables.reader import Warnings
from peakline.wire import Buffer, Damage, Plan, Spans, decode

_META_GRAPHS, _GRAPH_DEF, _META_INFO = 2, 2, 1
"""SavedModel.meta_graphs, MetaGraphDef.graph_def and .meta_info_def."""


class GraphReader(FileReader):
    """The graphs of one file. A table is decoded when it is read, and only as far as it needs."""

    __retained__ = "_file _tables"

    tables = GRAPH_TABLES

    def __init__(self, file: SourceFile, form: str) -> None:
        super().__init__(file, form)
        buffer = file.buffer
        graphs, self._missing, self._broken = _outline(buffer, form)
        self._tables = GraphTables(buffer, graphs)
        result = self._tables.read("graphs")
        self._holds = {name: bool(result.array(name).any()) for name in ("nodes", "functions")}
        self._is_empty = not any(self._holds.values())
        self._reported: set[str] = set()
        self._reported_places = 0
        harm = self._damage()
        if self._is_empty and harm:
            raise self._nothing_whole(harm)

    def read(
        self, table: str, warnings: Warnings, columns: AbstractSet[str] | None = None
    ) -> Columns:
        """Read one table, all its columns."""
        del columns
        result = self._tables.read(table)
        self._warn(warnings)
        return result

    def has_rows(self, table: str) -> bool | None:
        """As `Reader.has_rows`: nodes outside functions need not be decoded for it."""
        return self._holds.get(table) or None

    def duration_ps(self) -> int:
        """0: a graph has no time."""
        return 0

    def _damage(self) -> Damage:
        """What is damaged, including a cut that fell between two fields of a graph."""
        harm = self._tables.damage + self._broken
        if self._missing and not harm.missing_bytes:
            size = self._file.buffer.size
            return harm + Damage(1, 0, size, self._missing)
        return harm

    def _warn(self, warnings: Warnings) -> None:
        """Report damage, each place once."""
        harm = self._damage()
        places = harm.places
        if harm.missing_bytes:
            places -= 1
            if "truncated" not in self._reported:
                self._reported.add("truncated")
                warn_of_cut(warnings, harm.missing_bytes, self._file.buffer.size)
        warn_of_damage(warnings, harm, places - self._reported_places)
        self._reported_places = max(self._reported_places, places)
        if self._is_empty and "no_content" not in self._reported:
            self._reported.add("no_content")
            warnings.add("no_content", "the file holds no node and no function")


def _outline(buffer: Buffer, form: str) -> tuple[list[GraphSpan], int, Damage]:
    """Where the graphs of a file lie, how many bytes the end of the file cuts off them, and what
    around them is broken.
    """
    if form == "graph_def":
        return [GraphSpan("", "graph_def", 0, int(buffer.size))], 0, Damage()
    whole: tuple[Sequence[int], Sequence[int]] = ([0], [int(buffer.size)])
    missing = 0
    metas = Spans(np.array(whole[0]), np.array(whole[1]))
    broken = Damage()
    if form == "saved_model":
        _, metas, missing = submessages(buffer, *whole, _META_GRAPHS)
        broken = broken_fields(buffer, "tensorflow.SavedModel", "meta_graphs")
    broken += broken_fields(buffer, "tensorflow.MetaGraphDef", "graph_def", metas)
    above, spans, missing_below = submessages(buffer, metas.start, metas.length, _GRAPH_DEF)
    tags = _tags(buffer, metas)
    graphs = [
        GraphSpan(
            f"meta_graph {meta}" if len(metas) > 1 else "", "meta_graph", start, length, tags[meta]
        )
        for meta, start, length in zip(
            above.tolist(), spans.start.tolist(), spans.length.tolist(), strict=True
        )
    ]
    return graphs, max(missing, missing_below), broken


def _tags(buffer: Buffer, metas: Spans) -> list[str]:
    """The tags of every meta graph, separated by commas."""
    above, infos, _ = submessages(buffer, metas.start, metas.length, _META_INFO)
    plan = Plan(schema.shape("tensorflow.MetaGraphDef.MetaInfoDef"), ("tags",))
    table = decode(buffer, plan, infos)["tags"]
    tags: list[list[str]] = [[] for _ in range(len(metas))]
    for info, tag in zip(table.parent.tolist(), table.spans("value").texts(buffer), strict=True):
        tags[above[info]].append(tag)
    return [",".join(result) for result in tags]
