"""What the ``graph_viewer`` tool takes."""

from __future__ import annotations

from typing import Literal

from peakline.toolbox.parameters import XprofParameters, parameter


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
