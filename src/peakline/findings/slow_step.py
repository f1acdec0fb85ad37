"""Why a step is slow, in a few words: how many times the median, and in what part.

What the tool ``step_difference`` says at length (`peakline.findings.step_difference`).
"""

from __future__ import annotations

from peakline.text import time_text
from peakline.timing.step_facts import PARTS, StepFacts


def beyond_median(facts: StepFacts, row: int, usual_ps: float) -> str:
    """``2.4 times the median: +1.2 ms compilation`` of the step of a row, where the median of its
    like is ``usual_ps``; the part is the one that it takes longest beyond the step in the middle.
    """
    median = facts.middle_row(row)
    beyond = {part: int(facts.part(part)[row] - facts.part(part)[median]) for part in PARTS}
    part = max(beyond, key=lambda one: beyond[one])
    why = f": +{time_text(beyond[part])} {PARTS[part]}" if beyond[part] > 0 else ""
    return f"{int(facts.part('wall_ps')[row]) / usual_ps:.1f} times the median{why}"
