"""The Chrome trace of a StepStats, equal to TensorFlow's own byte for byte.

The rules are those of ``Timeline(step_stats).generate_chrome_trace_format`` in
tensorflow/python/client/timeline.py, oddities included: lanes instead of threads, memory as
requested, a tensor produced again replaces the one before it. They are applied to columns: what
depends on a name or a label is found once for each distinct one.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import accumulate

import numpy as np

from peakline.arrays import AnyArray, BoolArray, Int32Array, Int64Array
from peakline.formats.run_metadata.texts import kernel_parts, label_parts
from peakline.kernels.step_timeline import assign_lanes, follow_inputs
from peakline.tables import Columns, Names
from peakline.viewer.lines import Lines
from peakline.viewer.step_timeline_text import (
    arrow_lines,
    execution_lines,
    free_lines,
    tensor_lines,
    timeline_text,
    use_lines,
)
from peakline.wire import Interner, Spans

_MOST = 1 << 62


@dataclass(frozen=True, eq=False)
class Executions:
    """One step's executions in file order, as columns. Times are microseconds as written."""

    devices: list[str]
    first: Int64Array
    """Per device the row of its first execution; one more entry ends the last."""
    name: Names
    label: Names
    start: Int64Array
    duration: Int64Array
    output_first: Int64Array
    """Per execution the row of its first output in ``outputs``; one more entry ends the last."""
    outputs: Columns

    @classmethod
    def of_step(
        cls, devices: Columns, runs: Columns, times: Columns, outputs: Columns, step: int | None
    ) -> Executions:
        """The executions of ``step`` (None: of the whole file) from the op tables."""
        mine = devices.array("device_entry")
        if step is not None:
            of_step = devices.is_valid("step_id") & (devices.array("step_id") == step)
            devices, mine = devices.take(of_step), mine[of_step]
        entry = runs.array("device_entry")
        rows = np.flatnonzero(np.isin(entry, mine))
        ids = runs.array("op_run_id")[rows]
        of_output = outputs.array("op_run_id")
        chosen = np.isin(of_output, ids)
        if not chosen.all():
            outputs, of_output = outputs.take(chosen), of_output[chosen]
        return cls(
            [name or "" for name in devices.names("device").to_list()],
            np.append(np.searchsorted(entry[rows], mine), rows.size).astype(np.int64),
            runs.names("name").take(rows),
            runs.names("label").take(rows),
            times.array("all_start_micros")[rows].astype(np.int64),
            times.array("all_end_rel_micros")[rows].astype(np.int64),
            np.searchsorted(of_output, np.append(ids, np.iinfo(np.int64).max)),
            outputs,
        )

    def rows_of(self, device: AnyArray) -> AnyArray:
        """Whether each execution is one of the devices marked by ``device``."""
        marked: AnyArray = np.repeat(device, np.diff(self.first))
        return marked


def step_timeline(
    executions: Executions, *, show_dataflow: bool, show_memory: bool, op_time: str
) -> bytes:
    """The trace as JSON text, four spaces of indentation."""
    timeline = _Timeline(executions, op_time)
    ran, led, row = timeline.op_events(show_dataflow=show_dataflow)
    return timeline_text(
        executions.devices,
        timeline.tensor_events() if show_memory else None,
        ran,
        led,
        row,
        timeline.memory_events() if show_memory else (),
    )


class _Timeline:
    def __init__(self, executions: Executions, op_time: str) -> None:
        x = self._x = executions
        self._start, self._end = x.start, x.start + x.duration
        if op_time != "schedule":
            self._go_by_kernels(gpu_only=op_time == "gpu")
        self._lane = np.zeros(self._start.size, np.int64)
        lanes, free = 16, np.iinfo(np.int64).max
        while not assign_lanes(self._start, self._end, x.first, self._lane, np.full(lanes, free)):
            lanes *= 4
        # A device that occurs twice has two pairs announced and uses the last.
        pids = {name: 1 + 2 * number for number, name in enumerate(x.devices)}
        self._pid = x.rows_of(np.array([pids[name] for name in x.devices], np.int64))
        self._find_tensors()

    def _devices_with(self, *marks: str) -> BoolArray:
        """Per device whether one of the marks is in its name."""
        return np.array([any(m in name for m in marks) for name in self._x.devices], np.bool_)

    def _go_by_kernels(self, *, gpu_only: bool) -> None:
        """Ops of executors stretched to, or replaced by, the time of their kernels."""
        x = self._x
        is_traced = self._devices_with("/stream:all")
        rows = np.flatnonzero(x.rows_of(is_traced))
        codes, pairs = _distinct(x.name.codes[rows], x.label.codes[rows])
        numbers: dict[str, int] = {}
        of_pair = [
            numbers.setdefault(kernel_parts(label, name)[0], len(numbers))
            for name, label in zip(
                _texts(x.name, pairs[:, 0]), _texts(x.label, pairs[:, 1]), strict=True
            )
        ]
        kernel = np.array(of_pair, np.int64)[codes]
        first = np.full(len(numbers), np.iinfo(np.int64).max)
        last = np.full(len(numbers), np.iinfo(np.int64).min)
        np.minimum.at(first, kernel, self._start[rows])
        np.maximum.at(last, kernel, self._end[rows])
        # No name is that of a kernel when it is missing.
        of_name = np.array([numbers.get(name, -1) for name in (*x.name.values, "")], np.int64)
        rows = np.flatnonzero(x.rows_of(self._devices_with("/job") & ~is_traced))
        kernel = of_name[x.name.codes[rows]]
        rows, kernel = rows[kernel >= 0], kernel[kernel >= 0]
        self._start, self._end = self._start.copy(), self._end.copy()
        self._end[rows] = np.maximum(last[kernel], self._end[rows])
        if gpu_only:
            self._start[rows] = first[kernel]

    def _find_tensors(self) -> None:
        """What the executions put out: the tensors' names, and who made which when."""
        x = self._x
        many = np.diff(x.output_first)
        self._maker = np.repeat(np.arange(many.size), many)
        position = np.arange(self._maker.size) - x.output_first[self._maker]
        codes, pairs = _distinct(x.name.codes[self._maker], position)
        numbers: dict[str, int] = {}
        of_pair = [
            numbers.setdefault(f"{name}:{place}" if place else name, len(numbers))
            for name, place in zip(_texts(x.name, pairs[:, 0]), pairs[:, 1].tolist(), strict=True)
        ]
        self._tensors = numbers
        """The numbers of all tensors by name, in the order in which they first appear."""
        self._tensor = np.array(of_pair, np.int64)[codes]
        known = np.maximum.accumulate(self._tensor) + 1
        self._ident = np.append(np.int64(0), known)[: known.size]
        """Per output how many tensors there were before it."""
        self._last = np.zeros(len(numbers), np.int64)
        """Per tensor the output that made it last."""
        self._last[self._tensor] = np.arange(self._tensor.size)
        self._last_use = self._end[self._maker[self._last]]

    def tensor_events(self) -> Lines:
        """What every execution put out."""
        at = self._maker
        return tensor_lines(
            list(self._tensors),
            self._tensor,
            self._pid[at] + 1,
            self._lane[at],
            self._start[at],
            self._end[at],
            self._ident,
            self._x.outputs,
        )

    def op_events(self, *, show_dataflow: bool) -> tuple[Lines, Lines, Int64Array]:
        """All executions, arrows from where their inputs came, and the execution that each points
        to; notes when those inputs were used.
        """
        x = self._x
        is_gpu_trace = x.rows_of(self._devices_with("/stream:", "/memcpy"))
        result, pairs = _distinct(x.name.codes, 2 * x.label.codes.astype(np.int64) + is_gpu_trace)
        kinds = (pairs[:, 1] & 1 != 0).tolist()
        names, ops, inputs = [], [], []
        for name, label, is_kernel in zip(
            _texts(x.name, pairs[:, 0]), _texts(x.label, pairs[:, 1] >> 1), kinds, strict=True
        ):
            name_told, op, its_inputs = _name_parts(name, label, is_kernel=is_kernel)
            names.append(name_told)
            ops.append(op)
            inputs.append(its_inputs)
        sources = [[t for t in map(self._source, several) if t >= 0] for several in inputs]
        first = np.array([0, *accumulate(map(len, sources))], np.int64)
        most = int(np.diff(first)[result].sum())
        row, tensor = np.empty(most, np.int64), np.empty(most, np.int64)
        maker = self._maker[self._last]
        arrows = follow_inputs(
            result, self._pid, self._lane, self._end,
            first, np.array([t for several in sources for t in several], np.int64),
            self._pid[maker], self._lane[maker], self._last_use, row, tensor,
        )  # fmt: skip
        arrows = arrows if show_dataflow else 0
        row, tensor = row[:arrows], tensor[:arrows]
        maker = maker[tensor]
        ran = execution_lines(
            names, ops, inputs, result, self._pid, self._lane, self._start, self._end - self._start
        )
        led = arrow_lines(
            list(self._tensors), row, tensor,
            self._pid[maker], self._lane[maker], self._end[maker],
            self._pid[row], self._lane[row], self._start[row],
        )  # fmt: skip
        return ran, led, row

    def _source(self, name: str) -> int:
        """The tensor that an input is, or -1."""
        if name not in self._tensors and (at := name.rfind("/_")) > 0:
            # A partition's own receiver: the arrow starts at the node itself.
            name = name[:at]
        return self._tensors.get(name, -1)

    def memory_events(self) -> tuple[Lines, Lines]:
        """The end of every tensor, then the sum of each allocator's tensors over time; only once
        `op_events` has noted the last uses.
        """
        outputs, last = self._x.outputs, self._last
        maker = self._maker[last]
        frees = free_lines(
            list(self._tensors), self._pid[maker] + 1, self._last_use, self._ident[last]
        )
        allocators = outputs.names("allocator")
        numbers: dict[str, int] = {}
        names = _texts(allocators, allocators.codes[last])
        of_tensor = np.array([numbers.setdefault(n, len(numbers)) for n in names], np.int64)
        valid = outputs.is_valid("requested_bytes")[last]
        size = np.where(valid, outputs.array("requested_bytes")[last], 0)
        allocator = np.concatenate([of_tensor, of_tensor])
        size = np.concatenate([size, -size])
        when = np.concatenate([self._start[maker], self._last_use])
        order = np.lexsort((size, when, allocator))
        allocator = allocator[order]
        begins = np.searchsorted(allocator, np.arange(len(numbers)))
        if np.abs(size.astype(np.float64)).sum() >= _MOST:
            size = size.astype(object)
        total = np.cumsum(size[order])
        before = np.append(0, total)[begins]
        return frees, use_lines(list(numbers), allocator, when[order], total - before[allocator])


def _distinct(first: Int32Array, second: AnyArray) -> tuple[Int32Array, Int64Array]:
    """The number of every row's pair, and the distinct pairs in order of first appearance."""
    pairs = np.stack([first, second], axis=1).astype(np.int64, copy=False)
    width = pairs.itemsize * 2
    at = np.arange(len(pairs), dtype=np.int64) * width
    interner = Interner()
    codes = interner.add(pairs.reshape(-1).view(np.uint8), Spans(at, np.full_like(at, width)))
    result, _ = interner.spans()
    return codes, result.view(np.int64).reshape(-1, 2)


def _texts(names: Names, codes: AnyArray) -> list[str]:
    """The string of every code, empty where it is missing."""
    return [names.values[code] if code >= 0 else "" for code in codes.tolist()]


def _name_parts(name: str, label: str, *, is_kernel: bool) -> tuple[str, str, list[str]]:
    """Name, type and inputs that an execution's name and label say."""
    if is_kernel:
        node, op = kernel_parts(label, name)
        return node, "unknown" if op is None else op, []
    if name == "RecvTensor":
        return name, "RecvTensor", []
    op, inputs = label_parts(label) or ("unknown", [])
    return name, op, inputs
