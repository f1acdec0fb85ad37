"""Tables of what an execution put out, referred to, allocated and left in use; names of threads.

The tables of the cost graph (cost_graph.proto) are here too.
"""

from __future__ import annotations

import numpy as np

from peakline import schema
from peakline.arrays import AnyArray, Int32Array
from peakline.formats.memory_log.tensors import data_types
from peakline.formats.run_metadata import texts
from peakline.formats.run_metadata.runs import (
    BUFFER,
    MEMORY,
    NODES,
    ON_DEVICE,
    OUTPUT,
    PERSISTENT,
    RECORDS,
    STATS,
    TENSOR,
    Part,
    Runs,
    names_of,
    place_in_group,
)
from peakline.tables.columns import Column, Columns, Names
from peakline.wire import Plan, WireTable, decode

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


_SESSION = 5
"""Number of RunMetadata.session_metadata."""


def read_op_outputs(runs: Runs) -> Columns:
    """``op_outputs``. A number that is 0 where the runtime has none (id, address, allocated
    bytes of an allocator that does not track them) is null.
    """
    steps = runs.steps(
        f"{OUTPUT}.slot", f"{TENSOR}.dtype", f"{TENSOR}.shape", f"{TENSOR}.shape?",
        f"{BUFFER}.*",
    )  # fmt: skip
    outputs, tensors, buffers = steps[OUTPUT], steps[TENSOR], steps[BUFFER]
    rows = outputs.rows
    described = np.zeros(rows, np.bool_)
    described[tensors.parent] = True
    held = tensors.parent[buffers.parent]
    allocated = np.zeros(rows, np.bool_)
    allocated[held] = True

    def spread(column: AnyArray, at: Int32Array = held) -> AnyArray:
        out = np.zeros(rows, np.uint64 if column.dtype.kind == "u" else np.int64)
        out[at] = column
        return out

    types = np.zeros(rows, np.int32)
    types[tensors.parent] = tensors.array("dtype")
    ids, address = spread(buffers.array("allocation_id")), spread(buffers.array("ptr"))
    requested, got = (
        spread(buffers.array("requested_bytes")),
        spread(buffers.array("allocated_bytes")),
    )
    allocators = names_of(runs.buffer, buffers.spans("allocator_name"))
    shapes = texts.shape_names(runs.buffer, tensors.spans("shape"), tensors.array("shape?"))
    data: dict[str, Column] = {
        "op_run_id": steps.op_run_ids[outputs.parent],
        "position": place_in_group(outputs.parent),
        "slot": outputs.array("slot").astype(np.int64),
        "data_type": data_types(types),
        "shape": _spread_names(shapes, tensors.parent, rows),
        "requested_bytes": requested,
        "allocated_bytes": got,
        "allocator": _spread_names(allocators, held, rows),
        "allocation_id": ids,
        "address": address,
        "has_single_reference": spread(buffers.array("has_single_reference")) != 0,
        "has_description": described,
        "has_allocation": allocated,
    }
    valid = {
        "requested_bytes": allocated,
        "allocated_bytes": allocated & ((got != 0) | (requested == 0)),
        "allocation_id": ids != 0,
        "address": address != 0,
    }
    return Columns(data, valid)


def _spread_names(names: Names, at: AnyArray, rows: int) -> Names:
    codes = np.full(rows, -1, np.int32)
    codes[at] = names.codes
    return Names(codes, names.values)


def read_op_references(runs: Runs) -> Columns:
    """``op_references``."""
    path = f"{NODES}.referenced_tensor"
    steps = runs.steps(f"{path}.*")
    read = steps[path]
    return Columns(
        {
            "op_run_id": steps.op_run_ids[read.parent],
            **_wide(read, "requested_bytes", "allocated_bytes", "allocation_id"),
            "allocator": names_of(runs.buffer, read.spans("allocator_name")),
            "has_single_reference": read.array("has_single_reference"),
            "address": read.array("ptr").astype(np.uint64),
        }
    )


def _wide(table: WireTable, *names: str) -> dict[str, Column]:
    return {name: table.array(name).astype(np.int64) for name in names}


def read_op_memory(runs: Runs) -> Columns:
    """``op_memory``."""
    steps = runs.steps(f"{MEMORY}.*")
    read = steps[MEMORY]
    sizes = ("total_bytes", "peak_bytes", "live_bytes", "allocator_bytes_in_use")
    return Columns(
        {
            "op_run_id": steps.op_run_ids[read.parent],
            "allocator": names_of(runs.buffer, read.spans("allocator_name")),
            **_wide(read, *sizes),
        }
    )


def read_op_allocations(runs: Runs) -> Columns:
    """``op_allocations``, in the order of the file."""
    steps = runs.steps(f"{MEMORY}.allocator_name", f"{RECORDS}.*")
    memory, records = steps[MEMORY], steps[RECORDS]
    allocators = names_of(runs.buffer, memory.spans("allocator_name"))
    return Columns(
        {
            "op_run_id": steps.op_run_ids[memory.parent[records.parent]],
            "allocator": allocators.take(records.parent),
            "time_ps": runs.clock.at(records.array("alloc_micros")),
            "bytes": records.array("alloc_bytes").astype(np.int64),
        }
    )


def read_op_memory_stats(runs: Runs) -> Columns:
    """``op_memory_stats``."""
    steps = runs.steps(f"{STATS}.*")
    read = steps[STATS]
    columns = {
        "temp_bytes": "temp_memory_size",
        "persistent_bytes": "persistent_memory_size",
        "device_temp_bytes": "device_temp_memory_size",
        "device_persistent_bytes": "device_persistent_memory_size",
    }
    data: dict[str, Column] = {"op_run_id": steps.op_run_ids[read.parent]}
    data.update({name: read.array(field).astype(np.int64) for name, field in columns.items()})
    return Columns(data)


def read_op_persistent(runs: Runs) -> Columns:
    """``op_persistent``: per execution the ids of the current field, then of the deprecated."""
    steps = runs.steps(PERSISTENT, ON_DEVICE)
    stats = steps[STATS]
    ids, device = steps[PERSISTENT], steps[ON_DEVICE]
    parent = np.concatenate([stats.parent[ids.parent], stats.parent[device.parent]])
    is_device = np.arange(parent.size) >= ids.rows
    order = np.lexsort((is_device, parent))
    number = np.concatenate([ids.array("value"), device.array("value")]).astype(np.int64)
    return Columns(
        {
            "op_run_id": steps.op_run_ids[parent[order]],
            "allocation_id": number[order],
            "is_device": is_device[order],
        }
    )


def read_op_devices(runs: Runs) -> Columns:
    """``op_devices``: those without an execution too."""
    steps = runs.steps("dev_stats.device")
    rows = steps.devices.rows
    return Columns(
        {
            "device_entry": np.arange(rows, dtype=np.int64),
            "device": steps.device_names(),
            "step_id": runs.step_ids[steps.run_of_device],
            "nodes": np.bincount(steps.nodes.parent, minlength=rows).astype(np.int64),
        }
    )


def read_traced_runs(runs: Runs) -> Columns:
    """``traced_runs``; of a session's metadata that is written twice the last holds."""
    names: list[str | None] = [None] * len(runs.runs)
    versions = np.zeros(len(names), np.int64)
    has_session = np.zeros(len(names), np.bool_)
    run, spans = runs.fields(_SESSION)
    plan = Plan(schema.shape("tensorflow.SessionMetadata"), ["name", "version"])
    session = decode(runs.buffer, plan, spans)[""]
    texts_of = session.spans("name").texts(runs.buffer)
    numbers = session.array("version").tolist()
    for at, name, version in zip(run.tolist(), texts_of, numbers, strict=True):
        names[at], versions[at], has_session[at] = name, version, True
    times = [one.wall_time_s for one in runs.runs]
    steps = [one.event_step for one in runs.runs]
    return Columns(
        {
            "step_id": runs.step_ids,
            "name": Names.encode([one.name for one in runs.runs]),
            "session_name": Names.encode(names),
            "session_version": versions,
            "wall_time_s": np.array([time or 0.0 for time in times], np.float64),
            "event_step": np.array([step or 0 for step in steps], np.int64),
        },
        {
            "session_version": has_session,
            "wall_time_s": np.array([time is not None for time in times], np.bool_),
            "event_step": np.array([step is not None for step in steps], np.bool_),
        },
    )


def read_thread_names(runs: Runs) -> Columns:
    """``thread_names``; of two entries with one key the last holds, as in any map."""
    path = "dev_stats.thread_names"
    steps = runs.steps("dev_stats.device", f"{path}.key", f"{path}.value")
    read = steps[path]
    thread = read.array("key").astype(np.int64)
    last = np.ones(read.rows, np.bool_)
    order = np.lexsort((thread, read.parent))
    parent, key = read.parent[order], thread[order]
    last[order[:-1]] = (parent[1:] != parent[:-1]) | (key[1:] != key[:-1])
    entry = read.parent[last].astype(np.int64)
    return Columns(
        {
            "device_entry": entry,
            "device": steps.device_names().take(entry),
            "thread_id": thread[last],
            "name": names_of(runs.buffer, read.spans("value")).take(last),
        }
    )
