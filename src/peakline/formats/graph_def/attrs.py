"""Tables ``node_attrs`` and ``function_attrs``: attributes with their values as text."""

from __future__ import annotations

import numpy as np

from peakline.arrays import AnyArray, BoolArray, Int32Array, Int64Array
from peakline.formats.graph_def.source import GraphSource, NodePart, last_entries, look_up
from peakline.formats.graph_def.values import KINDS, value_texts
from peakline.tables.columns import Columns, Names
from peakline.wire import Interner, Spans, WireTable

_LARGE_BYTES = 512
"""Values above are mostly tensors: never copied to find equal ones, but looked at one by one."""


class AttrTexts:
    """Texts and kinds of AttrValues; equal bytes are formatted once."""

    def __init__(self, source: GraphSource) -> None:
        self._source = source
        self._codes: dict[str, int] = {}

    @property
    def texts(self) -> list[str]:
        """The distinct texts by code."""
        return list(self._codes)

    def add(self, spans: Spans) -> tuple[Int32Array, Int32Array]:
        """Per value the code of its text, and its kind (an index of `KINDS`)."""
        source = self._source
        codes, kinds = (np.zeros(len(spans), np.int32) for _ in range(2))
        small = np.flatnonzero(spans.length <= _LARGE_BYTES)
        distinct = Interner()
        result = distinct.add(source.buffer, spans.take(small))
        buffer, where = distinct.spans()
        texts, kind, damage = value_texts(buffer, where)
        codes[small], kinds[small] = self._encode(texts)[result], kind[result]
        if damage:
            # Offsets in the pool mean nothing in the file: note it where it lies there.
            source.note("values", value_texts(source.buffer, spans.take(small))[2])
        large = np.flatnonzero(spans.length > _LARGE_BYTES)
        texts, kind, damage = value_texts(source.buffer, spans.take(large))
        source.note("large values", damage)
        codes[large], kinds[large] = self._encode(texts), kind
        return codes, kinds

    def _encode(self, texts: list[str]) -> Int32Array:
        seen = self._codes
        return np.array([seen.setdefault(text, len(seen)) for text in texts], np.int32)


def read_node_attrs(source: GraphSource) -> Columns:
    """Table ``node_attrs``."""
    texts = AttrTexts(source)

    def columns(part: NodePart) -> dict[str, AnyArray]:
        buffer, entries = source.buffer, part.table("attr")
        names = source.names.add(buffer, part.table().spans("name"))
        nodes, keys, values = _entries(source, entries)
        value, kind = texts.add(values)
        return {
            "graph": part.graph[nodes],
            "name": names[nodes],
            "attr": keys,
            "value": value,
            "kind": kind,
            "function": part.function[nodes],
        }

    result = source.one_table(source.node_parts("name", "attr.key", "attr.value"), columns)
    return Columns(
        {
            "graph": source.graph_names(result["graph"]),
            "name": Names(result["name"], source.names.values),
            "attr": Names(result["attr"], source.attrs.values),
            "value": Names(result["value"], texts.texts),
            "kind": Names(result["kind"], KINDS),
            "function": Names(result["function"], source.names.values),
        }
    )


def read_function_attrs(source: GraphSource) -> Columns:
    """Table ``function_attrs``: by function its own attributes, then those of its arguments.

    A resource argument with a unique id and no attributes has one row, with an empty ``attr``.
    """
    decoded, graph_of = source.decode_libraries(
        "function.signature.name",
        "function.attr.key",
        "function.attr.value",
        "function.arg_attr.key",
        "function.arg_attr.value.attr.key",
        "function.arg_attr.value.attr.value",
        "function.resource_arg_unique_id.key",
        "function.resource_arg_unique_id.value",
    )
    names = source.function_codes(decoded)
    own = decoded["function.attr"]
    arguments = decoded["function.arg_attr"]
    theirs = decoded["function.arg_attr.value.attr"]
    ids = decoded["function.resource_arg_unique_id"]

    of, keys, values = _entries(source, own)
    function, argument = [of], [np.full(of.size, -1, np.int64)]
    attr, spans = [keys], [values]

    # Of two entries for one argument the last counts, with its attributes.
    of, keys, values = _entries(source, theirs)
    entry = decoded["function.arg_attr.value"].parent[of]
    chosen = np.flatnonzero(_last(arguments.parent, arguments.array("key"))[entry])
    entry = entry[chosen]
    function.append(arguments.parent[entry])
    argument.append(arguments.array("key")[entry].astype(np.int64))
    attr.append(keys[chosen])
    spans.append(values.take(chosen))

    chosen = np.flatnonzero(_last(ids.parent, ids.array("key")))
    id_of, id_key = ids.parent[chosen], ids.array("key")[chosen].astype(np.int64)
    alone = ~np.isin(_pair(id_of, id_key), _pair(function[1], argument[1]))
    function.append(id_of[alone])
    argument.append(id_key[alone])
    attr.append(np.full(int(alone.sum()), source.attrs.add_bytes(b""), np.int32))
    spans.append(Spans(np.zeros(int(alone.sum()), np.int64), np.zeros(int(alone.sum()), np.int64)))

    functions, positions = np.concatenate(function).astype(np.int64), np.concatenate(argument)
    order = np.lexsort((positions, functions))
    functions, positions = functions[order], positions[order]
    texts = AttrTexts(source)
    value, _ = texts.add(
        Spans(
            np.concatenate([part.start for part in spans])[order],
            np.concatenate([part.length for part in spans])[order],
        )
    )
    unique = look_up(
        _pair(id_of, id_key),
        ids.array("value")[chosen].astype(np.int64),
        _pair(functions, positions),
    )
    graph = graph_of[decoded["function"].parent]
    return Columns(
        {
            "graph": source.graph_names(graph[functions]),
            "function": Names(names[functions], source.names.values),
            "argument": np.maximum(positions, 0),
            "attr": Names(np.concatenate(attr)[order], source.attrs.values),
            "value": Names(value, texts.texts),
            "unique_id": np.maximum(unique, 0),
        },
        {"argument": positions >= 0, "unique_id": unique >= 0},
    )


def _entries(source: GraphSource, table: WireTable) -> tuple[Int32Array, Int32Array, Spans]:
    """Parent, code of the key, and value of the entries of maps to AttrValue that count."""
    keys, values = source.attrs.add(source.buffer, table.spans("key")), table.spans("value")
    keep = last_entries(table.parent, keys, len(source.attrs))
    if keep.all():
        return table.parent, keys, values
    return table.parent[keep], keys[keep], values.take(keep)


def _pair(function: AnyArray, argument: Int64Array) -> Int64Array:
    """One number per function row and argument (a uint32, or -1)."""
    return (function.astype(np.int64) << 33) | (argument.astype(np.int64) & ((1 << 33) - 1))


def _last(parents: Int32Array, keys: AnyArray) -> BoolArray:
    distinct, codes = np.unique(keys, return_inverse=True)
    return last_entries(parents, codes, distinct.size)
