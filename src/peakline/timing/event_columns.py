"""Columns of the table ``events`` that are made of all events of a line together.

An event lies in the innermost event of its line that holds it whole (`Nesting`); events that
overlap only in part enclose nothing of each other. What an event does is one of the words of
`Activity`, in lower case.
"""

from __future__ import annotations

from collections.abc import Set as AbstractSet

import numpy as np

from peakline.arrays import AnyArray, BoolArray
from peakline.kernels.trace_nesting import depths
from peakline.tables import Columns, Names, Profile
from peakline.tables.columns import Column
from peakline.trace.activity import activity_of
from peakline.trace.activity_names import Activity
from peakline.trace.events import Trace, nesting_of, trace_of

ACTIVITIES = tuple(activity.name.lower() for activity in Activity)
"""The words of the column ``activity``, by the number of the `Activity`."""


def columns_of(profile: Profile, names: AbstractSet[str]) -> Columns:
    """Those of ``parent_id``, ``depth``, ``self_ps`` (ps) and ``activity`` that are in ``names``.

    A value per row of ``events``, in its order; null for events that have no start.

    Raises InputError when the profile cannot be read.
    """
    trace = trace_of(profile)
    if trace.source != "events":
        # What ran are executions of ops; what a file had beside them would stay null.
        return Columns({"event_id": profile.columns("events", {"event_id"}).array("event_id")})
    rows = trace.size + trace.untimed
    nesting = nesting_of(profile)
    data: dict[str, Column] = {}
    valid: dict[str, BoolArray] = {}
    timed = _in_rows(trace, rows, np.ones(trace.size, np.bool_))
    if "self_ps" in names:
        # First: on the way it finds the parents too.
        data["self_ps"], valid["self_ps"] = _in_rows(trace, rows, nesting.own_ps), timed
    if "parent_id" in names:
        inside = nesting.parent >= 0
        parent = trace.rows(np.maximum(nesting.parent, 0)) if trace.size else nesting.parent
        data["parent_id"] = _in_rows(trace, rows, parent.astype(np.int64, copy=False))
        valid["parent_id"] = _in_rows(trace, rows, inside)
    if "depth" in names:
        depth = np.empty(trace.size, np.int32)
        depths(nesting.parent, depth)
        data["depth"], valid["depth"] = _in_rows(trace, rows, depth), timed
    if "activity" in names:
        codes = _in_rows(trace, rows, activity_of(profile)).astype(np.int32)
        data["activity"] = Names(np.where(timed, codes, np.int32(-1)), ACTIVITIES)
    return Columns(data, valid)


def _in_rows(trace: Trace, rows: int, values: AnyArray) -> AnyArray:
    """``values`` of the events of ``trace`` in the table's order; 0 for those without a time."""
    if trace.row is None:
        return values
    placed = np.zeros(rows, values.dtype)
    placed[trace.row] = values
    return placed
