"""Which lines of the user's program allocated, by stacks or by the compiled program."""

import numpy as np
from tests.each_row import each_row
from tests.memory.records import alloc, free, of_kind, origins, profile_with, steps_at
from tests.timing.programs import Maker, f32

import peakline
from peakline.findings.program_values import with_readers
from peakline.memory.origins.stacks import NOTHING, signature_codes
from peakline.timing.programs.answer import LiveBuffer, ProgramAnswer
from peakline.trace.frames import Frame

MIB = 1 << 20
TRAIN = ("forward", "/me/train.py", 12)
MAIN = ("main", "/me/train.py", 40)
LINEAR = ("linear", "/v/site-packages/torch/nn/functional.py", 2300)


def stack(*frames):
    (result,) = origins([frames]).of(np.array([0]))
    return result


def test_the_innermost_function_of_the_program():
    result = stack("aten::addmm", "aten::linear", LINEAR, "nn.Module: Linear_3", TRAIN, MAIN)
    assert result.program == Frame("/me/train.py", 12, "forward", "program")
    assert [frame.function for frame in result.path] == ["main", "forward"]
    assert result.library == Frame(LINEAR[1], 2300, "linear", "framework")
    assert result.ops == ("aten::addmm", "aten::linear")
    assert (result.op, result.op_type, result.module) == ("aten::linear", "linear", "Linear_3")


def test_functions_without_a_name_give_way():
    assert stack(("<listcomp>", "/me/train.py", 13), TRAIN, MAIN).program.function == "forward"
    assert stack(("<lambda>", "/me/train.py", 13)).program.function == "<lambda>"


def test_no_stack_says_nothing():
    rows = [alloc(1, 8)]
    assert origins([], rows).of(np.array([0])) == [NOTHING]
    assert not origins([], rows).has_frames
    assert (NOTHING.op, NOTHING.op_type, NOTHING.module) == ("", "", "")


@each_row(
    ("frames", "types"),
    [
        ([("at::_ops::bmm::call(at::Tensor const&)", "??", 0)], ("bmm",)),
        (["torch::autograd::generated::AddmmBackward0::apply"], ("addmm",)),
        (["MulBackward0"], ("mul",)),
        ([LINEAR, TRAIN], ("linear",)),
        ([TRAIN], ()),
    ],
)
def test_types_of_ops(frames, types):
    assert stack(*frames).types == types


@each_row(
    ("flag", "frame"),
    [
        ("is_backward", "autograd::engine::evaluate_function: MulBackward0"),
        ("is_backward", ("_engine_run_backward", "/v/site-packages/torch/autograd/graph.py", 9)),
        ("is_optimizer", ("step", "/v/site-packages/torch/optim/adam.py", 9)),
        ("is_optimizer", "Optimizer.step#SGD.step"),
        ("is_copy", "aten::clone"),
        ("is_copy", ("deepcopy", "/usr/lib/python3.11/copy.py", 128)),
        ("is_zeros", "aten::zeros_like"),
        ("is_input", ("default_collate", "/v/site-packages/torch/utils/data/collate.py", 9)),
    ],
)
def test_what_a_buffer_is_a_part_of(flag, frame):
    flags = {"is_backward", "is_optimizer", "is_copy", "is_zeros", "is_input"}
    assert {one for one in flags if getattr(stack(frame), one)} == {flag}
    assert not any(getattr(stack(TRAIN), one) for one in flags)


def test_the_function_that_made_most_of_the_bytes():
    result = origins([[TRAIN], [MAIN], ["aten::mm"]])
    rows = np.arange(3)
    assert result.function(rows, np.array([1, 5, 1])).function == "main"
    assert result.function(rows, np.array([2, 2, 2])) is None
    assert result.function(rows, np.array([1, 1, 5])) is None
    assert result.function(rows[:0], rows[:0]) is None


def test_the_signatures_that_a_finding_is_about():
    rows = [alloc(1, 8, op="a", shape="[2]"), alloc(2, 8, op="a", shape="[3]"), alloc(3, 4, op="b")]
    history = origins([], rows).history
    one = signature_codes(history, {"op": "a", "shape": "[3]"})
    assert [history.signatures[int(code)].shape for code in one] == ["[3]"]
    assert len(signature_codes(history, {"op": "a"})) == 2
    sizes = signature_codes(history, {"op": "b", "buffer_bytes": 4})
    assert [history.signatures[int(code)].op for code in sizes] == ["b"]


CLONE = ["aten::clone", ("snapshot", "/me/train.py", 30), MAIN]
MAKE = ["aten::empty", ("build", "/me/train.py", 8), MAIN]


def weights(stacks, *, sizes=(3 * MIB, 2 * MIB)):
    """Two weights, and two buffers of the second stack."""
    rows = [
        alloc(n, size, op="aten::empty", stack_id=0) for n, size in enumerate((3 * MIB, 2 * MIB))
    ]
    rows += [alloc(10 + n, size, op="aten::clone", stack_id=1) for n, size in enumerate(sizes)]
    return profile_with([*rows, alloc(20, 1), free(20)], stacks=stacks)


def test_redundant_copy():
    (finding,) = of_kind(weights([MAKE, CLONE]), "redundant_copy")
    assert finding.severity == "warning"
    assert finding.evidence["copy_bytes"] == 5 * MIB
    assert (finding.evidence["function"], finding.evidence["line"]) == ("snapshot", 30)
    assert finding.evidence["original"] == "build (train.py:8)"
    assert finding.title.endswith(
        "5.0 MiB are a second copy: 2 buffers made by snapshot (train.py:30), of the sizes of "
        "what build (train.py:8) made"
    )


@each_row(
    ("copy", "sizes"),
    [
        # Not made by what copies, of an optimizer, zeros, of other sizes, a single buffer.
        (MAKE[1:], (3 * MIB, 2 * MIB)),
        (["aten::clone", ("step", "/v/site-packages/torch/optim/adam.py", 9)], (3 * MIB, 2 * MIB)),
        (["aten::zeros_like", *CLONE], (3 * MIB, 2 * MIB)),
        (CLONE, (4 * MIB, MIB)),
        (CLONE, (3 * MIB,)),
    ],
)
def test_no_second_copy(copy, sizes):
    assert of_kind(weights([MAKE, copy], sizes=sizes), "redundant_copy") == []


def test_a_leak_has_its_line():
    rows, stacks = [], [["aten::add", ("update", "/me/train.py", 17), MAIN]]
    for number in range(12):
        rows += [
            alloc(100 + number, 1 << 16, op="aten::add", stack_id=0),
            *[alloc(7, 1, op="tick"), free(7)] * 5,
        ]
    rows = [row | {"time_ps": n} for n, row in enumerate(rows)]
    steps = steps_at(*range(0, 133, 11))
    (finding,) = of_kind(profile_with(rows, steps, stacks), "leak")
    assert finding.title.endswith("; allocated in update (train.py:17)")
    assert finding.evidence["path"] == "main (train.py:40) > update (train.py:17)"
    (finding,) = of_kind(profile_with([{**row, "stack_id": None} for row in rows], steps), "leak")
    assert "allocated in" not in finding.title


def value(instruction):
    return LiveBuffer(instruction, "copy", "", "", None, 8, None, "f32[4]", "temporary")


def test_the_op_that_reads_a_copy(tmp_path):
    made = Maker()
    main = made.computation("main")
    x = made.add(main, "parameter", f32(4), name="x")
    copy = made.add(main, "copy", f32(4), x, name="copy.1")
    again = made.add(main, "copy", f32(4), copy, name="copy.2")
    reads = made.add(main, "negate", f32(4), again, name="negate.1")
    reads.metadata.op_name = "jit(f)/neg"
    reads.metadata.source_file, reads.metadata.source_line = "/me/train.py", 7
    made.add(main, "copy", f32(4), reads, name="copy.3")
    path = tmp_path / "some.hlo.pb"
    path.write_bytes(made.data)
    given = [value(name) for name in ("copy.1", "copy.2{}", "copy.3", "unknown")]
    with peakline.open(path) as profile:
        result = with_readers(profile, ProgramAnswer(profile, 0), given)
    assert [(one.op_name, one.source_line) for one in result] == [
        ("jit(f)/neg", 7), ("jit(f)/neg", 7), ("", None), ("", None)
    ]  # fmt: skip
