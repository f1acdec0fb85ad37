"""Limits that a profile is held to, and the verdict.

Its names are imported on first use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from peakline.lazy import door, listed

if TYPE_CHECKING:
    from peakline.check.allowance import LEARNED
    from peakline.check.baseline import is_baseline
    from peakline.check.history import (
        baseline_document,
        baseline_of,
        baseline_text,
        followed_by,
        joined,
        read_history,
    )
    from peakline.check.limit import limit_checks
    from peakline.check.limits import check_limits
    from peakline.check.programs import near, places_of
    from peakline.check.settings import find_settings, read_settings
    from peakline.check.time import TimeState, time_state_of

__all__ = [
    "LEARNED",
    "TimeState",
    "baseline_document",
    "baseline_of",
    "baseline_text",
    "check_limits",
    "find_settings",
    "followed_by",
    "is_baseline",
    "joined",
    "limit_checks",
    "near",
    "places_of",
    "read_history",
    "read_settings",
    "time_state_of",
]

__getattr__ = door(
    __name__,
    {
        "LEARNED": ".allowance",
        "TimeState": ".time",
        "baseline_document": ".history",
        "baseline_of": ".history",
        "baseline_text": ".history",
        "check_limits": ".limits",
        "find_settings": ".settings",
        "followed_by": ".history",
        "is_baseline": ".baseline",
        "joined": ".history",
        "limit_checks": ".limit",
        "near": ".programs",
        "places_of": ".programs",
        "read_history": ".history",
        "read_settings": ".settings",
        "time_state_of": ".time",
    },
)
__dir__ = listed(__name__)
