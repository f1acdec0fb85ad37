"""Which tools have something to show for what, as the registry says."""

from peakline.tools import find_tool, tool_names


def tools_for(*tables: str) -> list[str]:
    """The tools that have something to show where these tables do; a look at GPUs finds none."""
    result = [(name, find_tool(name)) for name in tool_names()]
    return [
        name for name, tool in result if tool.may_support(frozenset(tables)) and tool.looks is None
    ]


EVENT_TOOLS = tools_for("events")
ALLOCATOR_TOOLS = tools_for("allocator_events", "memory_snapshots")
MEMORY_TOOLS = sorted({*ALLOCATOR_TOOLS} - {*EVENT_TOOLS})
XSPACE_TOOLS = sorted([*EVENT_TOOLS, *MEMORY_TOOLS])
PROGRAM_TOOLS = sorted({*tools_for("hlo_modules")} - {*XSPACE_TOOLS})
"""Those of compiled programs, which profiles of JAX hold; programs are graphs, too."""
JAX_TOOLS = sorted([*EVENT_TOOLS, *PROGRAM_TOOLS])
