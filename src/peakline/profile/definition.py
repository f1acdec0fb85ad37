"""What a table definition is: columns with types, units and meaning."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["ColumnDef", "TableDef", "table"]


@dataclass(frozen=True)
class ColumnDef:
    """One column: ``type`` is int64, int32, uint64, float64, bool or string."""

    name: str
    type: str
    nullable: bool
    doc: str


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


def table(name: str, doc: str, columns: str) -> TableDef:
    """Parse ``name type doc`` lines; the type ends in ``?`` when nulls may occur."""
    parsed = []
    for line in columns.strip().splitlines():
        column, kind, text = line.split(maxsplit=2)
        parsed.append(ColumnDef(column, kind.rstrip("?"), kind.endswith("?"), text))
    return TableDef(name, doc, tuple(parsed))
