"""Costs of instructions: exact cases, and programs that nobody would compile."""

from __future__ import annotations

import json
import random
from pathlib import Path

from tests.analysis.timing.programs import Maker, f32
from tests.each_row import each_row

import peakline
from peakline.analysis.timing.hlo_cost import NOTHING, cost_program, costs_of

DATA = Path(__file__).parents[2] / "data"


def cost_of(made, rule="xla"):
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
    assert cost_of(made, "xprof") == (1900, 80, 0)


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
    assert cost_of(made, "xprof") == (30, 80, 0)


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


def library_product():
    made, main, (a, b) = with_operands(f32(8, 16), f32(16, 4))
    call = made.add(main, "custom-call", ("TUPLE", ()), a, b, custom_call_target="__cublas$gemm")
    for part in (f32(8, 4), f32(4096, kind="S8")):
        made.fill(call.shape.tuple_shapes.add(), part)
    numbers = {"lhs_contracting_dimensions": ["1"]}
    config = {"gemm_backend_config": {"dot_dimension_numbers": numbers}}
    call.backend_config = json.dumps(config).encode()
    return made


def test_a_matrix_product_of_a_library_without_its_workspace():
    assert cost_of(library_product()) == (1024, 4 * (128 + 64 + 32), 0)


def test_xprof_knows_no_cost_of_a_program_with_one():
    assert costs_of(library_product().data, "xprof") == {}


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
        one.custom_call_target = "__cublas$gemm"
        one.fft_length.append(2**62)
        made.add(main, opcode, f32(-5))
    return made


@each_row("rule", ["xla", "xprof"])
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
        for rule in ("xla", "xprof"):
            read += bool(costs_of(bytes(data), rule))
    assert read > 100
