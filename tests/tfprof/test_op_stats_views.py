"""The statistics of ops that XProf's pages share: their parts, costs and views."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.each_row import each_row
from tests.tables.fake import FakeReader

from peakline.errors import NotFoundError, UsageError
from peakline.formats import open_reader
from peakline.tables import Names, Profile
from peakline.tfprof import (
    MEASURES,
    Options,
    advise,
    code_view,
    graph_view,
    read_op_stats,
    scope_view,
)
from peakline.tfprof.forest import Forest
from peakline.tfprof.graph import read_graph
from peakline.tfprof.options import check_patterns, matches_any, times_matched
from peakline.tfprof.shapes import parse_shape, parse_shapes
from peakline.tfprof.shown import format_memory, format_number, format_time

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


# Patterns.


@each_row(
    ("pattern", "expected"),
    [
        ("ab", [True, False, False]),
        ("a.*", [True, True, False]),
        ("[[:alpha:]]+", [True, True, False]),
        (r"\pL+", [True, True, True]),
        ("b", [False, False, False]),
    ],
)
def test_a_pattern_is_re2_and_matches_the_whole_name(pattern, expected):
    assert matches_any(["ab", "abc", "ü"], [pattern]).tolist() == expected


def test_no_pattern_matches_nothing_and_every_pattern_counts():
    assert matches_any(["a"], []).tolist() == [False]
    columns = [Names.encode(["Add", "Add", "Mul"]), Names.encode(["cpu", None, None])]
    assert times_matched(columns, ["A.*|c.*", "Add", "cpu", ""]).tolist() == [3, 2, 0]
    assert times_matched(columns, [".*"]).tolist() == [1, 1, 1]


@each_row(
    ("patterns", "reason"),
    [
        (["("], r"show: '\(' is no RE2 expression: missing \)"),
        ([r"(a)\1"], "no RE2 expression: invalid escape sequence"),
        (["x" * 1001], "a pattern of 1001 characters; at most 1000"),
        (["a"] * 101, "101 patterns; at most 100"),
    ],
)
def test_a_bad_pattern_is_refused_in_one_line(patterns, reason):
    with pytest.raises(UsageError, match=reason) as caught:
        check_patterns("show", patterns)
    assert "\n" not in str(caught.value)


def test_a_pattern_that_would_explode_elsewhere_takes_no_time():
    assert not matches_any(["a" * 5000 + "b"], ["(a+)+"]).any()


# Shapes.


@each_row(
    ("text", "shape"),
    [
        ("[]", ()),
        ("[2,3]", (2, 3)),
        ("[?, 3]", (-1, 3)),
        ("[rows=4,x=?]", (4, -1)),
        ("<unknown>", None),
        ("[a]", None),
        ("", None),
    ],
)
def test_shapes_are_read_from_text(text, shape):
    assert parse_shape(text) == shape


def test_lists_of_shapes_are_read_from_text():
    assert parse_shapes("[[2,3], [], <unknown>, [?]]") == ((2, 3), (), None, (-1,))
    assert parse_shapes("[]") == parse_shapes("nonsense") == ()


def outputs_of(attr, *outputs, op="Op"):
    """The shapes of node ``a`` after executions that each gave ``outputs``: slot and shape."""
    rows = [
        {"op_run_id": run, "slot": slot, "shape": shape, "position": place}
        for run, result in enumerate(outputs)
        for place, (slot, shape) in enumerate(result)
    ]
    runs = [{"op_run_id": run, "name": "a", "device": "/cpu:0"} for run in range(len(outputs))]
    tables = {
        "graphs": [{"graph": "", "kind": "graph_def"}],
        "nodes": [{"name": "a", "op": op}],
        "edges": [],
        "node_attrs": [
            {"name": "a", "attr": name, "kind": "shape" if name == "shape" else "", "value": value}
            for name, value in attr.items()
        ],
        "op_runs": runs,
        "op_times": runs,
        "op_outputs": rows,
    }  # fmt: skip
    return read_op_stats(Profile(FakeReader(tables))).shapes.get(0)


@each_row(
    ("attr", "outputs", "expected"),
    [
        ({}, [[(0, "[2]")]], [(2,)]),
        ({}, [[(1, "[2]")]], None),
        ({}, [[(0, None)]], [()]),
        ({"_output_shapes": "[[?,3]]"}, [[(0, "[2, 3]")]], [(2, 3)]),
        ({"_output_shapes": "[[?,3]]"}, [[(0, "[2, 4]")], [(0, "[5, 3]")]], [(-1, 3)]),
        ({"_output_shapes": "[<unknown>, <unknown>]"}, [[(0, "[2]")]], [None, None]),
        ({"_output_shapes": "[<unknown>]"}, [[(0, "[2]")], [(0, "[9]")]], [(2,)]),
    ],
)
def test_shapes_of_the_graph_are_completed_by_the_run(attr, outputs, expected):
    assert outputs_of(attr, *outputs) == expected


def test_constants_and_placeholders_say_their_shape():
    assert outputs_of({"value": "DT_FLOAT [2, 3], 24 bytes"}, op="Const") == [(2, 3)]
    assert outputs_of({"value": "DT_FLOAT <unknown>"}, op="Const") == [None]
    assert outputs_of({"shape": "[?,3]"}, op="Placeholder") == [(-1, 3)]
    assert outputs_of({"value": "DT_FLOAT [2], 8 bytes"}, op="Other") is None


def test_a_shape_attribute_gives_parameters():
    tables = {
        "graphs": [{"graph": "", "kind": "graph_def"}],
        "nodes": [{"name": name, "op": "VariableV2"} for name in "abcd"],
        "edges": [],
        "node_attrs": [
            {"name": name, "attr": "shape", "kind": kind, "value": value}
            for name, kind, value in [
                ("a", "shape", "[2,3]"), ("b", "shape", "[]"), ("c", "shape", "[?,3]"),
                ("d", "s", "[9]"),
            ]
        ],
    }  # fmt: skip
    nodes = read_op_stats(Profile(FakeReader(tables))).at(-1)
    assert nodes.measures[:, 8].tolist() == [6, 1, 0, 0]


# Operations: what TensorFlow 2.21 itself says of the graph.

_ONE_PER_ELEMENT = (
    *(f"unary/{op}" for op in "Reciprocal Square Log Neg AssignAdd AssignSub".split()),
    *(
        f"binary/{op}"
        for op in "Add AddV2 Sub Mul RealDiv Maximum Minimum Pow GreaterEqual Greater LessEqual"
        " Less Equal NotEqual".split()
    ),
    "v/Initializer/random_uniform", "v/Initializer/random_uniform/mul",
)  # fmt: skip
FLOPS = {
    **dict.fromkeys(_ONE_PER_ELEMENT, 35),
    "unary/Rsqrt": 70, "unary/L2Loss": 104, "unary/Softmax": 175,
    "v/Initializer/random_uniform/sub": 1,
    "binary/SquaredDifference": 70, "binary/RsqrtGrad": 140,
    "reduce/Mean": 6144, "reduce/Sum": 6120, "reduce/ArgMax": 30, "reduce/ArgMin": 30,
    "reduce/BiasAddGrad": 6138, "reduce/nchw": 6138,
    "image/Conv2D": 460800, "image/BiasAdd": 2560, "image/DepthwiseConv2dNative": 241920,
    "image/Dilation2D": 184320, "image/Conv3D": 193536, "image/Conv2DBackpropInput": 460800,
    "image/Conv2DBackpropFilter": 460800, "image/AvgPool": 9216, "image/MaxPool": 9216,
    "image/AvgPoolGrad": 18432, "image/MaxPoolGrad": 10752,
    "products/MatMul": 210, "products/MatMul_1": 280, "products/BatchMatMul": 1372,
    "products/BatchMatMulV2": 420, "products/BatchMatMulV3": 420, "products/AddN": 70,
    "products/second": 15, "w/Initializer/random_uniform/sub": 1,
    "w/Initializer/random_uniform/mul": 21, "w/Initializer/random_uniform": 21,
    "model/MatMul": 210,
}  # fmt: skip


def test_operations_follow_the_formulas_of_tensorflow(root):
    with Profile(open_reader(str(root / "tests/data/op_stats/flops.graph.pb.gz"))) as profile:
        stats = read_op_stats(profile)
    result = {
        name: flops for name, flops in zip(stats.names, stats.flops.tolist(), strict=True) if flops
    }
    assert result == FLOPS


# Graphs.


def test_a_node_of_two_partitions_is_the_first_one():
    tables = {
        "graphs": [{"graph": "p0", "kind": "partition"}, {"graph": "p1", "kind": "partition"}],
        "nodes": [
            {"graph": "p0", "name": "a", "op": "First"},
            {"graph": "p1", "name": "a", "op": "Second"},
            {"graph": "p1", "name": "b", "op": "Other"},
            {"graph": "p1", "name": "c", "op": "Inside", "function": "f"},
        ],
        "edges": [
            {"graph": "p0", "source": "b", "target": "a", "target_input": 0},
            {"graph": "p1", "source": "x", "target": "a", "target_input": 0},
            {"graph": "p1", "source": "a", "target": "b", "source_output": -1},
        ],
    }
    reader = FakeReader(tables)
    graph = read_graph(Profile(reader))
    assert (graph.names, graph.ops) == (["a", "b"], ["First", "Other"])
    assert (graph.targets.tolist(), graph.sources.tolist()) == ([0, 1], [1, 0])
    assert graph.ports.tolist() == [0, 0]
    assert read_graph(Profile(reader), full_only=True) is None


# Trees.


@st.composite
def trees(draw):
    """Parents of a random tree in depth-first order."""
    parents, above = [-1], [0]
    for row in range(1, draw(st.integers(1, 30))):
        parent = draw(st.sampled_from(above))
        parents.append(parent)
        above = [*above[: above.index(parent) + 1], row]
    return parents


@given(trees(), st.data())
def test_trees_are_summed_and_cut_like_lists_of_ancestors(parents, data):
    count = len(parents)
    forest = Forest.build(parents, range(count))
    own = np.array(data.draw(st.lists(st.integers(-9, 9), min_size=count, max_size=count)))
    chosen = np.array(data.draw(st.lists(st.booleans(), min_size=count, max_size=count)))

    def ancestors(row):
        return [] if row == 0 else [parents[row], *ancestors(parents[row])]

    assert forest.depth().tolist() == [len(ancestors(row)) for row in range(count)]
    assert forest.totals(own).tolist() == [
        sum(own[other] for other in range(count) if row in [other, *ancestors(other)])
        for row in range(count)
    ]
    cut, rows = forest.keep(chosen)
    assert rows.tolist() == [row for row in range(count) if chosen[row] or row == 0]
    assert [int(rows[parent]) for parent in cut.parent[1:]] == [
        next(above for above in ancestors(row) if chosen[above] or above == 0) for row in rows[1:]
    ]
    first, rows = forest.below_first(chosen)
    inside = [row for row in range(1, count) if any(chosen[r] for r in [row, *ancestors(row)][:-1])]
    assert rows.tolist() == [0, *inside]
    assert first.rows == len(inside) + 1


def test_sorting_keeps_children_behind_their_parents():
    ordered, rows = Forest.build([-1, 0, 1, 1, 0], range(5)).sort(lambda row: -row)
    assert rows.tolist() == [0, 4, 1, 3, 2]
    assert ordered.parent.tolist() == [-1, 0, 0, 2, 2]


# Units.


@each_row(
    ("number", "count", "time", "memory"),
    [
        (0, "0", "0us", "0B"),
        (999, "999", "999us", "999B"),
        (1000, "1.00k", "1.00ms", "1.00KB"),
        (1_234_567, "1.23m", "1.23sec", "1.23MB"),
        (5_000_000_000, "5.00b", "5000.00sec", "5000.00MB"),
        (-2000, "-2000", "-2000us", "-2000B"),
    ],
)
def test_numbers_have_decimal_units(number, count, time, memory):
    assert (format_number(number), format_time(number), format_memory(number)) == (
        count, time, memory,
    )  # fmt: skip


GPU = "/job:w/replica:0/task:0/device:GPU:0"
STREAMS = "/device:GPU:0/stream:all"


def profile_of(*runs, **tables):
    """Executions as ``(device, name, start, micros)``, or with the step as a fifth."""
    rows = [
        {
            "op_run_id": number,
            "device": device,
            "name": name,
            "step_id": step[0] if step else None,
            "op_type": f"{name}Op",
            "all_start_micros": start,
            "op_end_rel_micros": micros,
        }
        for number, (device, name, start, micros, *step) in enumerate(runs)
    ]
    return Profile(FakeReader({"op_runs": rows, "op_times": rows, **tables}))


def measures(profile, *names, step=-1):
    nodes = read_op_stats(profile).at(step)
    columns = [MEASURES.index(name) for name in names]
    return {
        name: tuple(nodes.measures[node, columns].tolist()) for node, name in enumerate(nodes.names)
    }


TIMES = ("run_count", "accelerator_exec_micros", "cpu_exec_micros", "exec_micros")


def test_host_time_and_stream_time_add_up():
    profile = profile_of(
        (GPU, "a", 10, 5), (STREAMS, "a", 12, 30), ("/gpu:0/stream:1", "a", 12, 30)
    )
    assert measures(profile, *TIMES) == {"a": (1, 30, 5, 35)}


def test_a_run_of_no_time_takes_one_microsecond():
    assert measures(profile_of((CPU, "a", 10, 0)), *TIMES) == {"a": (1, 0, 1, 1)}


def test_a_run_without_a_start_counts_for_nothing():
    assert measures(profile_of((CPU, "a", 0, 7)), *TIMES) == {"a": (0, 0, 0, 0)}


def test_a_node_stays_with_the_first_device_it_ran_on():
    profile = profile_of((CPU, "a", 10, 5), (GPU, "a", 10, 70), (CPU, "a", 20, 6))
    assert measures(profile, *TIMES) == {"a": (2, 0, 11, 11)}
    assert read_op_stats(profile).devices.to_list() == [CPU.lower()]


def test_what_follows_a_colon_is_no_part_of_the_name():
    assert measures(profile_of((STREAMS, "a:MatMul", 1, 3)), *TIMES) == {"a": (0, 3, 0, 3)}


@each_row("name", ["RecvTensor", "_SOURCE", "MEMCPYHtoD", "xMEMCPY:y"])
def test_some_names_are_no_nodes(name):
    assert measures(profile_of((CPU, name, 1, 3))) == {}


def test_memory_adds_persistent_and_temporary_bytes():
    profile = profile_of(
        (CPU, "a", 1, 3),
        op_memory=[
            {"op_run_id": 0, "allocator": "cpu", "total_bytes": 100, "peak_bytes": 80,
             "live_bytes": 7},
            {"op_run_id": 0, "allocator": "x", "total_bytes": 1, "peak_bytes": 1, "live_bytes": 1},
        ],
        op_memory_stats=[
            {"op_run_id": 0, "temp_bytes": 1000, "persistent_bytes": 20_000},
        ],
        op_outputs=[
            {"op_run_id": 0, "requested_bytes": 5, "allocated_bytes": 3, "has_allocation": True},
            {"op_run_id": 0, "requested_bytes": 5, "allocated_bytes": 256, "has_allocation": True},
            {"op_run_id": 0, "requested_bytes": 99, "has_allocation": False},
        ],
    )  # fmt: skip
    names = ("requested_bytes", "peak_bytes", "residual_bytes", "output_bytes")
    assert measures(profile, *names) == {"a": (21_101, 21_081, 20_008, 261)}


def test_memory_counts_on_the_nodes_own_device_only():
    profile = profile_of(
        (STREAMS, "a", 1, 3), op_memory=[{"op_run_id": 0, "allocator": "gpu", "total_bytes": 100}]
    )
    assert measures(profile, "requested_bytes") == {"a": (0,)}


def test_steps_are_averaged_over_those_that_ran_the_node():
    profile = profile_of((CPU, "a", 1, 3, 4), (CPU, "a", 9, 8, 6), (CPU, "b", 9, 8, 6))
    assert measures(profile, "exec_micros") == {"a": (5,), "b": (8,)}
    assert measures(profile, "exec_micros", step=4) == {"a": (3,), "b": (0,)}
    with pytest.raises(NotFoundError, match="no step 5 in the profile; there is: 4, 6"):
        measures(profile, step=5)


def test_a_step_of_nothing_is_there():
    profile = profile_of((CPU, "a", 1, 3, 4), steps=[{"step_id": 4}, {"step_id": 6}])
    assert measures(profile, "exec_micros", step=6) == {"a": (0,)}


def test_without_a_graph_types_come_from_the_labels():
    assert read_op_stats(profile_of((CPU, "a", 1, 3))).ops.to_list() == ["aOp"]


def test_a_gpu_without_stream_rows_is_told():
    for runs, lacks in (
        ([(CPU, "a", 1, 3)], False),
        ([(GPU, "a", 1, 3)], True),
        ([(GPU, "a", 1, 3), (STREAMS, "a", 1, 3)], False),
    ):
        assert read_op_stats(profile_of(*runs)).costs.lacks_streams is lacks
