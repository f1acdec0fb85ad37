"""The ``graph_viewer`` tool: a compiled program as a graph, as text, or as its message.

XProf's tool of the same name (openxla/xprof, ``convert/graph_viewer_processor.cc``), with its
parameters.
"""

from __future__ import annotations

from io import BytesIO
from typing import TYPE_CHECKING

from peakline import hlo
from peakline.errors import InputError, UsageError
from peakline.text import check_length
from peakline.toolbox.registry import Tool
from peakline.tools.graph_viewer.parameters import GraphViewerParameters

if TYPE_CHECKING:
    from collections.abc import Iterable

    from peakline.hlo.messages import ModuleParts
    from peakline.tables import Profile
    from peakline.wire import Buffer

__all__ = ["TOOL", "GraphViewerParameters", "format_of", "message_text", "program_text"]

_FORMATS = {"pb": "proto", "short_txt": "text", "long_txt": "text", "pbtxt": "text"}


def format_of(parameters: GraphViewerParameters, chosen: str) -> str:
    """The format of the answer: but for a graph, which can be drawn, ``type`` decides it."""
    if parameters.type == "custom_call":
        return "text"
    return chosen if parameters.type == "graph" else _FORMATS.get(parameters.type, "json")


def _run(profile: Profile, parameters: GraphViewerParameters, output_format: str) -> bytes:
    from peakline.tools.graph_viewer.neighbourhood import answer_graph

    number = hlo.choose_program(profile, parameters.module_name, parameters.program_id)
    programs = profile.programs()
    if programs is None:
        raise UsageError(f"{profile.path}: no compiled programs")
    if parameters.type in ("graph", "json", "adj_nodes", "custom_call"):
        return answer_graph(profile, number, parameters, output_format)
    if parameters.type == "pb":
        return programs.data(number).tobytes()
    return _text(profile, programs.data(number), parameters)


def _text(profile: Profile, data: Buffer, parameters: GraphViewerParameters) -> bytes:
    if parameters.type == "pbtxt":
        return message_text(profile, data)
    parts = hlo.read_module(data)
    if parts is None:
        raise _unreadable(profile)
    return program_text(parts, parameters, len(data))


def message_text(profile: Profile, data: Buffer, without: str = "") -> bytes:
    """A serialized HloProto of a profile as text, but for a field of the full name ``without``.

    Raises InputError where the bytes are none.
    """
    from google.protobuf.message import DecodeError

    try:
        return _joined(hlo.stored_text(data, "xla.HloProto", without))
    except DecodeError:
        raise _unreadable(profile) from None


def _unreadable(profile: Profile) -> InputError:
    return InputError(f"{profile.path}: the program is no HloProto")


def program_text(parts: ModuleParts, parameters: GraphViewerParameters, size: int) -> bytes:
    """The text of a program of ``size`` bytes that ``type`` names. Raises as `check_length`."""
    is_short = parameters.type == "short_txt"
    options = hlo.PrintOptions(
        short=is_short, large=not is_short, metadata=parameters.show_metadata
    )
    return _joined(hlo.module_text(parts, options), size)


def _joined(parts: Iterable[str], size: int | None = None) -> bytes:
    out = BytesIO()
    for part in parts:
        out.write(part.encode("utf-8", "replace"))
        if size is not None:
            check_length(out.tell(), size)
    # Without a copy: nothing else writes.
    return out.getvalue()


TOOL = Tool(
    name="graph_viewer",
    doc="A compiled program (HLO): the graph around an instruction, its text, its message.",
    parameters=GraphViewerParameters,
    formats=("json", "dot", "text", "proto"),
    shows=(("hlo_modules",),),
    run=_run,
    format_of=format_of,
)
