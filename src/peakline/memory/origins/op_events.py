"""The executions of ops in which allocations happened, where a trace records both (PyTorch).

A record of memory says only which op or function ran around it; the event is the one of that name
that ran at its time. Of its inputs the profiler records shapes and types (``record_shapes``).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial

import numpy as np

from peakline.arrays import AnyArray, BoolArray, Int32Array, Int64Array
from peakline.shown import Brief
from peakline.tables import Profile
from peakline.tables.columns import Columns
from peakline.tables.once import once
from peakline.trace.autograd import NODE, Autograd, autograd_of
from peakline.trace.events import Trace, nesting_of, trace_of
from peakline.trace.frames import Frame, frame_of
from peakline.trace.op_inputs import DIMS, STRIDES, OpInputs, elements_read, inputs_of, texts_of

_CONVERTS = ("aten::to", "aten::_to_copy", "aten::type_as", "aten::float", "aten::half")
"""Ops whose result has another type than their input."""
_MOVES = ("aten::to", "aten::pin_memory", "aten::_pin_memory")
OPTIMIZER_STEP = "Optimizer.step#"
"""How events begin that PyTorch writes around an optimizer's step (torch/optim/optimizer.py)."""


@dataclass(frozen=True, eq=False, repr=False)
class OpEvents(Brief):
    """``event`` is per record the place in the trace of the execution around it, -1 for none.

    Per event of the trace: ``parent``, ``code`` of its name in ``names``; ``autograd`` is what that
    recorded of them, ``texts`` gives those of a stat.
    """

    event: Int64Array
    parent: AnyArray
    names: list[str]
    code: AnyArray
    inputs: OpInputs
    autograd: Autograd
    texts: Callable[[str], tuple[Int32Array, tuple[str, ...]]]

    @cached_property
    def is_backward(self) -> BoolArray:
        """Which records are of a backward pass."""
        return self._any_around(self._starts(NODE))

    @cached_property
    def is_float64(self) -> BoolArray:
        """Which records are of an op whose inputs are all float64, as far as recorded."""
        has = self.inputs.is_float64
        converts = np.array([*(one in _CONVERTS for one in self.names), False], np.bool_)
        result = np.zeros(self.event.size, np.bool_)
        known = np.zeros(self.event.size, np.bool_)
        at = self.event
        while (at >= 0).any():
            here = np.maximum(at, 0)
            says = (at >= 0) & ~known & self.inputs.has_tensor[here]
            is_made = says & ~converts[self.code[here]]
            result[is_made] = has[here[is_made]]
            known |= says
            at = np.where((at >= 0) & ~known, self.parent[here], -1)
        return result

    @cached_property
    def is_optimizer(self) -> BoolArray:
        """Which records are of an optimizer's step, which PyTorch marks itself."""
        return self._any_around(self._starts(OPTIMIZER_STEP))

    @cached_property
    def is_differentiated(self) -> BoolArray:
        """Which records are of an op that autograd recorded: it has a number of its own sequence
        (``RecordFunction``'s ``Sequence number``, which none has where gradients are off).
        """
        result = np.zeros(self.event.size, np.bool_)
        at = self.event
        while (at >= 0).any():
            result |= (at >= 0) & (self.autograd.number[at] >= 0)
            at = np.where(at >= 0, self.parent[at], -1)
        return result & ~self.is_backward

    def is_within(self, name: str) -> BoolArray:
        """Which records are of an execution of the op of this name, or of what it calls."""
        return self._any_around(np.array([*(one == name for one in self.names), False], np.bool_))

    def names_around(self, event: int) -> list[str]:
        """The names of an event and of those around it, innermost first."""
        result = []
        while event >= 0:
            result.append(self.names[int(self.code[event])])
            event = int(self.parent[event])
        return result

    def outermost_op(self, record: int) -> str:
        """The op around a record that a program calls; empty without one, and in a backward
        pass, whose ops nobody calls.
        """
        if self.is_backward[record]:
            return ""
        ops = [
            name for name in self.names_around(int(self.event[record])) if name.startswith("aten::")
        ]
        return ops[-1] if ops else ""

    @cached_property
    def is_move(self) -> BoolArray:
        """Which records are of a tensor that is moved or converted, by itself and no other op."""
        is_op, moves = self._starts("aten::"), self._starts(_MOVES)
        result = np.zeros(self.event.size, np.bool_)
        at = self.event
        while (at >= 0).any():
            code = self.code[np.maximum(at, 0)]
            # The outermost op has the last word.
            result = np.where((at >= 0) & is_op[code], moves[code], result)
            at = np.where(at >= 0, self.parent[at], -1)
        return result

    def input_shapes(self, records: AnyArray) -> list[str]:
        """The shape of the largest input of the op of each of some records; empty where it is not
        recorded.
        """
        result = []
        for event in self.event[records].tolist():
            at, text = event, ""
            while at >= 0 and not text:
                text = self.inputs.dims_text(int(self.inputs.shape[at]))
                at = int(self.parent[at])
            result.append(text)
        return result

    def forward_functions(self, records: AnyArray) -> list[Frame | None]:
        """For each of some records of a backward pass the function of the program that ran the op
        of the forward pass; None where no number or no frame says it.
        """
        forward = self.autograd.forward_of(self.event[records])
        known = {event: self.function_around(event) for event in np.unique(forward).tolist()}
        return [known[event] for event in forward.tolist()]

    def with_name(self, name: str) -> Int64Array:
        """The executions of this name, as places in the trace, in order of time."""
        if name not in self.names:
            return np.zeros(0, np.int64)
        events = np.flatnonzero(self.code == self.names.index(name))
        return events[np.argsort(self.autograd.trace.start[events], kind="stable")]

    def alone(self, names: tuple[str, ...]) -> Int64Array:
        """The executions of these names in no other op, backward pass or optimizer's step."""
        events = np.concatenate([self.with_name(name) for name in names])
        around = self._starts(("aten::", NODE, OPTIMIZER_STEP)) & ~np.array(
            [*(one in names for one in self.names), False], np.bool_
        )
        inside = np.zeros(events.size, np.bool_)
        at = self.parent[events]
        while (at >= 0).any():
            inside |= (at >= 0) & around[self.code[np.maximum(at, 0)]]
            at = np.where(at >= 0, self.parent[at], -1)
        return np.sort(events[~inside])

    def function_around(self, event: int) -> Frame | None:
        """The innermost function of the program, of a name, around an event."""
        named = (frame_of(name) for name in self.names_around(event))
        return next(
            (one for one in named if one and one.whose == "program" and one.function[0] != "<"),
            None,
        )

    def elements_read(self, record: int) -> int:
        """How many numbers the largest input holds of the op around a record, or of the nearest
        whose inputs are recorded; 0 where none is.
        """
        (dims, shapes), (strides, steps) = self.texts(DIMS), self.texts(STRIDES)
        at = int(self.event[record])
        while at >= 0:
            text = shapes[int(dims[at])] if dims[at] >= 0 else ""
            if any(sign.isdigit() for sign in text):
                return elements_read(text, steps[int(strides[at])] if strides[at] >= 0 else "")
            at = int(self.parent[at])
        return 0

    def _starts(self, words: str | tuple[str, ...]) -> BoolArray:
        """Per name whether it begins so; the last place is that of no name."""
        return np.array([*(one.startswith(words) for one in self.names), False], np.bool_)

    def _any_around(self, wanted: BoolArray) -> BoolArray:
        result = np.zeros(self.event.size, np.bool_)
        at = self.event
        while (at >= 0).any():
            here = np.maximum(at, 0)
            result |= (at >= 0) & wanted[self.code[here]]
            at = np.where(at >= 0, self.parent[here], -1)
        return result


@once
def op_events_of(profile: Profile) -> OpEvents | None:
    """The executions around the records of ``allocator_events``; None for formats without both.

    Raises InputError when the profile cannot be read.
    """
    if "stacks" not in profile.tables:
        return None
    trace = trace_of(profile)
    if not trace.size:
        return None
    event = _running(profile.columns("allocator_events"), list(trace.name.values), trace)
    return OpEvents(
        event,
        nesting_of(profile).parent,
        list(trace.name.values),
        trace.name.codes,
        inputs_of(profile),
        autograd_of(profile),
        partial(texts_of, profile),
    )


def _running(records: Columns, names: Sequence[str], trace: Trace) -> Int64Array:
    """Per record the last event of its op's name that began before it and has not ended."""
    code_of = {name: code for code, name in enumerate(names)}
    op, time = records.names("op"), records.array("time_ps")
    result = np.full(records.rows, -1, np.int64)
    order = np.lexsort((trace.start, trace.name.codes))
    codes = trace.name.codes[order]
    for own in np.unique(op.codes[op.codes >= 0]).tolist():
        code = code_of.get(op.values[own], -1)
        if code < 0:
            continue
        events = order[np.searchsorted(codes, code) : np.searchsorted(codes, code, "right")]
        rows = np.flatnonzero(op.codes == own)
        at = np.searchsorted(trace.start[events], time[rows], "right") - 1
        event = events[np.maximum(at, 0)]
        inside = (at >= 0) & (trace.end[event] >= time[rows])
        result[rows[inside]] = event[inside]
    return result
