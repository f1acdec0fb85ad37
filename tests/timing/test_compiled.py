"""Compiled programs in a trace: their runs, regions and recompilations."""

import numpy as np
import pytest
from tests.each_row import each_row
from tests.formats.chrome_traces import event, opened
from tests.reference.xspace_builder import SpaceBuilder, Uint
from tests.shared import shared
from tests.timing.programs import Maker, f32
from tests.timing.traces import HOST_PLANE, profile_of

from peakline.findings.time_answer import answer_time
from peakline.timing.programs.answer import programs_of
from peakline.timing.programs.compiled import (
    Compiled,
    first_calls_ps,
    programs_compiled,
    what_changed,
)
from peakline.timing.programs.runs import program_runs
from peakline.timing.steps.facts import step_facts_of
from peakline.trace.frames import frame_of

STEP, INNER = "$train.py:54 step", "$train.py:56 loss"


def job(*events, steps=8, compiling=range(8)):
    """Eight steps of 100; in the ``compiling`` ones these events run."""
    marks = [(f"train {n}", 100 * n, 100 * n + 100) for n in range(steps)]
    line = []
    for number, (name, begin, end) in enumerate(marks):
        line.append((name, begin, end, number))
        if number in compiling:
            line += [(event, begin + a, begin + b) for event, a, b in events]
    return profile_of({HOST_PLANE: {"main": line}}, marks)


def compiled(profile):
    facts = step_facts_of(profile)
    return programs_compiled(profile, facts, np.arange(facts.rows))


def test_a_program_has_its_function_and_who_called_it():
    # Tracing runs the function itself, between the call and the compiler.
    profile = job(
        (STEP, 5, 95), ("PjitFunction(loss)", 10, 90), ("$jaxlib lower", 12, 88),
        ("backend_compile", 15, 85), (INNER, 20, 30),
    )  # fmt: skip
    assert compiled(profile) == [Compiled("loss", frame_of(INNER), frame_of(STEP))]
    assert compiled(profile)[0].title == "loss (train.py:56), called in step (train.py:54)"


@each_row(
    ("one", "title"),
    [
        (Compiled("f"), "f"),
        (Compiled("f", frame_of(INNER)), "loss (train.py:56)"),
        (Compiled("step", None, frame_of(STEP)), "step"),
        (Compiled("f", None, frame_of(STEP)), "f, called in step (train.py:54)"),
    ],
)
def test_titles(one, title):
    assert one.title == title


def test_without_frames_the_call_alone_is_named():
    profile = job(("PjitFunction(loss)", 10, 90), ("backend_compile", 15, 85))
    assert compiled(profile) == [Compiled("loss")]


def test_the_first_call_of_a_function_prepares_it():
    call = "EagerLocalExecute: __inference_evaluate_{}"
    steps = [(f"train {n}", 100 * n, 100 * n + 100) for n in range(3)]
    line = []
    for number, mark in enumerate(steps):
        line.append((*mark, number))
        line.append((call.format(7), 100 * number + 10, 100 * number + 60))
        line.append(("op", 100 * number + 20, 100 * number + 30))
    profile = profile_of({HOST_PLANE: {"main": line}}, steps)
    assert first_calls_ps(profile, step_facts_of(profile), np.arange(3)).tolist() == [40, 0, 0]


def test_what_changed_by_the_shapes_of_arguments():
    path = "programs/time/recompiling.xplane.pb.gz"
    said = what_changed(shared(path), ["train"])
    assert said.startswith("argument 1 changes: f32[424,128], f32[432,128], f32[440,128], ...")
    assert what_changed(shared(path), ["nothing"]) == ""


@each_row(
    ("counts", "said"),
    [
        ([4, 5, 22], "it is traced for the 22nd time"),
        ([4, 11, 12], "it is traced for the 12th time"),
        ([1, 2, 3], ""),
        ([5, 5, 5], ""),
        ([], ""),
    ],
)
def test_what_changed_by_how_often_it_was_traced(counts, said):
    events = [("step", 10 * n, 10 * n + 5) for n in range(3)]
    stats = [(n, "tracing_count", count) for n, count in enumerate(counts)]
    assert what_changed(profile_of({HOST_PLANE: {"a": events}}, stats=stats), ["step"]) == said


def test_recompilation_has_the_function():
    calls = (
        (STEP, 5, 95),
        ("PjitFunction(loss)", 10, 90),
        ("backend_compile", 15, 85),
        (INNER, 20, 30),
    )

    def found(profile):
        return [one for one in answer_time(profile).findings if one.kind == "recompilation"]

    (finding,) = found(job(*calls))
    assert (finding.evidence["function"], finding.evidence["line"]) == ("loss", 56)
    # The twin compiles in its first step alone.
    assert found(job(*calls, compiling=[0])) == []


@each_row(("times", "own"), [(8, True), (5, True), (4, False), (8, False)])
def test_recompilation_where_no_steps_are_marked(times, own):
    """Libraries compile for each shape of the weights, and a function once for each of a few."""
    line = []
    for at in range(0, 100 * times, 100):
        line += [("PjitFunction(loss)", at, at + 90), ("backend_compile", at + 5, at + 80)]
        line.append((INNER if own else "$lax.py:5 loss", at + 10, at + 20))
    line.append(("PjitFunction(loss)", 900, 1000))
    result = [
        one
        for one in answer_time(profile_of({HOST_PLANE: {"main": line}})).findings
        if one.kind == "recompilation"
    ]
    if times < 5 or not own:
        assert result == []
        return
    (finding,) = result
    share = 75 * times / 1000
    assert finding.title == (
        f"loss (train.py:56) is compiled {times} times, {share:.0%} of the profile's time goes to "
        "compilation"
    )
    assert finding.evidence["share"] == share
    assert finding.evidence["gain_share"] == share * (times - 1) / times


FRAME = "train.py(7): fit"


def finding(tmp_path, calls, *, frames=False, marked=True):
    """Of a trace with a step for each of ``calls``: a region and the shapes of its inputs."""
    events = []
    for number, (region, shapes) in enumerate(calls):
        at = 1000 * number
        name = f"Torch-Compiled Region: {region}"
        args = {} if shapes is None else {"Input Dims": shapes}
        events += [
            *[event("X", at, f"ProfilerStep#{number}", dur=1000, cat="user_annotation")] * marked,
            event("X", at + 90, "dynamo", dur=720, cat="cpu_op"),
            event("X", at + 100, "compile_fx_inner (dynamo_timed)", dur=700, cat="cpu_op"),
            event("X", at + 850, name, dur=100, cat="cpu_op"),
            event("X", at + 860, "CompiledFunction", dur=50, cat="cpu_op", args=args),
        ]
        events += [event("X", at + 50, FRAME, dur=920, cat="python_function")] if frames else []
    with opened(tmp_path, events) as profile:
        [one] = [one for one in answer_time(profile).findings if one.kind == "recompilation"]
        return one


def test_it_names_the_region_and_the_shapes_that_differ(tmp_path):
    one = finding(tmp_path, [(f"0/{n}", [[4, 2], [], [8 + n, 2]]) for n in range(6)])
    assert one.title == (
        "4 of 4 steps after the first 2 compile region 0 of torch.compile for the 6th time: 70% of "
        "their time; the shape of an input changes: [8, 2], [9, 2], [10, 2], ..."
    )
    assert "torch.compile(dynamic=True)" in one.suggestion
    assert "jax.jit" not in one.suggestion


def test_with_frames_it_names_who_calls_it(tmp_path):
    assert "for the 6th time, called in fit (train.py:7): 70%" in (
        finding(tmp_path, [(f"0/{n}", [[8 + n, 2]]) for n in range(6)], frames=True).title
    )


def test_where_no_steps_are_marked_it_names_the_region_too(tmp_path):
    one = finding(tmp_path, [(f"0/{n}", [[8 + n, 2]]) for n in range(6)], marked=False)
    assert one.title.startswith(
        "region 0 of torch.compile is compiled 6 times, 72% of the profile's time goes to "
        "compilation; the shape of an input changes: [8, 2], [9, 2], [10, 2], ..."
    )
    assert "torch.compile(dynamic=True)" in one.suggestion


@each_row(
    ("shapes", "says"),
    [
        ([None] * 6, "70% of their time"),
        ([[[8, 2]]] * 6, "the shapes of its inputs are the same each time"),
        ([[[8, 2]], [[8, 2], [3]]] * 3, "the number of its inputs changes"),
    ],
)
def test_what_the_shapes_do_not_say(tmp_path, shapes, says):
    calls = [(f"!1/0/{n}_1", shape) for n, shape in enumerate(shapes)]
    assert finding(tmp_path, calls).title.endswith(says)


def test_regions_that_were_compiled_once_are_not_named(tmp_path):
    """A program that compiles parts of its own in each step compiles none of them again."""
    assert "torch.compile" not in finding(tmp_path, [(f"{n}/0", [[8, 2]]) for n in range(6)]).title


US = 10**6
LOOP, OTHER = 7, 2**64 - 5
"""Ids of programs; on TPUs they are fingerprints of 64 bits."""


def looping():
    """A program that computes ``first``, turns around ``inside``, and computes ``last``."""
    made = Maker("jit_loop")
    body = made.computation("body")
    made.add(body, "negate", f32(4), name="inside")
    main = made.computation("main")
    x = made.add(main, "parameter", f32(4), name="x")
    y = made.add(main, "negate", f32(4), x, name="first")
    z = made.add(main, "while", f32(4), y, calls=(body,), name="turns")
    made.add(main, "negate", f32(4), z, name="last")
    return made.data


def other():
    made = Maker("jit_other")
    main = made.computation("main")
    made.add(main, "negate", f32(4), made.add(main, "parameter", f32(4)), name="only")
    return made.data


@pytest.fixture
def space():
    """A profile that holds two programs and no event."""
    made = SpaceBuilder()
    metadata = made.plane("/host:metadata")
    for name, number, data in (("jit_loop", LOOP, looping()), ("jit_other", OTHER, other())):
        kind = metadata.event_id(f"{name}({number})")
        stats = {"Hlo Proto": data, "program_id": Uint(number)}
        metadata.add_stats(metadata.message.event_metadata[kind], stats)
    return made


def runs_of(profile):
    """Per run the program's name, the device, begin and end in microseconds."""
    programs = profile.programs()
    return [
        (programs.name(row["program"]), row["device"], row["start_ps"] // US, row["end_ps"] // US)
        for row in program_runs(profile).to_pylist()
    ]


def add_ops(line, at, ops, program=LOOP, **stats):
    """Events of a microsecond each; gives when they end."""
    for op in ops:
        result = {"hlo_op": op, "hlo_module": "m", "program_id": Uint(program)} | stats
        line.event(op, at * US, US, result)
        at += 1
    return at


ONE_RUN = ("first", "inside", "inside", "inside", "last")


def test_a_cpu_numbers_its_runs(space, opened):
    host = space.host()
    for device in range(2):
        for run in (100, 101):
            # A run's ops are spread over threads.
            at = (run - 100) * 20 + device
            for thread in range(2):
                line = host.line(f"tf_XLAEigen/{device}{thread}")
                add_ops(line, at + 5 * thread, ["first", "last"], run_id=run, device_ordinal=device)
    with opened(space) as profile:
        assert runs_of(profile) == [
            ("jit_loop", "CPU:0", 0, 7),
            ("jit_loop", "CPU:1", 1, 8),
            ("jit_loop", "CPU:0", 20, 27),
            ("jit_loop", "CPU:1", 21, 28),
        ]
        loop, none = sorted(programs_of(profile), key=lambda one: one.name)
        assert (loop.run_count, loop.run_ps) == (4, 28 * US)
        assert (none.run_count, none.run_ps) == (0, 0)


def test_what_has_no_number_beside_runs_that_do_is_no_run(space, opened):
    line = space.host().line()
    add_ops(line, 0, ["first"], run_id=1, device_ordinal=0)
    add_ops(line, 10, ["first"])
    add_ops(line, 20, ["only"], OTHER)
    with opened(space) as profile:
        assert runs_of(profile) == [("jit_loop", "CPU:0", 0, 1), ("jit_other", "", 20, 21)]


def test_a_gpu_without_numbers_begins_a_run_where_an_instruction_comes_again(space, opened):
    line = space.plane("/device:GPU:0").line("Stream #13(Compute)")
    at = add_ops(line, 0, ONE_RUN)
    at = add_ops(line, at + 2, ONE_RUN)
    add_ops(line, at + 2, ONE_RUN[:2])
    with opened(space) as profile:
        assert runs_of(profile) == [
            ("jit_loop", "GPU:0", 0, 5),
            ("jit_loop", "GPU:0", 7, 12),
            ("jit_loop", "GPU:0", 14, 16),
        ]


def test_several_kernels_of_one_instruction_are_one_run(space, opened):
    line = space.plane("/device:GPU:0").line("Stream #13(Compute)")
    add_ops(line, 0, ["first", "first", "inside", "last", "last"])
    with opened(space) as profile:
        assert runs_of(profile) == [("jit_loop", "GPU:0", 0, 5)]


def test_a_run_begins_where_another_program_follows(space, opened):
    line = space.plane("/device:GPU:0").line("Stream #13(Compute)")
    add_ops(line, 0, ["first"])
    add_ops(line, 1, ["only"], OTHER)
    add_ops(line, 2, ["last"])
    add_ops(line, 3, ["only"], OTHER)
    with opened(space) as profile:
        assert [(name, at) for name, _, at, _ in runs_of(profile)] == [
            ("jit_loop", 0), ("jit_other", 1), ("jit_loop", 2), ("jit_other", 3),
        ]  # fmt: skip


def test_each_gpu_has_runs_of_its_own(space, opened):
    for device in range(3):
        line = space.plane(f"/device:GPU:{device}").line("Stream #13(Compute)")
        add_ops(line, device, ONE_RUN)
    # What the host does to launch them is none.
    add_ops(space.host().line(), 50, ["first", "last"])
    with opened(space) as profile:
        assert runs_of(profile) == [
            ("jit_loop", f"GPU:{n}", n, n + 5) for n in range(3)
        ]  # fmt: skip


def test_streams_of_a_gpu_that_numbers_its_runs(space, opened):
    plane = space.plane("/device:GPU:0")
    for stream in range(2):
        line = plane.line(f"Stream #{stream}(Compute)")
        add_ops(line, stream, ["first", "last"], run_id=4)
        add_ops(line, 10 + stream, ["first", "last"], run_id=5)
    with opened(space) as profile:
        assert runs_of(profile) == [("jit_loop", "GPU:0", 0, 3), ("jit_loop", "GPU:0", 10, 13)]


def test_a_tpu_has_a_line_of_runs(space, opened):
    for device in range(2):
        plane = space.plane(f"/device:TPU:{device}")
        line = plane.line("XLA Modules")
        line.event(f"jit_loop({LOOP})", device * US, 4 * US)
        line.event(f"jit_other({OTHER})", (device + 10) * US, US)
        # A program that the profile does not hold, and what is none.
        line.event("jit_gone(3)", 20 * US, US)
        line.event("jit_loop", 30 * US, US)
        add_ops(plane.line("XLA Ops"), device, ONE_RUN, run_id=9)
    with opened(space) as profile:
        assert runs_of(profile) == [
            ("jit_loop", "TPU:0", 0, 4),
            ("jit_loop", "TPU:1", 1, 5),
            ("jit_other", "TPU:0", 10, 11),
            ("jit_other", "TPU:1", 11, 12),
        ]


def test_a_profile_without_runs(space, opened):
    space.host().line().event("anything", 0, US)
    with opened(space) as profile:
        assert runs_of(profile) == []
        assert [one.run_count for one in programs_of(profile)] == [None, None]
        assert profile.table("hlo_modules")["runs"].to_pylist() == [None, None]
