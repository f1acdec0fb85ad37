"""The views over small graphs: who stands where, what is added up, hidden and sorted."""

from tests.each_row import each_row
from tests.profile.fake import FakeReader

from peakline.tables import Profile
from peakline.tfprof import (
    MEASURES,
    Options,
    advise,
    code_view,
    graph_view,
    read_op_stats,
    scope_view,
)

CPU = "/job:w/replica:0/task:0/device:CPU:0"


def stats_of(nodes, edges=(), frames=(), start=1000):
    """Nodes as ``{name: (op, micros)}``, None for one that did not run; edges by name."""
    runs = [
        {"op_run_id": number, "device": CPU, "name": name, "all_start_micros": start,
         "op_end_rel_micros": micros}
        for number, (name, micros) in enumerate(
            (name, micros) for name, (_, micros) in nodes.items() if micros is not None
        )
    ]  # fmt: skip
    tables = {
        "op_runs": runs,
        "op_times": runs,
        "graphs": [{"graph": "", "kind": "graph_def"}],
        "nodes": [{"name": name, "op": op} for name, (op, _) in nodes.items()],
        "edges": [
            {"source": source, "target": target, "target_input": place}
            for place, (source, target) in enumerate(edges)
        ],
        "node_frames": [
            {"node": f"{node}@", "depth": depth, "file": f"/x/{file}", "line": 1, "function": "f"}
            for node, files in frames
            for depth, file in enumerate(files)
        ],
    }
    tables = {name: rows for name, rows in tables.items() if rows or name == "edges"}
    return read_op_stats(Profile(FakeReader(tables)))


def lines(shown, measure="exec_micros"):
    """Name, own and total of every row, indented."""
    column = MEASURES.index(measure)
    return [
        f"{'  ' * depth}{name} {own}/{total}"
        for depth, name, own, total in zip(
            shown.depth.tolist(),
            shown.names,
            shown.own[:, column].tolist(),
            shown.totals[:, column].tolist(),
            strict=True,
        )
    ]


SCOPES = {"a/b": ("Add", 3), "a/c/d": ("Mul", 4), "a-x": ("Add", 5), "a/c": ("Mul", 6)}


def test_a_scope_that_is_no_node_counts_as_a_definition():
    shown = scope_view(stats_of(SCOPES), Options())
    assert lines(shown, "definition_count")[:2] == ["_TFProfRoot 0/5", "  a 1/4"]


def test_a_type_can_be_the_device():
    options = Options(account_type_regexes=(".*/device:cpu:0",))
    assert lines(scope_view(stats_of({"a": ("Add", 3), "b": ("Add", None)}), options)) == [
        "_TFProfRoot 0/3", "  a 3/3",
    ]  # fmt: skip


@each_row(
    ("options", "expected"),
    [
        ({"min_micros": 5}, ["_TFProfRoot", "a", "a/c", "a-x"]),
        ({"max_depth": 2}, ["_TFProfRoot", "a", "a-x"]),
        ({"min_occurrence": 1}, ["_TFProfRoot", "a-x", "a/b", "a/c", "a/c/d"]),
        ({"show_name_regexes": (".*/d", "a-.")}, ["_TFProfRoot", "a-x", "a/c/d"]),
        ({"hide_name_regexes": ("a/c",)}, ["_TFProfRoot", "a", "a/b", "a/c/d", "a-x"]),
        ({"trim_name_regexes": ("a/c",)}, ["_TFProfRoot", "a", "a/b", "a/c", "a-x"]),
        ({"start_name_regexes": ("a/c.*",)}, ["_TFProfRoot", "a/c", "a/c/d"]),
    ],
)
def test_filters_keep_what_is_below_a_hidden_row(options, expected):
    shown = scope_view(stats_of(SCOPES), Options(**options))
    assert shown.names == expected
    assert shown.totals[0, MEASURES.index("exec_micros")] == 18


def test_a_circle_ends_the_walk():
    nodes = {"z": ("Op", 1), "y": ("Op", 2), "x": ("Op", 4), "alone": ("Op", 8)}
    edges = [("y", "z"), ("x", "y"), ("y", "x"), ("alone", "alone")]
    assert lines(graph_view(stats_of(nodes, edges), Options())) == [
        "_TFProfRoot 0/7", "  z 1/7", "    y 2/6", "      x 4/4",
    ]  # fmt: skip


def test_a_long_chain_does_not_recurse():
    count = 3000
    nodes = {f"n{number:05}": ("Op", 1) for number in range(count)}
    names = list(nodes)
    shown = graph_view(stats_of(nodes, list(zip(names[1:], names, strict=False))), Options())
    assert (shown.depth.max(), shown.totals[1, MEASURES.index("exec_micros")]) == (count, count)


def test_gradients_stand_at_the_calls_of_what_they_are_gradients_of():
    nodes = {"a": ("Op", 1), "gradients/a_grad/x": ("Op", 2), "gradients/b_grad/x": ("Op", 4)}
    frames = [(name, ["inner.py", "main.py"]) for name in nodes]
    assert lines(code_view(stats_of(nodes, frames=frames), Options())) == [
        "_TFProfRoot 0/3",
        "  main.py:1:f 0/1",
        "    inner.py:1:f 1/1",
        "  main.py:1:f (gradient) 0/2",
        "    inner.py:1:f (gradient) 2/2",
    ]


def test_there_is_no_code_view_without_traces():
    assert code_view(stats_of(SCOPES), Options()) is None


def test_advice_names_what_is_expensive():
    stats = stats_of({"a": ("Add", 300), "b/BatchNorm": ("Mul", 100)})
    types = [
        "top 1 operation type: Add, cpu: 300us, accelerator: 0us, total: 300us (75.00%)",
        "top 2 operation type: Mul, cpu: 100us, accelerator: 0us, total: 100us (25.00%)",
    ]
    nodes = [
        "top 1 graph node: a, cpu: 300us, accelerator: 0us, total: 300us",
        "top 2 graph node: b, cpu: 0us, accelerator: 0us, total: 0us",
    ]
    assert advise(stats) == {
        "AcceleratorUtilizationChecker": [],
        "OperationChecker": ["Maybe use faster FusedBatchNorm instead of BatchNorm"],
        "ExpensiveOperationChecker": ["\n".join(types), "\n".join(nodes)],
    }
