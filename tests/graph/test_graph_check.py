"""What is wrong in a graph, and its summary."""

from tests.each_row import each_row
from tests.graph.graphs import broken, node, opened
from tests.tables.fake import FakeReader

from peakline.graph.check import check_graphs
from peakline.graph.rules import RULES
from peakline.graph.rules_devices import device_problem
from peakline.graph.summary import LargestGraph, summarize_graphs
from peakline.tables import Profile

A = node("a")


def body(name, op="Identity", *inputs, more=""):
    return node(name, op, *inputs, more=more, field="node_def")


def function(nodes, result="i:output:0", *, name="F", more="", signature=""):
    ret = f'ret{{key:"y" value:"{result}"}}' if result is not None else ""
    return (
        f'function{{signature{{name:"{name}" input_arg{{name:"x" type:DT_FLOAT}} '
        f'output_arg{{name:"y" type:DT_FLOAT}} {signature}}} {nodes} {ret} {more}}} '
    )


def library(*functions):
    return A + f"library{{{' '.join(functions)}}}"


ONE = body("i", "Identity", "x")
LIST = (
    'function{signature{name:"F" input_arg{name:"x" type:DT_FLOAT number_attr:"N"} '
    'output_arg{name:"y" type:DT_FLOAT}} %s ret{key:"y" value:"x:1"}}'
)


def loc(*names):
    listed = " ".join(f's:"{name}"' for name in names)
    return f'attr{{key:"_class" value{{list{{{listed}}}}}}}'


def calls(name, key="f"):
    return f'attr{{key:"{key}" value{{func{{name:"{name}"}}}}}}'


NAMES = {
    "a-b": True, "a>b>c": True, ".a": True, "0a": True, "a/": True, "a>.b": True,
    "a>": False, ">a": False, "a>_b": False, "/a": False, "a b": False, "a:0": False,
    "a@b": False, "\u00e9": False, "": False,
}  # fmt: skip


@each_row(("name", "good"), NAMES.items())
def test_names_of_nodes(tmp_path, name, good):
    assert broken(tmp_path, node(name)) == ([] if good else [("node_name", name)])


def test_internal_names_are_for_bodies_and_the_runtime(tmp_path):
    assert broken(tmp_path, node("_a")) == [("node_name", "_a")]
    assert broken(tmp_path, library(function(ONE + body("_a", "Identity", "x")))) == []


CASES = [
    (A + A, [("duplicate_node", "a")]),
    (A + node("A"), []),
    ('node{name:"a"}', [("missing_op", "a")]),
    # Inputs outside functions.
    (A + node("b", "Op", "a", "a:0", "a:12", "a:007", "^a", "^a"), []),
    (node("b", "Op", "a") + A, []),
    (A + node("b", "Op", "zz"), [("unknown_input", "b")]),
    (A + node("b", "Op", "zz:1"), [("unknown_input", "b")]),
    (A + node("b", "Op", "^zz"), [("unknown_input", "b")]),
    (A + node("b", "Op", ""), [("input_syntax", "b")]),
    (A + node("b", "Op", "a:"), [("input_syntax", "b")]),
    (A + node("b", "Op", "a:-1"), [("input_syntax", "b")]),
    (A + node("b", "Op", "a:0:0"), [("input_syntax", "b")]),
    (A + node("b", "Op", "^a:0"), [("input_syntax", "b")]),
    (A + node("b", "Op", "^"), [("input_syntax", "b")]),
    (A + node("b", "Op", "@a"), [("input_syntax", "b")]),
    (A + node("b", "Op", " a"), [("input_syntax", "b")]),
    (A + node("b", "Op", "^a", "a"), [("input_order", "b")]),
    (A + node("b", "Op", "^a", "a", "^a", "a"), [("input_order", "b")]),
    (A + node("b", "Op", "^a") + node("c", "Op", "a"), []),
    # Inputs in functions.
    (library(function(ONE)), []),
    (library(function(body("i", "Identity", "x:0"))), []),
    (library(function(ONE + body("j", "Identity", "i:output", "i:output:1", "^i", "^x"))), []),
    (library(function(ONE + body("j", "Identity", "i"))), [("unknown_input", "F/j")]),
    (library(function(ONE + body("j", "Identity", "i:0"))), [("unknown_input", "F/j")]),
    (library(function(ONE + body("j", "Identity", "x:1"))), [("unknown_input", "F/j")]),
    (library(function(ONE + body("j", "Identity", "x:x:0"))), [("unknown_input", "F/j")]),
    (library(function(ONE + body("j", "Identity", "zz"))), [("unknown_input", "F/j")]),
    (library(function(ONE + body("j", "Identity", "a"))), [("unknown_input", "F/j")]),
    (library(function(ONE + body("j", "Identity", "^zz"))), [("unknown_input", "F/j")]),
    (library(function(ONE + body("j", "Identity", "^zz:output:0"))), [("unknown_input", "F/j")]),
    (library(function(ONE + body("j", "Identity", "^i:output:0"))), []),
    (library(function(ONE + body("j", "Identity", "x:00"))), [("input_syntax", "F/j")]),
    (library(function(ONE + body("j", "Identity", "i:output:00"))), [("input_syntax", "F/j")]),
    (library(function(ONE + body("j", "Identity", "i:1x:0"))), [("input_syntax", "F/j")]),
    (library(function(ONE + body("j", "Identity", ""))), [("input_syntax", "F/j")]),
    (library(function(ONE + body("j", "Identity", "^i", "x"))), [("input_order", "F/j")]),
    (library(function(ONE + body("x", "Identity", "x"))), [("duplicate_node", "F/x")]),
    (A + f"library{{{LIST % body('i', 'Identity', 'x:1')}}}", []),
    # Outputs of calls.
    (library(function(ONE)) + node("c", "F", "a") + node("d", "Op", "c"), []),
    (
        library(function(ONE)) + node("c", "F", "a") + node("d", "Op", "c:1"),
        [("unknown_input", "d")],
    ),
    (library(function(ONE, name="G"), function(body("i", "G", "x"), "i:y:0")), []),
    (
        library(function(ONE, name="G"), function(body("i", "G", "x"), "i:z:0")),
        [("function_return", "F")],
    ),
    (
        library(function(ONE, name="G"), function(body("p", "G", "x") + body("i", "Op", "p:y:1"))),
        [("unknown_input", "F/i")],
    ),
    # Results.
    (library(function(ONE, "x")), []),
    (library(function(ONE, "i:output")), []),
    (library(function(ONE, "i")), [("function_return", "F")]),
    (library(function(ONE, "i:0")), [("function_return", "F")]),
    (library(function(ONE, "x:x:0")), [("function_return", "F")]),
    (library(function(ONE, "zz:output:0")), [("function_return", "F")]),
    (library(function(ONE, "i:output:00")), [("function_return", "F")]),
    (library(function(ONE, None)), [("function_return", "F")]),
    (
        library(
            function(ONE, more='control_ret{key:"k" value:"i"}', signature='control_output:"k"')
        ),
        [],
    ),
    (
        library(
            function(ONE, more='control_ret{key:"k" value:"zz"}', signature='control_output:"k"')
        ),
        [("function_control_return", "F")],
    ),
    (library(function(ONE), function(ONE)), [("duplicate_function", "F")]),
    # Placement.
    (node("a", "Op", more='device:"/cpu:0"'), []),
    (node("a", "Op", more='device:"@b"'), [("device", "a")]),
    (node("a", "Op", more='device:"/job:w-x"'), [("device?", "a")]),
    (library(function(body("i", "Op", "x", more='device:"junk"'))), [("device", "F/i")]),
    (A + node("b", "Op", more=loc("loc:@a", "anything")), []),
    (A + node("b", "Op", more=loc("loc:@b")), []),
    (A + node("b", "Op", more=loc("loc:@zz")), [("colocation", "b")]),
    (A + node("b", "Op", more=loc("loc:@a:0")), [("colocation", "b")]),
    (A + node("b", "Op", more=loc("loc:@")), [("colocation", "b")]),
    (A + node("b", "Op", more='device:"junk"' + loc("loc:@a")), []),
    (A + node("b", "Op", more='device:"junk"' + loc("loc:@b")), [("device", "b")]),
    (library(function(body("i", "Op", "x", more=loc("loc:@zz")))), [("colocation?", "F/i")]),
    # Attributes.
    (node("a", "Op", more='attr{key:"_class" value{i:1}}'), [("attribute_kind", "a")]),
    (node("a", "Op", more='attr{key:"_class" value{list{i:1}}}'), [("attribute_kind", "a")]),
    (node("a", "Op", more='attr{key:"_class" value{}}'), []),
    (node("a", "Op", more='attr{key:"T_1" value{i:1}} attr{key:"_x y" value{i:1}}'), []),
    (node("a", "Op", more='attr{key:"a b" value{i:1}}'), [("attribute_key", "a")]),
    (node("a", "Op", more='attr{key:"" value{i:1}}'), [("attribute_key", "a")]),
    (node("a", "Op", more='attr{key:"1a" value{i:1}}'), [("attribute_key", "a")]),
    # Functions.
    (library(function(ONE)) + node("c", "PartitionedCall", "a", more=calls("F")), []),
    (node("c", "PartitionedCall", more=calls("G")), [("absent_function", "c")]),
    (
        library(function(ONE)) + node("c", "If", more=calls("F", "then") + calls("G", "else")),
        [("absent_function", "c")],
    ),
    (node("c", "Op", more=calls("G", "_internal")), []),
    (node("c", "SymbolicGradient", more=calls("Relu")), []),
    (
        node("c", "Case", more='attr{key:"branches" value{list{func{name:"G"} func{name:"H"}}}}'),
        [("absent_function", "c"), ("absent_function", "c")],
    ),
    (node("c", "__inference_f_12"), [("absent_function", "c")]),
    (node("c", "my_function"), [("absent_function", "c")]),
    (node("c", "SomeOpOfAPlugin"), []),
    (library(function(body("i", "PartitionedCall", "x", more=calls("G")))),
     [("absent_function", "F/i")]),
    (library(function(ONE), 'gradient{function_name:"F" gradient_func:"G"}'),
     [("absent_function", "F")]),
    (library(function(ONE), 'gradient{function_name:"F" gradient_func:"F"}'),
     [("gradient_cycle", "F")]),
    (
        library(function(ONE), function(ONE, name="G"),
                'gradient{function_name:"F" gradient_func:"F"}'),
        [("gradient_cycle?", "F")],
    ),
    (
        library(function(ONE), function(ONE, name="G"),
                'gradient{function_name:"F" gradient_func:"G"}'),
        [],
    ),
    # Cycles.
    (A + node("b", "Op", "^b"), [("cycle", "b")]),
    (node("a", "Op", "b") + node("b", "Op", "a") + node("c", "Op", "b"), [("cycle", "a")]),
    (node("m", "Merge", "n") + node("n", "NextIteration", "m"), [("cycle", "m")]),
    (A + node("m", "Merge", "a", "n") + node("n", "NextIteration", "m"), []),
    (A + node("m", "Op", "a", "n") + node("n", "NextIteration", "m"), [("cycle", "m")]),
    (A + node("m", "Merge", "a", "^n") + node("n", "NextIteration", "m"), [("cycle", "m")]),
    (library(function(body("i", "Op", "j:o:0") + body("j", "Op", "i:o:0"))), [("cycle", "F/i")]),
    # Versions.
    (A + "versions{producer:-1}", [("producer", "")]),
    (A + "versions{producer:99999}", []),
    (A + "versions{min_consumer:2475}", [("min_consumer", "")]),
    (A + "versions{bad_consumers:3 bad_consumers:2474}", [("bad_consumers", "")]),
]  # fmt: skip


@each_row(("text", "expected"), CASES)
def test_rules(tmp_path, text, expected):
    assert broken(tmp_path, text) == expected


def test_every_rule_has_a_case():
    names = [name for name, good in NAMES.items() if not good]
    result = {rule.rstrip("?") for _, expected in CASES for rule, _ in expected}
    assert names
    assert result | {"node_name"} == set(RULES)


def test_the_consumer_can_be_another(tmp_path):
    text = A + "versions{min_consumer:12 bad_consumers:11}"
    assert broken(tmp_path, text, consumer=12) == []
    assert broken(tmp_path, text, consumer=11) == [("min_consumer", ""), ("bad_consumers", "")]


MESSAGES = [
    (node("b", "Op", "zz:1"), "input 0 is 'zz:1', but the graph has no node 'zz'"),
    (A + node("b", "Op", "a", "a:-1"), "input 1 is 'a:-1', which is no node, node:index or ^node"),
    (
        library(function(ONE + body("j", "Identity", "i"))),
        "input 0 is 'i', which is a node: write node:output_argument:index",
    ),
    (
        node("a", "Op", more='device:"@b"'),
        (
            "'@b': '@b' is no part of a device; TensorFlow reads no '@node', whatever the comment "
            "in graph.proto says: the attribute _class with 'loc:@node' places nodes together"
        ),
    ),
    (node("a", "Op", "b") + node("b", "Op", "a"), "2 nodes in a cycle: 'a' -> 'b' -> 'a'"),
    (
        node("m", "Merge", "n") + node("n", "NextIteration", "m"),
        "every data input comes from a NextIteration: the loop has no way in",
    ),
    (
        A + node("b", "Op", "^a", "a:2"),
        "input 1 'a:2' comes after '^a'; data inputs come before control inputs",
    ),
]


@each_row(("text", "message"), MESSAGES)
def test_messages_say_what_to_do(tmp_path, text, message):
    with opened(tmp_path, text) as profile:
        assert [one.message for one in check_graphs(profile)] == [message]


def test_each_graph_of_a_file_is_checked(tmp_path):
    from google.protobuf import text_format

    import peakline
    from peakline import schema

    model = text_format.Parse(
        f"saved_model_schema_version: 1 meta_graphs{{meta_info_def{{tags:'serve'}} "
        f"graph_def{{{node('b', 'Op', 'zz')} versions{{producer:9}}}}}} "
        f"meta_graphs{{meta_info_def{{tags:'train'}} graph_def{{{A}{A} versions{{producer:9}}}}}}",
        schema.message("tensorflow.SavedModel")(),
    )
    path = tmp_path / "saved_model.pb"
    path.write_bytes(model.SerializeToString())
    with peakline.open(str(path)) as profile:
        graphs = profile.columns("graphs").names("graph").to_list()
        result = [(one.graph, one.rule) for one in check_graphs(profile)]
    assert result == [(graphs[0], "unknown_input"), (graphs[1], "duplicate_node")]


def test_every_rule_is_documented(root):
    page = (root / "docs" / "graph-check.md").read_text(encoding="utf-8")
    assert [rule for rule in RULES if f"| `{rule}` |" not in page] == []


def test_a_very_long_name_is_shown_by_its_begin_and_its_end(tmp_path):
    name = "g" * 300 + "/" * 400 + "h" * 300
    shown = "g" * 250 + "..." + "h" * 247
    nodes = body(name, "X", "y:o:0")
    result = broken(tmp_path, library(function(nodes, None, name=name)) + node("b" * 500, "X", "y"))
    assert result == [("unknown_input", "b" * 500), ("unknown_input", f"{shown}/{shown}"),
                     ("function_return", shown)]  # fmt: skip


TEXT = (
    node("a", "Const", more='device:"/cpu:0"')
    + node("b", "Neg", "a", "^a")
    + node("c", "Neg", "b")
    + "versions{producer:2474 min_consumer:12 bad_consumers:3 bad_consumers:5} library{function{"
    + 'signature{name:"F" input_arg{name:"x" type:DT_FLOAT}} '
    + node("i", "Abs", "x", field="node_def")
    + "}}"
)


def test_counts(tmp_path):
    with opened(tmp_path, TEXT) as profile:
        assert summarize_graphs(profile).as_json() == {
            "nodes": 3, "edges": 3, "functions": 1, "ops": {"Neg": 2, "Const": 1},
            "producer": 2474, "min_consumer": 12, "devices": {"": 2, "/cpu:0": 1},
            "function_nodes": 1, "function_edges": 1, "function_ops": {"Abs": 1},
            "graphs": [
                {
                    "graph": "",
                    "kind": "graph_def",
                    "tags": [],
                    "nodes": 3, "edges": 3, "functions": 1, "producer": 2474, "min_consumer": 12,
                    "bad_consumers": [3, 5],
                }
            ],
        }  # fmt: skip


def test_what_the_largest_graph_holds(tmp_path):
    with opened(tmp_path, TEXT) as profile:
        assert summarize_graphs(profile).largest == LargestGraph(
            graph="",
            ops={"Neg": 2, "Const": 1},
            devices={"": 2, "/cpu:0": 1},
            function_ops={"Abs": 1},
        )
    nodes = [("a", "X"), ("b", "X"), ("b", "Y"), ("c", "Z"), ("c", "Z")]
    rows = [
        {"node_id": at, "graph": graph, "op": op, "name": str(at), "device": ""}
        for at, (graph, op) in enumerate(nodes)
    ]
    profile = Profile(FakeReader({"nodes": rows}))
    assert summarize_graphs(profile).largest == LargestGraph("b", {"X": 1, "Y": 1}, {"": 2}, {})
    assert summarize_graphs(Profile(FakeReader({}))).largest is None


GOOD = [
    "", "/", "/cpu:0", "/CPU:0", "/gpu:*", "/cpu", "cpu:0", "gpu:0", "/tpu:1", "/custom:0",
    "/device:CPU:0", "/device:CPU:*", "/device:*:*", "/device:*:0", "/device:XLA_CPU_JIT:0",
    "/job:localhost/replica:0/task:0/device:CPU:0", "/job:*", "/job:a_1", "/job:a/job:b",
    "//cpu:0", "/cpu:0/", "/:", "/:x:y", "/task:01", "/cpu: 0", "/replica:+1", "/cpu:99999999999",
]  # fmt: skip
BAD = [
    "@node", "junk", "/junk:0", "/device:CPU", "/device:*", "/device:CPU:0:1", "/device:", "/job",
    "/task:*", "/replica:*", "/task:x", "/cpu:", "/cpu:a", "/cpu:0/gpu:1", "/cpu:0:1",
    "/device:GPU:0/stream:all", " /cpu:0", "/xla_cpu:0", "/partition:0", "/job:a:b",
]  # fmt: skip
NOWHERE = ["/job:w-x", "/job:1a", "/job:", "/job:a*", "/replica:-1", "/device:a-b:0", "/device::0"]


@each_row("device", GOOD)
def test_good(device):
    assert device_problem(device) is None


@each_row("device", BAD)
def test_refused_by_import(device):
    problem = device_problem(device)
    assert problem is not None
    assert problem.is_error is True
    assert repr(device) in problem.message


@each_row("device", NOWHERE)
def test_imported_but_never_placed(device):
    problem = device_problem(device)
    assert problem is not None
    assert problem.is_error is False
