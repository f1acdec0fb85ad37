"""What the turns of a loop computed is held for its gradient (compiled programs)."""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING

import numpy as np

from peakline.findings.kind import Kind, columns
from peakline.findings.program_values import (
    ProgramOfDevices,
    each_program,
    evidence_of,
    is_residual,
    rows_of,
    where_made,
)
from peakline.text import size_text

if TYPE_CHECKING:
    from peakline.findings.context import Findings, MemoryContext

KIND = Kind(
    "scan_residuals",
    __doc__,
    about="memory",
    phrase="a loop holds all that its turns computed",
    severity="warning",
    section="peak",
    least=0.35,
    columns=columns(
        "allocator", "op", "region_type", "data_type", "shape", "file", "line", "count", "bytes",
        "peak_bytes", "share",
        program="Program", turns="Turns", saved_bytes="Saves",
        least_saved_bytes="Saves at least", peak_after_bytes="Peak without it",
    ),
    saves="saved_bytes",
)  # fmt: skip

_LEAST = 4 << 20
_CARRIES = 2
"""So many are the carry itself, which is held with rematerialisation too."""
_REMADE = re.compile(r"while/body/.*rematted_computation")
_FIRST = re.compile(r"\w+\[(\d+),")


def find(context: MemoryContext) -> Findings:
    """Of compiled programs that need most of a device: what one loop's forward pass stacks."""
    yield from each_program(context.programs, _of_program)


def _of_program(one: ProgramOfDevices) -> Findings:
    loops = Counter[tuple[str, str]]()
    for value in one.live:
        first = _FIRST.match(value.shape)
        if first is not None and is_residual(value):
            loops[value.op_name, first[1]] += value.bytes
    if not loops:
        return
    (loop, turns), size = loops.most_common(1)[0]
    need = one.need
    if size < max(KIND.least * need.bytes, _LEAST) or int(turns) < _CARRIES:
        return
    stacked = [
        value
        for value in one.live
        if is_residual(value) and value.op_name == loop
        if (first := _FIRST.match(value.shape)) is not None and first[1] == turns
    ]
    if len(stacked) <= _CARRIES or _is_remade(one):
        return
    carry = max(value.bytes for value in stacked)
    saved = size - min(value.bytes for value in stacked)
    yield KIND.finding(
        f"{need.program.label}: the {int(turns):,} turns of a loop ({loop}) hold {len(stacked)} "
        f"values each for their gradient, {size_text(size)} of the {size_text(need.bytes)} that "
        f"the program needs{where_made(stacked[0])}",
        {
            **evidence_of(need, stacked[0]),
            "turns": int(turns),
            "count": len(stacked),
            "bytes": size,
            "share": size / max(need.bytes, 1),
            "saved_bytes": saved,
            "least_saved_bytes": max(size - _CARRIES * carry, 0),
            "peak_after_bytes": need.bytes - saved,
        },
        "Compute them again in the backward pass: jax.lax.scan(jax.checkpoint(body), ...), which "
        "holds what the loop carries alone (nn.remat of Flax, policy=jax.checkpoint_policies."
        "dots_saveable to hold some).",
        rows_of(stacked),
    )


def _is_remade(one: ProgramOfDevices) -> bool:
    """Whether the body of a loop is computed again already."""
    programs = one.profile.programs()
    if programs is None:
        return False
    wanted = frozenset(("op_name",))
    names = programs.read(one.need.program.number, "hlo_instructions", wanted).names("op_name")
    return bool(names.per_row(_REMADE.search, np.bool_).any())
