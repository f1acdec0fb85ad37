"""The ``trace_viewer`` tool with the events that XProf shows; ours of another than an XSpace."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from peakline.tools import trace_viewer as ours

if TYPE_CHECKING:
    from peakline.tables import Profile

__all__ = ["TOOL"]


def _run(profile: Profile, parameters: ours.TraceViewerParameters, form: str) -> bytes:
    if "event_types" not in profile.tables:
        return ours.run(profile, parameters, form)
    if form == "pb":
        from peakline.xprof.trace_viewer.view import xprof_view

        return ours.compact(xprof_view(profile))
    from peakline.xprof.trace_viewer.xprof_json import xprof_trace

    return xprof_trace(profile)


TOOL = replace(ours.TOOL, run=_run)
