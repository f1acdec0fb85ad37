"""The ``memory_viewer`` tool: the memory of a compiled program, and what is live at its peak.

XProf's tool of the same name (openxla/xprof, ``convert/hlo_to_tools_data.cc``), with its parameters
and its JSON.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from peakline import hlo
from peakline.errors import UsageError
from peakline.toolbox.parameters import XprofParameters, parameter
from peakline.toolbox.registry import Tool

if TYPE_CHECKING:
    from peakline.tables import Profile
    from peakline.tools.memory_viewer.view import View

__all__ = ["TOOL", "MemoryViewerParameters", "format_of", "written"]

_MAIN = "0"
_CSV, _DOT, _HTML = "csv", "dot", "html"
_LONGEST_SPACE = 18
"""Digits that an int64 has room for."""


class MemoryViewerParameters(XprofParameters):
    """The parameters; text is accepted for numbers."""

    module_name: str = parameter(
        "",
        description="the program's name, with its id in parentheses where several have it. "
        "Default: the one that needs most",
    )
    program_id: str = parameter("", description="or its id")
    memory_space: str = parameter(
        _MAIN, description="where: 0 is the device's main memory, 1 a TPU's VMEM, 5 the host's"
    )
    view_memory_allocation_timeline: bool = parameter(
        False,  # noqa: FBT003 (the default)
        description="a page (HTML) that draws the memory of temporaries over time",
    )
    timeline_noise: bool = parameter(
        False,  # noqa: FBT003 (the default)
        description="add a node of nothing to that drawing for Graphviz",
    )


def format_of(parameters: MemoryViewerParameters, chosen: str) -> str:
    """A drawing is a page, unless it is wanted for Graphviz."""
    is_drawing = parameters.view_memory_allocation_timeline and chosen != _DOT
    return _HTML if is_drawing else chosen


def _run(profile: Profile, parameters: MemoryViewerParameters, output_format: str) -> bytes:
    from peakline.tools.memory_viewer.heaps import view_of

    text = parameters.memory_space or _MAIN
    if not (text.isdecimal() and text.isascii() and len(text) <= _LONGEST_SPACE):
        shown = f"{text!r:.80}"
        raise UsageError(f"memory_viewer: parameter memory_space: a number, not {shown}").quoting(
            shown
        )
    number = _program(profile, parameters)
    programs = profile.programs()
    if programs is None:
        raise UsageError(f"{profile.path}: no compiled programs")
    view = view_of(profile, programs, number, int(text))
    return written(view, output_format, noise=parameters.timeline_noise)


def _program(profile: Profile, parameters: MemoryViewerParameters) -> int:
    """The number of the program that is named; without a name, as in program_memory, of the one
    that needs most. XProf answers nothing then.
    """
    name, program_id = parameters.module_name, parameters.program_id
    if name or program_id:
        return hlo.choose_program(profile, name, program_id)
    return hlo.program_that_needs_most(profile)


def written(
    view: View, output_format: str, *, noise: bool, quote: Callable[[str], str] | None = None
) -> bytes:
    """The answer in a format; ``quote`` escapes texts for Graphviz, where not as it needs it."""
    from peakline.tools.memory_viewer import answer, drawing

    if output_format in (_DOT, _HTML):
        dot = drawing.as_dot(view, noise=noise, quote=quote)
        page = drawing.as_page(view, dot) if output_format == _HTML else dot
        return page.encode("utf-8", "replace")
    return answer.answer_csv(view) if output_format == _CSV else answer.answer_json(view)


TOOL = Tool(
    name="memory_viewer",
    doc="The memory of a compiled program (HLO): its curve, and what is live at the peak.",
    parameters=MemoryViewerParameters,
    formats=("json", _CSV, _DOT, _HTML),
    shows=(("hlo_modules",),),
    run=_run,
    format_of=format_of,
)
