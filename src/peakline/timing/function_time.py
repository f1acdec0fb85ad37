"""The time of the program's own functions: the ``function_time`` table."""

from __future__ import annotations

from peakline.tables import Columns, Profile
from peakline.timing.ops.functions import function_times
from peakline.timing.ops.places import columns_from


def columns_of(profile: Profile) -> Columns:
    """The rows of `peakline.timing.ops.functions.function_times`.

    Raises InputError when the profile cannot be read.
    """
    return columns_from(
        function_times(profile),
        ("side", "function", "file"),
        ("line", "occurrences", "total_ps", "self_ps"),
    )
