"""What the methods of a `peakline.Profile` return, and what that consists of: for annotations.

All are frozen. A value with rows has ``to_arrow()``, ``to_pandas()`` and ``to_polars()``; pandas
and Polars have to be installed. ``as_json()``, where there is one, is what the verbs print with
``--json``. Importing this module loads no analysis.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from peakline.lazy import door, listed

if TYPE_CHECKING:
    from peakline.check.verdict import Check, Checks
    from peakline.compare.comparison import Comparison
    from peakline.findings.finding import Finding
    from peakline.findings.memory_answer import MemoryAnswer
    from peakline.findings.ranking import Findings
    from peakline.findings.time_answer import StepTimes, TimeAnswer
    from peakline.memory.fit.model import Fit, Fits
    from peakline.memory.peak.explained import AllocatorPeak, PeakBuffer
    from peakline.shown import Several
    from peakline.tables.profile import ProfileWarning
    from peakline.timing.critical_path.path import Piece, StepPath
    from peakline.timing.launches.summary import DeviceLaunches, LaunchSummary
    from peakline.timing.steps.facts import StepFacts

_HOMES = {
    "AllocatorPeak": "peakline.memory.peak.explained",
    "Check": "peakline.check.verdict",
    "Checks": "peakline.check.verdict",
    "Comparison": "peakline.compare.comparison",
    "DeviceLaunches": "peakline.timing.launches.summary",
    "Finding": "peakline.findings.finding",
    "Findings": "peakline.findings.ranking",
    "Fit": "peakline.memory.fit.model",
    "Fits": "peakline.memory.fit.model",
    "LaunchSummary": "peakline.timing.launches.summary",
    "MemoryAnswer": "peakline.findings.memory_answer",
    "PeakBuffer": "peakline.memory.peak.explained",
    "Piece": "peakline.timing.critical_path.path",
    "ProfileWarning": "peakline.tables.profile",
    "Several": "peakline.shown",
    "StepFacts": "peakline.timing.steps.facts",
    "StepPath": "peakline.timing.critical_path.path",
    "StepTimes": "peakline.findings.time_answer",
    "TimeAnswer": "peakline.findings.time_answer",
}

__all__ = [
    "AllocatorPeak",
    "Check",
    "Checks",
    "Comparison",
    "DeviceLaunches",
    "Finding",
    "Findings",
    "Fit",
    "Fits",
    "LaunchSummary",
    "MemoryAnswer",
    "PeakBuffer",
    "Piece",
    "ProfileWarning",
    "Several",
    "StepFacts",
    "StepPath",
    "StepTimes",
    "TimeAnswer",
]

__getattr__ = door(__name__, _HOMES)
__dir__ = listed(__name__)
