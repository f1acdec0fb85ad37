"""The tables of executions: ``op_runs``, ``op_times`` and, summed up per run, ``steps``."""

from __future__ import annotations

from collections.abc import Callable
from collections.abc import Set as AbstractSet
from functools import cached_property

import numpy as np

from peakline.arrays import AnyArray, BoolArray, Int8Array, Int64Array
from peakline.formats.run_metadata import texts
from peakline.formats.run_metadata.runs import (
    NODES,
    Clock,
    Runs,
    StepTables,
    clock_of,
    names_of,
    picoseconds,
    place_in_group,
    same,
)
from peakline.tables.columns import Column, Columns, Names

_START = ("all_start_micros", "all_start_nanos")
_END = ("all_end_rel_micros", "all_end_rel_nanos")
_COMPUTE_START = ("op_start_rel_micros", "op_start_rel_nanos")
_COMPUTE_END = ("op_end_rel_micros", "op_end_rel_nanos")
_SCHEDULED = ("scheduled_micros", "scheduled_nanos")
_TIMES = (
    "all_start_micros", "op_start_rel_micros", "op_end_rel_micros", "all_end_rel_micros",
    "scheduled_micros", "all_start_nanos", "op_start_rel_nanos", "op_end_rel_nanos",
    "all_end_rel_nanos", "scheduled_nanos", "thread_id",
)  # fmt: skip

_FIELDS: dict[str, tuple[str, ...]] = {
    "op_run_id": (),
    "device": ("device",),
    "name": ("node_name",),
    "op_type": ("device", "node_name", "timeline_label"),
    "start_ps": _START,
    "duration_ps": _END,
    "scheduled_ps": (*_START, *_SCHEDULED),
    "thread": ("thread_id",),
    "step_id": (),
    "compute_start_ps": (*_START, *_COMPUTE_START),
    "compute_ps": (*_COMPUTE_START, *_COMPUTE_END),
    "label": ("timeline_label",),
    "kind": ("device", "node_name"),
    "is_duplicate": ("device", "node_name", *_START, *_END),
    "device_entry": (),
}
"""What each column of ``op_runs`` is made from."""


def read_op_runs(runs: Runs, columns: AbstractSet[str] | None) -> Columns:
    """``op_runs``, of which only ``columns`` (None: all)."""
    wanted = [name for name in _FIELDS if columns is None or name in columns]
    fields = sorted({field for name in wanted for field in _FIELDS[name]} - {"device"})
    read = _Executions(runs, runs.steps("dev_stats.device", *(f"{NODES}.{f}" for f in fields)))
    data = {name: read.make[name]() for name in wanted}
    valid: dict[str, BoolArray] = {}
    if "scheduled_ps" in data:
        valid["scheduled_ps"] = read.given(_SCHEDULED)
    if "thread" in data:
        valid["thread"] = read.given(("thread_id",))
    return Columns(data, valid)


class _Executions:
    """The columns of ``op_runs``, made from the fields that were decoded."""

    def __init__(self, runs: Runs, steps: StepTables) -> None:
        self._runs, self._steps = runs, steps
        self._nodes = steps.nodes
        self.make: dict[str, Callable[[], Column]] = {
            "op_run_id": lambda: steps.op_run_ids,
            "device": lambda: self._devices.take(self._nodes.parent),
            "name": lambda: self._names,
            "op_type": self._op_types,
            "start_ps": lambda: self._start,
            "duration_ps": lambda: self._length(_END),
            "scheduled_ps": lambda: self._clock.at(*self._fields(_SCHEDULED)),
            "thread": lambda: self._nodes.array("thread_id").astype(np.int64),
            "step_id": lambda: runs.step_ids[steps.run_of_node],
            "compute_start_ps": lambda: self._start + self._length(_COMPUTE_START),
            "compute_ps": lambda: self._length(_COMPUTE_END) - self._length(_COMPUTE_START),
            "label": lambda: self._labels,
            "kind": lambda: Names(self._kinds.astype(np.int32), texts.KINDS),
            "is_duplicate": self._is_duplicate,
            "device_entry": lambda: self._nodes.parent.astype(np.int64),
        }

    def given(self, fields: tuple[str, ...]) -> BoolArray:
        """The rows where one of the fields is not 0."""
        result: BoolArray = np.logical_or.reduce(
            [self._nodes.array(field) != 0 for field in fields]
        )
        return result

    def _fields(self, names: tuple[str, ...]) -> tuple[AnyArray, AnyArray]:
        micros, nanos = names
        return self._nodes.array(micros), self._nodes.array(nanos)

    def _length(self, names: tuple[str, str]) -> Int64Array:
        return picoseconds(*self._fields(names))

    @cached_property
    def _clock(self) -> Clock:
        return clock_of(self._nodes)

    @cached_property
    def _devices(self) -> Names:
        return self._steps.device_names()

    @cached_property
    def _names(self) -> Names:
        return names_of(self._runs.buffer, self._nodes.spans("node_name"))

    @cached_property
    def _labels(self) -> Names:
        spans = self._nodes.spans("timeline_label")
        names = names_of(self._runs.buffer, spans)
        return Names(np.where(spans.length == 0, -1, names.codes).astype(np.int32), names.values)

    @cached_property
    def _start(self) -> Int64Array:
        return self._clock.at(*self._fields(_START))

    @cached_property
    def _kinds(self) -> Int8Array:
        """An index of `texts.KINDS` per row."""
        of_name = np.array([texts.device_kind(d) for d in self._devices.values], np.int8)
        kinds: Int8Array = of_name[self._devices.codes][self._nodes.parent]
        calls = self._names.codes == self._names.code_of("RecvTensor")
        kinds[calls & (kinds == texts.EXECUTOR)] = texts.RPC
        return kinds

    def _op_types(self) -> Names:
        kinds, labels, names = self._kinds, self._labels, self._names
        parts = [texts.label_parts(label) for label in labels.values]
        by_label = [result[0] if result else None for result in parts]
        types = dict.fromkeys(op for op in by_label if op is not None)
        numbers = {op: number for number, op in enumerate([*types, "RecvTensor"])}
        of_label = np.array([-1 if op is None else numbers[op] for op in by_label] + [-1], np.int32)
        codes = of_label[labels.codes]
        codes[kinds == texts.RPC] = numbers["RecvTensor"]
        traced = np.flatnonzero(np.isin(kinds, (texts.STREAM, texts.STREAM_ALL, texts.MEMCPY)))
        # Many rows share their label and name.
        pair = same(labels.codes[traced], names.codes[traced])
        _, first = np.unique(pair, return_index=True)
        of_pair = np.full(first.size, -1, np.int32)
        for number, row in enumerate(traced[first].tolist()):
            _, op = texts.kernel_parts(labels[row] or "", names[row] or "")
            if op:
                of_pair[number] = numbers.setdefault(op, len(numbers))
        codes[traced] = of_pair[pair]
        return Names(codes, list(numbers))

    def _is_duplicate(self) -> BoolArray:
        """A tracer saves a kernel as it is under ``stream:K`` and ``stream:all``, a copy under
        ``stream:K`` and ``memcpy`` (or all three): each is marked if it is in one before it.
        """
        kinds = self._kinds
        result = np.zeros(kinds.size, np.bool_)
        rows = np.flatnonzero(np.isin(kinds, (texts.STREAM, texts.STREAM_ALL, texts.MEMCPY)))
        if not rows.size:
            return result
        devices = self._devices
        hardware = Names.encode([texts.hardware(name) for name in devices.values]).codes
        start, length = self._start, self._length(_END)
        group = same(
            self._steps.run_of_node[rows],
            hardware[devices.codes][self._nodes.parent[rows]],
            self._names.codes[rows],
            start[rows],
            length[rows],
        )
        shown = np.zeros(int(group.max()) + 1, np.int64)
        for kind in (texts.STREAM, texts.STREAM_ALL, texts.MEMCPY):
            mine = np.flatnonzero(kinds[rows] == kind)
            result[rows[mine]] = place_in_group(group[mine]) < shown[group[mine]]
            shown = np.maximum(shown, np.bincount(group[mine], minlength=shown.size))
        return result


def read_op_times(runs: Runs, columns: AbstractSet[str] | None) -> Columns:
    """``op_times``, of which only ``columns`` (None: all), and the execution."""
    fields = [field for field in _TIMES if columns is None or field in columns]
    steps = runs.steps(*(f"{NODES}.{field}" for field in fields))
    data: dict[str, Column] = {"op_run_id": steps.op_run_ids}
    data.update({field: steps.nodes.array(field).astype(np.int64) for field in fields})
    return Columns(data)


def read_steps(runs: Runs) -> Columns:
    """``steps``: one per run, from its first start to its last end (0 where nothing has a time)."""
    start, end = np.zeros((2, len(runs.runs)), np.int64)
    steps = runs.steps(*(f"{NODES}.{field}" for field in (*_START, *_END)))
    read = _Executions(runs, steps)
    timed = read.given(_START)
    run = steps.run_of_node[timed]
    begin = np.asarray(read.make["start_ps"]())[timed]
    stop = begin + np.asarray(read.make["duration_ps"]())[timed]
    start[run] = np.iinfo(np.int64).max
    np.minimum.at(start, run, begin)
    np.maximum.at(end, run, stop)
    return Columns(
        {
            "step_id": runs.step_ids,
            "name": Names.encode([run.name for run in runs.runs]),
            "start_ps": start,
            "end_ps": end,
        }
    )
