"""Which ranks of a job a query can need, by the conditions on ``rank`` that it states itself.

Where every table stands alone in a ``FROM`` whose ``WHERE`` has a condition on nothing but ``rank``
(``rank = 3``, ``rank in (0, 7)``, ``rank % 8 = 0 and duration_ps > 5``), the ranks that fulfil none
of them need not be read. Anything else needs all: reading too much is slow, too little is wrong.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import duckdb

RANK = "rank"
_PLAIN = frozenset({"COMPARISON", "CONJUNCTION", "BETWEEN", "OPERATOR"})
"""Classes of expressions whose value their parts decide."""
_ARITHMETIC = frozenset({"%", "+", "-", "*", "//", "&"})
_ALL_OF = {"class": "CONJUNCTION", "type": "CONJUNCTION_AND", "alias": ""}
_PROBE = "select rank from probed where true"


def ranks_needed(
    connection: duckdb.DuckDBPyConnection,
    query: str,
    tables: Collection[str],
    ranks: Collection[int],
) -> frozenset[int]:
    """Those of ``ranks`` that a checked query over the ranked ``tables`` can need."""
    import duckdb
    import pyarrow as pa

    everyone = frozenset(ranks)
    needed: set[int] = set()
    try:
        conditions = list(_conditions(_tree(connection, query), tables))
        if not conditions or None in conditions:
            return everyone
        with connection.cursor() as probe:
            probe.register("probed", pa.table({RANK: pa.array(sorted(everyone), pa.int32())}))
            template = _tree(probe, _PROBE)
            for condition in conditions:
                template["statements"][0]["node"]["where_clause"] = condition
                written = "select json_deserialize_sql(?::json)"
                text = probe.execute(written, [json.dumps(template)]).fetchall()[0][0]
                needed.update(rank for (rank,) in probe.execute(text).fetchall())
    except (KeyError, TypeError, RecursionError, duckdb.Error):
        # Another version of DuckDB writes something else; a condition that fails does so in the
        # query, too.
        return everyone
    return frozenset(needed)


def _tree(connection: duckdb.DuckDBPyConnection, query: str) -> dict[str, Any]:
    rows = connection.execute("select json_serialize_sql(?::varchar)", [query]).fetchall()
    tree: dict[str, Any] = json.loads(rows[0][0])
    if tree["error"]:
        raise KeyError("statements")
    return tree


def _conditions(tree: dict[str, Any], tables: Collection[str]) -> Iterator[dict[str, Any] | None]:
    """For each place where the statement names one of ``tables`` the condition on its rank; None
    for one that has none, and for what may name tables in another way.
    """
    waiting: list[Any] = [tree["statements"]]
    alone: set[int] = set()
    while waiting:
        node = waiting.pop()
        if isinstance(node, list):
            waiting.extend(node)
        if not isinstance(node, dict):
            continue
        waiting.extend(node.values())
        kind = node.get("type")
        if kind == "SELECT_NODE" and _is_table(node["from_table"], tables):
            table = node["from_table"]
            alone.add(id(table))
            # A sample is taken before the condition is looked at.
            plain = table["sample"] is None and not table["column_name_alias"]
            names = {table["table_name"].lower(), table["alias"].lower()}
            every = (_on_rank(one, names) for one in _conjuncts(node["where_clause"]) if plain)
            own = [one for one in every if one is not None]
            yield _ALL_OF | {"children": own} if own else None
        elif (_is_table(node, tables) and id(node) not in alone) or kind == "TABLE_FUNCTION":
            yield None


def _is_table(node: dict[str, Any], tables: Collection[str]) -> bool:
    return node.get("type") == "BASE_TABLE" and node["table_name"].lower() in tables


def _conjuncts(where: dict[str, Any] | None) -> Iterator[dict[str, Any]]:
    if where is not None and where["type"] == "CONJUNCTION_AND":
        for one in where["children"]:
            yield from _conjuncts(one)
    elif where is not None:
        yield where


def _on_rank(node: Any, names: Collection[str]) -> Any:
    """An expression of the rank of the table ``names`` and whole numbers alone, with the rank as
    the probe calls it; None for any other.
    """
    if isinstance(node, list):
        items = [_on_rank(one, names) for one in node]
        return None if None in items else items
    if not isinstance(node, dict):
        return node
    kind = node.get("class")
    if kind == "COLUMN_REF":
        *table, column = (name.lower() for name in node["column_names"])
        is_rank = column == RANK and (not table or (len(table) == 1 and table[0] in names))
        return node | {"column_names": [RANK]} if is_rank else None
    if kind == "CONSTANT":
        return node if node["literal"]["kind"] == "INTEGER" else None
    if kind is not None and kind not in _PLAIN and node.get("function_name") not in _ARITHMETIC:
        return None
    # What is null in an expression stays null: only a part that is refused refuses the whole.
    parts = {
        key: _on_rank(value, names) if value is not None else None for key, value in node.items()
    }
    refused = any(parts[key] is None and node[key] is not None for key in node)
    return None if refused else parts
