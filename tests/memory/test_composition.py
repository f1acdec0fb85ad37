"""What the bytes at a moment are: categories, allocators, and how they add up."""

import numpy as np
import pytest
from tests.each_row import each_row
from tests.formats.chrome_traces import opened
from tests.memory import torch_jobs
from tests.memory.records import alloc, events, free, history, of_kind, profile_with, steps_at
from tests.tables.fake import FakeReader

from peakline.api import Profile
from peakline.compare.state import Kind, Purpose, purposes_of
from peakline.document.live import live_rows
from peakline.findings.finding import Finding
from peakline.findings.memory_answer import answer_memory
from peakline.memory.allocator_names import recorded_name, shown_names
from peakline.memory.marks import find_marks
from peakline.memory.origins.categories import CATEGORIES
from peakline.memory.origins.element_types import float64_rows
from peakline.memory.peak.buffers import buffers_at_peak
from peakline.memory.peak.copies import added_up, gradients
from peakline.memory.peak.explained import PeakBuffer

MIB = 1 << 20


def timed(rows, steps=5):
    """These records in each of some steps, and the steps."""
    every = [
        row | {"time_ps": len(rows) * n + at} for n in range(steps) for at, row in enumerate(rows)
    ]
    return every, steps_at(*range(0, len(rows) * steps + 1, len(rows)))


def loop(turns=6, *, op="logits", inner="hidden", together=True, numbered=False):
    """A loop: each turn makes a buffer that comes and goes, and one that stays for the step."""
    rows, stays = [], []
    for turn in range(turns):
        name = f"{op}_{turn}" if numbered and turn else op
        rows += [alloc(1, 64, op=inner, shape="[4]"), free(1)]
        rows.append(alloc(10 + turn, MIB, op=name, shape="[8]"))
        stays.append(free(10 + turn))
        if not together:
            rows += [alloc(2, 8, op="x"), free(2)]
    if together:
        return rows + stays
    # Between two of them other work is done, as a backward pass does.
    return rows + [one for end in stays for one in (end, *[alloc(3, 8, op="y"), free(3)] * 4)]


def found_in(rows, **options):
    every, steps = timed(rows)
    made = history(every)
    at_peak = buffers_at_peak(made, 0, find_marks(made, 0, steps), made.measured)
    return added_up(made, at_peak, **options)


def test_turns_of_a_loop_are_added_up():
    (result,) = found_in(loop())
    assert (result.rows.size, result.bytes, result.has_passes) == (6, 6 * MIB, False)


def test_turns_that_tensorflow_numbers_are_one_op():
    (result,) = found_in(loop(numbered=True))
    assert result.rows.size == 6


def test_what_goes_one_by_one_or_in_a_few_turns_is_not():
    assert found_in(loop(together=False)) == []
    assert found_in(loop(3)) == []
    # What is made at once is no loop.
    rows = [alloc(n, MIB, op="w", shape="[8]") for n in range(6)]
    assert found_in(rows + [free(n) for n in range(6)]) == []


def test_a_join_of_them_counts():
    rows = [alloc(n, MIB, op="w", shape="[8]") for n in range(6)]
    rows += [alloc(9, 6 * MIB, op="model/concat"), *(free(n) for n in range(6)), free(9)]
    (result,) = found_in(rows)
    assert (result.rows.size, result.bytes) == (7, 12 * MIB)


def tasks(number=5, *, weights=2, together=True, forward=True, scope="gradient_tape/"):
    """Turns of a forward and a backward pass, whose gradients are held for a sum of all."""
    rows, stays = [], []
    for turn in range(number):
        if forward:
            rows += [alloc(1, 64, op="hidden", shape="[4]"), free(1)]
        for weight in range(weights):
            key = 10 + turn * weights + weight
            rows.append(alloc(key, MIB >> weight, op=f"{scope}MatMul_{weight}", shape="[8]"))
            stays.append(free(key))
    between = [] if together else [alloc(2, 8, op="x"), free(2)]
    return rows + [one for end in stays for one in (end, *between)]


def gradients_found_in(rows):
    every, _ = timed(rows)
    backward = np.array(["MatMul" in row.get("op", "") for row in every])
    return [one for one in found_in(rows, is_backward=backward) if one.turns != one.rows.size]


def test_gradients_of_all_turns_are_added_up_together():
    (result,) = gradients_found_in(tasks())
    assert (result.turns, result.rows.size, result.bytes) == (5, 10, 5 * MIB * 3 // 2)
    assert result.has_passes


@each_row(
    "given",
    [
        # No list: in one backward pass, given back one by one, of layers whose ops have one name.
        {"forward": False},
        {"together": False},
        {"number": 3},
        {"scope": ""},
    ],
)
def test_what_are_no_gradients_of_turns(given):
    assert gradients_found_in(tasks(**given)) == []


def test_passes_between_them():
    rows = loop()
    every, _ = timed(rows)
    (result,) = found_in(rows, is_backward=np.array([row.get("op") == "hidden" for row in every]))
    assert result.has_passes
    # Where passes are known, and none ran between them, they are layers.
    assert found_in(rows, is_backward=(np.arange(len(every)) == 0)) == []


@each_row(
    ("op", "is_one"),
    [
        ("gradient_tape/model/MatMul", True),
        ("jit(step)/transpose(jvp(loss))/mul", True),
        ("gradients_1/add", True),
        ("model/gradient_norm", False),
        ("", False),
    ],
)
def test_gradients_by_their_scopes(op, is_one):
    assert gradients(history([alloc(1, 8, op=op), free(1)])).tolist() == [is_one, False]


def test_gradients_of_nothing():
    assert gradients(history([free(1)])).tolist() == [False]


def test_accumulated_in_step():
    every, steps = timed(loop())
    (finding,) = of_kind(profile_with(every, steps), "accumulated_in_step")
    # Without a backward pass on record each may be what a layer holds.
    assert finding.severity == "info"
    assert "or of each layer" in finding.title
    assert finding.evidence["count"] == 6
    assert (finding.evidence["held_bytes"], finding.evidence["saved_bytes"]) == (6 * MIB, 5 * MIB)
    assert (finding.evidence["op"], finding.evidence["shape"]) == ("logits", "[8]")
    # The twin reduces each in its turn; and one step alone may prepare the run.
    every, steps = timed([row for row in loop() if not 10 <= row["address"] < 20])
    assert of_kind(profile_with(every, steps), "accumulated_in_step") == []
    every, steps = timed(loop(), steps=1)
    assert of_kind(profile_with(every, steps), "accumulated_in_step") == []


@pytest.mark.parametrize("kind", ["double", "DT_DOUBLE", "float64", "complex128"])
def test_float64_memory(kind):
    rows = [alloc(1, 3 * MIB, op="x", data_type=kind), alloc(2, MIB, op="y", data_type="float")]
    (finding,) = of_kind(profile_with(rows), "float64_memory")
    assert finding.title.endswith(f"3.0 MiB of the peak are float64: x {kind} of 3.0 MiB")
    assert (finding.evidence["wide_bytes"], finding.evidence["saved_bytes"]) == (
        3 * MIB,
        3 * MIB // 2,
    )
    rows[0] |= {"data_type": "float"}
    assert of_kind(profile_with(rows), "float64_memory") == []
    little = [alloc(1, MIB, op="x", data_type=kind), alloc(2, 9 * MIB, op="y", data_type="float")]
    assert of_kind(profile_with(little), "float64_memory") == []


def test_records_without_a_signature_are_of_no_type():
    assert float64_rows(history([free(1)]), np.array([0]), None).tolist() == [False]


def categories(profile):
    history = answer_memory(profile).history
    begins = np.flatnonzero(history.allocated > 0)
    return [CATEGORIES[code] for code in history.descriptions.categories[begins].tolist()]


@each_row("options", [{}, {"shapes": False}, {"marks": False}, {"stacks": False}])
def test_a_trace_of_the_profiler(options, tmp_path):
    events = torch_jobs.training(**options)
    keys = torch_jobs.keys_of(events)
    result = categories(opened(tmp_path, {"traceEvents": events}))
    assert list(zip(keys, result, strict=True)) == [(k, torch_jobs.CATEGORY[k]) for k in keys]


@each_row("windows", [False, True])
def test_a_snapshot_whose_stacks_have_frames_of_python_only(windows):
    profile, keys = torch_jobs.snapshot(windows=windows)
    result = categories(profile)
    assert list(zip(keys, result, strict=True)) == [(k, torch_jobs.IN_SNAPSHOT[k]) for k in keys]


def test_without_passes_only_what_a_step_frees_is_temporary(tmp_path):
    trace = torch_jobs.Trace()
    trace.run("ProfilerStep#1", 0, 50, torch_jobs.MARK)
    trace.run("aten::mm", 1, 5, **{"Sequence number": -1})
    trace.alloc(2, "a", 8)
    trace.alloc(3, "b", 8)
    trace.free(9, "a")
    trace.free(60, "b")
    assert categories(opened(tmp_path, {"traceEvents": trace.events})) == ["temporary", ""]


def test_what_gradients_were_off_for_is_no_activation(tmp_path):
    events = torch_jobs.training(2)
    trace = torch_jobs.Trace()
    # An evaluation between the steps, whose result is held.
    trace.run("nn.Module: Net_0", 90, 96, torch_jobs.MODULE)
    trace.run("aten::relu", 91, 95)
    trace.alloc(92, "scores", 500)
    events += trace.events
    buffers = answer_memory(opened(tmp_path, {"traceEvents": events})).allocators[0].peak_buffers
    (held,) = [one for one in buffers if one.op == "aten::relu"]
    assert (held.category, held.module, held.bytes) == ("", "Net_0", 500)


def test_rows_of_the_peak_say_where_they_were_made(tmp_path):
    (peak,) = answer_memory(opened(tmp_path, {"traceEvents": torch_jobs.training()})).allocators
    assert sum(one.bytes for one in peak.peak_buffers) == peak.peak_bytes
    rows = {(one.op, one.category): one for one in peak.peak_buffers}
    output = rows["aten::addmm", "activation"]
    assert output.described == ("activation", "Linear_0", "forward (model.py:3)", "[8, 4]")
    # A gradient has the module and the function of the op it is the gradient of.
    gradient = rows["aten::mm", "gradient"]
    assert gradient.described == ("gradient", "Linear_0", "forward (model.py:3)", "")
    flow = rows["aten::mse_loss_backward", "temporary"]
    assert (flow.module, flow.function) == ("", "train (train.py:10)")
    assert list(peak.categories.items()) == [
        ("activation", 1004), ("temporary", 1000), ("gradient", 800), ("optimizer state", 800),
        ("input", 512),
    ]  # fmt: skip
    assert sum(peak.categories.values()) == peak.peak_bytes


def test_two_modules_are_two_rows(tmp_path):
    trace = torch_jobs.Trace()
    for n in range(2):
        trace.run(f"nn.Module: Linear_{n}", 10 * n, 10 * n + 8, torch_jobs.MODULE)
        trace.run("aten::addmm", 10 * n + 1, 10 * n + 7)
        trace.alloc(10 * n + 2, f"output{n}", 100)
    (peak,) = answer_memory(opened(tmp_path, {"traceEvents": trace.events})).allocators
    assert [(one.module, one.bytes) for one in peak.peak_buffers] == [
        ("Linear_0", 100), ("Linear_1", 100),
    ]  # fmt: skip
    shape = peak.as_json()
    assert shape["peak_buffers"][0]["module"] == "Linear_0"
    # Of what no row has there is no column.
    assert not shape["peak_buffers"][0].keys() & {"category", "function", "input_shape"}
    assert "categories" not in shape


def test_many_modules_of_one_class_are_one_row_of_a_full_screen():
    rows = [
        PeakBuffer("aten::mm", "", "", "", 100 + n, 1, 0, "activation", f"Linear_{n}")
        for n in range(20)
    ]
    assert len(live_rows(rows, {})) == 20
    rows.append(PeakBuffer("aten::mm", "", "", "", 7, 1, 0, "gradient", "Linear_0"))
    first, other = live_rows(rows, {})
    assert (first.bytes, first.count, first.described[1]) == (2190, 20, "20 x Linear")
    assert other.described[:2] == ("gradient", "Linear_0")


def test_a_difference_has_what_all_buffers_of_a_group_agree_about():
    kind, other = Kind("aten::mm", "", "", ""), Kind("aten::add", "", "", "")
    same, differs = Purpose("activation", "Linear_0"), Purpose("activation", "Linear_1")
    assert purposes_of([(kind, same), (kind, differs), (other, same)]) == {
        kind: Purpose("activation", ""), other: same,
    }  # fmt: skip
    assert purposes_of([(kind, Purpose("", ""))]) == {}


def profile(allocators, planes):
    rows = [alloc(1 + number, 8, allocator=name) for number, name in enumerate(allocators)]
    tables = {"allocator_events": events(rows)}
    if planes is not None:
        tables["planes"] = [{"plane_id": n, "name": name} for n, name in enumerate(planes)]
    return Profile(FakeReader(tables))


PLANES = ("/device:TPU:0", "/device:TPU:1", "/host:CPU", "/device:TPU:1 SparseCore 0")


@pytest.mark.parametrize(
    ("allocators", "planes", "names"),
    [
        (("0", "1", "2"), PLANES, {"0": "/device:TPU:0", "1": "/device:TPU:1"}),
        (("0", "1"), ("/device:TPU:0", "/device:GPU:0", "/device:GPU:1"), {"1": "/device:GPU:1"}),
        (("GPU_0_bfc", "cpu"), ("/device:GPU:0", "/device:TPU:0"), {}),
        (("0",), None, {}),
    ],
)
def test_the_device_is_that_of_the_index(allocators, planes, names):
    assert shown_names(profile(allocators, planes)) == names


def test_both_names_are_taken():
    opened = profile(("0", "1"), PLANES)
    for name in ("1", "TPU:1", "/device:TPU:1"):
        assert recorded_name(opened, name) == "1"
        (peak,) = opened.memory(allocator=name).allocators
        assert peak.allocator == "1"
    assert recorded_name(opened, "TPU:7") == "TPU:7"
    assert recorded_name(opened, None) is None
    assert recorded_name(profile(("GPU_0_bfc",), PLANES), "TPU:0") == "TPU:0"


def test_a_title_begins_with_the_name_that_is_shown():
    finding = Finding("leak", "warning", "1: 3 B more", {"allocator": "1"}, "")
    assert finding.title_with({"1": "TPU:1"}) == "TPU:1: 3 B more"
    assert finding.title_with({}) == "1: 3 B more"
    assert Finding("gap", "warning", "1 step", {}, "").title_with({"1": "TPU:1"}) == "1 step"
