"""Loops of TensorFlow's graphs that run op by op for each turn: ``tf.map_fn``, ``tf.scan``,
``tf.while_loop``, and a loop of Python over a tensor that autograph made into one.

The executor inlines the body of a loop ``NAME`` as ``NAME/body/_1/...`` and its condition as
``NAME/cond/_0/...`` (``lower_while_op.cc`` and ``inline_function_utils.cc`` in
tensorflow/core/common_runtime); its gradient is a loop of its own below ``gradient_tape/NAME`` or
``gradients/NAME`` (``while_v2.py``). In graphs of TensorFlow 1 a loop is the scope of its ops of
the type ``NextIteration`` (``control_flow_ops.py``). Loops of programs that XLA compiled are none
of these.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass

import numpy as np

from peakline.arrays import AnyArray, BoolArray, Int64Array
from peakline.timing.ops.in_steps import StepOps
from peakline.trace.work_classes import Work

FEWEST_TURNS = 16
"""So many turns in a step are a loop over single items, ..."""
SMALL_PS = 100 * 10**6
"""... of small ops: the median one takes no longer."""
_PRODUCTS = 1 / 3
"""A loop of which matrix products take more than this does in turns what it has to: a recurrent
net, or whole batches; but for ``tf.map_fn``, whose turns need nothing of each other."""

_INLINED = re.compile(r"(?P<loop>.+?)/(?:body|cond)/_\d+/")
_MAP = re.compile(r"(?:.*/)?map(?:_\d+)?/while(?:_\d+)?")
"""The scope of ``tf.map_fn`` (tensorflow/python/ops/map_fn.py)."""
_NEXT = re.compile(r"(?P<loop>.+)/NextIteration(?:_\d+)?")
_GRADIENT = re.compile(r"(?P<before>(?:.*?/)?)(?:gradient_tape|gradients(?:_\d+)?)/(?P<loop>.+)")
_ALL_GRADIENTS = re.compile(r"(?:.*/)?gradients(?:_\d+)?")
_UPDATES = re.compile(r"(?i)(?:Resource|Sparse)?(?:Assign|Apply|Scatter(?:Sub|Add|Update|Nd))\w*")
"""Types of the ops that write variables: a loop with one of them is a loop of training steps."""


@dataclass(frozen=True)
class Loop:
    """A loop by the name of its scope, with that of its gradient; ``turns`` is how often a step
    goes through it, ``events`` says which executions of `StepOps` are of it.
    """

    name: str
    turns: float
    events: BoolArray


def loops_of(ops: StepOps) -> tuple[list[Loop], BoolArray]:
    """Loops of many small ops, that with most time first; and which executions are of any loop."""
    number, names = _numbered(ops)
    if not names:
        return [], np.zeros(ops.event.size, np.bool_)
    loop = np.where(ops.is_hlo, -1, number[ops.op])
    count = np.bincount(ops.op, minlength=len(ops.keys)) / ops.steps / ops.lanes
    took = ops.trace.end[ops.event] - ops.trace.start[ops.event]
    found = []
    for one, name in enumerate(names):
        mine = loop == one
        if not mine.any():
            continue
        own = np.flatnonzero((number == one) & (count > 0))
        # Of cheap ops not all executions are recorded; the condition runs once more.
        turns = float(np.quantile(count[own], 0.75, method="higher")) if own.size else 0.0
        if turns >= FEWEST_TURNS and _is_small(ops, name, own, mine, took):
            found.append((int(took[mine].sum()), Loop(name, turns, mine)))
    return [one for _, one in sorted(found, key=lambda pair: -pair[0])], loop >= 0


def _is_small(ops: StepOps, name: str, own: AnyArray, mine: BoolArray, took: Int64Array) -> bool:
    """Whether a loop is one of small ops, neither of steps nor of products."""
    if any(_UPDATES.fullmatch(ops.keys[op][1]) for op in own.tolist()):
        return False
    if float(np.median(took[mine])) > SMALL_PS:
        return False
    products = int(took[mine & (ops.work == Work.MATMUL)].sum())
    return _MAP.fullmatch(name) is not None or products <= _PRODUCTS * int(took[mine].sum())


def _numbered(ops: StepOps) -> tuple[Int64Array, list[str]]:
    """The loop of each of ``ops.keys``, -1 for none, and the loops' names."""
    scopes = {
        found["loop"]
        for name, op_type in ops.keys
        if op_type == "NextIteration"
        and (found := _NEXT.fullmatch(name))
        # The counters of TensorFlow 1's gradients lie beside all other gradients.
        and not _ALL_GRADIENTS.fullmatch(found["loop"])
    }
    numbers: dict[str, int] = {}
    number = np.full(len(ops.keys), -1, np.int64)
    for place, (name, _) in enumerate(ops.keys):
        loop = loop_of(name, scopes)
        if loop:
            number[place] = numbers.setdefault(loop, len(numbers))
    return number, list(numbers)


def loop_of(name: str, scopes: Collection[str] = ()) -> str:
    """The outermost loop that an op is of, or whose gradient it is of; empty for none.

    ``scopes`` are the loops of a graph of TensorFlow 1.
    """
    inlined = _INLINED.match(name)
    if inlined is not None:
        return _forward(inlined["loop"])
    if not scopes:
        return ""
    gradient = _GRADIENT.fullmatch(name)
    plain = gradient["before"] + gradient["loop"] if gradient is not None else name
    at = plain.find("/")
    while at >= 0:
        if plain[:at] in scopes:
            return plain[:at]
        at = plain.find("/", at + 1)
    return ""


def _forward(loop: str) -> str:
    """``a/while`` of its gradient ``gradient_tape/a/while/a/while_grad``; else the loop itself."""
    gradient = _GRADIENT.fullmatch(loop)
    if gradient is None:
        return loop
    inner = gradient["loop"].removesuffix("_grad")
    half = len(inner) // 2
    name = inner[:half] if inner[:half] == inner[half + 1 :] else inner
    return gradient["before"] + name
