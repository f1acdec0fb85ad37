"""What every node cost in every step, summed up from its executions.

The rules are tfprof's (tensorflow/core/profiler/internal/tfprof_node.cc): the device says which
rows count as accelerator time and which as CPU time; a node stays with the first device it ran on,
and rows of other devices are left out; memory counts on that device only.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from peakline.arrays import BoolArray, Int64Array
from peakline.tables import Columns, Names, Profile
from peakline.tables.joins import summed
from peakline.trace.steps import steps_of

_CANONICAL = re.compile(r".*/(device:gpu|gpu|device:cpu|cpu):\d+", re.ASCII)
_ACCELERATOR = "stream:all"
_SUMS = (
    "run_count",
    "accelerator_exec_micros",
    "cpu_exec_micros",
    "requested_bytes",
    "peak_bytes",
    "residual_bytes",
    "output_bytes",
)


@dataclass(frozen=True, eq=False)
class Costs:
    """Sums per node and step (``node``, ``step`` and ``sums`` have equal rows, sorted by them).

    ``start`` and ``end`` are microseconds since the epoch, 0 where nothing has a time. ``device``
    holds the lower-cased device of each node, null where it ran on none that counts.
    ``lacks_streams``: an accelerator has host rows but no stream rows.
    """

    names: Sequence[str]
    node_of_run: Int64Array
    device: Names
    steps: tuple[int, ...]
    node: Int64Array
    step: Int64Array
    sums: Mapping[str, Int64Array]
    start: Int64Array
    end: Int64Array
    lacks_streams: bool


def node_name(text: str) -> str | None:
    """The node that an execution called ``text`` is of; None for what is no node at all."""
    name = text.partition(":")[0]
    return None if name in {"RecvTensor", "_SOURCE"} or "MEMCPY" in name else name


def read_costs(profile: Profile, graph_names: Sequence[str]) -> Costs:
    """The costs of the executions in ``profile``; nodes are numbered as ``graph_names``.

    Executions of other nodes get numbers after those, named in ``Costs.names``.
    """
    runs, times = profile.columns("op_runs"), profile.columns("op_times")
    names, node = _nodes(runs.names("name"), graph_names)
    device, is_canonical, is_accelerator = _devices(runs.names("device"))
    steps, step = _steps(profile, runs)
    # A node's device is the first that counts; rows of a second one are dropped.
    # The last entry is for executions of no node.
    first_device = np.full(len(names) + 1, -1, np.int32)
    rows = np.flatnonzero(is_canonical & (node >= 0))
    ran, first = np.unique(node[rows], return_index=True)
    first_device[ran] = device.codes[rows[first]]
    is_home = is_canonical & (device.codes == first_device[node])
    counted = (node >= 0) & (is_home | ~is_canonical)
    start = np.zeros(runs.rows, np.int64)
    micros = np.zeros(runs.rows, np.int64)
    run = times.array("op_run_id")
    start[run] = times.array("all_start_micros")
    micros[run] = times.array("op_end_rel_micros")
    timed = counted & (start > 0)
    measured = np.where(micros == 0, 1, micros)
    groups = _Groups(node, step, counted, len(steps))
    on_cpu = timed & is_home & ~is_accelerator
    memory = _memory(profile, runs.rows)
    sums = {
        "run_count": groups.sum(on_cpu, on_cpu.astype(np.int64)),
        "accelerator_exec_micros": groups.sum(timed & is_accelerator, measured),
        "cpu_exec_micros": groups.sum(on_cpu, measured),
        **{name: groups.sum(timed & is_home, memory[name]) for name in _SUMS[3:]},
    }
    begin, end = groups.extent(timed, start, start + measured)
    return Costs(
        names=names,
        node_of_run=node,
        device=Names(first_device[:-1], device.values),
        steps=steps,
        node=groups.node,
        step=groups.step,
        sums=sums,
        start=begin,
        end=end,
        lacks_streams=_lacks_streams(device, step, len(steps)),
    )


class _Groups:
    """Rows by node and step."""

    def __init__(self, node: Int64Array, step: Int64Array, rows: BoolArray, steps: int) -> None:
        key = node * max(steps, 1) + step
        keys, inverse = np.unique(key[rows], return_inverse=True)
        self.node = keys // max(steps, 1)
        self.step = keys % max(steps, 1)
        self._group = np.full(node.size, -1, np.int64)
        self._group[rows] = inverse

    def sum(self, rows: BoolArray, values: Int64Array) -> Int64Array:
        return summed(self._group[rows], values[rows], self.node.size)

    def extent(
        self, rows: BoolArray, start: Int64Array, end: Int64Array
    ) -> tuple[Int64Array, Int64Array]:
        first = np.full(self.node.size, np.iinfo(np.int64).max)
        np.minimum.at(first, self._group[rows], start[rows])
        last = np.zeros(self.node.size, np.int64)
        np.maximum.at(last, self._group[rows], end[rows])
        return np.where(first == np.iinfo(np.int64).max, 0, first), last


def _nodes(column: Names, graph_names: Sequence[str]) -> tuple[list[str], Int64Array]:
    names = list(graph_names)
    number = {name: place for place, name in enumerate(names)}
    used = np.zeros(len(column.values) + 1, np.bool_)
    used[column.codes] = True
    codes = np.full(len(column.values) + 1, -1, np.int64)
    for code in np.flatnonzero(used[:-1]).tolist():
        text = column.values[code].partition(":")[0]
        name = text if text in number else node_name(text)
        if name is not None:
            codes[code] = number.setdefault(name, len(number))
            if codes[code] == len(names):
                names.append(name)
    return names, codes[column.codes]


def _devices(column: Names) -> tuple[Names, BoolArray, BoolArray]:
    """Devices in lower case; per row, whether it can be a node's own, or is accelerator time."""
    # Only ASCII letters, as tfprof does it.
    lowered = [text.encode().lower().decode() for text in column.values]
    distinct = {text: number for number, text in enumerate(dict.fromkeys(lowered))}
    codes = np.array([*(distinct[text] for text in lowered), -1], np.int32)[column.codes]
    devices = Names(codes, list(distinct))
    return (
        devices,
        devices.per_row(_CANONICAL.fullmatch, np.bool_),
        devices.per_row(lambda text: _ACCELERATOR in text, np.bool_),
    )


def _steps(profile: Profile, runs: Columns) -> tuple[tuple[int, ...], Int64Array]:
    """The steps, and the place among them of each execution's; 0 is the step of those of none."""
    of_run = np.where(runs.is_valid("step_id"), runs.array("step_id"), 0)
    # A step in which nothing was traced is a step all the same.
    steps = np.unique(np.concatenate([of_run, steps_of(profile).step_id]))
    return tuple(steps.tolist()), np.searchsorted(steps, of_run).astype(np.int64)


def _lacks_streams(device: Names, step: Int64Array, steps: int) -> bool:
    on_gpu = device.per_row(lambda text: "gpu" in text, np.bool_)
    is_stream = device.per_row(lambda text: _ACCELERATOR in text, np.bool_)
    with_gpu = np.bincount(step[on_gpu], minlength=steps) > 0
    with_stream = np.bincount(step[on_gpu & is_stream], minlength=steps) > 0
    return bool((with_gpu & ~with_stream).any())


def _memory(profile: Profile, rows: int) -> dict[str, Int64Array]:
    """Bytes per execution: memory of its allocators, and temporary and persistent memory on top."""
    sums = {name: np.zeros(rows, np.int64) for name in _SUMS[3:]}
    memory = profile.columns_or_empty("op_memory")
    run = memory.array("op_run_id")
    for name, field in (
        ("requested_bytes", "total_bytes"),
        ("peak_bytes", "peak_bytes"),
        ("residual_bytes", "live_bytes"),
    ):
        np.add.at(sums[name], run, memory.array(field))
    stats = profile.columns_or_empty("op_memory_stats")
    run, persistent = stats.array("op_run_id"), stats.array("persistent_bytes")
    np.add.at(sums["residual_bytes"], run, persistent)
    for name in ("requested_bytes", "peak_bytes"):
        np.add.at(sums[name], run, persistent + stats.array("temp_bytes"))
    outputs = profile.columns_or_empty("op_outputs")
    size = np.maximum(outputs.array("allocated_bytes"), outputs.array("requested_bytes"))
    rows_with = outputs.array("has_allocation")
    np.add.at(sums["output_bytes"], outputs.array("op_run_id")[rows_with], size[rows_with])
    return sums
