"""Sums over devices in each turn of a loop of a compiled program."""

import pytest
from tests.each_row import each_row
from tests.timing.programs import Maker, f32

from reference.xspace_builder import SpaceBuilder, Uint

MS = 10**9
TURNS = 8
PSUM = "jit(step)/while/body/psum"


def program(*, read=False, outside=False, product=False, fused=False):
    """A loop that adds ``all_reduce(x @ x)`` to what it carries, or whose next product reads it."""
    made, shape = Maker("jit_step"), f32(64, 64)
    called = made.computation("add")
    x, y = (made.add(called, "parameter", f32(), parameter_number=n) for n in (0, 1))
    made.add(called, "add", f32(), x, y)
    body = made.computation("body")
    carried = made.add(body, "parameter", shape, parameter_number=0)
    total, weight = (
        made.add(body, "get-tuple-element", shape, carried, tuple_index=n) for n in (0, 1)
    )
    grad = made.add(body, "dot", shape, weight, weight)
    if not outside:
        grad = made.add(body, "all-reduce", shape, grad, name="reduce", calls=(called,))
        grad.metadata.op_name = PSUM
    if read:
        grad = made.add(body, "dot", shape, grad, weight)
    opcode = "multiply" if product else "fusion" if fused else "add"
    total = made.add(body, opcode, shape, total, grad)
    if fused:
        total.metadata.op_name = "jit(step)/while/body/add"
    made.add(body, "tuple", shape, total, weight)
    main = made.computation("main")
    x = made.add(main, "parameter", shape, parameter_number=0)
    loop = made.add(main, "while", shape, x, calls=(body,))
    loop.backend_config = b'{"known_trip_count":{"n":"%d"}}' % TURNS
    out = made.add(main, "get-tuple-element", shape, loop, tuple_index=0)
    if outside:
        made.add(main, "all-reduce", shape, out, name="reduce", calls=(called,))
    return made.data


@pytest.fixture
def said(opened):
    """The findings of six steps of 100 ms, in which the reduction takes 8 times 5 ms."""

    def findings(**what):
        builder = SpaceBuilder()
        metadata = builder.plane("/host:metadata")
        kind = metadata.event_id("jit_step(7)")
        stats = {"Hlo Proto": program(**what), "program_id": Uint(7)}
        metadata.add_stats(metadata.message.event_metadata[kind], stats)
        host = builder.host()
        python, worker = host.line("python"), host.line("tf_XLAPjRtCpuClient/1")
        for step in range(6):
            begin = 100 * step
            python.event("train", begin * MS, 100 * MS, {"step_num": step, "_r": 1})
            stats = {"hlo_module": "jit_step", "program_id": Uint(7)}
            for turn in range(TURNS):
                at = begin + 10 * turn
                worker.event("reduce", at * MS, 5 * MS, stats | {"hlo_op": "reduce"})
                worker.event("dot.9", (at + 5) * MS, 5 * MS, stats | {"hlo_op": "dot.9"})
        every = opened(builder).findings()
        return [one for one in every if one.kind == "communication_each_pass"]

    return findings


@each_row("what", [{}, {"fused": True}])
def test_a_sum_that_only_the_carry_takes_is_named(said, what):
    (finding,) = said(**what)
    assert finding.title.startswith(
        "gradients are reduced over all devices in each of the 8 turns of a loop (psum, 8 times a "
    )
    share = TURNS * 5 / 100 * (1 - 1 / TURNS)
    assert finding.evidence["most_gain_share"] == pytest.approx(share)
    assert finding.evidence["passes"] == TURNS


@each_row("what", [{"read": True}, {"outside": True}, {"product": True}])
def test_what_a_turn_needs_is_no_fault(said, what):
    assert said(**what) == []
