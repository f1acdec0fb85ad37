"""Frames of the user's program: what they did, and which of them make steps slow."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.each_row import each_row
from tests.timing.kineto_jobs import of_kind as of_kind_of_slow_work
from tests.timing.traces import GPU, HOST_PLANE, profile_of

from peakline.findings.time_answer import answer_time
from peakline.timing.frame_work import callee_title, function_around, function_inside, idle_of
from peakline.timing.launches.gaps import runs_between
from peakline.timing.launches.host_reads import reads_of
from peakline.timing.steps.facts import step_facts_of
from peakline.timing.steps.slow import OnlySlow, function_of, only_slow
from peakline.trace.calls import WORDS, Call, call_of
from peakline.trace.events import trace_of
from peakline.trace.frames import Frame, frame_of, module_of, whose_file


@each_row(
    ("name", "frame"),
    [
        ("$train.py:151 load_batch", Frame("train.py", 151, "load_batch", "program")),
        ("$<ipython-input-3>:2 step", Frame("<ipython-input-3>", 2, "step", "program")),
        ("$threading.py:604 wait", Frame("threading.py", 604, "wait", "library")),
        ("$encoder.py:205 iterencode", Frame("encoder.py", 205, "iterencode", "library")),
        ("$encoder.py:9 encode_image", Frame("encoder.py", 9, "encode_image", "program")),
        ("$__init__.py:183 dumps", Frame("__init__.py", 183, "dumps", "library")),
        ("$__init__.py:7 make_model", Frame("__init__.py", 7, "make_model", "program")),
        ("$<frozen importlib>:9 load", Frame("<frozen importlib>", 9, "load", "library")),
        ("$builtins isinstance", Frame("", 0, "isinstance", "library")),
        ("$time sleep", Frame("", 0, "time.sleep", "library")),
        ("$jaxlib._jax execute", Frame("", 0, "jaxlib._jax.execute", "framework")),
        ("train.py(12): step", Frame("train.py", 12, "step", "program")),
        ("torch/nn/modules/module.py(1751): _call_impl",
         Frame("torch/nn/modules/module.py", 1751, "_call_impl", "framework")),
        ("json/encoder.py(20): encode", Frame("json/encoder.py", 20, "encode", "library")),
        ("<built-in method item of Tensor object at 0x7f>", Frame("", 0, "Tensor.item", "library")),
        ("<built-in function len>", Frame("", 0, "len", "library")),
        ("<built-in method linear of type object at 0x7f>", Frame("", 0, "linear", "library")),
        ("<built-in ?>", Frame("", 0, "<built-in ?>", "library")),
        ("aten::mm", None),
        ("PjitFunction(step)", None),
        ("", None),
        ("$", None),
        ("train.py(12345678901): far", None),
    ],
)  # fmt: skip
def test_a_frame_by_the_name_of_its_event(name, frame):
    assert frame_of(name) == frame


def test_a_title_has_the_name_of_the_file_alone():
    assert Frame("a/b/train.py", 3, "step", "program").title == "step (train.py:3)"
    assert Frame("", 0, "time.sleep", "library").title == "time.sleep"


def test_the_name_of_a_module_that_runs():
    assert module_of("nn.Module: Linear_3") == "Linear_3"
    assert module_of("aten::mm") == ""


@each_row(
    ("path", "whose"),
    [
        ("/home/me/train.py", "program"),
        ("train.py", "program"),
        ("models/torch_model.py", "program"),
        ("/opt/venv/lib/python3.11/site-packages/jax/_src/api.py", "framework"),
        ("C:\\venv\\Lib\\site-packages\\keras\\layers.py", "framework"),
        ("/opt/venv/lib/python3.11/site-packages/numpy/core.py", "library"),
        ("/usr/lib/python3.11/threading.py", "library"),
        ("threading.py", "library"),
        ("/home/me/threading.py", "program"),
        ("/home/me/torch/model.py", "program"),
        ("torch/optim/adam.py", "framework"),
        ("<string>", "library"),
        ("??", "library"),
        ("aten/src/ATen/ops.cpp", "library"),
    ],
)
def test_whose_a_file_is(path, whose):
    assert whose_file(path) == whose


@given(st.text(max_size=40))
def test_no_text_breaks_a_frame_or_a_call(text):
    for name in (text, f"${text}", f"<built-in {text}", f"{text}.py(1): {text}"):
        result = frame_of(name)
        assert result is None or result.title is not None
        assert call_of(name) in WORDS


@each_row(
    ("name", "call"),
    [
        ("$time sleep", Call.SLEEP),
        ("$threading.py:604 wait", Call.LOCK),
        ("$queue.py:154 get", Call.LOCK),
        ("$_thread.lock acquire", Call.LOCK),
        ("$threading.py:271 __enter__", Call.LOCK),
        ("$threading.py:283 _acquire_restore", Call.LOCK),
        ("$<unknown> __enter__", Call.LOCK),
        ("$<unknown> get", Call.LOCK),
        ("<built-in method __enter__ of _thread.lock object at 0x7f>", Call.LOCK),
        ("<built-in method get of _queue.SimpleQueue object at 0x7f>", Call.LOCK),
        ("<built-in method get of dict object at 0x7f>", Call.WORK),
        ("$connection.py:246 recv", Call.LOCK),
        ("multiprocessing/queues.py(102): get", Call.LOCK),
        ("multiprocessing/synchronize.py(94): __enter__", Call.LOCK),
        ("/usr/lib/python3.11/concurrent/futures/_base.py(428): result", Call.LOCK),
        ("$subprocess.py:1165 communicate", Call.LOCK),
        ("$select poll", Call.LOCK),
        ("$tempfile.py:487 __enter__", Call.WORK),
        ("$posixpath.py:71 join", Call.WORK),
        ("$threading.py:1100 start", Call.WORK),
        ("$gc collect", Call.COLLECT),
        ("$copy.py:128 deepcopy", Call.COPY),
        ("numpy/lib/_histograms_impl.py(685): histogram", Call.HISTOGRAM),
        ("torch/utils/tensorboard/writer.py(440): add_histogram", Call.HISTOGRAM),
        ("train.py(6): add_histogram", Call.WORK),
        ("$builtins print", Call.PRINT),
        ("$posix fsync", Call.FILE),
        ("<built-in method item of Tensor object at 0x7f>", Call.READ),
        ("torch/serialization.py(900): save", Call.FILE),
        ("aten::item", Call.READ),
        ("cudaStreamSynchronize", Call.READ),
        ("np.asarray(jax.Array)", Call.READ),
        ("cudaMemcpyAsync", Call.TRANSFER),
        ("save/SaveV2:SaveV2", Call.FILE),
        ("PrintV2", Call.PRINT),
        ("aten::mm", Call.WORK),
    ],
)
def test_what_a_call_does(name, call):
    assert call_of(name) == call


@pytest.mark.parametrize("name", ["$train.py:3 sleep", "train.py(4): item", "$train.py:5 save"])
def test_what_a_program_calls_its_own_functions_says_nothing(name):
    assert call_of(name) == Call.WORK


MS = 10**9
STEPS = 8
STEP, LOAD = "$train.py:1 step", "$train.py:9 load"


def steps_of(*inside, device=(), wall=100):
    """Eight steps of 100 ms, each with these events (name, begin, end in ms) and device's work."""
    main, work, steps = [], [], []
    for number in range(STEPS):
        at = number * wall
        steps.append((f"train {number}", at * MS, (at + wall) * MS))
        main.append((*steps[-1], number))
        main += [(name, (at + a) * MS, (at + b) * MS) for name, a, b in inside]
        work += [(name, (at + a) * MS, (at + b) * MS, number) for name, a, b in device]
    planes = {HOST_PLANE: {"main": main}}
    if device:
        planes[GPU] = {"Stream #1": work}
    return profile_of(planes, steps)


def of_kind(profile, kind):
    return [finding for finding in answer_time(profile).findings if finding.kind == kind]


def test_python_is_idle_time_only_while_the_device_is():
    idle = idle_of(steps_of((STEP, 0, 100), (LOAD, 10, 60), device=[("kernel", 30, 100)]))
    result = idle.by_function(idle.is_python)
    # 10 ms of step before the load, and 20 ms of it before the kernel.
    assert [(one.frame.function, one.ps, one.calls) for one in result] == [
        ("load", 6 * 20 * MS, 1.0),
        ("step", 6 * 10 * MS, 1.0),
    ]
    assert result[0].share == 0.2
    assert result[0].in_steps == 1.0


def test_a_call_is_of_the_function_around_it():
    idle = idle_of(steps_of((STEP, 0, 100), (LOAD, 10, 60), ("$time sleep", 20, 50)))
    first = idle.by_function(idle.call == Call.SLEEP)[0]
    assert (first.frame, first.ps, first.callee) == (frame_of(LOAD), 6 * 30 * MS, "time.sleep")


def test_functions_without_a_name_count_for_the_one_around_them():
    idle = idle_of(steps_of((STEP, 0, 100), (LOAD, 30, 90), ("$train.py:10 <listcomp>", 40, 80)))
    assert [one.frame.function for one in idle.by_function(idle.is_python)] == ["load", "step"]
    assert [(one.function, ps // MS) for one, ps in idle.path(idle.is_python)] == [("step", 600)]


def test_the_path_goes_where_most_of_the_time_does():
    idle = idle_of(steps_of((STEP, 0, 100), (LOAD, 5, 95), ("$train.py:20 parse", 10, 90)))
    path = [(one.function, ps // (6 * MS)) for one, ps in idle.path(idle.is_python)]
    assert path == [("step", 100), ("load", 90), ("parse", 80)]


def test_the_function_that_most_of_some_events_run_in():
    profile = steps_of((STEP, 0, 100), ("op", 5, 10), (LOAD, 20, 60), ("op", 30, 50))
    trace = trace_of(profile)
    ops = np.flatnonzero(trace.name.codes == trace.name.code_of("op"))
    assert function_around(profile, ops) == frame_of(LOAD)
    assert function_around(profile, ops[:0]) is None
    steps = np.flatnonzero(trace.name.codes == trace.name.code_of(STEP))
    assert function_inside(profile, steps) == frame_of(LOAD)
    assert function_inside(profile, ops) is None


def test_what_an_event_is_called():
    assert callee_title(LOAD) == "load (train.py:9)"
    assert callee_title("aten::mm") == "aten::mm"


def test_reads_that_wait_for_the_device():
    profile = steps_of(
        (STEP, 0, 100), ("aten::item", 10, 60), ("$train.py:30 log", 65, 95),
        device=[("kernel", 5, 60)],
    )  # fmt: skip
    reads = reads_of(idle_of(profile))
    assert (reads.callee, reads.frame) == ("aten::item", frame_of(STEP))
    assert (reads.in_steps, reads.per_step) == (1.0, 1.0)
    # Before the kernel, after the read, and the log.
    assert reads.idle_ps == 6 * 45 * MS
    assert reads.work.frame.function == "log"


def test_a_read_that_waits_for_nothing_is_the_work_itself():
    read = "<built-in method item of Tensor object at 0x7f>"
    assert reads_of(idle_of(steps_of((STEP, 0, 100), (read, 10, 60)))) is None
    short = steps_of((STEP, 0, 100), ("aten::item", 10, 11), device=[("kernel", 0, 100)])
    assert reads_of(idle_of(short)) is None


READ = (STEP, 0, 100), ("aten::item", 10, 60)


def test_host_sync():
    (finding,) = of_kind(steps_of(*READ, device=[("kernel", 0, 60)]), "host_sync")
    assert finding.severity == "warning"
    assert finding.title.startswith("40% of the step time the device has nothing to do after aten")
    assert finding.evidence["gain_share"] == 0.4
    # The twin has the next step's work in flight meanwhile.
    assert of_kind(steps_of(*READ, device=[("kernel", 0, 98)]), "host_sync") == []


def test_python_work():
    (finding,) = of_kind(steps_of((STEP, 0, 100), (LOAD, 5, 95)), "python_work")
    assert finding.severity == "warning"
    assert finding.evidence["function"] == "load"
    assert (finding.evidence["file"], finding.evidence["line"]) == ("train.py", 9)
    assert finding.evidence["path"] == "step (train.py:1) > load (train.py:9)"
    # The twin loads while the device works.
    beside = steps_of((STEP, 0, 100), (LOAD, 5, 95), device=[("kernel", 0, 100)])
    assert of_kind(beside, "python_work") == []


@each_row(
    ("name", "phrase"),
    [
        ("$posix fsync", "writing files"),
        ("$builtins print", "printing"),
        ("$gc collect", "garbage collection"),
        ("$copy.py:128 deepcopy", "deep copies"),
        ("$_histograms_impl.py:685 histogram", "counting values for histograms"),
    ],
)
def test_what_python_does_is_said(name, phrase):
    (finding,) = of_kind(steps_of((STEP, 0, 100), (LOAD, 10, 95), (name, 20, 90)), "python_work")
    assert f"most of it {phrase} in load (train.py:9)" in finding.title
    assert finding.severity == "warning"


@each_row(
    ("name", "phrase"),
    [("$time sleep", "sleeps"), ("$threading.py:604 wait", "waits for another thread")],
)
def test_lock_wait(name, phrase):
    (finding,) = of_kind(steps_of((STEP, 0, 100), (LOAD, 10, 60), (name, 20, 50)), "lock_wait")
    assert finding.title.startswith(f"30% of the step time the loop {phrase}, in load")
    assert (finding.severity, finding.evidence["gain_share"]) == ("warning", 0.3)
    assert of_kind(steps_of((STEP, 0, 100), (LOAD, 10, 60), (name, 20, 24)), "lock_wait") == []


STEP_OF_SLOW_FUNCTIONS, SAVE = "$train.py:1 step", "$train.py:9 save_all"


def job(slow, inside, *, gap=0, between=(), steps=12):
    """Steps of 10 ms; the ``slow`` ones last 100 ms and run what is ``inside`` them."""
    marks, line, at = [], [], 0
    for number in range(steps):
        wall = 100 if number in slow else 10
        marks.append((f"train {number}", at * MS, (at + wall) * MS))
        line.append((*marks[-1], number))
        line.append((STEP_OF_SLOW_FUNCTIONS, at * MS, (at + wall) * MS))
        if number in slow:
            line += [(name, (at + a) * MS, (at + b) * MS) for name, a, b in inside]
        line += [(name, (at + wall) * MS, (at + wall + gap) * MS) for name in between]
        at += wall + gap
    return profile_of({HOST_PLANE: {"main": line}}, marks)


def test_the_function_that_slow_steps_alone_run():
    profile = job({4, 8}, [(SAVE, 5, 95), ("$train.py:20 write_one", 6, 94)])
    (finding,) = of_kind(profile, "step_variation")
    assert finding.title.endswith(", in save_all (train.py:9), which the others do not run")
    assert (finding.evidence["function"], finding.evidence["line"]) == ("save_all", 9)
    assert "save_all (train.py:9) takes 90.000 ms of a slow step" in finding.suggestion
    assert of_kind(job((), []), "step_variation") == []


def test_an_evaluation_takes_its_time():
    inside = [("$train.py:9 evaluate", 5, 95)]
    (finding,) = of_kind(job({4}, inside, steps=24), "step_variation")
    assert finding.title.endswith(", in evaluate (train.py:9), which the others do not run")
    assert finding.severity == "info"
    # Less is an alarm of something else, and of an evaluation more.
    (finding,) = of_kind(job({4}, [(SAVE, 5, 95)], steps=24), "step_variation")
    assert finding.severity == "warning"
    (finding,) = of_kind(job({4, 8}, inside), "step_variation")
    assert finding.severity == "warning"


def test_the_loop_over_the_next_steps_is_none_of_a_step():
    # It begins in a slow step, and goes on until the next slow one.
    inside = [("$train.py:9 save_all", 5, 65), ("$train.py:30 train_epoch", 70, 130)]
    (finding,) = of_kind(job({4, 8}, inside), "step_variation")
    assert finding.evidence["function"] == "save_all"


def test_a_function_that_all_steps_run_takes_longer():
    profile = job({4, 8}, [])
    facts = step_facts_of(profile)
    start, wall = facts.part("start_ps"), facts.part("wall_ps")
    result = function_of(profile, start, wall > 50 * MS, 90 * MS)
    assert result == {
        "function": frame_of(STEP_OF_SLOW_FUNCTIONS),
        "function_ps": 90 * MS,
        "is_alone": False,
    }
    assert function_of(profile, start, np.zeros(12, np.bool_), 90 * MS) == {}
    # It takes less than half of this.
    assert function_of(profile, start, wall > 50 * MS, 200 * MS) == {}


def test_what_runs_between_the_steps():
    profile = job((), [], gap=20, between=[SAVE])
    assert runs_between(profile, step_facts_of(profile)) == ["save_all (train.py:9)"]
    # Something runs, so that it is no idle time.
    assert of_kind(profile, "idle_between_steps") == []
    quiet = job((), [], gap=20)
    assert runs_between(quiet, step_facts_of(quiet)) == []
    (finding,) = of_kind(quiet, "idle_between_steps")
    assert finding.evidence["runs"] == []


TRAIN = "EagerLocalExecute: __inference_train_step_40"
PREDICT = "EagerLocalExecute: __inference_predict_step_77"
ITERATOR = "EagerLocalExecute: MakeIterator"


def job_of_slow_work(extra, every=4, first=1, steps=14):
    """Steps of 10 ms; each fourth runs what is ``extra`` (name and ms) besides."""
    events, marks, now = [], [], 0
    for number in range(steps):
        begin = now
        at = begin + 10
        events.append((TRAIN, begin * MS, (begin + 9) * MS))
        if (number - first) % every == 0:
            for name, length in extra:
                events.append((name, at * MS, (at + length) * MS))
                at += length
        now = at
        marks.append((f"train {number}", begin * MS, now * MS))
        events.append((*marks[-1], number))
    return profile_of({HOST_PLANE: {"1": events}}, marks)


def test_a_function_that_slow_steps_alone_run():
    (finding,) = of_kind_of_slow_work(
        job_of_slow_work([(ITERATOR, 10), *[(PREDICT, 2)] * 5]), "step_variation"
    )
    assert finding.title.endswith(
        ", every 4th: 33% of the time, in predict_step and MakeIterator, which the others do not "
        "run"
    )
    assert finding.evidence["only_in_slow"] == "predict_step, MakeIterator"
    assert finding.suggestion.startswith("predict_step and what is run with it take 20.000 ms of a")


def test_what_slow_steps_run_alone_and_how_long_it_takes_of_one():
    profile = job_of_slow_work([(ITERATOR, 10), (PREDICT, 5)], steps=8)
    steps = profile.columns("steps")
    begin, end = steps.array("start_ps"), steps.array("end_ps")
    slow = end - begin > 10 * MS
    assert slow.tolist() == [number % 4 == 1 for number in range(8)]
    alone = OnlySlow(("predict_step", "MakeIterator"), 15 * MS, has_function=True)
    assert only_slow(profile, begin, end, slow, 30 * MS) == alone
    # It takes less than half of what they take longer; or there are no others.
    assert only_slow(profile, begin, end, slow, 31 * MS) is None
    assert only_slow(profile, begin, end, slow | True, 30 * MS) is None
    assert only_slow(job_of_slow_work([], steps=8), begin, end, slow, 0) is None


def test_what_all_steps_run_and_what_takes_little_says_nothing():
    (finding,) = of_kind_of_slow_work(job_of_slow_work([(TRAIN, 20)]), "step_variation")
    assert finding.evidence["only_in_slow"] is None
    (finding,) = of_kind_of_slow_work(
        job_of_slow_work([(PREDICT, 2), (TRAIN, 18)]), "step_variation"
    )
    assert finding.evidence["only_in_slow"] is None


def test_a_period_may_begin_in_the_steps_that_are_left_out():
    (finding,) = of_kind_of_slow_work(job_of_slow_work([(PREDICT, 30)], steps=12), "step_variation")
    assert (finding.evidence["slow_steps"], finding.evidence["period_steps"]) == (2, 4)
    (finding,) = of_kind_of_slow_work(
        job_of_slow_work([(PREDICT, 30)], first=3, steps=11), "step_variation"
    )
    assert (finding.evidence["slow_steps"], finding.evidence["period_steps"]) == (2, None)


def same_work(slow):
    """Steps of 10 ms, the ``slow`` ones of 40 ms, that all run one function."""
    events, marks, now = [], [], 0
    for number in range(14):
        begin, now = now, now + (40 if number in slow else 10)
        events.append((TRAIN, begin * MS, (now - 1) * MS))
        marks.append((f"train {number}", begin * MS, now * MS))
        events.append((*marks[-1], number))
    return profile_of({HOST_PLANE: {"1": events}}, marks)


def test_the_same_work_that_takes_longer_now_and_then_is_no_alarm():
    (finding,) = of_kind_of_slow_work(same_work({5, 7}), "step_variation")
    assert finding.severity == "info"
    # The first step warms up: with it the others come at even distances by chance.
    (finding,) = of_kind_of_slow_work(same_work({0, 4, 8}), "step_variation")
    assert (finding.severity, finding.evidence["slow_steps"]) == ("info", 2)
    (finding,) = of_kind_of_slow_work(same_work({4, 8, 12}), "step_variation")
    assert (finding.severity, finding.evidence["period_steps"]) == ("warning", 4)
