"""The ``graph_viewer`` tool: a compiled program as a graph, as text, or as its message.

XProf's tool of the same name (openxla/xprof, ``convert/graph_viewer_processor.cc``), with its
parameters.
"""

from __future__ import annotations

from io import BytesIO
from typing import TYPE_CHECKING, Literal

from peakline.errors import UsageError
from peakline.toolbox.parameters import XprofParameters, parameter
from peakline.toolbox.registry import Tool

if TYPE_CHECKING:
    from peakline.schema import HloProto
    from peakline.tables import Profile

__all__ = ["TOOL", "GraphViewerParameters", "format_of", "program_text"]

_FORMATS = {"pb": "proto", "short_txt": "text", "long_txt": "text", "pbtxt": "text"}


class GraphViewerParameters(XprofParameters):
    """The parameters; text is accepted for numbers."""

    type: Literal[
        "graph", "short_txt", "long_txt", "pbtxt", "pb", "json", "adj_nodes", "custom_call"
    ] = parameter(
        "graph",
        description="graph: what is around a node (json or dot); json: that, or all of the "
        "program; adj_nodes: the names beside a node; short_txt, long_txt: HLO text; pb, pbtxt: "
        "the message; custom_call: what a custom call is given",
    )
    module_name: str = parameter(
        "", description="the program's name, with its id in parentheses where several have it"
    )
    program_id: str = parameter("", description="or its id")
    node_name: str = parameter("", description="an instruction or a computation of the program")
    graph_width: int = parameter(
        3, ge=0, le=1000, description="how many edges away from the node the graph reaches"
    )
    show_metadata: bool = parameter(
        False,  # noqa: FBT003 (the default)
        description="in texts also where instructions come from; in graphs back ends' words",
    )
    merge_fusion: bool = parameter(
        False,  # noqa: FBT003 (the default)
        description="draw a fusion as one node",
    )


def format_of(parameters: GraphViewerParameters, chosen: str) -> str:
    """The format of the answer: but for a graph, which can be drawn, ``type`` decides it."""
    if parameters.type == "custom_call":
        return "text"
    return chosen if parameters.type == "graph" else _FORMATS.get(parameters.type, "json")


def _run(profile: Profile, parameters: GraphViewerParameters, output_format: str) -> bytes:
    from peakline.hlo.choice import choose_program
    from peakline.tools.graph_viewer.neighbourhood import answer_graph

    number = choose_program(profile, parameters.module_name, parameters.program_id)
    programs = profile.programs()
    if programs is None:
        raise UsageError(f"{profile.path}: no compiled programs")
    if parameters.type in ("graph", "json", "adj_nodes", "custom_call"):
        return answer_graph(profile, number, parameters, output_format)
    if parameters.type == "pb":
        return programs.data(number).tobytes()
    return _text(profile, number, parameters)


def _text(profile: Profile, number: int, parameters: GraphViewerParameters) -> bytes:
    from peakline.errors import InputError
    from peakline.hlo.modules import parse_program

    programs = profile.programs()
    proto = None if programs is None else parse_program(programs.data(number).tobytes())
    if proto is None:
        raise InputError(f"{profile.path}: the program is no HloProto")
    return program_text(proto, parameters)


def program_text(proto: HloProto, parameters: GraphViewerParameters) -> bytes:
    """The text of a program that ``type`` names."""
    if parameters.type == "pbtxt":
        from peakline.hlo.printing.proto_text import proto_text

        return "".join(proto_text(proto)).encode()
    from peakline.hlo.printing import PrintOptions, module_text

    is_short = parameters.type == "short_txt"
    options = PrintOptions(short=is_short, large=not is_short, metadata=parameters.show_metadata)
    out = BytesIO()
    for part in module_text(proto.hlo_module, options):
        out.write(part.encode("utf-8", "replace"))
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
