"""What a notebook shows of steps: each of them, or the longest of many."""

from __future__ import annotations

from peakline.document import limits
from peakline.document.steps import steps_tables
from peakline.render.notebook.drawings import steps_drawing
from peakline.render.notebook.pieces import drawn, headed, line
from peakline.shown import headline_of
from peakline.timing.steps.facts import StepFacts


def parts(steps: StepFacts) -> list[str]:
    """The answer of `Profile.steps`."""
    head = headed("Steps", headline_of(steps))
    if not steps.rows:
        return [headed("Steps"), line("nothing in this profile says what a step is")]
    _, wall = steps.slowest_lane()
    return [head, steps_drawing(wall), drawn(steps_tables(steps)[0], limits.STEPS.notebook)]
