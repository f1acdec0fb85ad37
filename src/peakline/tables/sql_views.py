"""Views that a query may name beside the tables: each a file of the folder ``views``.

``views/NAME.sql`` begins with comments: what the view answers; ``-- Units:`` of its values;
``-- Tables:`` that it stands on, with commas; and ``-- column: NAME TYPE: meaning`` per column, the
types as in the tables' definitions. After them comes one SELECT over those tables.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from peakline.suggest import near
from peakline.tables.definition import ColumnDef, TableDef

_FOLDER = Path(__file__).with_name("views")
_FILE = re.compile(
    r"-- (?P<doc>.+?)\n-- Units: (?P<units>.+?)\n-- Tables: (?P<tables>.+?)\n"
    r"(?P<columns>(?:-- column: [^\n]+\n)+)(?P<query>[^-].*)",
    re.DOTALL,
)
_MOST_LISTED = 12
"""So many tables are listed beside a name that is near."""
_COLUMN = re.compile(r"-- column: (\w+) (\w+)(\??): (.+)\n")


@dataclass(frozen=True)
class View(TableDef):
    """A view as the definition of a table, and more: the units of its values, the tables it needs
    and its SELECT.
    """

    units: str
    needs: frozenset[str]
    query: str

    @property
    def statement(self) -> str:
        """What makes it in a database that has its tables."""
        return f"create or replace temp view {self.name} as {self.query}"


@cache
def view_names() -> frozenset[str]:
    """The names of all views."""
    return frozenset(path.stem for path in _FOLDER.glob("*.sql"))


@cache
def view(name: str) -> View:
    """The view of that name, which is one of `view_names`.

    Raises ValueError for a file that is not written as this module says.
    """
    result = _FILE.fullmatch(_FOLDER.joinpath(f"{name}.sql").read_text(encoding="utf-8"))
    if result is None:
        raise ValueError(f"{name}.sql does not say what it answers, its units, tables and columns")
    doc, units, tables = (result[part].replace("\n--", "") for part in ("doc", "units", "tables"))
    columns = tuple(
        ColumnDef(column, kind, bool(null), meaning)
        for column, kind, null, meaning in _COLUMN.findall(result["columns"])
    )
    needs = frozenset(table.strip() for table in tables.split(","))
    return View(name, doc, columns, units, needs, result["query"].strip())


def views_over(tables: Iterable[str], names: Iterable[str] | None = None) -> list[View]:
    """Those of the views ``names`` (default: all) that stand on ``tables`` alone, by name; of a
    job, views are tables themselves.
    """
    there = frozenset(tables)
    wanted = view_names() if names is None else view_names().intersection(names)
    every = map(view, sorted(wanted - there))
    return [result for result in every if result.needs <= there]


def missing_table(name: str, tables: Iterable[str]) -> str:
    """Why a query over a profile with ``tables`` cannot name ``name``; empty where it can."""
    there, lower = sorted(tables), name.lower()
    if lower in there:
        return ""
    why = f"Table with name {name} does not exist!"
    if lower in view_names():
        lacking = sorted(view(lower).needs.difference(there))
        if not lacking:
            return ""
        why = f"The view {name} stands on {', '.join(lacking)}, which this profile lacks."
    close = near(name, [*there, *(result.name for result in views_over(there))])
    meant = f" Did you mean {' or '.join(close)}?" if close else ""
    if close and len(there) > _MOST_LISTED:
        return f"{why}{meant} SHOW TABLES lists all"
    listed = [table for table in there if table not in view_names()]
    return f"{why}{meant} There is: {', '.join(listed)}"
