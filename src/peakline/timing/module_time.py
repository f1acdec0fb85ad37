"""The time of each module"s ops: the ``module_time`` table."""

from __future__ import annotations

from peakline.tables import Columns, Profile
from peakline.timing.ops.places import columns_from, module_times


def columns_of(profile: Profile) -> Columns:
    """The rows of `peakline.timing.ops.places.module_times`.

    Raises InputError when the profile cannot be read.
    """
    return columns_from(
        module_times(profile), ("side", "module"), ("occurrences", "total_ps", "self_ps")
    )
