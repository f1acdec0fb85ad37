"""What a compiled program could do with less: findings in its instructions."""

from functools import cache
from pathlib import Path
from random import Random

import pytest
from tests.each_row import each_row
from tests.memory.records import alloc, events, free, history, origins, steps_at
from tests.tables.fake import FakeReader
from tests.timing.traces import HOST_PLANE, profile_of

import peakline
from peakline.hlo.advice import WORTH, advice_of
from peakline.hlo.memory import memory_of
from peakline.hlo.packing import packed_heaps, repack
from peakline.memory.marks import find_marks
from peakline.memory.origins.op_events import op_events_of
from peakline.memory.peak.buffers import buffers_at_peak
from peakline.memory.peak.optimizers import DENSE_OP, dense_gradients
from peakline.memory.peak.temporaries import (
    ATTENTION,
    BROADCAST,
    DENSE,
    ONE_HOT,
    PATCHES,
    REPEATED,
    SPARSE,
    is_broadcast,
    is_for_each_pair,
    is_written_out,
    materialised,
)
from peakline.schema import HloProto
from peakline.tables import Profile
from peakline.tables.derived import DERIVED

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
    result = advice("rematerialise_features")["rematerialise"]
    # 1,000 x 2,000 of 4 bytes are not held; in their place is then what made the second peak.
    assert (result.bytes, len(result.rows)) == (4_800_000, 1)
    assert result.rows[0] == {
        "instruction": "multiply_tanh_fusion",
        "op_name": "jit(rematerialise_features)/jvp()/tanh",
        "source": "advised_jax.py:63",
        "shape": "f32[1000,2000]",
        "bytes": 8_000_000,
    }
    assert "jax.checkpoint" in result.suggestion


def test_what_is_added_up_is_computed_in_halves():
    result = advice("chunk_attention")["chunk"]
    assert (result.bytes, result.rows[0]["bytes"]) == (1024 * 2048 * 2, 1024 * 2048 * 4)
    assert result.title == f"f32[1024,2048] of {result.rows[0]['instruction']}"


def test_parameters_are_donated_together():
    result = advice("donate_sgd")["donate"]
    assert [row["shape"] for row in result.rows] == ["f32[256,256]"] * 4
    # Four results less, but what lay in their place before they were written needs another one.
    assert result.bytes == 4 * 256 * 256 * 4 - 458_752
    assert result.title.startswith("4 values of 1.0 MiB, such as f32[256,256] of ")


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

    result = changed("donate_sgd", tmp_path, forget)
    assert list(result) == ["donate"]
    assert result["donate"].bytes == 589_824


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


MIB = 1 << 20


def what(*ops, shape="[64, 64, 9]", types=None, stacks=None, others=MIB):
    """What the temporaries of these ops are; beside them there is a weight."""
    rows = [alloc(1, others, op="weight", shape="[3]")]
    rows += [
        alloc(10 + n, 8 * MIB, op=op, shape=shape, **({} if stacks is None else {"stack_id": n}))
        for n, op in enumerate(ops)
    ]
    rows += [free(10 + n) for n in range(len(ops))]
    made = history(rows)
    result = buffers_at_peak(made, 0, find_marks(made, 0, steps_at(0, len(rows))), made.measured)
    codes = tuple(
        number for number in range(len(made.signatures)) if made.signatures[number].op in ops
    )
    who = None if stacks is None else origins(stacks, rows)
    said = materialised(made, result, codes, types or {}, who, None)
    return None if said is None else said.what


@each_row(
    ("ops", "shape", "expected"),
    [
        (["loss/one_hot"], "[64, 9]", ONE_HOT),
        (["model/ExtractImagePatches"], "[64, 9]", PATCHES),
        (["grad/UnsortedSegmentSum"], "[64, 9]", DENSE),
        (["a/BatchMatMulV2", "a/Softmax"], "[8, 64, 64]", ATTENTION),
        (["a/BatchMatMulV2", "a/Softmax"], "[8, 64, 9]", None),
        (["a/einsum", "a/softmax"], "", ATTENTION),
        (["distances/sub"], "[64, 64, 9]", BROADCAST),
        # What a model needs: the result of a product, and what is as large as its inputs together.
        (["model/MatMul"], "[64, 9]", None),
        (["model/Relu", "model/MatMul"], "[64, 9]", None),
        (["model/concat_1"], "[64, 9]", None),
        (["model/Tile"], "[64, 9]", None),
        # ... but where an element-wise op reads it.
        (["model/Tile", "model/mul"], "[64, 64, 9]", BROADCAST),
        # A table of all pairs of two vectors, and what another shape is half as large as.
        (["model/Tile", "model/mul"], "[64, 9]", BROADCAST),
        (["metric/Tile", "metric/Greater"], "[64, 9]", BROADCAST),
        (["model/Tile", "model/mul"], "[8, 9, 64, 3]", BROADCAST),
        (["graph/ScatterNd"], "[64, 64]", SPARSE),
        (["graph/ScatterNd"], "[64, 9]", DENSE),
        (["model/Tile", "model/Reshape"], "[64, 64, 9]", None),
        # What layers make for themselves is no broadcast.
        (["aten::lstm"], "[64, 64, 9]", None),
        (["model/CudnnRNNV3"], "[64, 64, 9]", None),
        # Pairs of numbers may be what is needed, and so are rows that are looked up.
        (["distances/sub"], "[64, 64]", None),
        (["words/embedding"], "[64, 32, 9]", None),
    ],
)
def test_what_it_is(ops, shape, expected):
    assert what(*ops, shape=shape) == expected


def test_it_is_much_larger_than_what_else_there_is():
    assert what("distances/sub", others=2 * MIB) == BROADCAST
    assert what("distances/sub", others=3 * MIB) is None


def test_types_say_more_than_names():
    assert what("x", types={"x": "OneHot"}) == ONE_HOT
    assert what("one_hot", types={"one_hot": "MatMul"}) is None


def test_the_outermost_op_of_a_stack_says_it():
    assert what("aten::copy_", stacks=[["aten::copy_", "aten::one_hot"]]) == ONE_HOT
    assert what("x", stacks=[[("at::_ops::im2col::call(at::Tensor)", "??", 0)]]) == PATCHES


def joined(shape="[24, 96, 384]", *, repeat="pair/Tile", part="[24, 96, 192]", size=4, ends=False):
    """What the join of ``shape`` is, of 8 MiB, made while what was repeated lived."""
    rows = [
        alloc(1, MIB, op="weight", shape="[3]"),
        alloc(2, size * MIB, op=repeat, shape=part),
        *([free(2)] if ends else []),
        alloc(3, 8 * MIB, op="pair/concat", shape=shape),
        *([] if ends else [free(2)]),
        free(3),
    ]
    made = history(rows)
    result = buffers_at_peak(made, 0, find_marks(made, 0, steps_at(0, len(rows))), made.measured)
    signatures = made.signatures
    code = next(n for n in range(len(signatures)) if signatures[n].op == "pair/concat")
    said = materialised(made, result, (code,), {"pair/concat": "ConcatV2"}, None, None)
    return None if said is None else said.what


def test_a_softmax_that_allocates_nothing():
    scores = "attention/MatMul_1"
    types = {scores: "BatchMatMulV2", "attention/Softmax": "Softmax", "logits/Softmax": "Softmax"}
    assert what(scores, shape="[8, 64, 64]", types=types) == ATTENTION
    del types["attention/Softmax"]
    assert what(scores, shape="[8, 64, 64]", types=types) is None


def test_what_is_repeated_and_joined():
    assert joined() == REPEATED
    assert joined(repeat="pair/BroadcastTo") == REPEATED
    # What is not repeated, is a small part (coordinates of pixels), has other items, or is gone.
    assert joined(repeat="pair/Relu") is None
    assert joined(part="[24, 96, 2]", size=1) is None
    assert joined(part="[96, 24, 192]") is None
    assert joined("[24, 384]", part="[24, 192]") is None
    # PyTorch's allocator records no shapes.
    assert joined("", part="") == REPEATED
    assert joined("", part="", repeat="pair/Relu") is None
    assert joined(ends=True) is None


NODE = "autograd::engine::evaluate_function: SubBackward0"


def job(ops, rows):
    """The ops ``(name, begin, end, dimensions)`` of a thread, and its allocator's records."""
    stats = [(n, "Input Dims", op[3]) for n, op in enumerate(ops) if len(op) > 3]
    base = profile_of({HOST_PLANE: {"1": [op[:3] for op in ops]}}, stats=stats, kind="chrome_trace")
    tables = {name: base.columns(name) for name in ("planes", "lines", "events", "event_stats")}
    reader = FakeReader(tables | {"allocator_events": events(rows), "stacks": []})
    made = history(rows)
    result = buffers_at_peak(made, 0, find_marks(made, 0, steps_at(0, 1000)), made.measured)
    return made, result, op_events_of(Profile(reader.of_format("chrome_trace"), derived=DERIVED))


def broadcast(dims, *others):
    rows = [alloc(1, 32 * MIB, op="aten::sub", time_ps=5), free(1, time_ps=90)]
    made, result, ops = job([("aten::sub", 0, 10, dims), *others], rows)
    return is_broadcast(made, result, 0, (0,), ops)


MATRIX, CUBE = "[[4096, 1], [1, 2048]]", "[[256, 1, 128], [1, 256, 128]]"


@each_row(
    ("dims", "others", "expected"),
    [
        (CUBE, [], True),
        # Pairs of numbers: a product reads them, a norm reduces them, or only their gradient is
        # summed up.
        (MATRIX, [("aten::linear", 20, 30, "[[4096, 2048], [8, 2048]]")], False),
        (MATRIX, [("aten::mean", 20, 30, "[[4096, 2048]]")], True),
        (MATRIX, [(NODE, 20, 40), ("aten::sum", 21, 30, "[[4096, 2048]]")], False),
        # Not larger than what it reads.
        ("[[4096, 2048], [1, 2048]]", [], False),
        # What says nothing of its result.
        ("[[99], [98]]", [], True),
        ("[[-1], [99999999999999999999]]", [], False),
        ("7", [], True),
    ],
)
def test_broadcasts(dims, others, expected):
    assert broadcast(dims, *others) is expected


@each_row(
    ("dims", "scores", "expected"),
    [
        ("[[255, 64], [128, 128]]", "[[2, 4, 128, 128]]", True),
        ("[[255, 64], [32, 128]]", "[[2, 4, 128, 128]]", False),
        ("[[255, 64], [128, 128]]", "[[2, 4, 128, 64]]", False),
    ],
)
def test_rows_for_each_pair(dims, scores, expected):
    rows = [alloc(1, 4 * MIB, op="aten::embedding", time_ps=5), free(1, time_ps=90)]
    ops = [("aten::embedding", 0, 10, dims), ("aten::softmax", 20, 30, scores)]
    made, _, known = job(ops, rows)
    assert is_for_each_pair(made, 0, known) is expected


@each_row(("rows_read", "is_dense"), [(512, True), (65_536, False)])
def test_dense_gradients_of_embeddings(rows_read, is_dense):
    rows = [
        alloc(1, 8 * MIB, op="aten::empty", time_ps=15),
        alloc(2, MIB, op="aten::mm", time_ps=30),
        free(2, time_ps=40),
        free(1, time_ps=60),
    ]
    ops = [
        (DENSE_OP, 10, 25, f"[[{rows_read}, 32], [{rows_read}]]"),
        ("aten::empty", 12, 18),
        ("aten::mm", 28, 35),
    ]
    result = dense_gradients(*job(ops, rows))
    assert (result is not None) is is_dense
    if result is not None:
        assert result.rows.tolist() == [0]
        assert (result.bytes, result.peak_after) == (8 * MIB, MIB + 512 * 32 * 4)


@each_row(
    ("dims", "expected"),
    [
        ("[[6, 1, 256], []]", True),
        # An image that is made four times as large; nothing recorded.
        ("[[2048, 1024], []]", False),
        ("", False),
    ],
)
def test_what_is_written_out_many_times(dims, expected):
    rows = [alloc(1, 32 * MIB, op="aten::repeat", time_ps=5), free(1, time_ps=90)]
    made, _, ops = job([("aten::repeat", 0, 10, dims)], rows)
    assert is_written_out(made, 0, ops) is expected
    assert not is_written_out(made, 0, None)
