"""What the ``live_memory`` tool takes."""

from __future__ import annotations

from typing import Literal

from peakline.toolbox.parameters import Parameters, parameter

MOST_ROWS = 5000
"""An answer has at most so many rows."""


_MOST_PS = 1 << 62


_LONGEST_TEXT = 1000


class LiveMemoryParameters(Parameters):
    """The parameters; text is accepted for every value."""

    at_ps: int | None = parameter(
        None,
        ge=-_MOST_PS,
        le=_MOST_PS,
        description="the moment, in ps from the profile's start. Default: the allocator's peak",
    )
    allocator: str | None = parameter(
        None, description="of this allocator. Default: the one with the largest peak"
    )
    group: Literal[
        "buffer", "op", "scope", "region_type", "data_type", "shape", "category", "module",
        "function", "input_shape", "step",
    ] = parameter(
        "buffer", description="a row per buffer, or per op, scope, region_type, ... of buffers"
    )  # fmt: skip
    search: str | None = parameter(
        None,
        max_length=_LONGEST_TEXT,
        description="only buffers with this text in op, region, type, shape, category, module or "
        "function, in any case",
    )
    op: str | None = parameter(None, description="only buffers of this op; empty: of none")
    scope: str | None = parameter(None, description="only buffers of ops directly in this scope")
    within: str | None = parameter(
        None, description="only buffers of this op and of ops in this scope, at any depth"
    )
    region_type: str | None = parameter(None, description="only buffers of this region")
    data_type: str | None = parameter(None, description="only buffers of this element type")
    shape: str | None = parameter(None, description="only buffers of this shape")
    category: str | None = parameter(
        None, description="only buffers of this category (parameter, activation, ...)"
    )
    module: str | None = parameter(None, description="only buffers that this module made")
    function: str | None = parameter(
        None, description="only buffers that this function of the program made"
    )
    input_shape: str | None = parameter(
        None, description="only buffers of ops whose input has this shape"
    )
    step: str | None = parameter(
        None,
        pattern=r"^-?[0-9]{0,18}$",
        description="only buffers allocated in the step with this id; empty: in none",
    )
    record: int | None = parameter(None, description="only the buffer that this record began")
    sort: str = parameter("bytes", max_length=40, description="the column that orders the rows")
    descending: bool | None = parameter(
        None, description="the largest first. Default: numbers so, texts not"
    )
    offset: int = parameter(0, ge=0, le=1 << 40, description="leave out so many rows")
    limit: int = parameter(200, ge=0, le=MOST_ROWS, description="at most so many rows")
    scopes: bool = parameter(
        default=False, description="add the tree of scopes of all that is live, for an icicle"
    )
    tree: Literal["scope", "stack"] | None = parameter(
        None, description="add all that is live as a tree, by scope or by Python call stack"
    )
