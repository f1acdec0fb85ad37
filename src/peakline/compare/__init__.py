"""What changed between two profiles, in memory and in time.

Its names are imported on first use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from peakline.lazy import door, listed

if TYPE_CHECKING:
    from peakline.compare.comparison import compare_profiles, profile_state
    from peakline.compare.hosts import HostStates, compare_hosts, straggler_of
    from peakline.compare.programs import with_programs
    from peakline.compare.series import series_of
    from peakline.compare.state import state_of

__all__ = [
    "HostStates",
    "compare_hosts",
    "compare_profiles",
    "profile_state",
    "series_of",
    "state_of",
    "straggler_of",
    "with_programs",
]

__getattr__ = door(
    __name__,
    {
        "HostStates": ".hosts",
        "compare_hosts": ".hosts",
        "compare_profiles": ".comparison",
        "profile_state": ".comparison",
        "series_of": ".series",
        "state_of": ".state",
        "straggler_of": ".hosts",
        "with_programs": ".programs",
    },
)
__dir__ = listed(__name__)
