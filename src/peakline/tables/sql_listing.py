"""`show tables`, `describe TABLE` and their like, as a SELECT of what is known of the tables.

The database knows only those tables that a query names, and nothing of what they mean: these
statements are answered from the definitions, and read no table.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from peakline.errors import CheckFailed
from peakline.tables.definition import TableDef
from peakline.tables.sql_views import missing_table, view, view_names, views_over

_END = r"[\s;]*"
_NAME = r"(?:main\.)?(?:\"(?P<quoted>\w+)\"|(?P<name>\w+))"
_LISTING = re.compile(
    rf"\s*(?:(?:show|describe|desc)(?:\s+(?:all\s+)?tables)?|show\s+(?P<views>views)){_END}",
    re.IGNORECASE,
)
_DESCRIBING = re.compile(
    rf"\s*(?:(?:describe|desc|show)(?:\s+table)?|show\s+columns\s+(?:from|in))\s+{_NAME}{_END}",
    re.IGNORECASE,
)


def is_listing(query: str) -> bool:
    """Whether a statement lists or describes tables."""
    return (_LISTING.fullmatch(query) or _DESCRIBING.fullmatch(query)) is not None


def plain_query(query: str, tables: Mapping[str, TableDef]) -> str:
    """``query``; of a statement that lists or describes the ``tables``, a SELECT of the answer.

    That of a list has the columns name, kind (``table`` or ``view``) and answers; that of a table
    column_name, column_type, null and meaning. Raises CheckFailed for a table that is not there,
    which names those near to it.
    """
    listing = _LISTING.fullmatch(query)
    if listing is not None:
        return _listed(tables, only_views=listing["views"] is not None)
    described = _DESCRIBING.fullmatch(query)
    return query if described is None else _described(described, tables)


def _listed(tables: Mapping[str, TableDef], *, only_views: bool) -> str:
    named = tables.keys() & view_names()
    views = sorted((one.name, "view", one.doc) for one in [*views_over(tables), *map(view, named)])
    own = sorted((name, "table", one.doc) for name, one in tables.items() if name not in named)
    return _select(("name", "kind", "answers"), views if only_views else [*own, *views])


def _described(result: re.Match[str], tables: Mapping[str, TableDef]) -> str:
    name = str(result["quoted"] or result["name"])
    problem = missing_table(name, tables)
    if problem:
        raise CheckFailed(problem)
    lower = name.lower()
    columns = (tables[lower] if lower in tables else view(lower)).columns
    rows = [(one.name, one.type, "YES" if one.nullable else "NO", one.doc) for one in columns]
    return _select(("column_name", "column_type", "null", "meaning"), rows)


def _select(names: Iterable[str], rows: Iterable[tuple[str, ...]]) -> str:
    """The rows as a query. All are texts of this package's own."""
    heads = [f'"{name}"' for name in names]
    values = ", ".join(f"({', '.join(map(_quoted, row))})" for row in rows)
    if not values:
        empty = ", ".join(f"'' as {head}" for head in heads)
        return f"select {empty} limit 0"
    return f"select * from (values {values}) as listed({', '.join(heads)})"  # noqa: S608  (own texts)


def _quoted(text: str) -> str:
    doubled = " ".join(text.split()).replace("'", "''")
    return f"'{doubled}'"
