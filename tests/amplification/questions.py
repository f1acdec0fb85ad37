"""Everything that a user, or a caller of the service, may have answered about a file."""

from collections.abc import Iterator
from functools import cache

from peakline.export import target_names
from peakline.tables.sql_views import view_names
from peakline.tools import find_tool, tool_names

FILE, OUT = "FILE", "OUT"
"""What stands in a question for the file, and for where an answer may be written."""

_VERBS = """
memory FILE
memory --json FILE
fit FILE
fit --json --limit 1MB --limit 1GB --batch 1:2 FILE
summary FILE
summary --json FILE
steps FILE
steps --json FILE
ops FILE
ops --json FILE
ops --kernels --json FILE
ops --by function FILE
ops --by module FILE
ops --by shape --json FILE
programs FILE
programs --json FILE
graph FILE
graph --json FILE
graph --check FILE
graph --check --json FILE
trace FILE
trace --json --limit 100000 FILE
tool --list FILE
export --list FILE
sql --list FILE
check --max-peak 1GB --max-growth-per-step 0 --max-fragmentation 1% --max-program-peak 1 FILE
check --baseline FILE --json FILE
diff FILE FILE
diff --json FILE FILE
diff --markdown FILE FILE FILE
report --force -o OUT FILE
"""

_MORE = {
    "op_stats": ("view=graph", "view=op", "view=code", "view=advise"),
    "timeline": ("view=lanes", "view=search search=a", "view=event event=0", "view=counter"),
    "live_memory": ("group=op", "group=scope", "group=module", "group=function", "group=step"),
    "address_map": ("view=time", "view=listed report=0", "view=replayed"),
    "memory_stack": ("group=stack size=requested", "group=function width=4096"),
    "memory_polygons": ("width=4096 limit=5000",),
    "memory_between": ("group=stack tree=stack tree_of=allocated", "tree=scope tree_of=allocated"),
    "op_profile": ("group_by=category", "group_by=provenance"),
    "trace_viewer": ("show_memory=true show_dataflow=true",),
    "trace_viewer@": ("search_prefix=a search_metadata=true", "max_threads=10000 links=true"),
    "graph": ("depth=1000000 max_nodes=1000000000 node=a", "max_nodes=1000000000", "name=(a|b)*c"),
    "memory_profile": ("max_snapshots=1000000000",),
    "memory_viewer": ("view_memory_allocation_timeline=true", "memory_space=1"),
    "graph_viewer": (
        "type=long_txt show_metadata=true", "type=short_txt", "type=pbtxt", "type=pb", "type=json",
        "type=graph node_name=main graph_width=1000", "type=graph node_name=a graph_width=1000",
        "type=adj_nodes node_name=a", "type=custom_call node_name=a",
    ),
}  # fmt: skip
"""Parameters that make a tool do other work, beside none at all."""


_BROAD = """
summary --json FILE
memory FILE
fit --json --limit 1GB FILE
report --force -o OUT FILE
trace FILE
graph --check FILE
programs --json FILE
diff FILE FILE
export --to parquet --force -o OUT FILE
export --to perfetto --force -o OUT FILE
tool overview_page FILE
tool op_profile FILE -p group_by=provenance
tool inference_profile FILE
tool timeline FILE
tool trace_viewer FILE
tool trace_viewer FILE -p compatible=xprof
tool trace_viewer@ FILE
tool op_stats FILE
tool memory_profile FILE
tool live_memory FILE -p group=op
tool memory_viewer FILE
tool graph FILE -p max_nodes=1000000000
tool graph_viewer FILE -p type=long_txt
tool graph_viewer FILE -p type=graph -p node_name=main -p graph_width=1000
"""


def broad() -> tuple[tuple[str, ...], ...]:
    """A few of the `questions` that between them read and use nearly all there is."""
    return tuple(tuple(line.split()) for line in _BROAD.strip().splitlines())


@cache
def questions() -> tuple[tuple[str, ...], ...]:
    """The arguments of the command line for each."""
    verbs = [tuple(line.split()) for line in _VERBS.strip().splitlines()]
    return (*verbs, *_exports(), *_tools(), *_views())


def _exports() -> Iterator[tuple[str, ...]]:
    for target in target_names():
        yield ("export", "--to", target, "--force", "-o", OUT, FILE)


def _tools() -> Iterator[tuple[str, ...]]:
    for name in tool_names():
        tool = find_tool(name)
        for form in tool.formats:
            yield ("tool", name, FILE, "--format", form)
        every = [f"{more}" for more in _MORE.get(name, ())]
        if "compatible" in tool.parameters.declared():
            every += [f"{more} compatible=xprof".strip() for more in ("", *every)]
        for more in every:
            pairs = [word for pair in more.split() for word in ("-p", pair)]
            yield ("tool", name, FILE, *pairs)
    words = "-p type=graph -p node_name=main -p compatible=xprof"
    yield ("tool", "graph_viewer", FILE, "--format", "dot", *words.split())


def _views() -> Iterator[tuple[str, ...]]:
    for name in sorted(view_names()):
        yield ("sql", FILE, f"select * from {name}", "--format", "csv")  # noqa: S608 (our own names)
