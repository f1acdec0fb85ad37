"""The critical path of a step, from the devices', the programs' and the threads' own order."""

from types import SimpleNamespace

import pytest
from tests.reference.xspace_builder import SpaceBuilder
from tests.timing.programs import Maker, f32
from tests.timing.traces import GPU, HOST_PLANE, profile_of

import peakline
from peakline.errors import NotFoundError
from peakline.timing.critical_path import walk as critical_walk
from peakline.timing.critical_path.path import critical_path_of, median_step
from peakline.trace.events import nesting_of

US = 10**6


@pytest.fixture
def path_of(tmp_path):
    """A function that gives the critical path of a space, checked for what holds of each."""
    profiles = []

    def find(space, step=None, **more):
        file = tmp_path / f"{len(profiles)}.xplane.pb"
        file.write_bytes(space.space.SerializeToString())
        profiles.append(peakline.open(file))
        result = critical_path_of(profiles[-1], step, **more)
        if result is not None:
            free = result.start_ps
            for piece in result.pieces:
                assert piece.begin_ps - piece.wait_ps == free
                assert piece.busy_ps >= 0
                free = piece.end_ps
            assert free <= result.end_ps
        return result

    yield find
    for profile in profiles:
        profile.close()


def told(path):
    """Name, kind, why, and begin and end in us."""
    return [(p.name, p.kind, p.why, p.begin_ps / US, p.end_ps / US) for p in path.pieces]


def a_gpu(launches, kernels, others=(), marker=200):
    space = SpaceBuilder()
    plane = space.plane("/device:GPU:0")
    thread = space.host().line("python")
    thread.event("train", 0, marker * US, {"step_num": 1, "_r": 1})
    for stream, events in (("Stream #1(Compute)", kernels), ("Stream #2(Compute)", others)):
        line = plane.line(stream)
        for name, at, duration, number, *stats in events:
            own = {"correlation_id": number, **(stats[0] if stats else {})}
            line.event(name, at * US, duration * US, own)
    for name, at, duration, number in launches:
        own = {"correlation_id": number} if number else {}
        thread.event(name, at * US, duration * US, own)
    return space


def test_a_device_that_is_behind_is_its_stream(path_of):
    space = a_gpu(
        [("cudaLaunchKernel", 10, 5, 1), ("cudaLaunchKernel", 20, 5, 2)],
        [("a", 30, 100, 1), ("b", 130, 70, 2)],
    )
    path = path_of(space, device="/device:GPU:0")
    assert told(path)[-3:] == [
        ("cudaLaunchKernel", "launch", "thread", 10, 30),
        ("a", "op", "launch", 30, 130),
        ("b", "op", "order", 130, 200),
    ]
    assert path.explained == 1.0


def test_of_devices_whose_windows_end_together_it_is_the_first(path_of):
    space = a_gpu([("cudaLaunchKernel", 10, 5, 1)], [("a", 30, 250, 1)])
    other = space.plane("/device:GPU:1").line("Stream #1(Compute)")
    other.event("b", 40 * US, 100 * US, {"correlation_id": 1})
    path = path_of(space)
    assert (path.device, path.end_ps) == ("/device:GPU:0", 280 * US)
    assert path_of(space, device="/device:GPU:1").end_ps == 280 * US


def test_a_collective_on_another_stream_is_on_the_path(path_of):
    path = path_of(
        a_gpu(
            [("launch", 5, 2, 1), ("launch", 8, 2, 2), ("launch", 11, 2, 3)],
            [("forward", 10, 20, 1), ("update", 95, 10, 3)],
            [("ncclDevKernel_AllReduce_Sum_f32_RING_LL", 32, 60, 2)],
            marker=20,
        )
    )
    nccl = "ncclDevKernel_AllReduce_Sum_f32_RING_LL"
    # The update is launched long before: only the collective, on another stream, is in its way.
    ops = [piece for piece in told(path) if piece[1] == "op"]
    assert ops == [
        ("forward", "op", "launch", 10, 30),
        (nccl, "op", "guess", 32, 92),
        ("update", "op", "guess", 95, 105),
    ]
    assert path.guesses == 2


def test_a_late_launch_leads_to_the_thread(path_of):
    space = a_gpu(
        [
            ("cudaLaunchKernel", 10, 5, 1),
            ("slow python", 20, 100, 0),
            ("cudaLaunchKernel", 120, 5, 2),
        ],
        [("a", 12, 10, 1), ("b", 130, 70, 2)],
    )
    assert told(path_of(space))[-3:] == [
        ("slow python", "host", "thread", 20, 120),
        ("cudaLaunchKernel", "launch", "thread", 120, 130),
        ("b", "op", "launch", 130, 200),
    ]


def test_a_thread_that_synchronises_waited_for_the_device(path_of):
    space = a_gpu(
        [
            ("cudaLaunchKernel", 10, 5, 1),
            ("cudaDeviceSynchronize", 20, 85, 0),
            ("cudaLaunchKernel", 110, 5, 2),
        ],
        [("a", 30, 70, 1), ("b", 120, 80, 2)],
    )
    assert [(name, kind) for name, kind, *_ in told(path_of(space))][-6:] == [
        ("cudaLaunchKernel", "launch"),
        ("a", "op"),
        ("(going on)", "host"),
        ("train", "host"),
        ("cudaLaunchKernel", "launch"),
        ("b", "op"),
    ]


def a_program(space, build):
    """Adds a program that ``build`` makes, with the id 9."""
    made = Maker()
    build(made, made.computation("main"))
    metadata = space.plane("/host:metadata")
    entry = metadata.message.event_metadata[metadata.event_id("jit_f(9)")]
    metadata.add_stats(entry, {"Hlo Proto": made.data})
    return space


def test_an_operand_on_another_stream_is_waited_for(path_of):
    def build(made, main):
        x = made.add(main, "parameter", f32(8), name="x")
        slow = made.add(main, "negate", f32(8), x, name="slow")
        view = made.add(main, "bitcast", f32(8), slow, name="view")
        made.add(main, "add", f32(8), view, view, name="last")

    def op(name):
        return {"hlo_op": name, "hlo_module": "jit_f", "program_id": 9}

    space = a_gpu(
        [("cudaLaunchKernel", n, 1, n) for n in (1, 3, 5)],
        [("quick", 10, 10, 1, {}), ("last.kd", 101, 99, 3, op("last"))],
        [("slow.kd", 10, 90, 5, op("slow"))],
    )
    path = path_of(a_program(space, build))
    assert path.source == "hlo"
    assert told(path)[-2:] == [
        ("slow.kd", "op", "launch", 10, 100), ("last.kd", "op", "data", 101, 200),
    ]  # fmt: skip
    # ``quick`` could have lasted until ``last`` began, which itself could not move.
    assert [(near.name, near.slack_ps) for near in path.near] == [("quick", 81 * US)]


def test_the_end_of_a_transfer_leads_to_its_begin(path_of):
    def build(made, main):
        x = made.add(main, "parameter", f32(8), name="x")
        start = made.add(main, "copy-start", f32(8), x, name="copy-start.1")
        work = made.add(main, "tanh", f32(8), x, name="tanh.1")
        done = made.add(main, "copy-done", f32(8), start, name="copy-done.1")
        made.add(main, "add", f32(8), work, done, name="add.1")

    space = SpaceBuilder()
    plane = space.plane("/device:TPU:0")
    plane.line("XLA Modules").event("jit_f(9)", 0, 100 * US)
    ops = plane.line("XLA Ops")
    for name, at, duration in (("copy-start.1", 0, 1), ("tanh.1", 1, 9), ("copy-done.1", 10, 60),
                               ("add.1", 70, 30)):  # fmt: skip
        ops.event(f"%{name} = f32[8]{{0}} op()", at * US, duration * US)
    path = path_of(a_program(space, build))
    assert told(path) == [
        ("copy-start.1", "op", "start", 0, 1),
        ("copy-start.1", "transfer", "transfer", 1, 70),
        ("add.1", "op", "data", 70, 100),
    ]
    assert (path.source, path.explained) == ("hlo", 1.0)


def test_work_handed_to_another_thread(path_of):
    space = SpaceBuilder()
    host = space.host()
    main, worker = host.line("main"), host.line("worker")
    main.event("train", 0, 100 * US, {"step_num": 1, "_r": 1})
    main.event("Schedule", 10 * US, 5 * US, {"_pt": 3, "_p": 7})
    main.event("block_until_ready", 20 * US, 70 * US, {})
    worker.event("Conv2D:Conv2D", 30 * US, 55 * US, {"_ct": 3, "_c": 7})
    path = path_of(space)
    assert told(path) == [
        ("train", "host", "start", 0, 10),
        ("Schedule", "host", "thread", 10, 15),
        ("Conv2D:Conv2D", "host", "context", 30, 85),
        ("(going on)", "host", "release", 85, 90),
        ("train", "host", "thread", 90, 100),
    ]
    assert path.guesses == 1


def test_names_that_do_not_exist_are_errors(path_of):
    space = a_gpu([("cudaLaunchKernel", 10, 5, 1)], [("a", 30, 100, 1)])
    with pytest.raises(NotFoundError, match="no step '7'"):
        path_of(space, "7")
    with pytest.raises(NotFoundError, match="no device 'x' with work; there is: /device:GPU:0"):
        path_of(space, device="x")


def test_nothing_ran():
    from tests.tables.fake import FakeReader

    from peakline.tables import Profile

    assert critical_path_of(Profile(FakeReader({}))) is None


def test_what_was_launched_before_the_step_counts_from_its_begin(path_of):
    space = SpaceBuilder()
    kernels = space.plane("/device:GPU:0").line("Stream #1(Compute)")
    kernels.event("before", 60 * US, 30 * US, {"correlation_id": 1})
    kernels.event("a", 150 * US, 50 * US, {"correlation_id": 2})
    thread = space.host().line("python")
    thread.event("cudaLaunchKernel", 10 * US, 5 * US, {"correlation_id": 1})
    thread.event("cudaLaunchKernel", 20 * US, 5 * US, {"correlation_id": 2})
    thread.event("train", 100 * US, 100 * US, {"step_num": 1, "_r": 1})
    path = path_of(space)
    assert path.start_ps == 100 * US
    assert told(path) == [
        ("cudaLaunchKernel", "launch", "start", 100, 150),
        ("a", "op", "launch", 150, 200),
    ]
    assert path.explained == 1.0


def steps_of(*steps):
    """A host whose steps, name and length, come 100 ps apart."""
    marks = [(name, 100 * n, 100 * n + length) for n, (name, length) in enumerate(steps)]
    python = [(name, start, end, n) for n, (name, start, end) in enumerate(marks)]
    return profile_of({HOST_PLANE: {"python": python}}, marks)


def test_a_step_is_found_by_its_id_before_its_name():
    profile = steps_of(("1", 10), ("0", 20), ("5", 30))
    assert [critical_path_of(profile, name).end_ps for name in ("0", "1", "5")] == [10, 120, 230]


def test_the_median_step_of_an_even_number_is_the_shorter_one():
    profile = steps_of(("a", 40), ("b", 10), ("c", 30), ("d", 20))
    assert median_step(profile) == "3"
    assert median_step(profile, GPU) is None


def test_pieces_are_known_by_their_events_and_lines(path_of):
    path = path_of(
        a_gpu(
            [("cudaLaunchKernel", 10, 5, 1), ("cudaDeviceSynchronize", 20, 110, 0),
             ("cudaLaunchKernel", 140, 5, 2)],
            [("a", 30, 70, 1), ("b", 150, 50, 2)],
        ),
    )  # fmt: skip
    stream, thread = 0, 2
    places = {(p.name, p.begin_ps // US): (p.event, p.line) for p in path.pieces}
    assert places["a", 30] == (0, stream)
    assert places["b", 150] == (1, stream)
    assert places["cudaLaunchKernel", 10] == (3, thread)
    assert places["(going on)", 100] == (-1, thread)


def test_deep_nesting_is_climbed_once(path_of, monkeypatch):
    depth, request = 300, []

    class Parents(list):
        def __getitem__(self, event):
            request.append(event)
            return super().__getitem__(event)

    def nesting(profile):
        return SimpleNamespace(parent=Parents(nesting_of(profile).parent.tolist()))

    monkeypatch.setattr(critical_walk, "nesting_of", nesting)
    space = SpaceBuilder()
    line = space.host().line("python")
    for level in range(depth):
        line.event(f"f{level}", level * US, (2 * depth - 2 * level) * US)
    pieces = path_of(space).pieces
    inwards = [f"f{level}" for level in range(depth)]
    assert [piece.name for piece in pieces] == inwards + inwards[-2::-1]
    assert {piece.busy_ps for piece in pieces[: depth - 1] + pieces[depth:]} == {US}
    assert len(request) < 4 * depth
