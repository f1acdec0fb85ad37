"""Tables ``functions`` and ``function_arguments``: what a library says of its functions."""

from __future__ import annotations

import numpy as np

from peakline.arrays import AnyArray, Int32Array, Int64Array
from peakline.formats.graph_def.source import GraphSource, look_up, pair_key, places, spread
from peakline.formats.graph_def.values import data_types, message_texts
from peakline.tables.columns import Columns, Names
from peakline.wire import Decoded, Interner, Spans, WireTable

_SIGNATURE = "function.signature"
_FLAGS = (
    "is_aggregate",
    "is_commutative",
    "allows_uninitialized_input",
    "is_distributed_communication",
)
_COLUMNS = ("name", "input_arg", "output_arg", "control_output", "description", "is_stateful")
"""Fields of a signature that have a place of their own in the tables."""

_NO_HANDLES = (
    "name", "description", "type", "type_attr", "number_attr", "type_list_attr", "is_ref",
    "experimental_full_type",
)  # fmt: skip
"""Fields of an ArgDef but for handle_data."""


def read_functions(source: GraphSource) -> Columns:
    """Table ``functions``."""
    decoded, graph_of = source.decode_libraries(
        *(
            f"{_SIGNATURE}.{field}"
            for field in ("name", "description", "is_stateful", "@span", "summary", "attr", *_FLAGS)
        ),
        f"{_SIGNATURE}.deprecation?",
        "function.node_def.@",
        "gradient.function_name",
        "gradient.gradient_func",
        "registered_gradients.gradient_func",
        "registered_gradients.registered_op_type",
    )
    count, buffer = decoded["function"].rows, source.buffer
    names = source.function_codes(decoded)
    graph = graph_of[decoded["function"].parent]
    signatures = decoded[_SIGNATURE]
    stateful = np.zeros(count, np.bool_)
    stateful[signatures.parent] = signatures.array("is_stateful")

    # The whole signature is parsed only where it says more than the other columns hold.
    more = signatures.spans("summary").length > 0
    for flag in ("deprecation?", *_FLAGS):
        more |= signatures.array(flag).astype(np.bool_)
    more[decoded[f"{_SIGNATURE}.attr"].parent] = True
    rows = np.flatnonzero(more)
    result, others = message_texts(
        source, signatures.spans("@span").take(rows), "tensorflow.OpDef", _COLUMNS
    )
    other = np.full(count, -1, np.int32)
    other[signatures.parent[rows]] = result

    descriptions = Interner()
    description = descriptions.add(buffer, spread(signatures, "description", count))
    gradient = _gradients(source, decoded, graph_of, graph, names)
    registered = _registered(source, decoded, graph_of, graph, names)
    bodies = np.bincount(decoded["function.node_def"].parent, minlength=count)
    return Columns(
        {
            "graph": source.graph_names(graph),
            "name": Names(names, source.names.values),
            "gradient": Names(gradient, source.names.values),
            "nodes": bodies.astype(np.int64),
            "description": Names(description, descriptions.values),
            "is_stateful": stateful,
            "signature": Names(other, others),
            "gradient_of": registered,
        }
    )


def _gradients(
    source: GraphSource,
    decoded: Decoded,
    graph_of: Int64Array,
    graph: Int64Array,
    names: Int32Array,
) -> Int32Array:
    """The function that a library names as the gradient of each function."""
    table = decoded["gradient"]
    of = source.names.add(source.buffer, table.spans("function_name"))
    function = source.names.add(source.buffer, table.spans("gradient_func"))
    keys = pair_key(graph_of[table.parent], of)
    return look_up(keys, function, pair_key(graph, names)).astype(np.int32)


def _registered(
    source: GraphSource,
    decoded: Decoded,
    graph_of: Int64Array,
    graph: Int64Array,
    names: Int32Array,
) -> Names:
    """The op types whose gradient each function is registered as, separated by commas."""
    table = decoded["registered_gradients"]
    function = source.names.add(source.buffer, table.spans("gradient_func"))
    types: dict[int, list[str]] = {}
    for key, op in zip(
        pair_key(graph_of[table.parent], function).tolist(),
        table.spans("registered_op_type").texts(source.buffer),
        strict=True,
    ):
        types.setdefault(key, []).append(op)
    if not types:
        return Names.constant(None, names.size)
    result = (types.get(key) for key in pair_key(graph, names).tolist())
    return Names.encode([None if ops is None else ",".join(ops) for ops in result])


def read_function_arguments(source: GraphSource) -> Columns:
    """Table ``function_arguments``: by function its inputs, outputs and control outputs."""
    fields = (
        "name", "description", "type", "type_attr", "number_attr", "type_list_attr", "is_ref",
        "experimental_full_type", "handle_data", "@span",
    )  # fmt: skip
    maps = {"output": "function.ret", "control_output": "function.control_ret"}
    decoded, graph_of = source.decode_libraries(
        f"{_SIGNATURE}.name",
        f"{_SIGNATURE}.control_output",
        *(f"{_SIGNATURE}.{role}_arg.{field}" for role in ("input", "output") for field in fields),
        *(f"{entries}.{part}" for entries in maps.values() for part in ("key", "value")),
    )
    buffer, names = source.buffer, source.function_codes(decoded)
    above = decoded[_SIGNATURE].parent
    inputs, outputs = (decoded[f"{_SIGNATURE}.{role}_arg"] for role in ("input", "output"))
    control = decoded[f"{_SIGNATURE}.control_output"]
    counts = [inputs.rows, outputs.rows, control.rows]
    given = inputs.rows + outputs.rows

    functions = [above[table.parent] for table in (inputs, outputs, control)]
    position = [places(table.parent) for table in (inputs, outputs, control)]
    name = [
        source.names.add(buffer, table.spans(column))
        for table, column in ((inputs, "name"), (outputs, "name"), (control, "value"))
    ]
    sources = [
        np.full(inputs.rows, -1, np.int32),
        *(
            _returned(source, decoded[entries], functions[role], name[role])
            for role, entries in enumerate(maps.values(), 1)
        ),
    ]

    def padded(values: AnyArray, missing: int) -> AnyArray:
        return np.concatenate([values, np.full(control.rows, missing, values.dtype)])

    def spans(column: str) -> Spans:
        parts = [inputs.spans(column), outputs.spans(column)]
        return Spans(
            padded(np.concatenate([part.start for part in parts]).astype(np.int64), 0),
            padded(np.concatenate([part.length for part in parts]).astype(np.int64), 0),
        )

    texts = Interner()

    def text(column: str) -> Int32Array:
        where = spans(column)
        return np.where(where.length > 0, texts.add(buffer, where), -1).astype(np.int32)

    columns = {
        column: text(column)
        for column in ("type_attr", "number_attr", "type_list_attr", "description")
    }
    types, type_names = data_types(
        padded(np.concatenate([inputs.array("type"), outputs.array("type")]).astype(np.int64), 0)
    )
    full_types, full_type_names = message_texts(
        source, spans("experimental_full_type"), "tensorflow.FullTypeDef"
    )
    handled = np.unique(
        np.concatenate(
            [
                decoded[f"{_SIGNATURE}.input_arg.handle_data"].parent,
                inputs.rows + decoded[f"{_SIGNATURE}.output_arg.handle_data"].parent,
            ]
        )
    ).astype(np.int64)
    result, handles = message_texts(
        source, spans("@span").take(handled), "tensorflow.OpDef.ArgDef", _NO_HANDLES
    )
    handle = np.full(given + control.rows, -1, np.int32)
    handle[handled] = result

    is_ref = padded(np.concatenate([inputs.array("is_ref"), outputs.array("is_ref")]), 0)
    function = np.concatenate(functions).astype(np.int64)
    order = np.argsort(function, kind="stable")
    function = function[order]
    graph = graph_of[decoded["function"].parent][function]
    return Columns(
        {
            "graph": source.graph_names(graph),
            "function": Names(names[function], source.names.values),
            "role": Names(
                np.repeat(np.arange(3, dtype=np.int32), counts)[order],
                ["input", "output", "control_output"],
            ),
            "position": np.concatenate(position)[order],
            "name": Names(np.concatenate(name)[order], source.names.values),
            "data_type": Names(types[order], type_names),
            **{column: Names(codes[order], texts.values) for column, codes in columns.items()},
            "is_ref": is_ref[order].astype(np.bool_),
            "source": Names(np.concatenate(sources)[order], source.names.values),
            "handle": Names(handle[order], handles),
            "full_type": Names(full_types[order], full_type_names),
        }
    )


def _returned(
    source: GraphSource, table: WireTable, functions: Int32Array, names: Int32Array
) -> Int32Array:
    """What the map ``ret`` or ``control_ret`` gives for each result, as text."""
    keys = source.names.add(source.buffer, table.spans("key"))
    values = source.names.add(source.buffer, table.spans("value"))
    result = look_up(pair_key(table.parent, keys), values, pair_key(functions, names))
    return result.astype(np.int32)
