"""Stats of events as what they are: from their texts, for formats that give only those."""

from __future__ import annotations

from collections.abc import Set as AbstractSet

import numpy as np

from peakline.tables.columns import Columns, Names


def typed_stats(stats: Columns, wanted: AbstractSet[str]) -> Columns:
    """The rows of ``event_stats`` called ``wanted``: see `Profile.typed_stats`.

    A text that reads as a number is one.
    """
    name = stats.names("name")
    codes = [code for code, text in enumerate(name.values) if text in wanted]
    rows = np.flatnonzero(np.isin(name.codes, codes))
    value = stats.names("value").take(rows)
    used, place = np.unique(value.codes, return_inverse=True)
    integer, real = np.zeros(used.size, np.int64), np.zeros(used.size, np.float64)
    kind = np.zeros(used.size, np.uint8)
    for number, code in enumerate(used.tolist()):
        if code < 0:
            continue
        text = value.values[code]
        try:
            integer[number] = wrap(int(text))
            kind[number] = 1
        except ValueError:
            try:
                real[number] = float(text)
                kind[number] = 2
            except ValueError:
                kind[number] = 3
    kinds = kind[place]
    return Columns(
        {
            "event_id": stats.array("event_id")[rows],
            "name": name.take(rows),
            "integer": integer[place],
            "real": real[place],
            "text": Names(np.where(kinds == 3, value.codes, -1).astype(np.int32), value.values),
        },
        {"integer": kinds == 1, "real": kinds == 2},
    )


def wrap(value: int) -> int:
    """``value`` reduced to a signed 64-bit integer."""
    return (value + 2**63) % 2**64 - 2**63
