"""What events of writers without Kineto's categories are: each writer's own rules.

- TensorFlow's timeline calls an event by the type of an op, and names both in its arguments
  (``tensorflow/python/client/timeline.py``, ``_emit_op``).
- ONNX Runtime writes an event ``NAME_kernel_time`` of category ``Node`` per run of a node, with its
  type as ``op_name``, and ``model_run`` of category ``Session`` per run of the model; with a
  provider for GPUs the former is how long the host took to launch
  (``onnxruntime/core/framework/sequential_executor.cc``). Built to profile GPUs it writes their
  kernels with category ``Kernel``, each with the ``op_name`` of its node
  (``onnxruntime/core/common/gpu_profiler_common.cc``), which some name as ``parent_name``.
- PyTorch's profiler before Kineto (``EventList.export_chrome_trace`` of
  ``torch/autograd/profiler_util.py``) writes ops on the process ``CPU functions`` and the time that
  each took on a device, with that of the ops within it, on ``CUDA functions``, without categories.
"""

from __future__ import annotations

import re

import numpy as np

from peakline.arrays import BoolArray, UInt8Array
from peakline.tables.columns import Columns
from peakline.tables.event_rules import EventKind, StatedOps
from peakline.tables.table_source import TableSource

NODE, RUN, RUN_CATEGORY = "Node", "model_run", "Session"
"""ONNX Runtime's category of nodes, and what it calls a run of the model."""
_ON_GPU = "Kernel"
_KERNEL, _FENCE = "_kernel_time", re.compile(r".*_fence_(?:before|after)", re.DOTALL)
_ON_HOST = "CPU functions"
ON_DEVICE = re.compile(r"(?!CPU)[A-Z][A-Za-z0-9]* functions")
"""What PyTorch's old profiler calls the times on devices: an op's holds those of the ops in it."""


def note_kinds(profile: TableSource, kinds: UInt8Array) -> None:
    """Enter into ``kinds``, an `EventKind` for every row of ``events``, what the writers that this
    module knows say of theirs.
    """
    events = profile.columns("events", frozenset(("category", "name", "line_id")))
    is_node = _nodes(events)
    if is_node.any():
        is_fence = events.names("name").per_row(lambda text: bool(_FENCE.fullmatch(text)), np.bool_)
        kinds[is_node] = EventKind.OP
        kinds[is_node & is_fence] = EventKind.NO_WORK
        runs = events.names("category")
        # What is around the nodes is the runtime's own.
        kinds[runs.codes == runs.code_of(RUN_CATEGORY)] = EventKind.RUNTIME_CALL
    kinds[_legacy(profile, events)] = EventKind.OP


def ops_of(profile: TableSource) -> StatedOps | None:
    """The ops that events are executions of, by such a writer; None for another."""
    events = profile.columns("events", frozenset(("category", "name", "line_id")))
    name = events.names("name")
    is_node = _nodes(events)
    if is_node.any():
        return _nodes_of(profile, events, is_node)
    legacy = _legacy(profile, events)
    if legacy.any():
        used, place = np.unique(name.codes[legacy], return_inverse=True)
        op = np.full(name.codes.size, -1, np.int32)
        op[legacy] = place
        return StatedOps(op, [(name.values[code], "") for code in used.tolist()], calls=True)
    return _of_timeline(profile)


def _nodes(events: Columns) -> BoolArray:
    category = events.names("category")
    node = category.code_of(NODE)
    if node < 0 or events.names("name").code_of(RUN) < 0:
        return np.zeros(events.rows, np.bool_)
    return np.asarray(category.codes == node)


def _nodes_of(profile: TableSource, events: Columns, is_node: BoolArray) -> StatedOps:
    """Nodes by their name, without what ONNX Runtime says it measured of them; kernels by that of
    their node, or where it is not said by its type.
    """
    name, category = events.names("name"), events.names("category")
    stats = profile.columns("event_stats")
    key, value = stats.names("name"), stats.names("value")
    said = np.full((2, events.rows), -1, np.int64)
    for codes, stat in zip(said, ("op_name", "parent_name"), strict=True):
        mine = key.codes == key.code_of(stat)
        codes[stats.array("event_id")[mine]] = value.codes[mine]
    op = np.full(events.rows, -1, np.int32)
    ops: dict[tuple[str, str], int] = {}
    is_kernel = category.codes == category.code_of(_ON_GPU)
    for row in np.flatnonzero(is_node | is_kernel).tolist():
        op_type, parent = (
            value.values[code] if code >= 0 else "" for code in said[:, row].tolist()
        )
        text = (parent or op_type) if is_kernel[row] else name[row] or ""
        if text.endswith(_KERNEL) or (is_kernel[row] and text):
            op[row] = ops.setdefault((text.removesuffix(_KERNEL), op_type), len(ops))
    return StatedOps(op, list(ops), calls=True)


def _legacy(profile: TableSource, events: Columns) -> BoolArray:
    """What lies on the process that PyTorch's old profiler calls so."""
    planes = profile.columns("planes")
    homes = [plane for plane, name in planes.each("plane_id", "name") if name == _ON_HOST]
    lines = profile.columns("lines")
    mine = lines.array("line_id")[np.isin(lines.array("plane_id"), homes)]
    return np.asarray(np.isin(events.array("line_id"), mine))


def _of_timeline(profile: TableSource) -> StatedOps | None:
    """Of TensorFlow's own timeline the ops by the arguments ``name`` and ``op``; None for another.

    The event itself is called by the op's type, which no other writer's events with such
    arguments are.
    """
    stats = profile.columns("event_stats")
    names, values = stats.names("name"), stats.names("value")
    called = profile.columns("events", frozenset(("name",))).names("name")
    event = stats.array("event_id")
    texts = np.full((2, called.codes.size), -1, np.int64)
    for code, key in zip(texts, ("name", "op"), strict=True):
        mine = names.codes == names.code_of(key)
        code[event[mine]] = values.codes[mine]
    name, kind = texts
    value_of = {text: code for code, text in enumerate(values.values)}
    same = {(code, value_of.get(text)) for code, text in enumerate(called.values)}
    op = np.full(called.codes.size, -1, np.int32)
    ops: dict[tuple[str, str], int] = {}
    for row in np.flatnonzero((name >= 0) & (kind >= 0)).tolist():
        if (int(called.codes[row]), int(kind[row])) in same:
            stated = values.values[int(name[row])], values.values[int(kind[row])]
            op[row] = ops.setdefault(stated, len(ops))
    return StatedOps(op, list(ops), calls=False) if ops else None
