"""Which names of events are ops, and of which type."""

from tests.each_row import each_row

from peakline.timing.op_names import (
    COPY,
    JAX,
    TENSORFLOW,
    TF_DATA,
    UNKNOWN,
    is_jax_op,
    parse_op_name,
)


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
