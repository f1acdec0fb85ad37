"""The type of each op that a profile names, where something in it says it."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from peakline.tables import Profile
from peakline.tables.once import once

_EACH = ("op_runs", "nodes")


@once
def op_types_of(profile: Profile) -> Mapping[str, str]:
    """Types by name: of executions and nodes of a graph, and of events that are called
    ``name:Type`` (TensorFlow).
    """
    found: dict[str, str] = {}
    for table in _EACH:
        if table not in profile.tables or not profile.has_rows(table):
            continue
        column = "op_type" if table == "op_runs" else "op"
        rows = profile.columns(table, frozenset(("name", column)))
        names, types = rows.names("name"), rows.names(column)
        pairs = np.unique(np.stack([names.codes, types.codes]), axis=1)
        for name, kind in pairs.T.tolist():
            if name >= 0 and kind >= 0 and types.values[kind]:
                found.setdefault(names.values[name], types.values[kind])
    if not found and "events" in profile.tables:
        events = profile.columns("events", frozenset(("name",))).names("name")
        for text in events.values:
            name, _, kind = text.rpartition(":")
            if name and kind[:1].isupper() and kind.isalnum():
                found.setdefault(name, kind)
    return found
