"""When compiled programs ran, by what a profile of each kind of device says."""

import pytest
from tests.analysis.timing.programs import Maker, f32
from tests.reference.xspace_builder import SpaceBuilder, Uint

from peakline.timing.programs.answer import programs_of
from peakline.timing.programs.runs import program_runs

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
        told = {"hlo_op": op, "hlo_module": "m", "program_id": Uint(program)} | stats
        line.event(op, at * US, US, told)
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
