"""Table ``node_frames``: the stack traces of a GraphDebugInfo.

A trace is stored by the node's key (``traces``) or by id
(``name_to_trace_id`` and ``traces_by_id``); its frames inline (``file_line_cols``) or by id
(``frame_id`` and ``frames_by_id``). As TensorFlow's own reader does, a trace by name wins over
one by id, and inline frames over frames by id. Inline frames are written innermost first, frames
by id outermost first.
"""

from __future__ import annotations

import numpy as np

from peakline.arrays import AnyArray, Int32Array, Int64Array
from peakline.formats.common.callers import LEFT_OUT, MEAN_DEPTH
from peakline.formats.graph_def.source import GraphSource, last_entries, look_up, pair_key, places
from peakline.tables.columns import Column, Columns, Names
from peakline.wire import Buffer, Decoded, Interner

_DEBUG_INFO = 5
"""GraphDef.debug_info."""

_BY_ID = "frames_by_id.value"
_FRAME_TABLES = (_BY_ID, "traces.value.file_line_cols", "traces_by_id.value.file_line_cols")
_FRAME = ("file_index", "line", "col", "func", "code")
_TRACE = (*(f"value.file_line_cols.{field}" for field in _FRAME), "value.frame_id")
_PATHS = (
    "files",
    *(f"{table}.{path}" for table in ("traces", "traces_by_id") for path in ("key", *_TRACE)),
    "frames_by_id.key",
    *(f"frames_by_id.value.{field}" for field in _FRAME),
    "name_to_trace_id.key",
    "name_to_trace_id.value",
)


def read_node_frames(source: GraphSource) -> Columns:
    """Table ``node_frames``; a frame whose id or file is missing has an empty file. Of traces that
    are deeper than any program's the outer frames are one, `LEFT_OUT`.
    """
    graph_of, spans = source.below(_DEBUG_INFO)
    decoded = source.decode_below("debug info", "tensorflow.GraphDebugInfo", _PATHS, spans)
    frames = _frames(source.buffer, decoded)
    trace, frame, depth = _frames_of_traces(decoded)
    root, name, wanted = _named_traces(source, decoded)

    # Every named trace, frame by frame.
    first = np.searchsorted(trace, wanted, side="left")
    every = np.searchsorted(trace, wanted, side="right") - first
    is_deep = int(every.sum()) > MEAN_DEPTH * wanted.size
    many = np.minimum(every, MEAN_DEPTH) if is_deep else every
    named = np.repeat(np.arange(wanted.size), many)
    row = np.arange(named.size) - np.repeat(np.cumsum(many) - many, many) + first[named]
    result = frame[row]
    # The last of the frames is that.
    result[np.cumsum(many)[many < every] - 1] = len(frames["line"]) - 1
    return Columns(
        {
            "graph": source.graph_names(graph_of[root[named]]),
            "node": Names(name[named], source.names.values),
            "depth": depth[row],
            **{
                column: Names(values.codes[result], values.values)
                if isinstance(values, Names)
                else values[result]
                for column, values in frames.items()
            },
        }
    )


def _above(decoded: Decoded, table: str) -> Int32Array:
    """The row of the map entry that every row of ``table``, two levels below, belongs to."""
    entry: Int32Array = decoded[table.rpartition(".")[0]].parent
    return entry[decoded[table].parent]


def _frames(buffer: Buffer, decoded: Decoded) -> dict[str, Column]:
    """All frames: those by id, the inline ones of both kinds of traces, an unknown one, and that of
    those that are not read.
    """
    texts = Interner()
    unknown = texts.add_bytes(b"")
    left_out = texts.add_bytes(LEFT_OUT[0].encode())
    files = decoded["files"]
    file_codes = texts.add(buffer, files.spans("value"))
    parts: dict[str, list[AnyArray]] = {
        name: [] for name in ("file", "line", "column", "function", "code")
    }
    for name in _FRAME_TABLES:
        table = decoded[name]
        # Frames by id are entries of a map themselves.
        entry = table.parent if name == _BY_ID else _above(decoded, name)
        root = decoded[name.partition(".")[0]].parent[entry]
        first = np.searchsorted(files.parent, root, side="left")
        many = np.searchsorted(files.parent, root, side="right") - first
        index = table.array("file_index").astype(np.int64)
        file = np.full(table.rows, unknown, np.int32)
        known = np.flatnonzero((index >= 0) & (index < many))
        file[known] = file_codes[first[known] + index[known]]
        parts["file"].append(file)
        parts["line"].append(table.array("line").astype(np.int64))
        parts["column"].append(table.array("col").astype(np.int64))
        parts["function"].append(texts.add(buffer, table.spans("func")))
        parts["code"].append(texts.add(buffer, table.spans("code")))
    columns: dict[str, Column] = {}
    for name, arrays in parts.items():
        is_text = name not in {"line", "column"}
        end = np.full(2, unknown if is_text else 0, arrays[0].dtype)
        if name == "function":
            end[1] = left_out
        values = np.concatenate([*arrays, end])
        columns[name] = Names(values, texts.values) if is_text else values
    return columns


def _frames_of_traces(decoded: Decoded) -> tuple[Int32Array, Int64Array, Int64Array]:
    """Trace, row of the frame and depth, by trace and depth.

    Traces are numbered through: those by name, then those by id. Frames as in `_frames`.
    """
    by_id = decoded["frames_by_id"]
    unknown = sum(decoded[name].rows for name in _FRAME_TABLES)
    # The row of "frames_by_id.value" of an entry, which is absent where the entry has no value.
    holder = np.full(by_id.rows, unknown, np.int64)
    holder[decoded[_BY_ID].parent] = np.arange(decoded[_BY_ID].rows)
    traces, frames, depths = [], [], []
    first_trace, first_frame = 0, decoded[_BY_ID].rows
    for name in ("traces", "traces_by_id"):
        rows = decoded[name].rows
        inline = _above(decoded, f"{name}.value.file_line_cols")
        traces.append(inline + first_trace)
        frames.append(np.arange(inline.size) + first_frame)
        depths.append(places(inline))

        entry = _above(decoded, f"{name}.value.frame_id")
        ids = decoded[f"{name}.value.frame_id"].array("value")
        counts = ~np.isin(entry, inline)
        entry, ids = entry[counts], ids[counts]
        root = decoded[name].parent[entry]
        result = _by_id(by_id.parent, by_id.array("key"), holder, root, ids)
        traces.append(entry + first_trace)
        frames.append(np.where(result < 0, unknown, result))
        # Written from the outermost frame inwards.
        last = np.searchsorted(entry, entry, side="right") - 1
        depths.append(last - np.arange(entry.size))
        first_trace += rows
        first_frame += inline.size
    trace, depth = np.concatenate(traces), np.concatenate(depths)
    order = np.lexsort((depth, trace))
    return trace[order], np.concatenate(frames)[order], depth[order]


def _named_traces(
    source: GraphSource, decoded: Decoded
) -> tuple[Int32Array, Int32Array, Int64Array]:
    """Root, name and trace of every key; of equal keys the last one by name, else by id."""
    traces, ids = decoded["traces"], decoded["name_to_trace_id"]
    by_name = source.names.add(source.buffer, traces.spans("key"))
    by_id = source.names.add(source.buffer, ids.spans("key"))
    held = decoded["traces_by_id"]
    result = _by_id(
        held.parent, held.array("key"), np.arange(held.rows), ids.parent, ids.array("value")
    )
    chosen = last_entries(traces.parent, by_name, len(source.names))
    taken = pair_key(traces.parent, by_name)
    kept_ids = last_entries(ids.parent, by_id, len(source.names)) & (result >= 0)
    kept_ids &= ~np.isin(pair_key(ids.parent, by_id), taken)
    root = np.concatenate([traces.parent[chosen], ids.parent[kept_ids]])
    name = np.concatenate([by_name[chosen], by_id[kept_ids]])
    trace = np.concatenate([np.flatnonzero(chosen), result[kept_ids] + traces.rows])
    order = np.argsort(root, kind="stable")
    return root[order], name[order], trace[order]


def _by_id(
    roots: Int32Array, ids: AnyArray, values: Int64Array, wanted_roots: Int32Array, wanted: AnyArray
) -> Int64Array:
    """The value of the last entry with each wanted id of the same root, -1 without one."""
    _, codes = np.unique(
        np.concatenate([ids.astype(np.uint64), wanted.astype(np.uint64)]), return_inverse=True
    )
    return look_up(
        pair_key(roots, codes[: ids.size]), values, pair_key(wanted_roots, codes[ids.size :])
    )
