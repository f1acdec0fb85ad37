"""The same small ops run over and over within a step: loops over single items, maps and cells.

In TensorFlow's graphs such a loop (``tf.map_fn``, ``tf.scan``, ``tf.while_loop``, a loop of Python
over a tensor that autograph made into one) runs op by op for each turn. The executor inlines the
body of a loop ``NAME`` as ``NAME/body/_1/...`` and its condition as ``NAME/cond/_0/...``
(``lower_while_op.cc`` and ``inline_function_utils.cc`` in tensorflow/core/common_runtime); its
gradient is a loop of its own below ``gradient_tape/NAME`` or ``gradients/NAME`` (``while_v2.py``).
In graphs of TensorFlow 1 a loop is the scope of its ops of the type ``NextIteration``
(``control_flow_ops.py``). Loops of programs that XLA compiled are none of these.

A cell (``torch.nn.LSTMCell``) is one step of a sequence by what it is; ``torch.nn.LSTM`` runs all
steps of one in an op (pytorch.org/docs/stable/generated/torch.nn.LSTMCell.html). What a backward
pass does for the ops of a turn is a part of it: autograd gives both the same number.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass

import numpy as np

from peakline.arrays import AnyArray, BoolArray, Int64Array
from peakline.tables import Profile
from peakline.timing.ops.in_steps import StepOps
from peakline.timing.steps.facts import steps_at
from peakline.trace.autograd import NODE, autograd_of
from peakline.trace.events import nesting_of
from peakline.trace.intervals import covered, union
from peakline.trace.work_classes import Work

CELLS = frozenset(
    f"aten::{name}"
    for name in "lstm_cell gru_cell rnn_tanh_cell rnn_relu_cell _thnn_fused_lstm_cell "
    "_thnn_fused_gru_cell".split()
)
CELL_TURNS = 8
"""So many cells in a step are a loop over a sequence: layers and directions are fewer."""
LONGEST_CELL_TURN = 8
"""So many ops of a turn lie between two cells."""


def in_cell_loops(profile: Profile, ops: StepOps) -> BoolArray | None:
    """Which executions are outermost ops of such loops, or of their backward pass; None without
    any.

    Raises InputError when the profile cannot be read.
    """
    is_cell = np.array([name in CELLS for name, _ in ops.keys], np.bool_)
    if not is_cell.any():
        return None
    outer = np.flatnonzero(ops.is_outermost)
    event = ops.event[outer]
    line = ops.trace.lines_of(event)
    outer = outer[np.lexsort((ops.trace.start[event], line))]
    cells = np.flatnonzero(is_cell[ops.op[outer]])
    if cells.size < CELL_TURNS * ops.steps * ops.lanes:
        return None
    line = ops.trace.lines_of(ops.event[outer])
    before, after = cells[:-1], cells[1:]
    step = steps_at(profile, ops.trace.start[ops.event[outer]])
    near = (after - before <= LONGEST_CELL_TURN) & (line[before] == line[after])
    near &= step[before] == step[after]
    turns = np.zeros(outer.size + 1, np.int64)
    np.add.at(turns, before[near], 1)
    np.add.at(turns, after[near] + 1, -1)
    result = np.zeros(ops.event.size, np.bool_)
    result[outer[np.cumsum(turns)[:-1] > 0]] = True
    result[_backward_of(profile, ops, result)] = True
    return result


def _backward_of(profile: Profile, ops: StepOps, chosen: BoolArray) -> Int64Array:
    """The nodes of a backward pass whose forward op lies in one of the ``chosen``."""
    names = np.array([name.startswith(NODE) for name, _ in ops.keys], np.bool_)
    nodes = np.flatnonzero(names[ops.op] & ops.is_outermost)
    forward = autograd_of(profile).forward_of(ops.event[nodes])
    is_one = np.zeros(ops.trace.size, np.bool_)
    is_one[ops.event[chosen]] = True
    parent: AnyArray = nesting_of(profile).parent
    inside = np.zeros(nodes.size, np.bool_)
    while (forward >= 0).any():
        inside |= (forward >= 0) & is_one[forward]
        forward = np.where(forward >= 0, parent[forward], -1)
    return nodes[inside]


FEWEST_TURNS = 16
"""So many turns in a step are a loop over single items, ..."""
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
    result = []
    for one, name in enumerate(names):
        mine = loop == one
        if not mine.any():
            continue
        own = np.flatnonzero((number == one) & (count > 0))
        # Of cheap ops not all executions are recorded; the condition runs once more.
        turns = float(np.quantile(count[own], 0.75, method="higher")) if own.size else 0.0
        if turns >= FEWEST_TURNS and _is_small(ops, name, own, mine, took):
            result.append((int(took[mine].sum()), Loop(name, turns, mine)))
    return [one for _, one in sorted(result, key=lambda pair: -pair[0])], loop >= 0


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
        result["loop"]
        for name, op_type in ops.keys
        if op_type == "NextIteration"
        and (result := _NEXT.fullmatch(name))
        # The counters of TensorFlow 1's gradients lie beside all other gradients.
        and not _ALL_GRADIENTS.fullmatch(result["loop"])
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


OFTEN = 100
"""An op repeats when a step runs it so often, ..."""
SHORT_PS = 30 * 10**6
"""... and the median run is no longer than this: about what it takes to run an op at all."""
LONGEST_TURN, TURNS = 8, 16
"""Few ops that follow each other in one order so many times are a loop over single items, ..."""
SMALL_PS = 100 * 10**6
"""... where the median one takes no longer than this. Layers of a model are of more ops."""
APART_PS = 50 * 10**6
"""What lies between two of them, up to this long, is a part of the loop."""


@dataclass(frozen=True)
class TinyOps:
    """``per_step`` runs of ``ops`` (name and times a step, most first), ``events`` in the trace.

    ``loop_ps`` is the time of the loops that they make, ``median_ps`` that of one run. ``loop`` is
    the loop of a graph that most of them are of, None without one.
    """

    per_step: float
    ops: tuple[tuple[str, float], ...]
    loop_ps: int
    median_ps: int
    events: Int64Array
    loop: Loop | None = None


def tiny_ops_of(
    ops: StepOps, is_optimizer: BoolArray, cells: BoolArray | None = None
) -> TinyOps | None:
    """The ops that repeat, None where none does; those of an optimizer, which go from tensor to
    tensor, are not looked at. ``cells`` marks those of a loop over recurrent cells.
    """
    loops, in_loops = loops_of(ops)
    # Other loops of a graph, of recurrent nets or of whole steps, take turns for a reason.
    loop = np.full(ops.event.size, -1, np.int64)
    for number, one in enumerate(loops):
        loop[one.events] = number
    outer = np.flatnonzero(ops.is_outermost & ~is_optimizer & (~in_loops | (loop >= 0)))
    outer = outer[
        np.lexsort((ops.trace.start[ops.event[outer]], ops.trace.lines_of(ops.event[outer])))
    ]
    took = (ops.trace.end[ops.event] - ops.trace.start[ops.event])[outer]
    op = ops.op[outer]
    count = np.bincount(op, minlength=len(ops.keys)) / ops.steps / ops.lanes
    often = np.flatnonzero(count >= OFTEN)
    tiny = [one for one in often.tolist() if float(np.median(took[op == one])) <= SHORT_PS]
    chosen = np.isin(op, tiny)
    line = ops.trace.lines_of(ops.event[outer])
    step = np.searchsorted(ops.begin, ops.trace.start[ops.event[outer]], "right")
    turns = _in_turns(op, line * (ops.steps + 1) + step)
    if cells is not None:
        turns |= cells[outer]
    if turns.any() and float(np.median(took[turns])) <= SMALL_PS:
        chosen |= turns
    chosen |= loop[outer] >= 0
    if not chosen.any():
        return None
    mine = np.zeros(ops.event.size, np.bool_)
    mine[outer[chosen]] = True
    each = np.bincount(op[chosen], minlength=len(ops.keys)) / ops.steps / ops.lanes
    most = [one for one in np.argsort(-each, kind="stable").tolist() if each[one]]
    return TinyOps(
        float(each.sum()),
        tuple((ops.keys[one][0], float(each[one])) for one in most),
        _loops_ps(ops, mine, loop),
        round(float(np.median(took[chosen]))),
        ops.event[mine],
        next((one for one in loops if 2 * one.events[outer].sum() > chosen.sum()), None),
    )


def _in_turns(op: AnyArray, part: AnyArray) -> BoolArray:
    """Which of the ops, in order of time, are in a sequence that repeats within a ``part``: a step
    on a line.
    """
    result = np.zeros(op.size, np.bool_)
    for turn in range(1, LONGEST_TURN + 1):
        same = (op[turn:] == op[:-turn]) & (part[turn:] == part[:-turn])
        edges = np.flatnonzero(np.diff(np.concatenate([[False], same, [False]]).astype(np.int8)))
        for first, last in zip(edges[::2].tolist(), edges[1::2].tolist(), strict=True):
            if last - first >= (TURNS - 1) * turn:
                result[first : last + turn] = True
    return result


def _loops_ps(ops: StepOps, chosen: BoolArray, loop: Int64Array) -> int:
    """How long the loops last, per lane: short gaps between two runs count in, and between two of
    one loop of a graph any in which no other op runs.
    """
    whole = 0
    for lane in range(ops.lanes):
        mine = ops.lane == lane
        event = ops.event[chosen & mine]
        begin, end = union(ops.trace.start[event], ops.trace.end[event])
        if begin.size:
            near = np.where(begin[1:] - end[:-1] <= APART_PS, begin[1:], end[:-1])
            more = _in_a_row(ops, mine, loop)
            begin, end = union(np.append(begin, more[0]), np.concatenate([near, end[-1:], more[1]]))
        whole += int(covered((begin, end), ops.begin, ops.end).sum())
    return whole // ops.lanes


def _in_a_row(ops: StepOps, mine: BoolArray, loop: Int64Array) -> tuple[Int64Array, Int64Array]:
    """From the begin of an op of a loop to that of the next one, where that is of the same loop
    and step and no other op begins between them.
    """
    if not (loop >= 0).any():
        return np.zeros(0, np.int64), np.zeros(0, np.int64)
    at = np.flatnonzero(mine)
    start = ops.trace.start[ops.event[at]]
    order = np.argsort(start, kind="stable")
    start, one = start[order], loop[at[order]]
    step = np.searchsorted(ops.begin, start, "right")
    follows = (one[1:] == one[:-1]) & (one[1:] >= 0) & (step[1:] == step[:-1])
    return start[:-1][follows], start[1:][follows]
