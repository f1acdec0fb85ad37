"""Columns of ``hlo_buffers`` that need the order of the program: when each value is live."""

from __future__ import annotations

from collections.abc import Set as AbstractSet

import numpy as np

from peakline.hlo.memory import memory_of
from peakline.tables import Columns, Profile


def columns_of(profile: Profile, names: AbstractSet[str]) -> Columns:
    """Those of ``start``, ``end`` and ``is_live_at_peak`` that are in ``names``.

    Places count the instructions of the whole program in the order in which they run. Null where
    nothing says when a value is live.

    Raises InputError when the profile cannot be read.
    """
    count = len(profile.programs() or ())
    lives = [memory_of(profile, number).lives for number in range(count)]
    start, end, known, at_peak = (
        np.concatenate([np.zeros(0, kind), *(getattr(one, name) for one in lives)])
        for name, kind in (
            ("start", np.int64), ("end", np.int64), ("is_known", np.bool_), ("at_peak", np.bool_)
        )
    )  # fmt: skip
    data = {"start": start, "end": end, "is_live_at_peak": at_peak}
    return Columns({name: column for name, column in data.items() if name in names},
                   dict.fromkeys(names, known))  # fmt: skip
