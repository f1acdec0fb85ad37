"""The checks of PyTorch's anomaly detection: every gradient of a backward pass searched for NaN.

With ``torch.autograd.set_detect_anomaly(True)`` autograd's engine runs ``isnan(output)`` on each
output of each node after the node's function, reduces it to one value and reads that with ``item``
(torch/csrc/autograd/engine.cpp: ``call_function``). On a device every read waits for all that was
launched before. It also saves the Python stack of each op of the forward pass, which no event shows
(torch/csrc/autograd/anomaly_mode.h) but the frames of Python's ``traceback``, where they are
recorded. By its page of PyTorch's documentation it is for debugging alone, as it is slow.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np

from peakline.arrays import AnyArray, BoolArray, Int64Array
from peakline.tables import Profile
from peakline.timing.ops.in_steps import StepOps
from peakline.trace.autograd import NODE, autograd_of
from peakline.trace.events import Trace
from peakline.trace.intervals import covered, union

SEARCH = "aten::isnan"
_REDUCE = frozenset(("aten::any", "aten::_is_any_true"))
_READ = frozenset(("aten::item", "aten::is_nonzero"))
_STORES = "AccumulateGrad"
"""The nodes that add gradients to those of the weights give none on: nothing is checked there."""
_STACK = re.compile(
    r"torch/fx/traceback\.py\(\d+\): format_stack$|^traceback\.py\(\d+\): format_stack$"
)
MOST = 0.5
"""Hooks of a program are at some tensors; anomaly detection is at more than this share of the nodes
..."""
ALWAYS = 0.8
"""... in so many of the steps that have a backward pass."""


@dataclass(frozen=True, eq=False)
class AnomalyChecks:
    """``per_step`` nodes of a backward pass whose gradients are checked, of ``nodes`` a step, which
    takes ``check_ps`` per lane in all steps, and with the stacks that the forward pass saves, where
    Python's functions are recorded, ``whole_ps``; ``ops`` are the checks and how often a step
    runs them.
    """

    per_step: float
    nodes: float
    check_ps: int
    whole_ps: int
    ops: tuple[tuple[str, float], ...]


def anomaly_checks_of(profile: Profile, ops: StepOps) -> AnomalyChecks | None:
    """The checks in the steps, None where few nodes or few steps have them."""
    trace = ops.trace
    if SEARCH not in trace.name.values or not _READ.intersection(trace.name.values):
        return None
    autograd = autograd_of(profile)
    is_search, is_reduce, is_read = (
        _named(trace, words) for words in (frozenset((SEARCH,)), _REDUCE, _READ)
    )
    check = np.flatnonzero(is_search | is_reduce | is_read)
    parent = autograd.parent[check].astype(np.int64)
    inside = (parent >= 0) & autograd.is_node[np.maximum(parent, 0)]
    check, parent = check[inside], parent[inside]
    is_checked = np.ones(trace.size, np.bool_)
    for kind in (is_search, is_reduce, is_read):
        has = np.zeros(trace.size, np.bool_)
        has[parent[kind[check]]] = True
        is_checked &= has
    node = _nodes(trace, autograd.is_node)
    step = np.searchsorted(ops.begin, trace.start[node], "right") - 1
    in_step = (step >= 0) & (trace.start[node] < ops.end[np.maximum(step, 0)])
    node, step = node[in_step], step[in_step]
    result = is_checked[node]
    if not result.any() or result.mean() <= MOST:
        return None
    if np.unique(step[result]).size < ALWAYS * np.unique(step).size:
        return None
    mine = check[np.isin(parent, node[result])]
    spans = union(trace.start[mine], trace.end[mine])
    whole = ops.steps * ops.lanes
    stacks = np.flatnonzero(trace.name.per_row(_STACK.search, np.bool_))
    every = np.concatenate([mine, stacks])
    both = union(trace.start[every], trace.end[every])
    return AnomalyChecks(
        int(result.sum()) / whole,
        node.size / whole,
        int(covered(spans, ops.begin, ops.end).sum()) // ops.lanes,
        int(covered(both, ops.begin, ops.end).sum()) // ops.lanes,
        _by_name(trace, mine, whole),
    )


def _named(trace: Trace, words: frozenset[str]) -> BoolArray:
    """Which events have one of these names."""
    names = np.array([*(name in words for name in trace.name.values), False], np.bool_)
    result: BoolArray = names[trace.name.codes]
    return result


def _nodes(trace: Trace, is_node: BoolArray) -> Int64Array:
    """The nodes that compute gradients."""
    stores = [*(one.startswith(NODE) and one.endswith(_STORES) for one in trace.name.values), False]
    return np.flatnonzero(is_node & ~np.array(stores, np.bool_)[trace.name.codes])


def _by_name(trace: Trace, events: AnyArray, whole: int) -> tuple[tuple[str, float], ...]:
    """How often a step runs ops of each name, in the order in which they run."""
    codes, first, count = np.unique(
        trace.name.codes[events[np.argsort(trace.start[events], kind="stable")]],
        return_index=True, return_counts=True,
    )  # fmt: skip
    order = np.argsort(first)
    return tuple((trace.name.values[int(codes[k])], int(count[k]) / whole) for k in order.tolist())
