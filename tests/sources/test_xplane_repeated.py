"""Ids that repeat: events belong to the step of the part that they come from."""

import pytest

from reference.xspace_builder import SpaceBuilder


def of_events(profile):
    """The step of every event, in file order."""
    return [row["step_id"] for row in profile.columns("events").to_pylist()]


def repeated(profile):
    """How many ids the profile says repeat."""
    return [warning.count for warning in profile.warnings if warning.kind == "repeated_ids"]


def step(line, at, length=50, **stats):
    """A marked step, and within it an event that produces context 7."""
    line.event("train", at, length, {"_r": 1, "step_num": 0, **stats})
    line.event("Schedule", at + 5, 1, {"_pt": 1, "_p": 7})


def work(line, at):
    """An event that consumes context 7, and what runs within it."""
    line.event("Closure", at, 10, {"_ct": 1, "_c": 7})
    line.event("op:MatMul", at + 1, 5)


def repeat(parts):
    """So many parts, one after the other, of a step whose work another thread takes up."""
    builder = SpaceBuilder()
    plane = builder.host()
    main, worker = plane.line("main"), plane.line("worker")
    for part in range(parts):
        step(main, 100 * part)
        work(worker, 100 * part + 20)
        # Later than the step's own end.
        work(worker, 100 * part + 80)
    return builder


@pytest.mark.parametrize("parts", [2, 3, 100])
def test_what_takes_up_work_belongs_to_the_part_that_it_comes_from(opened, parts):
    """Also where upstream gives up: from 64 producers and consumers of one context on."""
    profile = opened(repeat(parts))
    own = [part for part in range(parts) for _ in range(4)]
    assert of_events(profile) == [own[2 * k] for k in range(2 * parts)] + own
    assert repeated(profile) == [1]
    theirs = 0 if parts < 64 else None
    assert of_events(profile.with_runtime_steps())[2 * parts :] == [theirs] * 4 * parts


def test_steps_alone_are_the_same_and_say_it_too(opened):
    whole, alone = opened(repeat(3)), opened(repeat(3))
    whole.columns("events")
    assert alone.columns("steps").to_pylist() == whole.columns("steps").to_pylist()
    assert repeated(alone) == repeated(whole) == [1]


def test_one_part_repeats_nothing(opened):
    profile = opened(repeat(1))
    assert of_events(profile) == [0] * 6
    assert not profile.warnings


def test_a_step_that_produces_twice_repeats_nothing(opened):
    builder = SpaceBuilder()
    plane = builder.host()
    main, worker = plane.line("main"), plane.line("worker")
    step(main, 0)
    main.event("Schedule", 8, 1, {"_pt": 1, "_p": 7})
    work(worker, 20)
    profile = opened(builder)
    assert of_events(profile) == [0] * 5
    assert not profile.warnings


def test_a_batch_takes_up_what_several_requests_put_into_it(opened):
    builder = SpaceBuilder()
    plane = builder.host()
    requests, batches = plane.line("requests"), plane.line("batches")
    for at in (0, 100):
        requests.event("BatchingSessionRun", at, 50)
        requests.event("Schedule", at + 5, 1, {"_pt": 10, "_p": 7})
    batches.event("ProcessBatch", 120, 10, {"_ct": 10, "_c": 7})
    profile = opened(builder)
    assert of_events(profile) == of_events(profile.with_runtime_steps())
    assert not profile.warnings


def test_work_before_all_that_produces_it_is_no_step_s(opened):
    builder = SpaceBuilder()
    plane = builder.host()
    main, worker = plane.line("main"), plane.line("worker")
    for at in (100, 200):
        step(main, at)
    work(worker, 50)
    work(worker, 220)
    assert of_events(opened(builder)) == [0, 0, 1, 1, None, None, 1, 1]


def test_work_of_steps_that_run_at_once_is_no_step_s(opened):
    builder = SpaceBuilder()
    plane = builder.host()
    step(plane.line("first"), 0)
    step(plane.line("second"), 20)
    work(plane.line("worker"), 60)
    profile = opened(builder)
    assert of_events(profile) == [0, 0, 1, 1, None, None]
    assert repeated(profile) == [1]


def test_threads_of_one_step_that_run_at_once_leave_nothing_open(opened):
    """Both produce the context, and both belong to the step of their part."""
    builder = SpaceBuilder()
    main, first, second, worker = map(builder.host().line, ("main", "first", "second", "worker"))
    for part in range(2):
        at = 100 * part
        main.event("train", at, 90, {"_r": 1, "step_num": 0})
        for thread, (line, later) in enumerate(((first, 10), (second, 12))):
            main.event("Schedule", at + 2 + thread, 1, {"_pt": 1, "_p": 2 * part + thread})
            line.event("Closure", at + later, 30, {"_ct": 1, "_c": 2 * part + thread})
            line.event("Schedule", at + later + 5, 1, {"_pt": 1, "_p": 7})
        work(worker, at + 60)
    profile = opened(builder)
    assert of_events(profile) == [0, 0, 0, 1, 1, 1] + [0, 0, 1, 1] * 3
    assert repeated(profile) == [1]


def test_processes_that_were_merged_are_apart(opened):
    """Both number their contexts from one on, at the same time."""
    builder = SpaceBuilder()
    for late in (0, 3):
        plane = builder.host()
        step(plane.line("main"), late)
        work(plane.line("worker"), 20 + late)
    profile = opened(builder)
    assert of_events(profile) == [0] * 4 + [1] * 4
    assert repeated(profile) == [1]


def test_a_kernel_belongs_to_the_launch_before_it(opened):
    builder = SpaceBuilder()
    host, device = builder.host().line("main"), builder.plane("/device:GPU:0").line("Stream #1")
    for at in (0, 100):
        host.event("train", at, 50, {"_r": 1, "step_num": 0})
        host.event("cuLaunchKernel", at + 5, 2, {"correlation_id": 4})
        device.event("gemm", at + 60, 10, {"correlation_id": 4})
    profile = opened(builder)
    assert of_events(profile) == [0, 0, 1, 1, 0, 1]
    assert repeated(profile) == [1]
    assert of_events(profile.with_runtime_steps())[4:] == [1, 1]


def test_events_out_of_order_are_joined_by_their_times(opened):
    builder = SpaceBuilder()
    plane = builder.host()
    main, worker = plane.line("main"), plane.line("worker")
    for at in (100, 0):
        step(main, at)
        main.event("ThreadpoolListener::StartRegion", at + 10, 0, {"_ct": 1, "_c": 9})
        main.event("ThreadpoolListener::StopRegion", at + 40, 0, {"_ct": 1, "_c": 9})
        work(worker, at + 20)
    assert of_events(opened(builder)) == [1] * 4 + [0] * 4 + [1, 1, 0, 0]


def test_a_kernel_of_annotated_steps_belongs_to_the_launch_before_it(opened):
    builder = SpaceBuilder()
    host, device = builder.host().line("main"), builder.plane("/device:GPU:0").line("Stream #1")
    for at in (0, 100, 200):
        host.event("train_step", at, 90)
        host.event("PjitFunction(step)", at + 2, 20)
        host.event("cuLaunchKernel", at + 5, 2, {"correlation_id": 4})
        device.event("gemm", at + 60, 10, {"correlation_id": 4})
    assert of_events(opened(builder)) == [0, 0, 0, 1, 1, 1, 2, 2, 2, 0, 1, 2]
