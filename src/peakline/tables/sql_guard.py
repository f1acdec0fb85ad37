"""What a query may not call: functions that read about the machine or waste it.

DuckDB's own parser says which functions and tables a statement names. Under a memory limit the
functions that make one large cell out of small arguments are bounded too: DuckDB computes 2048
rows at a time, cannot be interrupted within them, and does not count what they take.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from peakline.errors import CheckFailed

if TYPE_CHECKING:
    import duckdb

_PRIVATE_PREFIXES = (
    "__internal", "_duckdb", "arrow_scan", "copy_", "current_setting", "duckdb_", "enable_",
    "disable_", "has_", "inet_", "pandas_scan", "parquet_", "pg_", "pragma_", "read_", "register_",
    "deregister_", "create_external", "destroy_external", "sleep", "sniff_", "icu_calendar",
    "python_", "test_", "truncate_duckdb",
)  # fmt: skip
_PRIVATE = frozenset(
    {
        "checkpoint", "current_connection_id", "currval", "force_checkpoint", "getenv",
        "getvariable", "glob", "json_execute_serialized_sql", "nextval", "seq_scan", "setval",
        "version", "which_secret", "write_log",
    }
)  # fmt: skip
_HARMLESS = frozenset({"pg_typeof", "pg_size_pretty"})
_NESTED = frozenset({"query", "query_table"})
_COMPARISONS = (
    "damerau_levenshtein", "editdist3", "jaro_similarity", "jaro_winkler_similarity",
    "levenshtein",
)  # fmt: skip
"""Functions that take the product of two lengths in time."""
_GENERATORS = frozenset(
    {
        "array_resize", "bitstring", "format", "generate_series", "list_resize", "lpad", "printf",
        "range", "repeat", "rpad", *_COMPARISONS,
    }
)  # fmt: skip
_SYSTEM_SCHEMAS = frozenset({"main", "pg_catalog", "system", "temp"})
_EXPLAIN_OPTIONS = re.compile(
    r"^\s*explain\s*\((\s*analyze\s*,)?\s*format\s+\w+\s*\)", re.IGNORECASE
)
_WIDE_FORMAT = re.compile(r"\d{5}|\*|\{[^}]*\{")
"""A width of five digits, or one that comes with the arguments."""
_VECTOR_ROWS = 2048
_LARGEST_CELL = 128 << 10
_MOST_STEPS = 1_000_000


def largest_cell(memory_limit: int) -> int:
    """Bytes that one call may make.

    One for each row of a vector stays within half of the memory, and what is done with all of
    them within a second or two.
    """
    return min(_LARGEST_CELL, max(1024, memory_limit // (2 * _VECTOR_ROWS)))


def refuse_calls(connection: duckdb.DuckDBPyConnection, query: str, *, bounded: bool) -> None:
    """Raise CheckFailed when ``query`` names what no query may, or what a bounded one may not.

    A statement that the parser does not take apart (EXPLAIN, PIVOT) may not have these names
    anywhere in its text. What is no SQL at all passes: the database explains it better.
    """
    serialized = connection.execute("select json_serialize_sql(?::varchar)", [query]).fetchall()
    try:
        tree = json.loads(serialized[0][0])
    except RecursionError:
        tree = {"error": True}
    if tree["error"]:
        more = _NESTED | _GENERATORS if bounded else _NESTED
        for word in re.findall(r"\w+", _EXPLAIN_OPTIONS.sub("", query)):
            _refuse_name(word, more)
        return
    for node, is_in_lambda in _nodes(tree["statements"]):
        if node.get("type") == "BASE_TABLE":
            _refuse_name(node["table_name"])
        if node.get("class") == "FUNCTION" or node.get("function_name"):
            _check_call(connection, node, is_in_lambda, bounded=bounded)


def _check_call(
    connection: duckdb.DuckDBPyConnection,
    node: dict[str, Any],
    is_in_lambda: bool,
    *,
    bounded: bool,
) -> None:
    name = node["function_name"].lower()
    _refuse_name(name)
    if name in _NESTED:
        text = _first_text(node)
        if text is None:
            raise CheckFailed(f"{name}() needs a constant text")
        if name == "query":
            refuse_calls(connection, text, bounded=bounded)
        else:
            _refuse_name(text.rpartition(".")[2].strip('"'))
    if not bounded or name not in _GENERATORS:
        return
    if is_in_lambda:
        raise CheckFailed(f"{name}() is not allowed for each item of a list")
    if _SYSTEM_SCHEMAS & {str(node.get(key, "")).lower() for key in ("schema", "catalog")}:
        raise CheckFailed(f"{name}() has to be called by its plain name")
    if name in ("format", "printf"):
        first = _first_text(node)
        if first is None or _WIDE_FORMAT.search(first):
            raise CheckFailed(f"{name}() needs a constant format without large widths")


def _refuse_name(name: str, more: frozenset[str] = frozenset()) -> None:
    lower = name.lower()
    if lower in _HARMLESS:
        return
    if lower in _PRIVATE or lower in more or lower.startswith(_PRIVATE_PREFIXES):
        raise CheckFailed(f"{name} is not allowed in a query; query the tables of the profile")


def _nodes(tree: Any) -> Iterator[tuple[dict[str, Any], bool]]:
    """Every object of the tree, and whether a lambda has it."""
    waiting = [(tree, False)]
    while waiting:
        node, is_in_lambda = waiting.pop()
        if isinstance(node, dict):
            yield node, is_in_lambda
            is_in_lambda = is_in_lambda or node.get("class") == "LAMBDA"
            waiting.extend((value, is_in_lambda) for value in node.values())
        elif isinstance(node, list):
            waiting.extend((value, is_in_lambda) for value in node)


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


def bound_generators(connection: duckdb.DuckDBPyConnection, most: int) -> None:
    """Let the functions that make one large cell refuse more than ``most`` bytes.

    Macros take the place of the functions and look at the arguments of each row first.
    """

    def checked(count: str, size: str) -> str:
        message = f"a call may make {most} bytes in one cell; request less"
        return f"case when {size} > {most} then error('{message}') else {count} end"

    product = "strlen(a)::double * strlen(b)"
    too_long = f"error('two texts of more than {_MOST_STEPS} pairs of bytes are not compared')"

    def number(name: str) -> str:
        return f"try_cast({name}::varchar as double)"

    def time(name: str) -> str:
        return f"try_cast({name}::varchar as timestamptz)"

    stretch = f"({number('b')} - {number('a')})"
    period = f"epoch({time('b')} - {time('a')})"
    steps = (
        f"8 * abs(coalesce({stretch} / {number('c')}, "
        f"{period} / epoch(try_cast(c::varchar as interval)), 0))"
    )
    bodies = {
        "repeat": [("s, n", "s, " + checked("n", "strlen(s::varchar)::double * n"))],
        "bitstring": [("s, n", "s, " + checked("n", "n"))],
    }
    compared = f"a, case when {product} > {_MOST_STEPS} then {too_long} else b end"
    for name in _COMPARISONS:
        bodies[name] = [("a, b", compared)]
    for name in ("lpad", "rpad"):
        bodies[name] = [("s, n, p", f"s, {checked('n', 'n')}, p")]
    for name in ("list_resize", "array_resize"):
        bodies[name] = [
            ("l, n", "l, " + checked("n", "8 * n::double")),
            ("l, n, v", f"l, {checked('n', 'greatest(8, strlen(v::varchar))::double * n')}, v"),
        ]
    for name in ("range", "generate_series"):
        bodies[name] = [
            ("b", checked("b", "8 * b::double")),
            ("a, b", "a, " + checked("b", f"8 * {stretch}")),
            ("a, b, c", f"a, {checked('b', steps)}, c"),
        ]
    for name, overloads in bodies.items():
        macros = ", ".join(f"({names}) as system.main.{name}({call})" for names, call in overloads)
        connection.execute(f"create temp macro {name}{macros}").fetchall()
