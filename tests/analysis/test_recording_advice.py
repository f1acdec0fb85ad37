"""What is said about what a profile lacks, by who recorded it."""

from tests.each_row import each_row
from tests.profile.fake import FakeReader
from tests.sources.chrome_traces import opened

from peakline.findings.recording_advice import (
    to_count_memory,
    to_explain_time,
    to_mark_steps,
    to_place_memory,
    to_place_ops,
    to_place_time,
    to_record_memory,
)
from peakline.memory.peak.explained import AllocatorPeak, PeakBuffer
from peakline.tables.profile import Profile

STEP = "torch/profiler/profiler.py(1236): step"


def profile(*names):
    rows = [{"event_id": n, "line_id": 0, "name": name} for n, name in enumerate(names)]
    return Profile(FakeReader({"events": rows}))


@each_row(
    ("names", "says"),
    [
        (["aten::mm"], "mark them with the step() of torch.profiler and a schedule= "),
        (
            ["aten::mm", STEP],
            "the program calls step() of torch.profiler, which records steps only ",
        ),
        (["aten::mm", f"site-packages/{STEP}"], "the program calls step() of torch.profiler, "),
        (["aten::mm", "train.py(3): step"], "mark them with the step() of torch.profiler and "),
        (["PjitFunction(f)"], "mark them with jax.profiler.StepTraceAnnotation"),
        (["EagerExecute: MatMul"], "mark them with tf.profiler.experimental.Trace(..., _r=1)"),
        (["x"], "mark them with jax.profiler.StepTraceAnnotation, tf.profiler.experimental."),
    ],
)
def test_how_to_mark_steps(names, says):
    assert to_mark_steps(profile(*names)).startswith(says)


@each_row(
    ("names", "says"),
    [
        (["aten::mm"], "with_stack=True"),
        (["aten::mm", "train.py(3): run"], "native stacks"),
        (["PjitFunction(f)"], "jax.profiler.ProfileOptions"),
        (["PjitFunction(f)", "$train.py:3 run"], "native stacks"),
        (["FunctionRun"], "tf.profiler.experimental.ProfilerOptions"),
        (["x"], "the Python tracer of the profiler"),
    ],
)
def test_what_explains_time_without_events(names, says):
    assert says in to_explain_time(profile(*names))


@each_row(
    ("names", "says"),
    [
        (["aten::mm"], "profile_memory=True"),
        (["PjitFunction(f)", "FunctionRun"], "save_device_memory_profile"),
        (["FunctionRun"], "TF_CPU_ALLOCATOR_USE_BFC=1"),
        (["x"], ""),
    ],
)
def test_how_to_record_memory(names, says):
    assert says in to_record_memory(profile(*names))
    assert bool(says) == bool(to_record_memory(profile(*names)))


def test_a_format_without_events():
    assert to_record_memory(Profile(FakeReader({}))) == ""


@each_row(
    ("events", "memory", "ops"),
    [
        ([{"name": "aten::mm"}], 1, ["record_shapes=True", "with_stack=True"]),
        ([{"name": "aten::mm", "args": {"Input Dims": [[2, 3]]}}], 1, ["with_stack=True"]),
        ([{"name": "aten::mm"}, {"name": "train.py(3): f"}], 0,
         ["record_shapes=True", "with_stack=True"]),
        ([{"name": "aten::mm", "args": {"Input Dims": [[2]]}}, {"name": "nn.Module: Net_0"},
          {"name": "train.py(3): f"}], 0, []),
        # No trace of PyTorch.
        ([{"name": "x"}], 0, []),
    ],
)  # fmt: skip
def test_what_else_a_trace_of_pytorch_could_have(tmp_path, events, memory, ops):
    more = {"ph": "X", "pid": 1, "tid": 1, "ts": 1, "dur": 1, "cat": "cpu_op"}
    profile = opened(tmp_path, {"traceEvents": [more | one for one in events]})
    assert bool(to_place_memory(profile)) == bool(to_place_time(profile)) == bool(memory)
    lines = to_place_ops(profile)
    assert len(lines) == len(ops)
    assert all(word in line for word, line in zip(ops, lines, strict=True))


def test_what_is_no_trace_lacks_no_setting_of_a_profiler():
    assert to_place_ops(profile("aten::mm")) == ()
    assert to_place_memory(profile("aten::mm")) == ""


@each_row(
    ("peaks", "is_said"),
    [
        ([("CPU", 2, "gradient")], True),
        ([("CPU", 2, "parameter")], False),
        ([("CPU", 2, "gradient"), ("CUDA:0", 3, "parameter")], False),
        ([("CPU mapped", 2, "")], False),
        ([], False),
    ],
)
def test_parameters_from_before_a_recording_on_a_cpu_are_missed(tmp_path, peaks, is_said):
    def peak(allocator, size, category):
        buffer = PeakBuffer("aten::mm", "", "", "", size, 1, None, category)
        return AllocatorPeak(
            allocator, None, size, 0, None, None, None, 1, 0, 0, 0, size, (buffer,),
            reported=True, double_allocations=0, unexplained_deallocations=0,
        )  # fmt: skip

    event = {"ph": "X", "pid": 1, "tid": 1, "ts": 1, "dur": 1, "cat": "cpu_op", "name": "aten::mm"}
    trace = opened(tmp_path, {"traceEvents": [event]})
    made = [peak(*one) for one in peaks]
    assert ("wait=0" in to_count_memory(trace, made)) == is_said
    assert to_count_memory(profile("FunctionRun"), made) == ""
