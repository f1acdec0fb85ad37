"""What functions of a program do in the steps, and the findings of it."""

import numpy as np
from tests.analysis.timing.traces import GPU, HOST_PLANE, profile_of
from tests.each_row import each_row

from peakline.findings.time_answer import answer_time
from peakline.timing.frame_work import (
    callee_title,
    function_around,
    function_inside,
    idle_of,
)
from peakline.timing.launches.host_reads import reads_of
from peakline.trace.calls import Call
from peakline.trace.events import trace_of
from peakline.trace.frames import frame_of

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
    found = idle.by_function(idle.is_python)
    # 10 ms of step before the load, and 20 ms of it before the kernel.
    assert [(one.frame.function, one.ps, one.calls) for one in found] == [
        ("load", 6 * 20 * MS, 1.0),
        ("step", 6 * 10 * MS, 1.0),
    ]
    assert found[0].share == 0.2
    assert found[0].in_steps == 1.0


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
