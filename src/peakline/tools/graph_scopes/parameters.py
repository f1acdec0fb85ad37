"""What the ``graph_scopes`` tool takes."""

from __future__ import annotations

from typing import Literal

from peakline.toolbox.parameters import Parameters, parameter

_MOST_ITEM = 1 << 40


_LONGEST_TEXT = 1000


_LONGEST_LIST = 1 << 14


class GraphScopesParameters(Parameters):
    """The parameters; text is accepted for every value."""

    view: Literal[
        "scopes", "graphs", "overview", "search", "around", "path", "item", "schedule"
    ] = parameter(
        "scopes",
        description="scopes: what is visible; graphs: the graphs of the profile; overview: "
        "what they are, and rules that they break; search: nodes by text; around: a node and those "
        "near it; path: from an input to a node or from it to an output; item: all about one; "
        "schedule: a compiled program in the order in which it runs",
    )
    graph: str | None = parameter(
        None, max_length=_LONGEST_LIST,
        description="this graph or compiled program. Default: the program that took longest, else "
        "the largest graph",
    )  # fmt: skip
    function: str | None = parameter(
        None, max_length=_LONGEST_LIST, description="the body of this function of it"
    )
    opened: str | None = parameter(
        None, max_length=_LONGEST_LIST, pattern=r"^(none|[0-9]*(,[0-9]+)*)$",
        description="scopes: the items that are open, as 12,40, or none. Default: enough to "
        "see something",
    )  # fmt: skip
    reveal: int | None = parameter(
        None, ge=0, le=_MOST_ITEM, description="scopes: open also whatever holds this item"
    )
    item: int | None = parameter(
        None, ge=0, le=_MOST_ITEM, description="around, path, item: the item"
    )
    depth: int = parameter(1, ge=1, le=3, description="around: at most so many edges away")
    to: Literal["inputs", "outputs"] = parameter("inputs", description="path: where it leads")
    search: str = parameter(
        "", max_length=_LONGEST_TEXT,
        description="search: text in name, op, device or the framework's name, in any case",
    )  # fmt: skip
    sizes: bool = parameter(
        default=True,
        description="scopes, around, path: bytes of edges, which takes reading the attributes",
    )
    quick: bool = parameter(
        default=False,
        description="scopes, around, path: without bytes of edges as long as reading the "
        "attributes of a large graph for them takes longer than all else; `sizes_left_out` says so",
    )
    offset: int = parameter(0, ge=0, le=_MOST_ITEM, description="schedule: leave out so many rows")
    limit: int = parameter(
        200, ge=0, le=2000, description="search and schedule: at most so many rows"
    )
    width: int = parameter(1000, ge=1, le=4096, description="schedule: points of the curve")
