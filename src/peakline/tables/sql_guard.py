"""What a query may not do: write, call functions that are not its business, read other tables.

DuckDB's own parser says which functions and tables a statement names. It does not take PIVOT apart:
there every word of the text counts.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator
from typing import TYPE_CHECKING, Any

from peakline.errors import CheckFailed
from peakline.tables.sql_functions import ALLOWED, LOCAL, REFUSED, SYSTEM_VIEWS
from peakline.tables.sql_views import missing_table

if TYPE_CHECKING:
    import duckdb

READING = frozenset({"SELECT", "MULTI"})
"""Statements that only read. MULTI is how DuckDB parses a PIVOT that has to find its columns."""

_EXPLAIN = re.compile(
    r"(?:\s++|--[^\n]*+\n|/\*(?:[^*]|\*(?!/))*+\*/)*+explain\b(?:\s*+\([^()]*+\)|\s++analyze\b)?",
    re.IGNORECASE | re.DOTALL,
)
_NODES = frozenset({"SELECT_NODE", "SET_OPERATION_NODE", "RECURSIVE_CTE_NODE", "CTE_NODE"})
"""The parts of a statement that read; others (INSERT_QUERY_NODE) may be in a WITH."""
_NESTED = frozenset({"query", "query_table"})
_OWN_SCHEMAS = frozenset({"", "main", "memory", "temp"})


class Guard:
    """Refuses queries for local callers, or for ``remote`` ones: those may call only what is known
    to be harmless, and name no table but their own.
    """

    def __init__(self, connection: duckdb.DuckDBPyConnection, *, remote: bool) -> None:
        self._remote = remote
        self._views = SYSTEM_VIEWS
        self._words = SYSTEM_VIEWS | _NESTED | REFUSED.keys()
        if remote:
            self._views |= _names(
                connection,
                "select view_name from duckdb_views() where internal"
                " and schema_name <> 'information_schema'",
            )
            # A pragma is a statement, its name is an ordinary word.
            functions = (
                "select function_name from duckdb_functions() where function_type <> 'pragma'"
            )
            self._words |= self._views | LOCAL | (_names(connection, functions) - ALLOWED)

    def check(
        self, connection: duckdb.DuckDBPyConnection, query: str, tables: Collection[str]
    ) -> str:
        """The type of the statement ``query``: one of `READING`, or EXPLAIN of one.

        ``tables`` are all that a profile has. Raises CheckFailed for what may not be done,
        duckdb.Error for what is no SQL.
        """
        kind = _kind(connection, query)
        if kind == "EXPLAIN":
            found = _EXPLAIN.match(query)
            query = query[found.end() :] if found else query
            inner = _kind(connection, query)
        else:
            inner = kind
        if inner not in READING:
            raise CheckFailed("the query must be one statement that reads, such as SELECT")
        self._check_text(connection, query, tables)
        return kind

    def _check_text(
        self, connection: duckdb.DuckDBPyConnection, query: str, tables: Collection[str]
    ) -> None:
        serialized = connection.execute("select json_serialize_sql(?::varchar)", [query]).fetchall()
        try:
            tree = json.loads(serialized[0][0])
        except RecursionError:
            tree = {"error": True}
        if tree["error"]:
            for word in re.findall(r"\w+", query):
                if word.lower() in self._words:
                    raise _refused(word)
            return
        own = {found["key"].lower() for node in _nodes(tree) for found in _expressions(node)}
        for node in _nodes(tree["statements"]):
            kind = str(node.get("type", ""))
            if kind.endswith("_NODE") and kind not in _NODES:
                raise CheckFailed("the query must be one statement that reads, such as SELECT")
            if kind == "BASE_TABLE":
                self._check_table(node, tables, own)
            if node.get("class") == "FUNCTION" or node.get("function_name"):
                self._check_call(connection, node, tables)

    def _check_table(
        self, node: dict[str, Any], tables: Collection[str], own: Collection[str]
    ) -> None:
        name = node["table_name"]
        if name.lower() in self._views:
            raise _refused(name)
        if not self._remote:
            return
        schemas = {node["schema_name"].lower(), node["catalog_name"].lower()}
        if not schemas <= _OWN_SCHEMAS:
            raise _refused(f"{node['schema_name']}.{name}")
        if name.lower() not in own:
            self._check_name(name, tables)

    @staticmethod
    def _check_name(name: str, tables: Collection[str]) -> None:
        problem = missing_table(name, tables)
        if problem:
            raise CheckFailed(problem)

    def _check_call(
        self, connection: duckdb.DuckDBPyConnection, node: dict[str, Any], tables: Collection[str]
    ) -> None:
        name = node["function_name"]
        lower = name.lower()
        if lower in REFUSED:
            raise _refused(name)
        if lower in _NESTED:
            text = _first_text(node)
            if text is None:
                raise CheckFailed(f"{name}() needs a constant text")
            if lower == "query":
                self._check_text(connection, text, tables)
            elif text.rpartition(".")[2].strip('"').lower() in self._views:
                raise _refused(text)
            elif self._remote:
                self._check_name(text, tables)
        elif self._remote and lower not in ALLOWED:
            import difflib

            similar = difflib.get_close_matches(lower, ALLOWED, n=3)
            hint = f"; similar: {', '.join(similar)}" if similar else ""
            raise CheckFailed(f"there is no function {name} that a query may call{hint}")


def _kind(connection: duckdb.DuckDBPyConnection, query: str) -> str:
    """The type of the only statement; empty where there are none or several."""
    statements = connection.extract_statements(query)
    return str(statements[0].type.name) if len(statements) == 1 else ""


def _names(connection: duckdb.DuckDBPyConnection, query: str) -> frozenset[str]:
    return frozenset(name.lower() for (name,) in connection.execute(query).fetchall())


def _refused(name: str) -> CheckFailed:
    reason = REFUSED.get(name.lower())
    why = f": it {reason}" if reason else ""
    return CheckFailed(f"{name} is not allowed in a query{why}; query the tables of the profile")


def _nodes(tree: Any) -> Iterator[dict[str, Any]]:
    """Every object of the tree."""
    waiting = [tree]
    while waiting:
        node = waiting.pop()
        if isinstance(node, dict):
            yield node
            waiting.extend(node.values())
        elif isinstance(node, list):
            waiting.extend(node)


def _expressions(node: dict[str, Any]) -> list[dict[str, Any]]:
    """The common table expressions (WITH) of a part of a statement."""
    found = node.get("cte_map")
    return found["map"] if isinstance(found, dict) else []


def _first_text(call: dict[str, Any]) -> str | None:
    """The first argument of a call, when it is a constant text."""
    arguments = call.get("arguments") or call.get("children") or []
    if not arguments:
        return None
    first = arguments[0].get("expression", arguments[0])
    if first.get("class") != "CONSTANT":
        return None
    literal = first.get("literal") or first.get("value") or {}
    value = literal.get("text", literal.get("value"))
    return value if isinstance(value, str) else None
