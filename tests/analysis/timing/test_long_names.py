"""Which names of events are ops, and of which type; what names that a file makes endless cost: the
work grows with their length, not with its square.
"""

import pytest
from tests.each_row import each_row
from tests.hanging import no_hang

from peakline.timing.launches import kernels
from peakline.timing.ops import names as op_names
from peakline.timing.ops.names import (
    COPY,
    JAX,
    TENSORFLOW,
    TF_DATA,
    UNKNOWN,
    is_jax_op,
    parse_op_name,
)
from peakline.trace import activity_names, device_lines
from peakline.trace.activity_names import Activity

RULES = (
    lambda text: kernels.uses(text, ""),
    activity_names.host_activity, activity_names.device_activity,
    activity_names.kind_of_collective, op_names.parse_op_name, device_lines._key,
    device_lines._DERIVED.fullmatch, kernels.could_use,
)  # fmt: skip
MANY = ["a_", "prefetch", "Compiler::", "triton", "DataLoader", "device:", "aten::"]
MORE = [
    "M", "a", "1", ".1", "(", " ", "a/", "Compiler::Await", "Executor::", "-start",
    "<built-in method ", "time.py ", "Backward1", "derived ", "gpu:0", "_1",
]  # fmt: skip


def check_rules(name):
    """Every rule is through with it in a fraction of a second; with the square of so many
    characters none would be in minutes.
    """
    for rule in RULES:
        with no_hang():
            rule(name)


@pytest.mark.nightly
@each_row("part", MANY)
def test_no_rule_of_names_takes_the_square_of_their_length(part):
    check_rules(part * (1_000_000 // len(part)) + "\n!")


@pytest.mark.soak
@each_row("part", [*MANY, *MORE])
@each_row("tail", ["", "\n!"])
def test_no_rule_takes_the_square_of_any_long_name(part, tail):
    check_rules(part * (4_000_000 // len(part)) + tail)


@each_row(
    ("name", "activity"),
    [
        ("GpuCompiler::RunBackend", Activity.COMPILE),
        ("XCompiler::AwaitAll", Activity.HOST),
        ("XCompiler::Run Compiler::Awaiting", Activity.HOST),
        ("XCompiler::Awaiting Compiler::Run", Activity.COMPILE),
        ("Triton kernel compile", Activity.COMPILE),
        ("$my_prefetcher.py:12 __next__", Activity.INPUT_WAIT),
        ("$prefetch.py:12 next", Activity.INPUT_WAIT),
        ("$fetch.py:12 next", Activity.HOST),
    ],
)
def test_rules_without_repetition_say_the_same(name, activity):
    assert activity_names.host_activity(name) == activity


@each_row(
    ("name", "key"),
    [
        ("/job:x/replica:0/task:0/device:GPU:0", ("/job:x/replica:0/task:0", "gpu:0")),
        ("/gpu:0", ("", "gpu:0")),
        ("gpu:0", ("", "gpu:0")),
        ("xdevice:GPU:1", ("x", "gpu:1")),
        ("nothing", ("", "nothing")),
    ],
)
def test_the_device_of_a_name(name, key):
    assert device_lines._key(name) == key


@each_row(
    ("text", "name", "op_type", "category"),
    [
        ("a/b/MatMul:MatMul", "a/b/MatMul", "MatMul", TENSORFLOW),
        ("x:_FusedConv2D", "x", "_FusedConv2D", TENSORFLOW),
        ("a->b:Send", "a->b", "Send", TENSORFLOW),
        ("model/MatMul_1:", "model/MatMul_1", "MatMul", TENSORFLOW),
        ("jit(f)/add:add", "jit(f)/add", "add", JAX),
        ("x:dot_general[precision=(1, 2)]", "x", "dot_general", JAX),
        ("jit(f)/mul_12:", "jit(f)/mul_12", "mul", JAX),
        ("q_+1:", "q_+1", "q", JAX),
        ("5:", "5", "5", TENSORFLOW),
        (":", "", "", TENSORFLOW),
        (":mul", "", "mul", JAX),
        ("Iterator::Map::Range:x", "Iterator::Map::Range:x", "Dataset", TF_DATA),
        ("memcpyHtoD 4", "memcpyHtoD 4", "MemcpyHToD", COPY),
        ("MemcpyDToD", "MemcpyDToD", "MemcpyDToD", COPY),
        ("train", "train", "", UNKNOWN),
        ("MemcpyH2D", "MemcpyH2D", "", UNKNOWN),
        ("$file.py:12 run", "$file.py:12 run", "", UNKNOWN),
        ("foo: bar", "foo: bar", "", UNKNOWN),
        ("a b:Relu", "a b:Relu", "", UNKNOWN),
        (":Mul", ":Mul", "", UNKNOWN),
        ("x:add[a\nb]", "x:add[a\nb]", "", UNKNOWN),
    ],
)
def test_names(text, name, op_type, category):
    found = parse_op_name(text)
    assert (found.name, found.op_type, found.category) == (name, op_type, category)
    assert found.is_op == (category != UNKNOWN)


def test_a_number_beyond_64_bits_is_no_suffix():
    assert parse_op_name("b_99999999999999999999:").op_type == "b_99999999999999999999"


def test_an_op_of_jax_holds_its_type_in_its_last_scope():
    assert is_jax_op("jit(f)/transpose(jvp(g))/dot_general", "dot_general")
    assert not is_jax_op("dot_general/x", "dot_general")
    assert not is_jax_op("", "add")
