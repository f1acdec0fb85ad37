"""A library's attention costs what the products cost that it stands for."""

import json

from tests.analysis.timing.programs import Maker, f32
from tests.each_row import each_row

from peakline.hlo.cost import NOTHING, Costing, cost_program, costs_of
from peakline.xprof.rules.hlo_cost import GpuCosting

BATCH, HEADS, QUERIES, KEYS, KEY_SIZE, VALUE_SIZE = 2, 3, 5, 7, 4, 6
SCORES = (BATCH, HEADS, QUERIES, KEYS)
CUDNN = {
    "cudnn_fmha_backend_config": {
        "intermediate_tensor_shape": {"dimensions": [str(size) for size in SCORES]},
        "mask_type": "CAUSAL",
    }
}
ENGINE = (
    b"{attn_heads = 3 : i64, dropout_probability = 1.000000e-01 : f64, input_batch = 2 : i64, "
    b"is_training = true, kv_max_seqlen = 7 : i64, mask_type = 2 : i64, num_gqa_groups = 1 : i64, "
    b"q_max_seqlen = 5 : i64, %s, window_size_left = -1 : i64}"
)
SIZES = b"qk_head_dim = 4 : i64, v_head_dim = 6 : i64"


def bf16(*sizes):
    return f32(*sizes, kind="BF16")


def products(pairs):
    """The flops and what else a program costs that does batched products of rows and columns."""
    made = Maker()
    main = made.computation("main")
    for rows, inner, columns in pairs:
        one, other = (
            made.add(main, "parameter", f32(BATCH, HEADS, *sizes))
            for sizes in ((rows, inner), (inner, columns))
        )
        dot = made.add(main, "dot", f32(BATCH, HEADS, rows, columns), one, other)
        dot.dot_dimension_numbers.lhs_contracting_dimensions.append(3)
    return cost_program(made.data, Costing).total


FORWARD = [(QUERIES, KEY_SIZE, KEYS), (QUERIES, KEYS, VALUE_SIZE)]
BACKWARD = [
    FORWARD[0],  # the scores again
    (KEYS, QUERIES, VALUE_SIZE),  # of values
    (QUERIES, VALUE_SIZE, KEYS),  # of what weighs them
    (QUERIES, KEYS, KEY_SIZE),  # of queries
    (KEYS, QUERIES, KEY_SIZE),  # of keys
]


def call(target, config, results, *operands):
    made = Maker()
    main = made.computation("main")
    given = [made.add(main, "parameter", shape) for shape in operands]
    one = made.add(main, "custom-call", ("TUPLE", ()), *given, name="call")
    one.custom_call_target, one.backend_config = target, config
    for part in (*results, f32(1000, kind="U8")):
        made.fill(one.shape.tuple_shapes.add(), part)
    return made


def of_cudnn(target, config=CUDNN, *, backward=False):
    query, key = bf16(BATCH, QUERIES, HEADS, KEY_SIZE), bf16(BATCH, KEYS, 1, KEY_SIZE)
    value, result = bf16(BATCH, KEYS, 1, VALUE_SIZE), bf16(BATCH, HEADS, QUERIES, VALUE_SIZE)
    text = json.dumps(config).encode()
    if not backward:
        return call(target, text, (result,), query, key, value)
    sums = f32(BATCH, HEADS, QUERIES)
    return call(target, text, (query, key, value), query, key, value, sums, result, result)


@each_row("name", ["Softmax", "SoftmaxDropout", "ScaleBiasSoftmax", "ScaleBiasSoftmaxDropout"])
def test_attention_of_cudnn(name):
    found = costs_of(of_cudnn(f"__cudnn$fmha{name}").data)["call"]
    assert found.flops == products(FORWARD).flops
    assert found.transcendentals == BATCH * HEADS * QUERIES * KEYS
    # 2 bytes each of queries, keys, values and the result; not the memory to work in.
    assert found.bytes_accessed == 2 * (120 + 56 + 84 + 180)
    gradients = costs_of(of_cudnn(f"__cudnn$fmha{name}Backward", backward=True).data)["call"]
    assert gradients.flops == products(BACKWARD).flops


@each_row("sizes", [SIZES, b"head_dim = 5 : i64"])
def test_attention_of_transformer_engine(sizes):
    shapes = bf16(BATCH, QUERIES, 3, HEADS, KEY_SIZE), bf16(0)
    forward, backward = (
        costs_of(call(f"te_fused_attn_{name}_ffi", ENGINE % sizes, (shapes[0],), *shapes).data)
        for name in ("forward", "backward")
    )
    if sizes == SIZES:
        assert forward["call"].flops == products(FORWARD).flops
        assert backward["call"].flops == products(BACKWARD).flops
    else:
        # Keys and values of one size: so each product is as large.
        assert forward["call"].flops == 2 * 2 * 2 * 3 * 5 * 7 * 5
        assert backward["call"].flops == 5 * 2 * 2 * 3 * 5 * 7 * 5


@each_row(
    ("target", "config"),
    [
        ("__cudnn$fmhaSoftmax", {}),
        ("__cudnn$fmhaSoftmax", {"cudnn_fmha_backend_config": {}}),
        ("__cudnn$fmhaSoftmax", {"cudnn_fmha_backend_config": {
            "intermediate_tensor_shape": {"dimensions": ["0", "1", "1", "x"]}}}),
        ("__cudnn$fmhaSoftmaxBackward", CUDNN),
        ("te_fused_attn_forward_ffi", {}),
    ],
)  # fmt: skip
def test_a_call_that_does_not_say_its_shapes_is_guessed(target, config):
    made = of_cudnn(target, config)
    assert costs_of(made.data)["call"].flops == 0
    assert cost_program(made.data, Costing).guessed == 1


def test_xprof_knows_none():
    assert costs_of(of_cudnn("__cudnn$fmhaSoftmax").data, GpuCosting)["call"] == NOTHING
