"""What a table definition is: columns with types, units and meaning."""

from __future__ import annotations

from dataclasses import dataclass

_UNITS = {
    "ps": "ps",
    "ns": "ns",
    "nanos": "ns",
    "micros": "us",
    "s": "s",
    "bytes": "bytes",
    "percent": "%",
}
"""By the word of a column's name that says it; bytes may be ``allocated`` or ``in_use``."""


@dataclass(frozen=True)
class ColumnDef:
    """One column: ``type`` is int64, int32, uint64, float64, bool or string.

    ``unit`` is ps, ns, us, s, bytes or %, and empty where the values have none.
    """

    name: str
    type: str
    nullable: bool
    doc: str

    @property
    def unit(self) -> str:
        """The unit of the values, which the name gives: ``start_ps``, ``peak_bytes_in_use``."""
        if self.type in {"string", "bool"}:
            return ""
        words = self.name.split("_")
        return "bytes" if "bytes" in words else _UNITS.get(words[-1], "")


@dataclass(frozen=True)
class TableDef:
    """One table: its columns in order and what a row is."""

    name: str
    doc: str
    columns: tuple[ColumnDef, ...]

    def __getitem__(self, name: str) -> ColumnDef:
        for column in self.columns:
            if column.name == name:
                return column
        raise KeyError(name)


def parse_tables(text: str) -> tuple[TableDef, ...]:
    """Tables as text, with an empty line between them.

    Each begins with ``name: doc``; an indented line ``name type doc`` follows per column, whose
    type ends in ``?`` when nulls may occur.
    """
    result = []
    for part in text.strip().split("\n\n"):
        head, *lines = part.split("\n    ")
        name, doc = head.replace("\n", " ").split(": ", 1)
        columns = []
        for column, kind, meaning in (line.split(maxsplit=2) for line in lines):
            columns.append(ColumnDef(column, kind.rstrip("?"), kind.endswith("?"), meaning))
        result.append(TableDef(name, doc, tuple(columns)))
    return tuple(result)
