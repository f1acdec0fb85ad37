"""Graphs that break rules: named cases in text format, and random changes of sample graphs."""

import random

from google.protobuf import text_format

from peakline import schema

GraphDef = schema.message("tensorflow.GraphDef")

NAMES = [
    "a-b", "a>b", "a/b", ".a", "0a", "_a", "a>", "a>>b", "a>_b", "/a", "a b", "a:0", "a@b", "a+b",
    "é", "", "A", "a//b", "-a", "a\n",
]  # fmt: skip
DEVICES = [
    "/", "/cpu:0", "/CPU:0", "/gpu:*", "/device:CPU:0", "/device:CPU:*", "/device:*:*", "/cpu",
    "gpu:0", "/tpu:0", "/job:a/replica:0/task:1/device:GPU:3", "/job:w-x", "/job:1a", "/job:*",
    "/job:a/job:b", "//cpu:0", "/cpu:0/", "/:", "/device:XLA_CPU_JIT:0", "/replica:-1", "/job:",
    "/cpu: 0", "/custom:1", "/device:a-b:0", "/task:01", "/cpu:+1", "/:x:y",
    "@n", "@node", "junk", "/junk:0", "/device:CPU", "/device:*", "/device:CPU:0:1", "/task:*",
    "/replica:*", "/task:x", "/cpu:", "/cpu:a", "/cpu:0/gpu:1", "/device:GPU:0/stream:all",
    "/stream:1", "/job", "/device", " /cpu:0", "/xla_cpu:0", "/partition:0", "/cpu:0:1", "/a",
    "/cpu:0/device:GPU:1", "/task", "/job:a:b",
]  # fmt: skip
INPUTS = [
    "c", "c:0", "c:00", "c:", "c:-1", "c:0:0", "^c:0", "^", "^^c", "@c", "", "c: 0", ":0", "c:0 ",
    " c", "zz", "zz:1", "^zz", "i", "^i",
]  # fmt: skip
BODY_INPUTS = [
    "x", "x:0", "x:1", "x:00", "zz", "zz:output:0", "i:output:0", "x:x:0", "^zz", "j:output",
    "j:output:0", "j:output:00", "j:output:", "j:0", "j", "j:output:-1", "j:output:0:0", "", ":",
    "^", "j:1output:0",
]  # fmt: skip
RETURNS = [
    "i:output:0", "i:output", "i", "i:0", "x", "x:0", "x:x:0", "x:1", "zz:output:0", "zz", "", "^i",
    "i:output:00",
]  # fmt: skip
COLOCATIONS = [
    'list{s:"loc:@zz"}', 'list{s:"loc:@"}', 'list{s:"loc:@n"}', 'list{s:"zz"}', "list{i:1}", "i:1",
    's:"loc:@n"', 'list{s:"loc:@c" s:"foo"}', 'list{s:"foo"}', "list{}", "", 'list{s:"loc:@c:0"}',
    'list{s:"loc:@^c"}', 'placeholder:"x"',
]  # fmt: skip
VERSIONS = [
    "producer:-1", "producer:5 min_consumer:2474", "min_consumer:2475", "producer:99999",
    "bad_consumers:2474", "producer:10 bad_consumers:10", "min_consumer:-1",
    "bad_consumers:3 bad_consumers:2474",
]  # fmt: skip

_NO_LOOK = "_disable_call_shape_inference"

CONST = (
    'node{name:"c" op:"Const" attr{key:"dtype" value{type:DT_FLOAT}} attr{key:"value" '
    "value{tensor{dtype:DT_FLOAT tensor_shape{} float_val:2}}}}"
)
FLOAT = 'attr{key:"T" value{type:DT_FLOAT}}'
CALL = 'node{name:"call" op:"F" input:"c"}'


def op(name, kind, *inputs, more=FLOAT, field="node"):
    """A node."""
    listed = " ".join(f'input:"{one}"' for one in inputs)
    return f'{field}{{name:"{name}" op:"{kind}" {listed} {more}}} '


def body(name, kind, *inputs, more=FLOAT):
    return op(name, kind, *inputs, more=more, field="node_def")


def function(nodes, value="i:output:0", *, key="y", more="", signature="", name="F"):
    """A function of one argument and one result."""
    return (
        f'function{{signature{{name:"{name}" input_arg{{name:"x" type:DT_FLOAT}} '
        f'output_arg{{name:"y" type:DT_FLOAT}} {signature}}} {nodes} '
        f'ret{{key:"{key}" value:"{value}"}} {more}}} '
    )


def library(*functions, call=CALL):
    return f"{CONST} {call} library{{{' '.join(functions)}}}"


ONE = body("i", "Identity", "x")
ENTER = op("e", "Enter", "c", more=FLOAT + 'attr{key:"frame_name" value{s:"f"}}')
NEXT = op("ni", "NextIteration", "m")


def merge(*inputs, count):
    return op("m", "Merge", *inputs, more=FLOAT + f'attr{{key:"N" value{{i:{count}}}}}')


CASES = {
    **{f"name {name!r}": f'node{{name:"{name}" op:"NoOp"}}'.replace("\n", "\\n") for name in NAMES},
    **{f"device {one!r}": f'node{{name:"n" op:"NoOp" device:"{one}"}}' for one in DEVICES},
    **{f"input {one!r}": CONST + op("i", "Identity", one) for one in INPUTS},
    **{
        f"body input {one!r}": library(
            function(body("j", "Identity", "x") + body("i", "Identity", one))
        )
        for one in BODY_INPUTS
    },
    **{
        f"body control {one!r}": library(function(ONE.replace('"x"', f'"x" input:"{one}"', 1)))
        for one in ("^x", "^zz", "^", "^^i", "^x:0", "^zz:0")
    },
    **{f"return {one!r}": library(function(ONE, one)) for one in RETURNS},
    **{
        f"colocation {one!r}": CONST
        + f'node{{name:"n" op:"NoOp" attr{{key:"_class" value{{{one}}}}}}}'
        for one in COLOCATIONS
    },
    **{f"versions {one!r}": f'node{{name:"n" op:"NoOp"}} versions{{{one}}}' for one in VERSIONS},
    **{
        f"body name {name!r}": library(function(ONE + body(name, "Identity", "x"))).replace(
            "\n", "\\n"
        )
        for name in NAMES
    },
    "colocated with another, bad device": CONST
    + 'node{name:"n" op:"NoOp" device:"junk" attr{key:"_class" value{list{s:"loc:@c"}}}}',
    "colocated with itself, bad device": 'node{name:"n" op:"NoOp" device:"junk" '
    'attr{key:"_class" value{list{s:"loc:@n"}}}}',
    "no op": 'node{name:"n"}',
    "two nodes": 'node{name:"n" op:"NoOp"} node{name:"n" op:"NoOp"}',
    "names differ by case": 'node{name:"n" op:"NoOp"} node{name:"N" op:"NoOp"}',
    "order": CONST + op("n", "Identity", "^c", "c"),
    "control twice": CONST + op("n", "Identity", "c", "^c", "^c"),
    "cycle": CONST + op("a", "AddV2", "c", "b") + op("b", "Identity", "a") + op("d", "Neg", "b"),
    "cycle through control": CONST + op("a", "Identity", "c", "^b") + op("b", "Identity", "a"),
    "loop": CONST + ENTER + merge("e", "ni", count=2) + NEXT,
    "loop without a way in": merge("ni", count=1) + NEXT,
    "next iteration into another op": CONST + op("m", "AddV2", "c", "ni") + NEXT,
    "next iteration by control": CONST + merge("c", "^ni", count=1) + NEXT,
    "next iteration by way of another": CONST
    + merge("c", "k", count=2)
    + NEXT
    + op("k", "Identity", "ni"),
    "cycle before a loop": CONST
    + op("a", "AddV2", "c", "b")
    + op("b", "Identity", "a")
    + merge("b", "ni", count=2)
    + NEXT,
    "function": library(function(ONE)),
    "function, wrong result": library(function(ONE, key="z")),
    "function, result twice": library(function(ONE, more='ret{key:"z" value:"i:output:0"}')),
    "function, control result": library(
        function(ONE, more='control_ret{key:"k" value:"i"}', signature='control_output:"k"')
    ),
    "function, node twice": library(function(ONE + ONE)),
    "function, node like argument": library(function(body("x", "Identity", "x") + ONE)),
    "function, order": library(
        function(body("j", "Identity", "x") + body("i", "Identity", "^j", "x"))
    ),
    "function, cycle": library(
        function(body("i", "Identity", "j:output:0") + body("j", "Identity", "i:output:0"))
    ),
    "function, forward": library(
        function(body("i", "Identity", "j:output:0") + body("j", "Identity", "x"))
    ),
    "function, no op": library(function(body("i", "", "x"))),
    "function, unknown colocation": library(
        function(
            body("i", "Identity", "x", more=FLOAT + 'attr{key:"_class" value{list{s:"loc:@zz"}}}')
        )
    ),
    "two functions": library(function(ONE), function(body("k", "Identity", "x"), "k:output:0")),
    "call of an absent function": library(function(ONE), call=CALL.replace("F", "__inference_F_1")),
    "call in a body": library(
        function(body("p", "F2", "x", more="") + body("i", "Identity", "p:y:0")),
        function(ONE, name="F2"),
    ),
    "call in a body, no such output": library(
        function(body("p", "F2", "x", more="") + body("i", "Identity", "p:nope:0")),
        function(ONE, name="F2"),
    ),
    "call in a body, second value": library(
        function(body("p", "F2", "x", more="") + body("i", "Identity", "p:y:1")),
        function(ONE, name="F2"),
    ),
    "call, second output": library(function(ONE)) + op("z", "Identity", "call:1"),
    **{
        f"gradient {a} of {b}": library(
            function(ONE),
            function(ONE, name="G"),
            f'gradient{{function_name:"{b}" gradient_func:"{a}"}}',
        )
        for a, b in (("G", "F"), ("H", "F"), ("F", "F"))
    },
}
"""GraphDefs in text format by name."""


def parse(text):
    """The message of a text; with a version, by which even the smallest is recognised."""
    graph = text_format.Parse(text, GraphDef())
    graph.versions.producer = graph.versions.producer or 2474
    return graph


def mutated(graph, seed):
    """A copy of ``graph`` with one to three random changes, mostly for the worse."""
    r = random.Random(seed)
    copy = GraphDef()
    copy.CopyFrom(graph)
    for node in copy.node:
        # Importing looks into functions that are called without it.
        node.attr.pop(_NO_LOOK, None)
    for _ in range(r.randint(1, 3)):
        lists = [copy.node]
        lists += [function.node_def for function in copy.library.function if function.node_def]
        nodes = r.choice([copy.node, r.choice(lists)])
        if nodes:
            r.choice(_CHANGES)(r, copy, nodes)
    return copy


def _rename(r, _graph, nodes):
    r.choice(nodes).name = r.choice([*NAMES, r.choice(nodes).name])


def _rename_all(r, _graph, nodes):
    """A new name where inputs of a graph follow it."""
    node, name = r.choice(nodes), r.choice(["a-b", "x>y", "_a", "a b"])
    for other in nodes:
        for at, text in enumerate(other.input):
            caret = "^" * text.startswith("^")
            source, colon, rest = text.removeprefix("^").partition(":")
            if source == node.name:
                other.input[at] = caret + name + colon + rest
    node.name = name


def _drop(r, _graph, nodes):
    del nodes[r.randrange(len(nodes))]


def _repeat(r, _graph, nodes):
    nodes.add().CopyFrom(r.choice(nodes))


def _shuffle(r, _graph, nodes):
    copies = [type(node).FromString(node.SerializeToString()) for node in nodes]
    r.shuffle(copies)
    del nodes[:]
    nodes.extend(copies)


def _input(r, _graph, nodes):
    node = r.choice(nodes)
    if node.input:
        at = r.randrange(len(node.input))
        text = node.input[at]
        node.input[at] = r.choice(
            [
                f"{text}:0", f"{text}:00", f"{text}:", f"^{text}", text.removeprefix("^"),
                text.partition(":")[0], text[:-1], f"{text}x", r.choice(nodes).name,
                f"{r.choice(nodes).name}:output:0",
            ]
        )  # fmt: skip


def _control(r, _graph, nodes):
    """A control input from anywhere, which may close a cycle."""
    r.choice(nodes).input.append(f"^{r.choice(nodes).name}")


def _control_first(r, _graph, nodes):
    node = r.choice(nodes)
    inputs = [f"^{r.choice(nodes).name}", *node.input]
    del node.input[:]
    node.input.extend(inputs)


def _device(r, _graph, nodes):
    r.choice(nodes).device = r.choice(DEVICES)


def _colocate(r, _graph, nodes):
    target = r.choice([r.choice(nodes).name, "zz", ""])
    r.choice(nodes).attr["_class"].list.s.append(f"loc:@{target}".encode())


def _class_kind(r, _graph, nodes):
    r.choice(nodes).attr["_class"].i = 1


def _op(r, _graph, nodes):
    r.choice(nodes).op = r.choice(["", "NoOp", "Identity", "NextIteration"])


def _versions(r, graph, _nodes):
    graph.versions.producer = r.choice([-1, 0, 2474, 99999])
    graph.versions.min_consumer = r.choice([0, 2474, 2475])
    graph.versions.bad_consumers.append(r.choice([0, 2474]))


def _drop_function(r, graph, _nodes):
    if graph.library.function:
        del graph.library.function[r.randrange(len(graph.library.function))]


def _return(r, graph, _nodes):
    functions = [function for function in graph.library.function if function.ret]
    if functions:
        ret = r.choice(functions).ret
        key = r.choice(sorted(ret))
        if r.random() < 0.2:
            del ret[key]
        else:
            ret[key] = r.choice([*RETURNS, f"{ret[key]}0", ret[key].rpartition(":")[0]])


_CHANGES = [
    _rename, _rename_all, _drop, _repeat, _shuffle, _input, _input, _input, _control, _control,
    _control_first, _device, _colocate, _class_kind, _op, _versions, _drop_function, _return,
]  # fmt: skip
