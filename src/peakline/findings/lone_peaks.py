"""What the findings of a peak that stands alone have in common."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from peakline.findings.kind import ORIGIN, SIGNATURE, Kind, about_signature, columns
from peakline.findings.program_memory import every_need
from peakline.findings.program_values import (
    ROWS,
    ProgramOfDevices,
    each_program,
    evidence_of,
    rows_of,
    where_made,
)
from peakline.memory.peak.lone import ALONE, LEAST, ONE_STEP, lone_peak, more_often
from peakline.text import allocator_text, size_text
from peakline.timing.programs.runs import run_totals

if TYPE_CHECKING:
    from peakline.findings.context import Findings, MemoryContext

COLUMNS = columns(
    *SIGNATURE, *ORIGIN, "scope", "buffer_bytes", "bytes", "count", "step", "peak_bytes",
    others_bytes="Most at other times",
    saved_bytes="Saves", program="Program",
)  # fmt: skip
_ROWS = 5
_EXPLAINED = 0.5
"""What is only there then must be on record: else the figures alone say so."""

_EVALUATION = re.compile(r"(?i)(?:^|_)(?:eval\w*|val|valid\w*|test\w*|predict\w*|infer\w*)")
_FEW = 0.34
"""A program that runs at most so often as the one that runs most is not the step."""


def findings_of(context: MemoryContext, kind: Kind, where: str, advice: str) -> Findings:
    """Of each allocator whose peak stands alone ``where``."""
    history = context.history
    if history is None:
        return
    for one in context.allocators:
        number = history.lifetimes.allocators.index(one.allocator)
        marks = None if one.growth is None else one.growth.marks
        result = lone_peak(
            history, number, marks, context.steps, one.peak.capacity_bytes, context.origins
        )
        at_peak = one.at_peak
        if result is None or result.where != where or at_peak is None or not at_peak.rows.size:
            continue
        made = at_peak.is_freed & (at_peak.step == at_peak.own_step)
        if where == ONE_STEP:
            # What other steps make as often lies together by chance: ops run side by side.
            made &= more_often(history, at_peak)[at_peak.codes]
        if int(at_peak.bytes[made].sum()) < _EXPLAINED * (result.peak_bytes - result.others_bytes):
            continue
        # What lives on is there at other times too.
        passing = at_peak.is_freed if at_peak.is_freed.any() else slice(None)
        codes, totals = at_peak.by_code(passing)
        order = np.argsort(-totals, kind="stable").tolist()[:_ROWS]
        first = history.signatures[int(codes[order[0]])]
        yield kind.finding(
            f"{allocator_text(one.allocator)}: memory is fullest {result.when}, with "
            f"{size_text(result.peak_bytes)}; at other times it takes "
            f"{size_text(result.others_bytes)} at most: {first.title}",
            {
                **about_signature(first),
                "buffer_bytes": first.bytes,
                "step": result.step,
                "peak_bytes": result.peak_bytes,
                "others_bytes": result.others_bytes,
                "saved_bytes": result.peak_bytes - result.others_bytes,
            },
            advice,
            tuple(
                history.signatures[int(codes[place])].as_row()
                | {
                    "bytes": int(totals[place]),
                    "count": int(np.count_nonzero(at_peak.codes == codes[place])),
                }
                for place in order
            ),
            # The first steps of a run compile, measure kernels and fill caches.
            severity="info" if result.is_first else "",
        )


@dataclass(frozen=True)
class _Usual:
    """The program that runs most beside the one that needs most: its name and runs, and the most
    bytes that any of the others needs.
    """

    label: str
    runs: int
    most_bytes: int


def _usual(one: ProgramOfDevices) -> _Usual | None:
    """None where no other runs more, or one needs nearly as much."""
    every, needs = every_need(one.profile)
    runs, times = (column.tolist() for column in run_totals(one.profile))
    need = one.need
    own = need.program.number
    others = [number for number, count in enumerate(runs) if count and number != own]
    usual = max(others, key=lambda number: (times[number], runs[number]), default=None)
    if usual is None or needs[usual] <= 0 or times[own] >= times[usual]:
        return None
    most = max(needs[number] for number in others)
    if need.bytes < ALONE * most or need.bytes - most < LEAST:
        return None
    return _Usual(every[usual].label, runs[usual], most)


def of_programs(context: MemoryContext, kind: Kind, *, in_evaluation: bool) -> Findings:
    """Of each program that needs most and is not the one that runs most, ``in_evaluation`` by its
    name or not.
    """
    yield from each_program(
        context.programs, lambda one: _of_program(one, kind, in_evaluation=in_evaluation)
    )


def _of_program(one: ProgramOfDevices, kind: Kind, *, in_evaluation: bool) -> Findings:
    is_evaluation = _EVALUATION.search(one.need.program.name) is not None
    usual = _usual(one) if one.need.is_run and is_evaluation == in_evaluation else None
    if usual is None:
        return
    need = next((x for x in one.needs if is_evaluation or x.runs <= _FEW * usual.runs), None)
    if need is None:
        return
    first = need.program.largest(1)[0]
    yield kind.finding(
        f"{need.program.label} needs {size_text(need.bytes)}, {usual.label} and all others "
        f"{size_text(usual.most_bytes)} at most: {first.shape} of "
        f"{first.op_name or first.instruction}{where_made(first)}",
        {
            **evidence_of(need, first),
            "others_bytes": usual.most_bytes,
            "saved_bytes": need.bytes - usual.most_bytes,
        },
        "Run it on smaller batches: it needs more than the step that trains.",
        rows_of(need.program.largest(ROWS)),
    )
