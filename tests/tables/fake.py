"""A reader over tables made by hand."""

from collections import Counter
from collections.abc import Iterable, Mapping

import numpy as np

from peakline.formats.common.format import formats
from peakline.tables import TABLES, Columns, Names, Warnings
from peakline.tables.event_rules import EventRules
from peakline.tables.reader import Reader


def columns_of(table: str, rows: Iterable[Mapping[str, object]]) -> Columns:
    """The named table from dicts; a missing or None value is null, or 0 or "" if it cannot be."""
    rows = list(rows)
    data: dict[str, np.ndarray | Names] = {}
    valid = {}
    for column in TABLES[table].columns:
        values = [row.get(column.name) for row in rows]
        if column.type == "string":
            absent = None if column.nullable else ""
            data[column.name] = Names.encode([absent if v is None else v for v in values])
        else:
            data[column.name] = np.array([0 if v is None else v for v in values], column.type)
            if column.nullable:
                valid[column.name] = np.array([v is not None for v in values], np.bool_)
    return Columns(data, valid)


class FakeReader(Reader):
    """Gives the tables it was made with, as columns or rows; counts reads; ``losses`` become
    warnings when read.
    """

    format = "fake"
    path = "fake.pb"

    host = ""

    def __init__(
        self,
        tables: Mapping[str, Columns | Iterable[Mapping[str, object]]],
        *,
        host: str = "worker-0",
        losses: Mapping[str, tuple[str, str, int]] | None = None,
    ) -> None:
        self._tables = {
            name: content if isinstance(content, Columns) else columns_of(name, content)
            for name, content in tables.items()
        }
        self.host = host
        self.losses = dict(losses or {})
        self.reads: Counter[str] = Counter()
        self.closed = False

    def of_format(self, name: str) -> "FakeReader":
        """This reader, whose tables are now those of a file of the format ``name``."""
        known = formats().get(name)
        self.format = name
        self.event_rules = EventRules() if known is None else known.reader_class().event_rules
        return self

    @property
    def tables(self) -> frozenset[str]:
        return frozenset(self._tables)

    def read(self, table, warnings: Warnings, columns=None) -> Columns:  # noqa: ARG002
        self.reads[table] += 1
        if table in self.losses:
            kind, detail, count = self.losses[table]
            warnings.add(kind, detail, count)
        return self._tables[table]

    def duration_ps(self) -> int:
        self.reads["duration_ps"] += 1
        return 1234

    def close(self) -> None:
        self.closed = True
