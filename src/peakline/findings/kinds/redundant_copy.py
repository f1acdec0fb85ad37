"""A second copy of weights or gradients is held at the peak."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from peakline.findings.kind import FRAME, Kind, columns, of_frame
from peakline.findings.program_values import ProgramOfDevices, each_program
from peakline.kernels.memory_layout import ALLOCATION
from peakline.memory.peak.buffers import peak_without, peak_without_signatures
from peakline.memory.peak.copies import buffers_in, joined_copies, parts_of, second_copies
from peakline.memory.peak.explained import BEFORE_PROFILE
from peakline.text import allocator_text, size_text
from peakline.trace.autograd import NODE

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from peakline.arrays import BoolArray, IntpArray
    from peakline.findings.context import Findings, MemoryContext
    from peakline.findings.finding import Finding
    from peakline.memory.details import MemoryDetails
    from peakline.memory.origins.stacks import Origins
    from peakline.memory.peak.buffers import AtPeak
    from peakline.memory.peak.copies import Part
    from peakline.memory.signatures import History

KIND = Kind(
    "redundant_copy",
    __doc__,
    about="memory",
    phrase="a second copy is held",
    severity="warning",
    section="peak",
    columns=FRAME
    | columns(
        "allocator", "op", "region_type", "shape", "count", "bytes", "peak_bytes", "program",
        copy_bytes="The copy", original="What it is a copy of", made_by="Made by",
        saved_bytes="Saves", least_saved_bytes="Saves at least",
    ),
    saves="saved_bytes",
)  # fmt: skip

_AVERAGES, _AVERAGES_ALL = ("aten::lerp_", "aten::mul_"), ("aten::_foreach_lerp_",)
"""Ops that average weights in place (torch/optim/swa_utils.py), one each and all together."""
_AVERAGES_ANEW, _FLOWS = ("aten::lerp", "aten::mul"), ("LerpBackward0", "MulBackward0")
"""Ops of averages that make new tensors: ``decay * average + (1 - decay) * weight``."""
_AVERAGED = 0.8
"""So many of the tensors of a copy are averaged in each step."""
_FEWEST_STEPS = 3
"""Of these the last may be cut off."""
_DONATED = 0.10
"""State that is not donated counts from this share of what the program needs on."""
_LEAST_DONATED = 4 << 20


def find(context: MemoryContext) -> Findings:
    """Of each allocator whose buffers have call stacks, each copy; of compiled programs what they
    make anew and could overwrite.
    """
    yield from each_program(context.programs, _undonated)

    history, origins = context.history, context.origins
    if history is None or origins is None or not origins.has_frames:
        return
    for one in context.allocators:
        if one.at_peak is not None:
            parts = parts_of(history, one.at_peak, origins)
            averages = _averaged(context), _averaged_anew(context)
            for finding, copy in _second(one, one.at_peak, history, parts, origins, averages):
                yield _with_all_of_function(finding, one.at_peak, history, origins, copy)
            yield from _joined(one, one.at_peak, history, parts)


def _averaged(context: MemoryContext) -> float:
    """How many tensors a step averages in place, outside of the optimizer's step."""
    runs, steps = context.op_events, context.steps
    if runs is None or steps is None or not steps.size:
        return 0.0
    if runs.alone(_AVERAGES_ALL).size >= _AVERAGED * steps.size:
        return float("inf")
    return runs.alone(_AVERAGES).size / steps.size


def _averaged_anew(context: MemoryContext) -> float:
    """How many tensors a step averages into new ones, through which no gradient flows."""
    runs, steps = context.op_events, context.steps
    if runs is None or steps is None or not steps.size:
        return 0.0
    flows = sum(runs.with_name(f"{NODE}: {name}").size for name in _FLOWS)
    return (runs.alone(_AVERAGES_ANEW).size - flows) / steps.size


def _second(
    one: MemoryDetails,
    at_peak: AtPeak,
    history: History,
    parts: list[Part],
    origins: Origins,
    averages: tuple[float, float],
) -> Iterator[tuple[Finding, Part]]:
    for result in second_copies(history, at_peak, parts):
        copy, original = result.copy, "all weights"
        count = buffers_in(history, copy)
        in_place, anew = (each >= _AVERAGED * count for each in averages)
        # An average of the weights is a copy that is meant, and so is its first state.
        if result.times == 1 and not copy.stack.is_backward:
            makers = _makers(history, at_peak, origins, copy)
            # What each step copies anew is a copy that is meant, made in a costly way.
            is_meant = (
                in_place
                or (anew and _is_made_once(makers))
                or _is_replaced(history, at_peak, makers, copy)
            )
            if is_meant:
                continue
        of = original
        if result.original is not None:
            original = result.original.title
            is_before = original == BEFORE_PROFILE
            made = f"what {original} made" if original else "other buffers"
            of = "what was there before the profile" if is_before else made
        are = "a second copy" if result.times == 1 else f"{result.times} more copies"
        finding = _finding(
            one,
            at_peak,
            history,
            copy,
            f"are {are}: {count} buffers made by {copy.title}, of the sizes of {of}",
            original,
            result.needed,
            "Work in place (torch._foreach_mul_, clip_grad_norm_, donated arguments), hold the "
            "copy on the host or on disk (a checkpoint), or make it of one tensor at a time.",
        )
        yield finding, copy


@dataclass(frozen=True, eq=False)
class _Makers:
    """The buffers of the sizes of a copy: whether its function made each, whether another's copy
    did, and the step of each, 0 before the first.
    """

    is_own: BoolArray
    is_others: BoolArray
    step: IntpArray


def _makers(history: History, at_peak: AtPeak, origins: Origins, copy: Part) -> _Makers:
    own = history.rows_of(at_peak.allocator)
    sizes = np.unique(history.requested[copy.rows])
    made = own[(history.lifetimes.kind[own] == ALLOCATION) & ~history.was_there[own]]
    made = made[np.isin(history.requested[made], sizes)]
    stacks, place = origins.distinct(made)
    mine = np.array([stack.program == copy.stack.program for stack in stacks], np.bool_)
    copies = np.array([stack.is_copy for stack in stacks], np.bool_)
    step = np.searchsorted(at_peak.starts, made, "right")
    return _Makers(mine[place], (copies & ~mine)[place], step)


def _is_made_once(makers: _Makers) -> bool:
    """Whether the function that made a copy makes such buffers in no other step."""
    return np.unique(makers.step[makers.is_own]).size <= 1


def _is_replaced(history: History, at_peak: AtPeak, makers: _Makers, copy: Part) -> bool:
    """Whether a copy goes, and another function makes as many such copies in each step."""
    if at_peak.starts.size < _FEWEST_STEPS or (history.lifetimes.end[copy.rows] < 0).any():
        return False
    each = np.bincount(makers.step[makers.is_others], minlength=at_peak.starts.size + 1)
    return _is_made_once(makers) and bool((each[1:-1] >= _AVERAGED * copy.rows.size).all())


def _with_all_of_function(
    finding: Finding, at_peak: AtPeak, history: History, origins: Origins, copy: Part
) -> Finding:
    """A copy that each step makes goes with all else that its function makes on the way."""
    program = copy.stack.program
    is_each = at_peak.starts.size > 0 and copy.rows.min() >= at_peak.starts[0]
    if program is None or not is_each or copy.stack.is_backward:
        return finding
    own = history.rows_of(at_peak.allocator)
    made = own[(history.lifetimes.kind[own] == ALLOCATION) & ~history.was_there[own]]
    stacks, place = origins.distinct(made)
    mine = np.array([stack.program == program for stack in stacks], np.bool_)[place]
    rows = made[mine & (made >= at_peak.starts[0])]
    left = peak_without(history, at_peak.allocator, rows, history.allocated[rows])
    saved = at_peak.peak - left
    if saved <= int(str(finding.evidence["copy_bytes"])):
        return finding
    return replace(
        finding,
        title=f"{finding.title}; without all that it makes the peak would be {size_text(left)} "
        f"instead of {size_text(at_peak.peak)}",
        evidence={**finding.evidence, "saved_bytes": saved, "least_saved_bytes": saved},
    )


def _joined(one: MemoryDetails, at_peak: AtPeak, history: History, parts: list[Part]) -> Findings:
    for result in joined_copies(history, at_peak, parts):
        copy = result.part
        count = buffers_in(history, copy)
        buffers = "a buffer" if count == 1 else f"{count} buffers"
        yield _finding(
            one,
            at_peak,
            history,
            copy,
            f"are {buffers} made by {copy.title}, {'each ' if count > 1 else ''}as large as "
            f"{result.what} together",
            result.what,
            0,
            "Compute from one tensor after the other in place of joining them "
            "(torch._foreach_norm, a sum of torch.dot, optax.global_norm), let gradients be views "
            "of the buckets (gradient_as_bucket_view=True), and hold no vector of the step before.",
        )


def _finding(
    one: MemoryDetails,
    at_peak: AtPeak,
    history: History,
    copy: Part,
    are: str,
    original: str,
    needed: int,
    advice: str,
) -> Finding:
    left = peak_without_signatures(history, at_peak.allocator, copy.rows)
    return KIND.finding(
        f"{allocator_text(one.allocator)}: {size_text(copy.bytes)} {are}",
        {
            "allocator": one.allocator,
            "op": copy.op,
            "made_by": copy.title,
            "original": original,
            "count": buffers_in(history, copy),
            "copy_bytes": copy.bytes,
            "saved_bytes": copy.bytes,
            "least_saved_bytes": min(max(at_peak.peak - left, 0), copy.bytes) - needed,
            "peak_bytes": one.peak.peak_bytes,
            **of_frame(copy.stack.program),
        },
        advice,
    )


def _undonated(one: ProgramOfDevices) -> Findings:
    """New copies that a program makes of what it is given."""
    need = one.need
    for advice in need.program.advice:
        least = max(_DONATED * need.bytes, _LEAST_DONATED)
        if advice.kind != "donate" or advice.bytes < least:
            continue
        row = advice.rows[0]
        # Fewer copies may be live at once, as far as the program's present order says.
        values = sum(size for copy in advice.rows if isinstance(size := copy.get("bytes"), int))
        yield KIND.finding(
            f"{need.program.label}: the program makes new copies of what it is given, for "
            f"{size_text(advice.bytes)} of the {size_text(need.bytes)} that it needs: "
            f"{advice.title}",
            {
                "allocator": need.device or need.program.name,
                "op": _made_by(row),
                "shape": row.get("shape"),
                "copy_bytes": max(values, advice.bytes),
                "saved_bytes": max(values, advice.bytes),
                "least_saved_bytes": advice.bytes,
                "peak_bytes": need.bytes,
                "program": need.program.label,
            },
            advice.suggestion,
            tuple(
                {"op": _made_by(copy), "shape": copy.get("shape"), "bytes": copy.get("bytes")}
                for copy in advice.rows
            ),
        )
        return


def _made_by(row: Mapping[str, object]) -> str:
    return str(row.get("op_name") or row.get("instruction") or "")
