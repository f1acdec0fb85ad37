"""What a tool name answers: one file per tool, one registry for every face."""

from peakline.lazy import moved
from peakline.toolbox.parameters import Parameters
from peakline.toolbox.registry import (
    Tool,
    ToolResult,
    available_tools,
    find_tool,
    run_tool,
    tool_names,
)

__all__ = [
    "Parameters",
    "Tool",
    "ToolResult",
    "available_tools",
    "find_tool",
    "run_tool",
    "tool_names",
]

moved(
    "peakline.tools.timeline_reader",
    {"read_answer": ("peakline.tools.timeline.reader", "read_timeline")},
)
