"""The ``graph_scopes`` tool: what of a graph is visible with some of its scopes open.

However large the graph is, an answer has at most some hundred items: what is closed is counted in
the scope that holds it, and a scope that holds very many shows groups of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from peakline.toolbox.registry import Tool
from peakline.tools.graph_scopes.parameters import GraphScopesParameters

if TYPE_CHECKING:
    from peakline.tables import Profile

__all__ = ["TOOL", "GraphScopesParameters"]


def _run(profile: Profile, parameters: GraphScopesParameters, _format: str) -> bytes:
    from peakline.toolbox.written import compact_json
    from peakline.tools.graph_scopes.views import VIEWS

    document = VIEWS[parameters.view](profile, parameters)
    return compact_json({"view": parameters.view, "host": profile.host, **document})


TOOL = Tool(
    name="graph_scopes",
    doc="What of a graph or compiled program is visible with some of its scopes open, search, "
    "paths, details, the schedule.",
    parameters=GraphScopesParameters,
    formats=("json",),
    shows=(("nodes",), ("hlo_modules",)),
    run=_run,
)
