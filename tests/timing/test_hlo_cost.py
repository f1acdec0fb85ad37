"""What instructions of HLO cost: flops, bytes, attention."""

import json
import random
from pathlib import Path

from tests.each_row import each_row
from tests.reference.xspace_builder import SpaceBuilder
from tests.timing.programs import Maker, f32

import peakline
from peakline.formats.hlo_proto.source import StoredProgram
from peakline.formats.hlo_proto.tables import ProgramTables
from peakline.hlo.cost import NOTHING, Costing, cost_program, costs_of
from peakline.hlo.messages import ModuleParts
from peakline.hlo.modules import Module, category_of, modules_of
from peakline.schema import PrimitiveType
from peakline.wire import as_buffer
from peakline.xprof.rules.hlo_cost import GpuCosting
from peakline.xprof.rules.programs import is_sound

DATA = Path(__file__).parents[1] / "data"


def cost_of(made, rule=Costing):
    """Flops, bytes and transcendentals of the whole program."""
    return tuple(cost_program(made.data, rule).total[:3])


def with_operands(*shapes):
    made = Maker()
    main = made.computation("main")
    return made, main, [made.add(main, "parameter", shape) for shape in shapes]


def adder(made):
    function = made.computation("add")
    one, other = (made.add(function, "parameter", f32()) for _ in range(2))
    made.add(function, "add", f32(), one, other)
    return function


def test_an_elementwise_instruction():
    made, main, (x, y) = with_operands(f32(4, 5), f32(4, 5))
    made.add(main, "multiply", f32(4, 5), x, y)
    assert cost_of(made) == (20, 240, 0)


def test_a_transcendental_is_no_flop():
    made, main, (x,) = with_operands(f32(10, kind="BF16"))
    made.add(main, "tanh", f32(10, kind="BF16"), x)
    assert cost_of(made) == (0, 40, 10)


def test_xprof_counts_clock_cycles():
    made, main, (x,) = with_operands(f32(10))
    made.add(main, "tanh", f32(10), x)
    assert cost_of(made, GpuCosting) == (1900, 80, 0)


def test_a_matrix_product():
    made, main, (a, b) = with_operands(f32(8, 16), f32(16, 4))
    dot = made.add(main, "dot", f32(8, 4), a, b)
    dot.dot_dimension_numbers.lhs_contracting_dimensions.append(1)
    assert cost_of(made) == (2 * 8 * 4 * 16, 4 * (8 * 16 + 16 * 4 + 8 * 4), 0)


def test_a_padded_convolution_skips_the_padding():
    made, main, (x, k) = with_operands(f32(1, 5, 2), f32(3, 2, 7))
    made_one = made.add(main, "convolution", f32(1, 5, 7), x, k, feature_group_count=1)
    made_one.batch_group_count = 1
    numbers = made_one.convolution_dimension_numbers
    numbers.input_feature_dimension, numbers.output_feature_dimension = 2, 2
    for field in ("input", "output"):
        getattr(numbers, f"{field}_spatial_dimensions").append(1)
    numbers.kernel_spatial_dimensions.append(0)
    made_one.window.dimensions.add(
        size=3, stride=1, padding_low=1, padding_high=1, window_dilation=1, base_dilation=1
    )
    # The kernel's ends each miss one of five places.
    assert cost_of(made)[0] == 2 * (4 + 5 + 4) * 2 * 7


def test_all_parts_of_a_tuple_are_written_but_by_a_tuple():
    made, main, (x, y) = with_operands(f32(10), f32(10, kind="S8"))
    tuple_of(made.add(main, "sort", f32(10), x, y).shape, f32(10), f32(10, kind="S8"))
    assert cost_of(made) == (40, 2 * 50, 0)
    tuple_of(made.add(main, "tuple", f32(), x, y).shape, f32(10), f32(10, kind="S8"))
    assert cost_of(made) == (40, 2 * 50 + 2 * 8, 0)


def tuple_of(shape, *parts):
    shape.Clear()
    shape.element_type = PrimitiveType.TUPLE
    for part in parts:
        Maker.fill(shape.tuple_shapes.add(), part)


def test_a_reduction_applies_its_function_once_per_element_that_goes():
    made = Maker()
    function = adder(made)
    main = made.computation("main")
    x, zero = made.add(main, "parameter", f32(4, 6)), made.add(main, "constant", f32())
    made.add(main, "reduce", f32(4), x, zero, calls=(function,), dimensions=[1])
    assert cost_of(made) == (20, 4 * 24 + 4 + 16, 0)


def test_a_fusion_touches_only_its_border():
    made = Maker()
    inner = made.computation("fused")
    x = made.add(inner, "parameter", f32(100))
    y = made.add(inner, "exponential", f32(100), x)
    made.add(inner, "add", f32(100), y, x)
    main = made.computation("main")
    arg = made.add(main, "parameter", f32(100))
    made.add(main, "fusion", f32(100), arg, calls=(inner,), fusion_kind="kLoop")
    assert cost_of(made) == (100, 800, 100)


def test_a_fusion_that_slices_reads_the_slice():
    made = Maker()
    inner = made.computation("fused")
    x = made.add(inner, "parameter", f32(100))
    part = made.add(inner, "slice", f32(10), x)
    made.add(inner, "negate", f32(10), part)
    main = made.computation("main")
    arg = made.add(main, "parameter", f32(100))
    made.add(main, "fusion", f32(10), arg, calls=(inner,), fusion_kind="kLoop")
    assert cost_of(made) == (10, 80, 0)
    assert cost_of(made, GpuCosting) == (30, 80, 0)


def test_a_loop_costs_one_turn_and_a_conditional_its_dearest_branch():
    made = Maker()
    branches = []
    for opcode in ("negate", "copy"):
        branch = made.computation(opcode)
        x = made.add(branch, "parameter", f32(8))
        made.add(branch, opcode, f32(8), x)
        branches.append(branch)
    main = made.computation("main")
    x = made.add(main, "parameter", f32(8))
    made.add(main, "while", f32(8), x, calls=tuple(branches))
    made.add(main, "conditional", f32(8), x, x, calls=tuple(branches))
    assert cost_of(made) == (8 + 8, 128 + 64, 0)


NUMBERS = {"lhs_contracting_dimensions": ["1"], "rhs_contracting_dimensions": ["0"]}
CONFIG = {"gemm_backend_config": {"dot_dimension_numbers": NUMBERS, "epilogue": "BIAS"}}


def library_call(target, config=None, kind="F32"):
    """A product of 8x16 and 16x4 with memory to work in, behind a negation of its first operand."""
    made, main, (a, b) = with_operands(f32(8, 16, kind=kind), f32(16, 4, kind=kind))
    made.add(main, "negate", f32(8, 16, kind=kind), a, name="before")
    call = made.add(main, "custom-call", ("TUPLE", ()), a, b, name="call")
    call.custom_call_target = target
    for part in (f32(8, 4, kind=kind), f32(4096, kind="S8")):
        made.fill(call.shape.tuple_shapes.add(), part)
    if config is not None:
        call.backend_config = json.dumps(config).encode()
    return made


@each_row("name", ["gemm", "lt$matmul", "lt$matmul$f8", "lt$matmul$mx"])
def test_a_matrix_product_of_a_library_without_its_workspace(name):
    result = costs_of(library_call(f"__cublas${name}", CONFIG).data)["call"]
    assert result[:3] == (1024, 4 * (128 + 64 + 32), 0)


class TestXProfOnLibraries:
    def test_the_first_interface_of_cublas_is_any_call(self):
        result = costs_of(library_call("__cublas$gemm", CONFIG).data, GpuCosting)
        assert result["call"] == NOTHING
        assert result["before"][:2] == (3 * 128, 2 * 512)

    def test_a_product_is_known(self):
        result = costs_of(library_call("__cublas$lt$matmul", CONFIG).data, GpuCosting)
        assert result["call"][:2] == (1024, 4 * (128 + 64 + 32))
        assert result["before"][:2] == (3 * 128, 2 * 512)

    def test_without_a_configuration_nothing_is_summed(self):
        assert costs_of(library_call("__cublas$lt$matmul").data, GpuCosting)["call"].flops == 64

    @each_row(
        "config",
        [
            {"wait_on_operation_queues": [], **CONFIG},
            {"gemm_backend_config": {"mx_mode": False}},
            {"gemm_backend_config": {"epilogue": "NEWER"}},
            {"gemm_backend_config": 3},
            [],
        ],
    )
    def test_one_that_it_cannot_read_takes_all_costs_away(self, config):
        made = library_call("__cublas$lt$matmul", config)
        assert costs_of(made.data, GpuCosting) == {}
        assert costs_of(made.data)["before"].flops == 128

    def test_a_product_of_eight_bits_is_twice_as_fast(self):
        result = costs_of(library_call("__cublas$lt$matmul", CONFIG, "S8").data, GpuCosting)["call"]
        assert (result.flops, result.device_flops) == (1024, 512)


def test_what_xprof_does_not_come_to_costs_nothing():
    made = Maker()
    function = adder(made)
    function.instructions[-1].name = "sum"
    main = made.computation("main")
    x = made.add(main, "parameter", f32(8))
    made.add(main, "all-reduce", f32(8), x, name="reduced", calls=(function,))
    result = costs_of(made.data, GpuCosting)
    assert (result["sum"], result["reduced"].flops) == (NOTHING, 24)
    assert costs_of(made.data)["sum"].flops == 1


@each_row(
    ("opcode", "ranks", "flops", "size"),
    [
        ("all-gather", 1, 0, 2 * 64),
        ("all-gather", 4, 0, 11 * 16),
        ("reduce-scatter", 2, 16 * 3, 5 * 32),
        ("reduce-scatter", 4, 16 * 3, 11 * 16),
    ],
)
def test_xprof_counts_what_collectives_pass_on(opcode, ranks, flops, size):
    made = Maker()
    function = adder(made)
    main = made.computation("main")
    x = made.add(main, "parameter", f32(16))
    one = made.add(main, opcode, f32(16), x, calls=(function,) if flops else ())
    one.collective_device_list.replica_groups.add(replica_ids=range(ranks))
    assert cost_of(made, GpuCosting) == (flops, size, 0)


def test_groups_of_devices_are_listed_in_four_ways():
    sizes = []
    for number in range(4):
        made = Maker()
        main = made.computation("main")
        x = made.add(main, "parameter", f32(64))
        one = made.add(main, "all-gather", f32(64), x)
        if number == 0:
            one.replica_groups.add(replica_ids=range(4))
        elif number == 1:
            one.collective_device_list.iota_replica_group_list.num_devices_per_group = 4
        elif number == 2:
            one.iota_collective_device_list.num_devices_per_group = 4
        else:
            mesh = one.mesh_axes_replica_group_list
            mesh.mesh.axes.add(name="x", size=3)
            mesh.mesh.axes.add(name="y", size=2)
            mesh.axes.add(mesh_axis_index=1)
            mesh.axes.add(mesh_axis_index=0).sub_axis_info.size = 2
        sizes.append(cost_of(made, GpuCosting)[1])
    assert sizes == [11 * 64] * 4


def test_a_group_of_global_ids_must_be_listed_for_xprof():
    made, main, (x,) = with_operands(f32(16))
    made.add(main, "all-gather", f32(16), x, channel_id=1, use_global_device_ids=True)
    assert costs_of(made.data, GpuCosting) == {}


def test_bits_taken_for_others_are_made_again_for_each_use():
    """As XLA has it, a place of 32 bits and the two of 16 in it are not one."""
    made = Maker()
    inner = made.computation("fused")
    x = made.add(inner, "parameter", f32(8))
    part = made.add(inner, "negate", f32(8), x)
    halves = made.add(inner, "bitcast-convert", f32(8, 2, kind="S16"), part, name="halves")
    made.add(inner, "add", f32(8, 2, kind="S16"), halves, halves)
    main = made.computation("main")
    arg = made.add(main, "parameter", f32(8))
    made.add(main, "fusion", f32(8, 2, kind="S16"), arg, calls=(inner,), fusion_kind="kLoop")
    assert cost_of(made, GpuCosting)[:2] == (8 * 3 + 16 * 3 + 16 * 3, 64)


def test_bytes_that_are_no_program():
    assert cost_program(b"\x0a\xff\xff").total == NOTHING
    assert costs_of(b"") == {}


def hostile():
    made = Maker("jit_bad")
    main = made.computation("main")
    huge = f32(2**62, 2**62, 2**62)
    x = made.add(main, "parameter", huge)
    for opcode in ("dot", "convolution", "gather", "scatter", "sort", "reduce", "fusion", "while",
                   "call", "slice", "dynamic-update-slice", "fft", "cholesky", "reduce-window",
                   "all-reduce", "triangular-solve", "conditional", "concatenate", "transpose",
                   "custom-call", "map", "select-and-scatter", "ragged-dot"):  # fmt: skip
        one = made.add(main, opcode, huge, x, calls=(main,))
        one.window.dimensions.add(size=2**62, stride=2**62, base_dilation=2**61)
        one.custom_call_target = "__cublas$lt$matmul"
        one.fft_length.append(2**62)
        made.add(main, opcode, f32(-5))
    return made


@each_row("rule", [Costing, GpuCosting])
def test_a_program_that_nobody_compiled(rule):
    result = cost_program(hostile().data, rule)
    assert all(value >= 0 for cost in result.instructions.values() for value in cost)
    if rule == "xla":
        assert result.guessed > 20


def test_damaged_programs_have_costs_and_no_errors():
    path = next(DATA.glob("sessions/jax_cpu/**/*.xplane.pb.gz"))
    with peakline.open(path) as profile:
        programs = [data for _, data in profile.hlo_modules()]
    assert len(programs) == 20
    chance = random.Random(3)
    read = 0
    for _ in range(400):
        data = bytearray(chance.choice(programs))
        for _ in range(chance.randrange(1, 6)):
            data[chance.randrange(len(data))] = chance.randrange(256)
        for rule in (Costing, GpuCosting):
            read += bool(costs_of(bytes(data), rule))
    assert read > 100


def a_module():
    made = Maker()
    inner = made.computation("fused")
    x = made.add(inner, "parameter", f32(8))
    made.add(inner, "tanh", f32(8), x, name="tanh.1")
    main = made.computation("main")
    arg = made.add(main, "parameter", f32(8), name="x")
    fusion = made.add(
        main, "fusion", f32(8), arg, name="loop_fusion", calls=(inner,), fusion_kind="kLoop"
    )
    fusion.metadata.op_name = "jit(f)/tanh"
    fusion.metadata.source_file, fusion.metadata.source_line = "model.py", 7
    return made


def module_of(data):
    """A program, and what it reports as lost."""
    lost = []
    stored = StoredProgram("jit_f", 17, "", lambda: as_buffer(data))
    return Module(ProgramTables([stored]), 0, lambda *entry: lost.append(entry)), lost


def test_instructions_by_name():
    module, lost = module_of(a_module().data)
    fusion = module.instructions["loop_fusion"]
    assert (fusion.opcode, fusion.category, fusion.operands) == ("fusion", "loop fusion", ("x",))
    assert (fusion.op_name, fusion.source) == ("jit(f)/tanh", "model.py:7")
    assert module.instructions["tanh.1"].opcode == "tanh"
    assert lost == []


@each_row(
    ("opcode", "fields", "category"),
    [
        ("add", {}, "non-fusion elementwise"),
        ("constant", {}, "non-fusion elementwise"),
        ("copy", {}, "data formatting"),
        ("dot", {}, "dot"),
        ("fusion", {"fusion_kind": "kOutput"}, "output fusion"),
        ("convolution", {}, "convolution"),
        ("all-reduce-start", {}, "all-reduce-start"),
    ],
)
def test_categories_are_those_of_xla(opcode, fields, category):
    made = Maker()
    assert category_of(made.add(made.computation("main"), opcode, f32(1), **fields), {}) == category


def test_a_dilated_convolution_has_a_category_of_its_own():
    made = Maker()
    instruction = made.add(made.computation("main"), "convolution", f32(1))
    instruction.window.dimensions.add(base_dilation=2, window_dilation=1)
    assert category_of(instruction, {}) == "convolution base-dilated"


def test_what_names_nothing_is_counted():
    made = a_module()
    instruction = made.proto.hlo_module.computations[1].instructions[1]
    instruction.operand_ids.append(999)
    instruction.called_computation_ids.append(998)
    module, lost = module_of(made.data)
    assert len(module.instructions) == 4
    assert [(kind, count) for kind, _, count in lost] == [("hlo_reference", 2)]


def test_damaged_programs_are_warnings(opened):
    space = SpaceBuilder()
    metadata = space.plane("/host:metadata")
    lost = a_module()
    lost.proto.hlo_module.computations[1].instructions[1].operand_ids.append(999)
    for name, data in (("jit_f(1)", lost.data), ("jit_g(2)", b"\x0a\xff\xff")):
        entry = metadata.message.event_metadata[metadata.event_id(name)]
        metadata.add_stats(entry, {"Hlo Proto": data})
    profile = opened(space)
    result = {module.program_id: len(module.instructions) for module in modules_of(profile)}
    assert result == {1: 4, 2: 0}
    answer = {warning.kind: warning.count for warning in profile.warnings}
    assert answer == {"hlo_reference": 1, "hlo_unreadable": 1}


def program():
    """A call of a computation, and what is done with its result."""
    made = Maker()
    inner = made.computation("inner")
    made.add(inner, "negate", f32(4), made.add(inner, "parameter", f32(4)))
    main = made.computation("main")
    x = made.add(main, "parameter", f32(4))
    made.add(main, "copy", f32(4), made.add(main, "call", f32(4), x, calls=(inner,)))
    module = made.proto.hlo_module
    module.host_program_shape.result.element_type = 11
    return module


def last(module):
    return module.computations[-1].instructions[-1]


def test_a_whole_program():
    assert is_sound(ModuleParts.of(program()))


@each_row(
    "damage",
    [
        lambda module: module.ClearField("host_program_shape"),
        lambda module: setattr(module, "entry_computation_id", 99),
        lambda module: module.computations.add(name="empty", id=77),
        lambda module: module.computations.reverse(),
        lambda module: module.computations[-1].instructions.reverse(),
        lambda module: setattr(module.computations[-1], "root_id", 99),
        lambda module: setattr(last(module), "opcode", "unheard_of"),
        lambda module: setattr(last(module), "name", module.computations[0].instructions[0].name),
        lambda module: setattr(last(module), "id", last(module).operand_ids[0]),
        lambda module: last(module).ClearField("shape"),
        lambda module: last(module).operand_ids.append(99),
        lambda module: last(module).control_predecessor_ids.append(99),
        lambda module: last(module).called_computation_ids.append(99),
        lambda module: setattr(module.computations[0].instructions[0], "parameter_number", 1),
    ],
)
def test_what_it_refuses(damage):
    module = program()
    damage(module)
    assert not is_sound(ModuleParts.of(module))


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
    result = costs_of(of_cudnn(f"__cudnn$fmha{name}").data)["call"]
    assert result.flops == products(FORWARD).flops
    assert result.transcendentals == BATCH * HEADS * QUERIES * KEYS
    # 2 bytes each of queries, keys, values and the result; not the memory to work in.
    assert result.bytes_accessed == 2 * (120 + 56 + 84 + 180)
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
