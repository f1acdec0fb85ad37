"""What would lower a program's memory, for dumps of JAX programs of ours; that following it saves
what it says is in tests/conformance/test_hlo_advice_peers.py.
"""

from functools import cache
from pathlib import Path
from random import Random

import pytest

import peakline
from peakline.hlo.advice import WORTH, advice_of
from peakline.hlo.memory import memory_of
from peakline.hlo.packing import packed_heaps, repack
from peakline.schema import HloProto

DUMPS = Path(__file__).parents[1] / "data" / "hlo"
AFTER = "cpu_after_optimizations.hlo.pb"
NAMES = sorted(path.name.split(".")[1].removeprefix("jit_") for path in DUMPS.iterdir())


def dump(name):
    (path,) = DUMPS.glob(f"module_*.jit_{name}.{AFTER}")
    return path


@cache
def advice(name):
    with peakline.open(dump(name)) as profile:
        return {one.kind: one for one in advice_of(profile, 0)}


def changed(name, folder, change, backend="cpu"):
    """The advice for a dump with another program in it."""
    proto = HloProto.FromString(dump(name).read_bytes())
    change(proto)
    path = folder / f"module_0001.jit_{name}.{backend}_after_optimizations.hlo.pb"
    path.write_bytes(proto.SerializeToString())
    with peakline.open(path) as profile:
        return {one.kind: one for one in advice_of(profile, 0)}


def instruction(proto, name):
    return next(
        one for part in proto.hlo_module.computations for one in part.instructions
        if one.name == name
    )  # fmt: skip


def test_a_cheap_value_held_across_the_peak_is_made_again():
    found = advice("rematerialise_features")["rematerialise"]
    # 1,000 x 2,000 of 4 bytes are not held; in their place is then what made the second peak.
    assert (found.bytes, len(found.rows)) == (4_800_000, 1)
    assert found.rows[0] == {
        "instruction": "multiply_tanh_fusion",
        "op_name": "jit(rematerialise_features)/jvp()/tanh",
        "source": "advised_jax.py:63",
        "shape": "f32[1000,2000]",
        "bytes": 8_000_000,
    }
    assert "jax.checkpoint" in found.suggestion


def test_what_is_added_up_is_computed_in_halves():
    found = advice("chunk_attention")["chunk"]
    assert (found.bytes, found.rows[0]["bytes"]) == (1024 * 2048 * 2, 1024 * 2048 * 4)
    assert found.title == f"f32[1024,2048] of {found.rows[0]['instruction']}"


def test_parameters_are_donated_together():
    found = advice("donate_sgd")["donate"]
    assert [row["shape"] for row in found.rows] == ["f32[256,256]"] * 4
    # Four results less, but what lay in their place before they were written needs another one.
    assert found.bytes == 4 * 256 * 256 * 4 - 458_752
    assert found.title.startswith("4 values of 1.0 MiB, such as f32[256,256] of ")


def test_a_parameter_that_is_needed_later_is_not_donated():
    assert "donate" not in advice("none_donate_needed_later")


def test_what_is_donated_is_not_donated_again(tmp_path):
    def donate(proto):
        for one in proto.buffer_assignment.buffer_allocations:
            if one.is_entry_computation_parameter:
                one.is_parameter_aliased_with_output = True

    assert "donate" not in changed("donate_sgd", tmp_path, donate)


def test_what_is_given_away_is_not_donated_again(tmp_path):
    def give(proto):
        for number in (0, 1):
            proto.hlo_module.buffer_donor.entries.add(parameter_number=number)

    assert len(changed("donate_sgd", tmp_path, give)["donate"].rows) == 2


def test_what_is_made_of_a_donated_parameter_is_not_made_again(tmp_path):
    def donate(proto):
        for one in proto.buffer_assignment.buffer_allocations:
            if one.is_entry_computation_parameter:
                one.is_parameter_aliased_with_output = True

    assert "rematerialise" not in changed("rematerialise_features", tmp_path, donate)


def test_another_layout_takes_no_parameters_place(tmp_path):
    def turn(proto):
        for part in proto.hlo_module.computations:
            for one in part.instructions:
                if one.opcode == "parameter" and part.id == proto.hlo_module.entry_computation_id:
                    order = list(one.shape.layout.minor_to_major)
                    one.shape.layout.minor_to_major[:] = order[::-1]

    assert "donate" not in changed("donate_sgd", tmp_path, turn)


def test_a_narrower_type_is_advised_where_the_device_computes_in_it(tmp_path):
    wide = advice("lower_precision_sorted")["lower_precision"]
    assert wide.rows[0]["shape"] == "f64[512,512]"
    assert "f32 for f64" in wide.suggestion
    assert "lower_precision" not in advice("chunk_attention")
    on_gpu = changed("chunk_attention", tmp_path, lambda _: None, backend="sm_9.0_gpu")
    assert "bf16 for f32" in on_gpu["lower_precision"].suggestion


def test_an_expensive_value_is_not_made_again(tmp_path):
    def make_dear(proto):
        called = instruction(proto, "multiply_tanh_fusion").called_computation_ids[0]
        part = next(one for one in proto.hlo_module.computations if one.id == called)
        next(one for one in part.instructions if one.opcode == "tanh").opcode = "sort"

    assert "rematerialise" not in changed("rematerialise_features", tmp_path, make_dear)


@pytest.mark.parametrize("name", NAMES)
def test_an_advice_is_worth_it_and_adds_up(name):
    with peakline.open(dump(name)) as profile:
        packing = repack(memory_of(profile, 0))
        needed = memory_of(profile, 0).peak_bytes + packing.loss_bytes
    assert packing.is_same
    for one in advice(name).values():
        assert one.bytes + one.peak_after == needed
        assert one.bytes >= WORTH * needed
        sizes = [row["bytes"] for row in one.rows]
        assert sizes == sorted(sizes, reverse=True)


def test_without_a_buffer_assignment_there_is_none(tmp_path):
    assert changed("donate_sgd", tmp_path, lambda one: one.ClearField("buffer_assignment")) == {}


def test_without_a_heap_parameters_can_be_donated(tmp_path):
    def forget(proto):
        del proto.buffer_assignment.heap_simulator_traces[:]

    found = changed("donate_sgd", tmp_path, forget)
    assert list(found) == ["donate"]
    assert found["donate"].bytes == 589_824


def test_operands_that_lead_back_are_followed_once(tmp_path):
    def turn_back(proto):
        for part in proto.hlo_module.computations:
            for one in part.instructions:
                if one.opcode != "parameter":
                    one.opcode = "bitcast"
                    one.operand_ids[:] = [one.id]

    assert isinstance(changed("rematerialise_features", tmp_path, turn_back), dict)


NUMBERS = (-(2**63), -1, 0, 1, 3, 2**31, 2**62, 2**63 - 1)
OPCODES = "while tuple get-tuple-element parameter fusion bitcast reduce add call made-up".split()


def strange(rng, proto):
    """Some of the program changed to what no compiler writes."""
    parts = list(proto.hlo_module.computations)
    made = [one for part in parts for one in part.instructions]
    assignment = proto.buffer_assignment
    for _ in range(rng.choice((1, 2, 5, 30))):
        instruction, other = rng.choice(made), rng.choice(made)
        value = rng.choice(assignment.logical_buffers)
        allocation = rng.choice(assignment.buffer_allocations)
        trace = rng.choice(assignment.heap_simulator_traces)
        event = rng.choice(trace.events)
        change = rng.randrange(14)
        if change == 0:
            instruction.opcode = rng.choice(OPCODES)
        elif change == 1:
            instruction.operand_ids.append(other.id)
        elif change == 2:
            del instruction.operand_ids[:]
        elif change == 3:
            instruction.id = rng.choice((other.id, *NUMBERS))
        elif change == 4:
            instruction.called_computation_ids[:] = [rng.choice(parts).id, 12345]
        elif change == 5:
            rng.choice(parts).root_id = rng.choice((other.id, *NUMBERS))
        elif change == 6:
            value.size = rng.choice(NUMBERS)
        elif change == 7:
            value.defined_at.instruction_id = rng.choice((other.id, 2**62))
        elif change == 8:
            allocation.size = rng.choice(NUMBERS)
        elif change == 9:
            allocation.maybe_live_out ^= True
        elif change == 10:
            event.kind = rng.choice((0, 1, 2, 7))
        elif change == 11:
            event.buffer_id = rng.choice((*(one.buffer_id for one in trace.events), *NUMBERS))
        elif change == 12:
            event.share_with_canonical_id = rng.choice((event.buffer_id, value.id, *NUMBERS))
        elif change == 13 and allocation.assigned:
            rng.choice(allocation.assigned).offset = rng.choice(NUMBERS)


@pytest.mark.parametrize("name", NAMES)
def test_strange_programs_do_no_harm(tmp_path, name):
    for seed in range(40):
        proto = HloProto.FromString(dump(name).read_bytes())
        strange(Random(f"{name} {seed}"), proto)
        path = tmp_path / f"module_0001.jit_{name}.{seed}.{AFTER}"
        path.write_bytes(proto.SerializeToString())
        with peakline.open(path) as profile:
            for one in advice_of(profile, 0):
                assert one.bytes > 0
                assert one.title
            for heap in packed_heaps(memory_of(profile, 0)):
                assert heap.packed.heap_bytes >= heap.trace.pieces.live_peak()
