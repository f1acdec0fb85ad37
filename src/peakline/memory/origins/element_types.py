"""Which buffers hold numbers of 64 bits, where the file says it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from peakline.arrays import BoolArray, IntpArray
from peakline.tables import Profile
from peakline.tables.once import once

if TYPE_CHECKING:
    from peakline.memory.origins.op_events import OpEvents
    from peakline.memory.signatures import History

_FLOAT64 = frozenset(("double", "float64", "f64", "dt_double", "complex128", "c128"))


def float64_ops(profile: Profile, *, read: bool = True) -> frozenset[str]:
    """The ops whose buffers are float64, by the records of memory.

    Found once; whoever releases the records has it found before. Without ``read`` none where it
    has not been.
    """
    result = _found(profile)
    if not result and read:
        result.append(_float64_ops(profile))
    return result[0] if result else frozenset()


@once
def _found(_: Profile) -> list[frozenset[str]]:
    return []


def _float64_ops(profile: Profile) -> frozenset[str]:
    if "allocator_events" not in profile.tables or not profile.has_rows("allocator_events"):
        return frozenset()
    rows = profile.columns("allocator_events")
    types, op = rows.names("data_type"), rows.names("op")
    wide = np.array([*(one.lower() in _FLOAT64 for one in types.values), False], np.bool_)
    if not wide.any():
        return frozenset()
    codes = np.unique(op.codes[wide[types.codes]])
    return frozenset(op.values[code] for code in codes.tolist() if code >= 0)


def float64_rows(history: History, rows: IntpArray, ops: OpEvents | None) -> BoolArray:
    """Which of ``rows`` (allocations) are float64: as recorded, or made of nothing but float64."""
    signatures = history.signatures
    wide = np.array([text.lower() in _FLOAT64 for text in signatures.data_types], np.bool_)
    # The last place is for records without a signature, whose code is -1.
    of_code = np.append(wide[signatures.data_type], False)
    result: BoolArray = of_code[signatures.codes[rows]]
    if ops is not None:
        result = result | ops.is_float64[rows]
    return result
