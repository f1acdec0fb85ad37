"""Copies of all weights in each step: ``copy.deepcopy(model)``, ``{k: v.clone() for ...}``.

A deep copy of a parameter of PyTorch is an ``aten::clone`` (torch/nn/parameter.py), that of another
tensor a copy of its storage that the new tensor is set to (``__deepcopy__`` of torch/_tensor.py),
and each weight that learns has a node that adds to its gradient in each backward pass
(``torch::autograd::AccumulateGrad``): so many clones, of which no gradient is computed, copy the
model.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from peakline.arrays import Int64Array
from peakline.tables import Profile
from peakline.timing.frame_work import function_of_loop
from peakline.timing.ops.elementwise import in_optimizer
from peakline.timing.ops.in_steps import StepOps, time_of_function
from peakline.trace.autograd import NODE, autograd_of
from peakline.trace.frames import Frame

CLONE, DEEP, SETS, NEW = "aten::clone", "copy.deepcopy", "aten::set_", "aten::new_empty"
"""A deep copy makes one empty tensor, and sets it to a storage in several calls."""
ADDS = f"{NODE}: torch::autograd::AccumulateGrad"
FEWEST = 4
"""Weights that a model has at least, ..."""
SEVERAL = 4
"""Backward passes of a step, from which on clones are of what each leaves."""
MOST_OF = 0.8
"""... of which so many are cloned in each step."""
LEAST_OF, BESIDE = 0.5, 1.2
"""Of what the function takes that copies, pairs with and without the copies were faster by so much:
an average in place takes time too, and copies evict what other ops read.
"""


@dataclass(frozen=True, eq=False)
class ModelCopies:
    """``per_step`` copies by ``op`` of ``weights``, in ``function`` where a frame says it;
    ``least_ps`` to ``most_ps`` are what would go per lane of all steps.
    """

    op: str
    per_step: float
    weights: float
    event: Int64Array
    function: Frame | None
    least_ps: int
    most_ps: int


def model_copies_of(profile: Profile, ops: StepOps) -> ModelCopies | None:
    """None where fewer tensors are cloned in a step than weights learn."""
    names = [name for name, _ in ops.keys]
    if not ops.has_steps or not {CLONE, NEW}.intersection(names) or ADDS not in names:
        return None
    is_clone = np.array([name == CLONE for name in names], np.bool_)
    is_set, is_new = (np.array([name == one for name in names]) for one in (SETS, NEW))
    is_back = np.array(["CloneBackward" in name and name.startswith(NODE) for name in names])
    weights = _per_step(ops, names.index(ADDS))
    free = ~in_optimizer(profile, ops)
    chosen = is_clone[ops.op] & free & ops.is_outermost
    per_step, op = int(chosen.sum()) / ops.steps / ops.lanes, CLONE
    deep = is_new[ops.op] & free
    sets = int((is_set[ops.op] & free).sum())
    per_deep = min(int(deep.sum()), sets) / ops.steps / ops.lanes
    if per_deep > per_step:
        chosen, per_step, op = deep, per_deep, DEEP
    event = ops.event[chosen]
    # A gradient flows through what a forward pass clones.
    flows = int(is_back[ops.op].sum()) / ops.steps / ops.lanes
    if weights < FEWEST or per_step - flows < MOST_OF * weights:
        return None
    if _passes(profile, ops, names) >= SEVERAL:
        return None  # gradients are copied after each of many passes
    function = function_of_loop(profile, event)
    clone_ps = ops.covered_ps(chosen)
    whole = time_of_function(profile, ops, event, function)
    least = max(clone_ps, round(LEAST_OF * whole))
    return ModelCopies(
        op, per_step, weights, event, function, least, max(least, round(BESIDE * whole))
    )


def _passes(profile: Profile, ops: StepOps, names: list[str]) -> float:
    """How many backward passes a step has: each begins at a node with a number as large as any
    before.
    """
    autograd = autograd_of(profile)
    event = ops.event[np.array([name.startswith(NODE) for name in names], np.bool_)[ops.op]]
    number = autograd.number[event]
    event, number = event[number >= 0], number[number >= 0]
    number = number[np.argsort(ops.trace.start[event], kind="stable")]
    begins = int((number[1:] >= np.maximum.accumulate(number)[:-1]).sum()) + bool(number.size)
    return begins / ops.steps / ops.lanes


def _per_step(ops: StepOps, op: int) -> float:
    return int((ops.op == op).sum()) / ops.steps / ops.lanes
