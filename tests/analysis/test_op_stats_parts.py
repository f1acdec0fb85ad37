"""The parts of op_stats: patterns, shapes, operations, trees, units."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.each_row import each_row
from tests.profile.fake import FakeReader

from peakline.errors import UsageError
from peakline.formats import open_reader
from peakline.tables import Names, Profile
from peakline.tfprof.forest import Forest
from peakline.tfprof.graph import read_graph
from peakline.tfprof.model import read_op_stats
from peakline.tfprof.patterns import check_patterns, matches_any, times_matched
from peakline.tfprof.shapes import parse_shape, parse_shapes
from peakline.tfprof.units import format_memory, format_number, format_time

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
        for run, found in enumerate(outputs)
        for place, (slot, shape) in enumerate(found)
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
    found = {
        name: flops for name, flops in zip(stats.names, stats.flops.tolist(), strict=True) if flops
    }
    assert found == FLOPS


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
    kept = np.array(data.draw(st.lists(st.booleans(), min_size=count, max_size=count)))

    def ancestors(row):
        return [] if row == 0 else [parents[row], *ancestors(parents[row])]

    assert forest.depth().tolist() == [len(ancestors(row)) for row in range(count)]
    assert forest.totals(own).tolist() == [
        sum(own[other] for other in range(count) if row in [other, *ancestors(other)])
        for row in range(count)
    ]
    cut, rows = forest.keep(kept)
    assert rows.tolist() == [row for row in range(count) if kept[row] or row == 0]
    assert [int(rows[parent]) for parent in cut.parent[1:]] == [
        next(above for above in ancestors(row) if kept[above] or above == 0) for row in rows[1:]
    ]
    first, rows = forest.below_first(kept)
    inside = [row for row in range(1, count) if any(kept[r] for r in [row, *ancestors(row)][:-1])]
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
