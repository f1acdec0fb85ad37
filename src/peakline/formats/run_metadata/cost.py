"""Tables of the cost graph (cost_graph.proto)."""

from __future__ import annotations

import numpy as np

from peakline.formats.memory_log.tensors import data_types
from peakline.formats.run_metadata import texts
from peakline.formats.run_metadata.runs import Part, Runs, names_of
from peakline.tables.columns import Column, Columns, Names

_NODE = "node"
_INPUT = f"{_NODE}.input_info"
_CONTROL = f"{_NODE}.control_input"
_OUTPUT = f"{_NODE}.output_info"
_TOTAL = "cost"

_NUMBERS = {
    "cost_id": "id",
    "compute_micros": "compute_cost",
    "compute_time": "compute_time",
    "memory_time": "memory_time",
    "temporary_bytes": "temporary_memory_size",
    "persistent_bytes": "persistent_memory_size",
    "host_temp_bytes": "host_temp_memory_size",
    "device_temp_bytes": "device_temp_memory_size",
    "device_persistent_bytes": "device_persistent_memory_size",
}


def read_cost_nodes(runs: Runs) -> Columns:
    """``cost_nodes``."""
    decoded, run = runs.decode(Part.COSTS, [f"{_NODE}.*"])
    read = decoded[_NODE]
    data: dict[str, Column] = {
        "step_id": runs.step_ids[run][read.parent],
        "name": names_of(runs.buffer, read.spans("name")),
        "device": names_of(runs.buffer, read.spans("device")),
        "is_final": read.array("is_final"),
        "is_inaccurate": read.array("inaccurate"),
    }
    data.update({name: read.array(field).astype(np.int64) for name, field in _NUMBERS.items()})
    return Columns(data)


def read_cost_edges(runs: Runs) -> Columns:
    """``cost_edges``: per node its data inputs, then its control inputs."""
    decoded, run = runs.decode(Part.COSTS, [f"{_NODE}.id", f"{_INPUT}.*", _CONTROL])
    nodes, inputs, controls = decoded[_NODE], decoded[_INPUT], decoded[_CONTROL]
    node = np.concatenate([inputs.parent, controls.parent])
    is_control = np.arange(node.size) >= inputs.rows
    order = np.lexsort((is_control, node))
    node, is_control = node[order], is_control[order]
    source = np.concatenate([inputs.array("preceding_node"), controls.array("value")])
    port = np.concatenate([inputs.array("preceding_port"), np.zeros(controls.rows, np.int32)])
    return Columns(
        {
            "step_id": runs.step_ids[run][nodes.parent[node]],
            "cost_id": nodes.array("id")[node].astype(np.int64),
            "source_cost_id": source[order].astype(np.int64),
            "source_port": port[order].astype(np.int64),
        },
        {"source_port": ~is_control},
    )


def read_cost_outputs(runs: Runs) -> Columns:
    """``cost_outputs``; the port is the place in the list."""
    fields = ("size", "alias_input_port", "dtype", "shape", "shape?")
    decoded, run = runs.decode(
        Part.COSTS, [f"{_NODE}.id", *(f"{_OUTPUT}.{field}" for field in fields)]
    )
    nodes, read = decoded[_NODE], decoded[_OUTPUT]
    at = np.arange(read.rows, dtype=np.int64)
    first = np.searchsorted(read.parent, read.parent)
    return Columns(
        {
            "step_id": runs.step_ids[run][nodes.parent[read.parent]],
            "cost_id": nodes.array("id")[read.parent].astype(np.int64),
            "port": at - first,
            "bytes": read.array("size").astype(np.int64),
            "alias_input_port": read.array("alias_input_port").astype(np.int64),
            "data_type": data_types(read.array("dtype"), null=None),
            "shape": texts.shape_names(runs.buffer, read.spans("shape"), read.array("shape?")),
        }
    )


def read_cost_totals(runs: Runs) -> Columns:
    """``cost_totals``."""
    decoded, run = runs.decode(Part.COSTS, [f"{_TOTAL}.*"])
    read = decoded[_TOTAL]
    dimensions: Names = names_of(runs.buffer, read.spans("dimension"))
    return Columns(
        {
            "step_id": runs.step_ids[run][read.parent],
            "dimension": dimensions,
            "cost": read.array("cost").astype(np.float64),
        }
    )
