"""Tools by name: what every face calls to get the bytes of an answer.

A tool is one module of this package that holds a `Tool` named ``TOOL``. Modules are imported
when their tool is asked for, so that knowing the names costs nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any

from peakline.errors import NotFoundError, UsageError

if TYPE_CHECKING:
    from pydantic import BaseModel, ValidationError

    from peakline.profile import Profile

__all__ = ["Tool", "ToolResult", "available_tools", "find_tool", "run_tool", "tool_names"]

_MODULES = {
    "graph": "peakline.tools.graph",
    "memory_profile": "peakline.tools.memory_profile",
    "op_stats": "peakline.tools.op_stats",
    "trace_viewer": "peakline.tools.trace_viewer",
}


@dataclass(frozen=True)
class ToolResult:
    """What a tool returned: ``content`` in ``format`` (one of the tool's formats)."""

    content: bytes
    format: str


@dataclass(frozen=True)
class Tool:
    """A named question: typed parameters, output formats (the first is the default), an answer.

    ``parameters`` is a pydantic model that forbids unknown names and accepts text for every
    value, because remote callers send text. ``supports`` says whether the profile has what the
    tool shows. ``run`` takes the profile, an instance of ``parameters`` and a format.
    """

    name: str
    doc: str
    parameters: type[BaseModel]
    formats: tuple[str, ...]
    supports: Callable[[Profile], bool]
    run: Callable[[Profile, Any, str], bytes]


def tool_names() -> list[str]:
    """The names of all tools, sorted."""
    return sorted(_MODULES)


def find_tool(name: str) -> Tool:
    """The tool called ``name``; raises NotFoundError that names the known ones."""
    if name not in _MODULES:
        raise NotFoundError(f"no tool {name!r}; there is: {', '.join(tool_names())}")
    tool: Tool = import_module(_MODULES[name]).TOOL
    return tool


def available_tools(profile: Profile) -> list[str]:
    """The names of the tools that have something to show for ``profile``, sorted."""
    return [name for name in tool_names() if find_tool(name).supports(profile)]


def run_tool(
    profile: Profile,
    name: str,
    parameters: Mapping[str, object] | None = None,
    format: str | None = None,  # noqa: A002 (the word of the command line and the RPC)
) -> ToolResult:
    """Run a tool; ``format`` None means the tool's first.

    Raises NotFoundError for an unknown tool, or for a host or allocator the profile does not
    have; UsageError for a bad parameter or format; InputError when the profile cannot be read.
    """
    tool = find_tool(name)
    chosen = tool.formats[0] if format is None else format
    if chosen not in tool.formats:
        raise UsageError(f"{name}: no format {chosen!r}; there is: {', '.join(tool.formats)}")
    return ToolResult(tool.run(profile, _validated(tool, parameters or {}), chosen), chosen)


def _validated(tool: Tool, parameters: Mapping[str, object]) -> BaseModel:
    from pydantic import ValidationError

    try:
        return tool.parameters.model_validate(dict(parameters))
    except ValidationError as error:
        raise UsageError(f"{tool.name}: {_complaint(tool, error)}") from error


def _complaint(tool: Tool, error: ValidationError) -> str:
    """The first thing wrong, in one line."""
    first = error.errors(include_url=False, include_context=False)[0]
    name = ".".join(map(str, first["loc"]))
    if first["type"] == "extra_forbidden":
        return f"no parameter {name!r}; there is: {', '.join(tool.parameters.model_fields)}"
    message = " ".join(str(first["msg"]).split())
    return f"parameter {name}: {message[:1].lower()}{message[1:]}, not {first['input']!r:.80}"
