"""Which executions of ops compute in float64, where the profile says it."""

from __future__ import annotations

import numpy as np

from peakline.arrays import BoolArray
from peakline.memory.origins.element_types import float64_ops
from peakline.tables import Profile
from peakline.timing.ops.in_steps import StepOps
from peakline.timing.ops.stat_columns import op_stats_of
from peakline.trace.op_inputs import inputs_of

_SHORT = 1 << 21
_LARGEST = 64 << 20
"""Bytes of programs that are looked through for the types of their instructions."""


def is_float64(profile: Profile, ops: StepOps) -> BoolArray:
    """Per execution whether it reads or makes numbers of 64 bits.

    PyTorch records the types of inputs (``record_shapes``), TensorFlow those of what ops put out
    (StepStats, memory events), XLA those of instructions.
    """
    if inputs_of(profile).type_texts:
        found: BoolArray = inputs_of(profile).is_float64[ops.event]
        return found
    # Of a long trace the records of memory are not read for this alone.
    names = float64_ops(profile, read=ops.trace.size <= _SHORT)
    by_key = np.array([name in names for name, _ in ops.keys], np.bool_)
    found = by_key[ops.op]
    if ops.is_hlo.any():
        found = found | _instructions(profile, ops)
    return found


def _instructions(profile: Profile, ops: StepOps) -> BoolArray:
    """By the instructions of the programs that the profile holds."""
    none = np.zeros(ops.event.size, np.bool_)
    programs = profile.programs()
    if programs is None or sum(len(programs.data(k)) for k in range(len(programs))) > _LARGEST:
        return none
    ids = {programs.program_id(number): number for number in range(len(programs))}
    table = profile.columns("hlo_instructions", frozenset(("module_id", "name", "shape")))
    shape, name = table.names("shape"), table.names("name")
    wide = shape.per_row(lambda text: "f64[" in text or "c128[" in text, np.bool_)
    rows = np.flatnonzero(wide)
    if not rows.size:
        return none
    module = table.array("module_id")[rows].tolist()
    known = {(number, name[row]) for number, row in zip(module, rows.tolist(), strict=True)}
    program = op_stats_of(profile)["program_id"].integers_at(ops.trace.rows(ops.event))
    codes = ops.trace.name.codes[ops.event]
    pairs, place = np.unique(np.stack([program, codes]), axis=1, return_inverse=True)
    texts = [*ops.trace.name.values, ""]
    is_wide = [
        (ids.get(number % 2**64, -1), texts[code]) in known for number, code in pairs.T.tolist()
    ]
    found: BoolArray = np.array(is_wide, np.bool_)[place.ravel()] & ops.is_hlo
    return found
