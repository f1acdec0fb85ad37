"""Whose code made the buffers that a finding is about: function, file and line."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from peakline.findings.frames import of_frame
from peakline.memory.origins.stacks import signature_codes

if TYPE_CHECKING:
    from peakline.arrays import AnyArray
    from peakline.findings.context import MemoryContext
    from peakline.findings.finding import Finding
    from peakline.memory.signatures import History
    from peakline.trace.frames import Frame

_GROWS = frozenset(("leak", "cache", "step_up", "sawtooth", "one_pass"))


def with_lines(findings: Iterable[Finding], context: MemoryContext) -> list[Finding]:
    """The findings, each with the function of the program that made most of its buffers, where the
    records have call stacks.
    """
    return [_with_line(finding, context) for finding in findings]


def _with_line(finding: Finding, context: MemoryContext) -> Finding:
    evidence, history, origins = finding.evidence, context.history, context.origins
    if history is None or origins is None or "function" in evidence or "op" not in evidence:
        return finding
    codes = signature_codes(history, evidence)
    rows = _buffers(finding.kind, history, codes, context)
    frame = origins.function(rows, history.allocated[rows]) if rows.size else None
    if frame is None:
        return _with_op(finding, context, rows)
    forward = _forward(context, rows)
    if forward is not None:
        return replace(
            finding,
            title=f"{finding.title}; allocated for the gradient of {forward.title}",
            evidence={**evidence, **of_frame(forward), "path": frame.title},
        )
    stack = next(one for one in origins.of(rows) if one.program == frame)
    within = f", by {stack.op}" if stack.op and stack.op != evidence["op"] else ""
    more: dict[str, object] = {"path": " > ".join(one.title for one in stack.path)}
    if stack.module:
        more["module"] = stack.module
    if stack.library is not None:
        more["callee"] = stack.library.title
    return replace(
        finding,
        title=f"{finding.title}; allocated in {frame.title}{within}",
        evidence={**evidence, **of_frame(frame), **more},
    )


def _with_op(finding: Finding, context: MemoryContext, rows: AnyArray) -> Finding:
    """Where no frame says it, the op that a program calls, for one that allocates within it."""
    ops, history = context.op_events, context.history
    if ops is None or history is None or not rows.size:
        return finding
    op = ops.outermost_op(int(rows[int(history.allocated[rows].argmax())]))
    if not op or op in finding.title:
        return finding
    return replace(
        finding,
        title=f"{finding.title}; allocated by {op}",
        evidence={**finding.evidence, "path": op},
    )


def _forward(context: MemoryContext, rows: AnyArray) -> Frame | None:
    """Of buffers of a backward pass the function whose ops it is the gradient of, by most bytes."""
    ops, history = context.op_events, context.history
    if ops is None or history is None or not ops.is_backward[rows].all():
        return None
    sizes: dict[Frame, int] = {}
    for frame, size in zip(
        ops.forward_functions(rows), history.allocated[rows].tolist(), strict=True
    ):
        if frame is not None:
            sizes[frame] = sizes.get(frame, 0) + size
    return max(sizes, key=lambda frame: sizes[frame]) if sizes else None


def _buffers(kind: str, history: History, codes: AnyArray, context: MemoryContext) -> AnyArray:
    """The allocations it is about: those that live at the end, or at the peak; else all."""
    mine = np.flatnonzero(np.isin(history.signatures.codes, codes))
    if kind in _GROWS:
        live = mine[history.lifetimes.end[mine] < 0]
        return live if live.size else mine
    for one in context.allocators:
        if one.at_peak is not None:
            there = one.at_peak.rows[np.isin(one.at_peak.codes, codes)]
            if there.size:
                return there
    return mine
