"""Costs of instructions: exact cases, and programs that nobody would compile."""

import json
import random
from pathlib import Path

from tests.analysis.timing.programs import Maker, f32
from tests.each_row import each_row

import peakline
from peakline.hlo.cost import NOTHING, Costing, cost_program, costs_of
from peakline.schema import PrimitiveType
from peakline.xprof.rules.hlo_cost import GpuCosting

DATA = Path(__file__).parents[2] / "data"


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
    found = costs_of(library_call(f"__cublas${name}", CONFIG).data)["call"]
    assert found[:3] == (1024, 4 * (128 + 64 + 32), 0)


class TestXProfOnLibraries:
    def test_the_first_interface_of_cublas_is_any_call(self):
        found = costs_of(library_call("__cublas$gemm", CONFIG).data, GpuCosting)
        assert found["call"] == NOTHING
        assert found["before"][:2] == (3 * 128, 2 * 512)

    def test_a_product_is_known(self):
        found = costs_of(library_call("__cublas$lt$matmul", CONFIG).data, GpuCosting)
        assert found["call"][:2] == (1024, 4 * (128 + 64 + 32))
        assert found["before"][:2] == (3 * 128, 2 * 512)

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
        found = costs_of(library_call("__cublas$lt$matmul", CONFIG, "S8").data, GpuCosting)["call"]
        assert (found.flops, found.device_flops) == (1024, 512)


def test_what_xprof_does_not_come_to_costs_nothing():
    made = Maker()
    function = adder(made)
    function.instructions[-1].name = "sum"
    main = made.computation("main")
    x = made.add(main, "parameter", f32(8))
    made.add(main, "all-reduce", f32(8), x, name="reduced", calls=(function,))
    found = costs_of(made.data, GpuCosting)
    assert (found["sum"], found["reduced"].flops) == (NOTHING, 24)
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
    found = cost_program(hostile().data, rule)
    assert all(value >= 0 for cost in found.instructions.values() for value in cost)
    if rule == "xla":
        assert found.guessed > 20


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
