"""The ``memory_viewer`` tool as XProf answers it (``convert/hlo_to_tools_data.cc``)."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING

from peakline.errors import UsageError
from peakline.tools import memory_viewer as ours
from peakline.xprof import rules

if TYPE_CHECKING:
    from peakline.tables import Profile
    from peakline.tools.memory_viewer import MemoryViewerParameters

_SPACE = re.compile(r"\s*([+-]?\d{1,10})\s*", re.ASCII)
_INT32 = range(-(2**31), 2**31)


def _run(profile: Profile, parameters: MemoryViewerParameters, output_format: str) -> bytes:
    from peakline.xprof.memory_viewer.heap import view_of

    number = rules.find_program(profile, parameters.module_name, parameters.program_id)
    programs = profile.programs()
    if programs is None:
        raise UsageError(f"{profile.path}: no compiled programs")
    view = view_of(profile, programs, number, _space(parameters.memory_space))
    return ours.written(view, output_format, noise=parameters.timeline_noise, quote=str)


def _space(text: str) -> int:
    """The memory space; what is no int32 means 0."""
    result = _SPACE.fullmatch(text)
    space = int(result[1]) if result else 0
    return space if space in _INT32 else 0


TOOL = replace(ours.TOOL, run=_run)
