"""The ``graph_viewer`` tool as XProf answers it (``convert/graph_viewer_processor.cc``)."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from peakline.errors import NotFoundError, UsageError
from peakline.tools import graph_viewer as ours
from peakline.xprof import rules

if TYPE_CHECKING:
    from peakline.schema import HloModuleProto
    from peakline.tables import Profile
    from peakline.tools.graph_viewer.parameters import GraphViewerParameters


def _run(profile: Profile, parameters: GraphViewerParameters, output_format: str) -> bytes:
    number = rules.find_program(
        profile, parameters.module_name, parameters.program_id, _node(parameters)
    )
    programs = profile.programs()
    if programs is None:
        raise NotFoundError(f"{profile.path}: no compiled programs")
    data = programs.data(number)
    if parameters.type == "pb":
        return data.tobytes()
    if parameters.type == "json":
        raise UsageError("graph_viewer: XProf has no JSON of a program")
    if parameters.type == "pbtxt":
        return ours.message_text(profile, data, rules.NOT_TAKEN)
    if parameters.type == "custom_call":
        # XProf 2.24.2 does not know it: it writes the long text with metadata.
        parameters = replace(parameters, type="long_txt", show_metadata=True)
    read = rules.as_read(data)
    if parameters.type in ("short_txt", "long_txt"):
        return ours.program_text(read, parameters, len(data))
    if parameters.type == "graph":
        return _drawn(read.whole(), parameters, output_format)
    from peakline.xprof.graph_viewer.linked import adjacent_nodes

    return adjacent_nodes(read.whole(), parameters.node_name)


def _drawn(module: HloModuleProto, parameters: GraphViewerParameters, output_format: str) -> bytes:
    from peakline.xprof.graph_viewer.dot import Drawing
    from peakline.xprof.graph_viewer.linked import Shown, link

    name = parameters.node_name
    if not name:
        raise UsageError("node_name should not be empty")
    if output_format != "dot":
        raise UsageError("graph_viewer: XProf draws no URL here; say format dot")
    computations = link(module)
    wanted = name.lower()
    one = next((each for each in computations if each.name.lower() == wanted), None)
    shown, label = Shown(), ""
    if one is None:
        every = (made for each in computations for made in each.made)
        plain = wanted.removeprefix("%")
        node = next((made for made in every if made.name.lower() == plain), None)
        if node is None:
            raise NotFoundError(f"no instruction and no computation {name!r}").quoting(repr(name))
        one, shown = node.parent, Shown(node, parameters.graph_width)
        label = f"Neighborhood of {parameters.graph_width} nodes around {node.name}"
    drawing = Drawing(
        module,
        one,
        shown,
        label,
        with_config=parameters.show_metadata,
        with_fusions=not parameters.merge_fusion,
    )
    return drawing.text().encode("utf-8", "replace")


def _node(parameters: GraphViewerParameters) -> str:
    return parameters.node_name if parameters.type in ("graph", "adj_nodes", "custom_call") else ""


TOOL = replace(ours.TOOL, run=_run)
