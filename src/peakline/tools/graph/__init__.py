"""The ``graph`` tool: nodes and edges of a graph, what they cost, and a step's critical path."""

from __future__ import annotations

from typing import TYPE_CHECKING

from peakline.text import check_repeated
from peakline.toolbox.parameters import Parameters, parameter
from peakline.toolbox.registry import Tool

if TYPE_CHECKING:
    from peakline.tables import Profile

__all__ = ["TOOL", "GraphParameters"]


class GraphParameters(Parameters):
    """The parameters; text is accepted for numbers."""

    host: str | None = parameter(None, description="the host, where a session has several")
    graph: str | None = parameter(
        None, description="this graph. Default: those that ran in the step, else all written ones"
    )
    function: str | None = parameter(None, description="the body of this function")
    name: str | None = parameter(
        None, description="only nodes whose name has a match of this expression (RE2)"
    )
    node: str | None = parameter(None, description="only this node and those around it")
    depth: int = parameter(1, ge=0, description="how many edges away from `node`")
    max_nodes: int = parameter(
        1000, ge=1, description="most nodes: those that took longest, else the first"
    )
    step: str | None = parameter(
        None, description="the step's id or name, for costs and critical path. Default: the last"
    )


def _run(profile: Profile, parameters: GraphParameters, output_format: str) -> bytes:
    from peakline.graph.critical_path import critical_path, step_runs
    from peakline.graph.view import Selection, view_graph
    from peakline.tools.graph.output import FORMATS, Report

    step = step_runs(profile, parameters.step)
    selection = Selection(**parameters.but("host", "step"))
    report = Report(
        selection=selection,
        view=view_graph(profile, selection, step),
        path=critical_path(profile, step) if step is not None else None,
    )
    check_repeated(report.texts())
    if not profile.columns_or_empty("nodes").rows and step is None:
        profile.warn("no_graph", "no graph and no executions in this profile")
    return FORMATS[output_format](report).encode()


TOOL = Tool(
    name="graph",
    doc="Nodes and edges of a graph, what each node cost in a step, and its critical path.",
    parameters=GraphParameters,
    formats=("json", "dot", "text"),
    shows=(("nodes",), ("op_runs",), ("hlo_modules",)),
    run=_run,
)
