"""What stands out in a profile, and in which order it deserves attention.

Its names are imported on first use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from peakline.lazy import door, listed

if TYPE_CHECKING:
    from peakline.findings.failed_programs import explained_failures
    from peakline.findings.kinds.straggler import of_hosts
    from peakline.findings.memory_answer import NOTHING, answer_memory
    from peakline.findings.ranking import priorities
    from peakline.findings.summary import answers_of, summary_document
    from peakline.findings.time_answer import NO_STEPS, NO_TIME, answer_time

__all__ = [
    "NOTHING",
    "NO_STEPS",
    "NO_TIME",
    "answer_memory",
    "answer_time",
    "answers_of",
    "explained_failures",
    "of_hosts",
    "priorities",
    "summary_document",
]

__getattr__ = door(
    __name__,
    {
        "NOTHING": ".memory_answer",
        "NO_STEPS": ".time_answer",
        "NO_TIME": ".time_answer",
        "answer_memory": ".memory_answer",
        "answer_time": ".time_answer",
        "answers_of": ".summary",
        "explained_failures": ".failed_programs",
        "of_hosts": ".kinds.straggler",
        "priorities": ".ranking",
        "summary_document": ".summary",
    },
)
__dir__ = listed(__name__)
