"""Findings that would save the same time or memory: one of them promises it.

A loop of small ops and the values that it reads, or a function that copies the model and the copies
in it, are the same milliseconds seen twice. What is about single ops (`expensive_op`) is apart from
others of its kind, and part of what is about all that a function does.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from peakline.findings.finding import Finding
from peakline.findings.kind import SIGNATURE

_WHOLE = ("growing_work", "model_loaded", "model_copied", "host_sync", "tiny_ops", "python_work")
"""Kinds about all that a function or a loop does, ..."""
_PARTS = (*_WHOLE, "expensive_op", "unfused_elementwise")
"""... and those about a part of it."""
_CAUSES = ("model_loaded",)
"""They say what the time is for: what the same function takes with Python or with small ops is a
part of them, however much that promises."""
_REMADE = "remade_each_step"
_OF_REMAKING = frozenset(("host_bound", "input_bound", "recompilation", "tiny_ops", "python_work"))
"""What setting up shows as: single ops, a wait for the first batch, functions that are traced."""
_EVERYWHERE = ("growing_work",)
"""What they save is in any function."""


def without_overlaps(findings: Sequence[Finding]) -> list[Finding]:
    """``findings`` in their order; of two that save the same time the smaller is for information
    only, promises nothing, and says beside which it is. Where each step sets up a model or its
    input, what that shows as is left out: to compile or to prefetch it helps little.
    """
    remade = [
        _gain(one)
        for one in findings
        if one.kind == _REMADE and one.evidence["op"] != "MakeIterator"
    ]
    findings = [
        one
        for one in findings
        if one.kind not in _OF_REMAKING or not remade or _gain(one) > remade[0]
    ]
    result = list(findings)
    for place, one in enumerate(findings):
        larger = next((other for other in findings if _is_within(one, other)), None)
        if larger is not None:
            evidence = {**one.evidence, "gain_ps": 0, "gain_share": 0.0, "part_of": larger.kind}
            evidence.pop("most_gain_share", None)
            result[place] = replace(one, severity="info", evidence=evidence)
    return result


def _is_within(one: Finding, other: Finding) -> bool:
    """Whether ``other`` promises what ``one`` does, and more."""
    if one is other or other.kind not in _WHOLE or one.kind not in _PARTS:
        return False
    if one.kind in _CAUSES:
        return False
    is_more = _gain(one) > _gain(other) or (_gain(one) == _gain(other) and one.kind in _WHOLE)
    if is_more and other.kind not in _CAUSES:
        return False
    function = other.evidence.get("function"), other.evidence.get("file")
    same = function[0] and function == (one.evidence.get("function"), one.evidence.get("file"))
    return bool(same) or (other.kind in _EVERYWHERE and one.kind in _WHOLE)


def _gain(finding: Finding) -> float:
    return max(float(str(finding.evidence.get(name) or 0)) for name in _GAINS)


_GAINS = ("gain_share", "most_gain_share")


_BUFFERS = "input_buffers"
_GROWS = ("leak", "cache", "step_up", "sawtooth")
_SAVING = "peak_saving"
_EXAMPLES, _BESIDE_EXAMPLES = "per_example_gradients", ("peak_saving", "held_after_use")
_SAVES = ("saved_bytes", "kept_bytes")
_ENOUGH = 0.5


def without_lesser_savings(findings: Sequence[Finding]) -> list[Finding]:
    """``findings`` without a `peak_saving` beside one of the same allocator that saves half as much
    or more, and says why. Gradients of each example explain what else is said of the peak's
    buffers, and free pieces between buffers of their op. `rounding` that takes less than the
    largest lever is no alarm beside it. What grows because a stage of the input fills a buffer of a
    bounded size is said by `input_buffers` alone: a cache may grow for ever.
    """
    explained = {one.evidence.get("allocator") for one in findings if one.kind == _EXAMPLES}
    examples = {_op(one) for one in findings if one.kind == _EXAMPLES}
    filled = [_buffers(one) for one in findings if one.kind == _BUFFERS and one.evidence["limit"]]
    findings = [
        one
        for one in findings
        if (one.kind not in _BESIDE_EXAMPLES or one.evidence.get("allocator") not in explained)
        and (one.kind != "fragmentation" or _op(one) not in examples)
        and (one.kind not in _GROWS or _buffers(one) not in filled)
    ]
    saved: dict[object, float] = {}
    for one in findings:
        if one.kind != _SAVING and one.severity == "warning":
            size = max(float(str(one.evidence.get(name) or 0)) for name in _SAVES)
            name = one.evidence.get("allocator")
            saved[name] = max(saved.get(name, 0.0), size)
    levers = {
        one.evidence.get("allocator"): float(str(one.evidence["saved_bytes"]))
        for one in findings
        if one.kind == _SAVING
    }
    return [
        replace(one, severity="info") if _is_lesser(one, levers) else one
        for one in findings
        if one.kind != _SAVING
        or saved.get(one.evidence.get("allocator"), 0.0)
        < _ENOUGH * float(str(one.evidence["saved_bytes"]))
    ]


def _buffers(one: Finding) -> tuple[object, ...]:
    """Which buffers it is about."""
    return tuple(one.evidence.get(name) for name in SIGNATURE)


def _op(one: Finding) -> tuple[object, ...]:
    """Which op's buffers it is about. Functions are not known yet."""
    return one.evidence.get("allocator"), one.evidence.get("op")


def _is_lesser(one: Finding, levers: Mapping[object, float]) -> bool:
    if one.kind != "rounding" or one.severity != "warning":
        return False
    wasted = float(str(one.evidence["saved_bytes"]))
    return wasted < levers.get(one.evidence.get("allocator"), 0.0)
