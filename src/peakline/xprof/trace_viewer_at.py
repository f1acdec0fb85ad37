"""The ``trace_viewer@`` tool with the events of an XSpace that XProf shows, chosen by its rule."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from peakline.tables import Profile
from peakline.timing.ops.tpu import types_of
from peakline.tools import trace_viewer_at as ours
from peakline.viewer.part import HostPart, cut_name
from peakline.viewer.view import View

_SHORT = 16
"""A name that is no longer stands with its events."""


def _partial(profile: Profile, parameters: ours.StreamingTraceParameters) -> HostPart:
    if "event_types" not in profile.tables:
        return replace(ours.part(profile, parameters), thinned=True)
    from peakline.xprof.trace_viewer.choose import choose_as_xprof, find_prefix_as_xprof
    from peakline.xprof.trace_viewer.view import xprof_view

    wanted, view = parameters, xprof_view(profile)
    begin, end, resolution = wanted.start_time_ms, wanted.end_time_ms, int(wanted.resolution or 0)
    part = ours.part_of_view(
        view, wanted, find_prefix_as_xprof,
        lambda view: choose_as_xprof(view, begin, end, resolution, full_dma=wanted.full_dma),
    )  # fmt: skip
    # So it says of every answer.
    return replace(part, frames=() if wanted.event_name else _full_names(view), thinned=True)


def _full_names(view: View) -> tuple[str, ...]:
    """The long names of all events that are shown by another."""
    types = view.profile.columns("event_types")
    rows = view.rows(np.arange(view.start.size))
    kinds = types_of(view.profile, rows[rows >= 0])
    names, shown = types.names("name"), types.names("display_name")
    full = [
        cut_name(names[kind] or "")
        for kind in np.unique(kinds).tolist()
        if kind >= 0 and shown[kind]
    ]
    made = view.made.full_names() if view.made is not None else []
    return tuple(dict.fromkeys(text for text in [*full, *made] if len(text) > _SHORT))


def _combine(
    parts: Sequence[tuple[str, HostPart]], parameters: ours.StreamingTraceParameters, form: str
) -> bytes:
    return ours.together(parts, parameters, form, lambda ms: f"{ms:.6g}")


TOOL = replace(ours.TOOL, partial=_partial, combine=_combine)
