"""The time of ops by the shapes of their inputs: the ``shape_time`` table."""

from __future__ import annotations

from peakline.tables import Columns, Profile
from peakline.timing.ops.places import columns_from, shape_times


def columns_of(profile: Profile) -> Columns:
    """The rows of `peakline.timing.ops.places.shape_times`.

    Raises InputError when the profile cannot be read.
    """
    return columns_from(
        shape_times(profile),
        ("side", "op", "input_shape"),
        ("occurrences", "total_ps", "self_ps", "median_ps", "p95_ps", "max_ps"),
    )
