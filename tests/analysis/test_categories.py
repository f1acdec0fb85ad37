"""What the buffers of PyTorch jobs are for, and where in the model they were made."""

import numpy as np
from tests.analysis import torch_jobs
from tests.each_row import each_row
from tests.sources.chrome_traces import opened

from peakline.compare.state import Kind, Purpose, purposes_of
from peakline.document.live import live_rows
from peakline.findings.memory_answer import answer_memory
from peakline.memory.origins.categories import CATEGORIES
from peakline.memory.peak.explained import PeakBuffer


def categories(profile):
    history = answer_memory(profile).history
    begins = np.flatnonzero(history.allocated > 0)
    return [CATEGORIES[code] for code in history.descriptions.categories[begins].tolist()]


@each_row("options", [{}, {"shapes": False}, {"marks": False}, {"stacks": False}])
def test_a_trace_of_the_profiler(options, tmp_path):
    events = torch_jobs.training(**options)
    keys = torch_jobs.keys_of(events)
    found = categories(opened(tmp_path, {"traceEvents": events}))
    assert list(zip(keys, found, strict=True)) == [(k, torch_jobs.CATEGORY[k]) for k in keys]


@each_row("windows", [False, True])
def test_a_snapshot_whose_stacks_have_frames_of_python_only(windows):
    profile, keys = torch_jobs.snapshot(windows=windows)
    found = categories(profile)
    assert list(zip(keys, found, strict=True)) == [(k, torch_jobs.IN_SNAPSHOT[k]) for k in keys]


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
