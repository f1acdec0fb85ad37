"""What the findings about the time of steps have in common: their evidence, their rows, what they
say of functions and ops, and why a step is slow in a few words.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from peakline.arrays import AnyArray, BoolArray
from peakline.findings.kind import columns, of_frame
from peakline.findings.time_context import TimeContext
from peakline.text import source_text, time_text
from peakline.timing.frame_work import FrameWork
from peakline.timing.ops.in_steps import StepOps
from peakline.timing.ops.places import source_of
from peakline.timing.steps.facts import PARTS, StepFacts
from peakline.trace.calls import WORDS
from peakline.trace.frames import Frame

if TYPE_CHECKING:
    from peakline.timing.steps.facts import StepFacts

FRAME_ROWS = 10
ROWS = 20
"""So many steps stand behind a finding."""

COLUMNS = columns("steps", "devices", "device", "step", "wall_ps", "share", "gain_ps", "gain_share")
COLUMNS |= columns("most_gain_share", "part_of")


def gain_of(facts: StepFacts, share: float, lost: int) -> dict[str, object]:
    """The ``share`` that the title has, and what would go of the time, ``lost`` in all lanes."""
    return {"share": share, "gain_ps": lost // facts.lanes, "gain_share": share}


def evidence_of(facts: StepFacts, share: float, lost: int, *parts: str) -> dict[str, object]:
    """The numbers of the steps, the ``parts`` of their time, and the gain."""
    evidence: dict[str, object] = {
        "steps": facts.count,
        "devices": len(facts.devices),
        "wall_ps": facts.wall_ps // facts.lanes,
    }
    evidence |= {name: facts.total(name) // facts.lanes for name in parts}
    return evidence | gain_of(facts, share, lost)


def rows_by_step(
    facts: StepFacts, lost: AnyArray, *parts: str, **shown: AnyArray
) -> tuple[dict[str, object], ...]:
    """The steps that lose most, per device, with ``parts`` of their time and what is ``shown``."""
    values = {name: facts.part(name) for name in parts} | shown
    order = (-lost).argsort(kind="stable")[:ROWS].tolist()
    return tuple(
        {
            "step": facts.label(row),
            **({"device": facts.devices[int(facts.device[row])]} if facts.devices else {}),
            "wall_ps": int(facts.part("wall_ps")[row]),
            **{name: int(column[row]) for name, column in values.items()},
        }
        for row in order
        if int(lost[row])
    )


def about_frame(work: FrameWork) -> dict[str, object]:
    """Which function, what it does, and how long."""
    return {
        **of_frame(work.frame),
        "does": WORDS[work.call],
        "callee": work.callee,
        "calls_per_step": round(work.calls, 1),
        "function_ps": work.ps,
    }


def frame_rows(result: Sequence[FrameWork]) -> tuple[dict[str, object], ...]:
    """The functions with most time."""
    return tuple({**about_frame(one), "share": one.share} for one in result[:FRAME_ROWS])


def where_of(
    context: TimeContext, ops: StepOps, chosen: BoolArray, frame: Frame | None
) -> tuple[str, dict[str, object]]:
    """What a title says of where ops come from, and its evidence: the function around them, else
    the line of the program that their instructions come from.
    """
    if frame is not None:
        return f", in {frame.title}", of_frame(frame)
    file, line = source_of(context.profile, ops, chosen)
    if not file:
        return "", {}
    return f", from {source_text(file, line)}", {"file": file, "line": line}


def beyond_median(facts: StepFacts, row: int, usual_ps: float) -> str:
    """``2.4 times the median: +1.2 ms compilation`` of the step of a row, where the median of its
    like is ``usual_ps``; the part is the one that it takes longest beyond the step in the middle.
    """
    median = facts.middle_row(row)
    beyond = {part: int(facts.part(part)[row] - facts.part(part)[median]) for part in PARTS}
    part = max(beyond, key=lambda one: beyond[one])
    why = f": +{time_text(beyond[part])} {PARTS[part]}" if beyond[part] > 0 else ""
    return f"{int(facts.part('wall_ps')[row]) / usual_ps:.1f} times the median{why}"
