"""Columns of ``hlo_instructions`` that are counted: what one execution of each costs."""

from __future__ import annotations

from collections.abc import Set as AbstractSet

import numpy as np

from peakline.hlo.row_costs import row_costs
from peakline.tables import Columns, Profile


def columns_of(profile: Profile, names: AbstractSet[str]) -> Columns:
    """Those of ``flops``, ``transcendentals`` and ``bytes_accessed`` that are in ``names``.

    Raises InputError when the profile cannot be read.
    """
    every = [row_costs(profile, number) for number in range(len(profile.programs() or ()))]
    return Columns(
        {
            name: np.concatenate([np.zeros(0), *(getattr(one, name) for one in every)])
            for name in sorted(names)
        }
    )
