"""What is said about what a profile lacks, by who recorded it."""

from tests.each_row import each_row
from tests.profile.fake import FakeReader

from peakline.findings.recording_advice import to_explain_time, to_mark_steps, to_record_memory
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
