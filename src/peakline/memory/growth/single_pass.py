"""Whether what repeats is one pass over a model's layers, which holds their activations.

Where nothing marks steps, the period of the allocations may be a step of a loop or a layer of one
forward pass. What a forward pass makes stays until the backward pass (PyTorch's autograd saves
the tensors that an op's derivative needs): that is no leak, however many layers there are. A file
may say which of the two it is: by the modules that ran, by autograd's own numbers, or by the call
stacks of the allocations.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from peakline.arrays import Int64Array, IntpArray
from peakline.memory.marks import Marks
from peakline.memory.origins.stacks import NamedFrame, frames_of
from peakline.memory.signatures import History
from peakline.tables import Profile
from peakline.tables.columns import Columns
from peakline.tables.tables import empty_columns

FOR_BACKWARD = "backward"
"""One pass over modules, or forward ops of autograd that no backward op followed."""
FOR_NOW = "release"
"""So far nothing that was made has been released, in few repetitions."""

FEW = 12
"""From so many repetitions on a release would have been seen: where nothing says what repeats, it
is a loop."""
LAYERS = 128
"""One frame that calls so many repetitions is no longer taken for a model of so many layers."""
MOSTLY = 0.8
"""So far nothing is released: the repetitions hold this share of the bytes that they make."""
SAVED = 1 / 3
"""Autograd saves at least this share of what a forward pass makes: of a linear layer and what
follows it at least one of two, or of three, is needed by a derivative. What a loop loses beside
its own work is less."""

_MODULE = "nn.Module: "
"""PyTorch names the instance that runs: ``nn.Module: Linear_3`` is the fourth that ran first."""
_CALLS = ("_call_impl", "_wrapped_call_impl")
_BACKWARD_OP = "autograd::engine::evaluate_function"
_SEQUENCE = "Sequence number"
"""What PyTorch writes of an op that autograd records, and of its backward op."""


@dataclass(frozen=True, eq=False)
class PassFacts:
    """What a file says of who allocated. Times are picoseconds.

    ``stacks`` is the table of that name. ``forward_start_ps`` and ``forward_end_ps`` are those of
    the ops that autograd records, sorted by start; ``backward_ps`` are the starts of backward ops.
    """

    stacks: Columns
    forward_start_ps: Int64Array
    forward_end_ps: Int64Array
    backward_ps: Int64Array


@dataclass(frozen=True)
class SinglePass:
    """What one pass holds: `FOR_BACKWARD` or `FOR_NOW`, the layers (or repetitions) seen so far,
    and the bytes requested that all of them hold.
    """

    held_for: str
    layers: int
    bytes: int


def read_pass_facts(profile: Profile) -> PassFacts:
    """What PyTorch's formats say, which are those with stacks of allocations; else nothing."""
    none = np.zeros(0, np.int64)
    if "stacks" not in profile.tables:
        return PassFacts(empty_columns("stacks"), none, none, none)
    stacks = profile.columns("stacks")
    if "events" not in profile.tables:
        return PassFacts(stacks, none, none, none)
    events = profile.columns("events")
    stats = profile.typed_stats(frozenset((_SEQUENCE,)))
    names = events.names("name")
    is_backward = names.per_row(lambda name: name.startswith(_BACKWARD_OP), np.bool_)
    start, length = events.array("start_ps"), events.array("duration_ps")
    backward = np.sort(start[is_backward])
    numbered = stats.array("event_id")
    # A backward op has the number of its forward op: it runs within one of the engine's own.
    numbered = numbered[~is_backward[numbered]]
    numbered = numbered[np.argsort(start[numbered], kind="stable")]
    return PassFacts(stacks, start[numbered], start[numbered] + length[numbered], backward)


def find_single_pass(
    history: History,
    allocator: int,
    marks: Marks,
    codes: IntpArray,
    facts: Callable[[], PassFacts] | None,
) -> SinglePass | None:
    """The pass that holds the buffers of the signatures ``codes`` that live at the last mark.

    None where the repetitions are those of a loop. Steps that the profile marks are no pass.
    """
    if marks.found_by != "period":
        return None
    last = int(marks.rows[-1])
    end = history.lifetimes.end
    made = history.rows_of(allocator)
    made = made[(made >= marks.start) & (history.signatures.codes[made] >= 0)]
    live = made[(end[made] < 0) | (end[made] >= last)]
    rows = live[np.isin(history.signatures.codes[live], codes)]
    held_for = _held_for(history, marks, made, rows, facts)
    if not held_for:
        return None
    # A turn begins at each mark, the last one too, and before the first.
    layers = len(marks) + bool((rows >= last).any())
    return SinglePass(held_for, layers, int(history.requested[rows].sum()))


def _held_for(
    history: History,
    marks: Marks,
    made: IntpArray,
    rows: IntpArray,
    facts: Callable[[], PassFacts] | None,
) -> str:
    """What ``rows``, of all that was ``made`` since the first turn began, are held for."""
    whole = int(history.allocated[made].sum())
    share = int(history.allocated[rows].sum()) / whole if whole else 0.0
    known = None if facts is None else facts()
    if known is not None and rows.size:
        has = history.events.is_valid("stack_id")[rows]
        stack = np.where(has, history.events.array("stack_id")[rows], -1)
        result = frames_of(known.stacks, stack[has])
        frames = [result.get(one, []) for one in stack.tolist()]
        modules = [_innermost_module(stack) for stack in frames]
        if all(modules):
            # A loop calls the same instances again, a pass over layers each once.
            pairs = set(zip(history.signatures.codes[rows].tolist(), modules, strict=True))
            return FOR_BACKWARD if 2 * len(pairs) > rows.size else ""
        times = history.events.array("time_ps")
        passed = np.searchsorted(known.backward_ps, times[made[[0, -1]]], "right")
        has_backward = passed[0] < passed[1] or _runs_backward(history, made, known.stacks)
        if share >= SAVED and not has_backward:
            if known.forward_start_ps.size:
                return FOR_BACKWARD if _are_within(times[rows], known) else ""
            if _is_called_by_a_module(frames):
                return FOR_BACKWARD
            if _shared(frames) and share >= MOSTLY and len(marks) < LAYERS:
                return FOR_NOW
    return FOR_NOW if len(marks) < FEW and share >= MOSTLY else ""


def _innermost_module(stack: list[NamedFrame]) -> str:
    return next((name for name, _, _ in reversed(stack) if name.startswith(_MODULE)), "")


def _shared(frames: list[list[NamedFrame]]) -> list[NamedFrame]:
    """The outer frames that all stacks share: the last of them calls all that repeats."""
    shared = []
    for level in zip(*frames, strict=False):
        if any(frame != level[0] for frame in level):
            break
        shared.append(level[0])
    return shared


def _is_called_by_a_module(frames: list[list[NamedFrame]]) -> bool:
    return any(
        name in _CALLS and file.endswith("torch/nn/modules/module.py")
        for name, file, _ in _shared(frames)
    )


def _runs_backward(history: History, made: IntpArray, stacks: Columns) -> bool:
    """Whether a stack of what was made is one of a backward pass, or some have none.

    The backward pass of a device runs on a thread of its own, which has no Python frames.
    """
    if not stacks.rows:
        return False
    ids = history.events.array("stack_id")[made]
    has = history.events.is_valid("stack_id")[made]
    functions = stacks.names("function")
    is_backward = functions.per_row(lambda name: "backward" in name.lower(), np.bool_)
    return bool(not has.all() or np.isin(ids, stacks.array("stack_id")[is_backward]).any())


def _are_within(times: Int64Array, facts: PassFacts) -> bool:
    """Whether nearly all of ``times`` lie within ops that autograd records."""
    place = np.searchsorted(facts.forward_start_ps, times, "right") - 1
    ends = np.maximum.accumulate(facts.forward_end_ps)
    inside = (place >= 0) & (times <= ends[place])
    return bool(inside.mean() >= MOSTLY)
