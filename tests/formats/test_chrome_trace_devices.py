"""Which events of a Chrome trace happened on a device, and what merged traces repeat."""

from typing import Any

import pytest
from tests.formats.chrome_traces import opened, rows

from peakline.trace.events import trace_of
from peakline.trace.links import links_of


def _x(cat: str | None, pid: Any, tid: Any, ts: float, **args: Any) -> dict[str, Any]:
    made = {"ph": "X", "pid": pid, "tid": tid, "ts": ts, "dur": 1, "name": f"{cat}", "args": args}
    return made if cat is None else {**made, "cat": cat}


def _kernel(pid: Any, ts: float, device: int, stream: int = 7) -> dict[str, Any]:
    return _x("kernel", pid, stream, ts, device=device, stream=stream, correlation=1)


def _note(what: str, pid: Any, text: str, tid: Any = 0) -> dict[str, Any]:
    key = "labels" if what == "process_labels" else "name"
    return {"ph": "M", "pid": pid, "tid": tid, "name": what, "args": {key: text}}


def _planes(profile: Any) -> list[tuple[Any, ...]]:
    return rows(profile, "planes", "name", "kind", "native_id")


def test_a_process_with_the_number_of_a_gpu_is_not_that_gpu(tmp_path):
    trace = [
        _note("process_name", 1, "python3"),
        _note("process_labels", 1, "CPU"),
        _note("process_name", 1, "python3"),
        _note("process_labels", 1, "GPU 1"),
        _note("process_name", 2, "python3"),
        _note("process_labels", 2, "GPU 2"),
        _note("thread_name", 1, "thread 1 (python3)", tid=1),
        _x("cpu_op", 1, 1, 0),
        _x("python_function", 1, 1, 1),
        _kernel(2, 2, 2),
    ]
    with opened(tmp_path, trace) as profile:
        assert _planes(profile) == [("python3 (CPU)", "host", 1), ("python3 (GPU 2)", "device", 2)]
        assert rows(profile, "events", "line_id") == [(0,), (0,), (1,)]


def test_threads_written_on_the_number_of_a_device_are_a_process(tmp_path):
    trace = [
        _note("process_name", 0, "python3"),
        _note("process_labels", 0, "GPU 0"),
        _note("thread_name", 0, "stream 7 ", tid=7),
        _note("thread_name", 0, "thread 7", tid=7),
        _x("python_function", 0, 7, 0),
        _kernel(0, 1, 0),
        _x("gpu_user_annotation", 0, 7, 1),
        _x("mtia_runtime", 0, 8, 3, device=0, stream_id="4"),
    ]
    with opened(tmp_path, trace) as profile:
        assert _planes(profile) == [("python3", "host", 0), ("python3 (GPU 0)", "device", 0)]
        assert rows(profile, "lines", "plane_id", "name") == [
            (0, "thread 7"),
            (1, "stream 7"),
            (0, "thread 8"),
        ]
        assert rows(profile, "events", "line_id") == [(0,), (1,), (1,), (2,)]


def test_kernels_are_kernels_without_any_metadata(tmp_path):
    trace = [_x("cpu_op", 851, 851, 0), _kernel(2, 1, 2), _x("gpu_memcpy", 2, 0, 3)]
    with opened(tmp_path, trace) as profile:
        assert _planes(profile) == [("process 851", "host", 851), ("GPU 2", "device", 2)]
        assert rows(profile, "lines", "name") == [("thread 851",), ("stream 7",), ("stream 0",)]


def test_the_device_is_that_of_the_argument(tmp_path):
    trace = [
        _note("process_labels", 5, "GPU 5"),
        _kernel(5, 0, 0),
        _kernel(5, 1, 1),
        _x("gpu_user_annotation", 5, 7, 1),
        _kernel("rank 1", 2, 0),
    ]
    with opened(tmp_path, trace) as profile:
        assert _planes(profile) == [
            ("GPU 0 of process 5", "device", 5),
            ("GPU 1", "device", 5),
            ("GPU 5", "device", 5),
            ("GPU 0 of process rank 1", "device", None),
        ]


def test_a_category_that_nobody_knows_is_work_of_the_device_that_it_names(tmp_path):
    trace = [
        _x("cpu_op", 9, 9, 0),
        _x("my_npu_kernel", 4, 2, 1, device=4, stream=2),
        _x("other", 4, 2, 3),
        _x("other", 9, 9, 3),
        _x("other", 9, 8, 3, device=1),
    ]
    with opened(tmp_path, trace) as profile:
        assert _planes(profile) == [("process 9", "host", 9), ("GPU 4", "device", 4)]
        assert rows(profile, "events", "line_id") == [(0,), (1,), (1,), (0,), (2,)]
        assert rows(profile, "lines", "plane_id") == [(0,), (1,), (0,)]


def test_an_arrow_ends_where_an_event_begins_at_its_time(tmp_path):
    def arrow(phase: str, tid: int, ts: float, number: int) -> dict[str, Any]:
        base = {"ph": phase, "id": number, "pid": 1, "tid": tid, "ts": ts, "cat": "ac2g"}
        return {**base, "name": "ac2g", "bp": "e"}

    trace = [
        _x("cuda_runtime", 1, 1, 0),
        _kernel(1, 5, 1, stream=1),
        arrow("s", 1, 0, 3),
        arrow("f", 1, 5, 3),
    ]
    with opened(tmp_path, trace) as profile:
        assert rows(profile, "flows", "phase", "line_id") == [("s", 0), ("f", 1)]


def test_counters_are_those_of_the_process(tmp_path):
    trace = [
        _kernel(0, 1, 0),
        _x("cpu_op", 0, 3, 0),
        {"ph": "C", "pid": 0, "ts": 2, "name": "c", "args": {"v": 1}},
        {"ph": "C", "pid": 6, "ts": 2, "name": "c", "args": {"v": 1}},
    ]
    with opened(tmp_path, trace) as profile:
        assert rows(profile, "counters", "plane_id") == [(1,), (2,)]
        assert _planes(profile)[2] == ("process 6", "other", 6)


_HOSTS, _DEVICES = (100, 200), (10, 20)


def _arrow(phase: str, number: int, pid: int, tid: int, ts: float) -> dict[str, Any]:
    where = {"pid": pid, "tid": tid, "ts": ts}
    return {"ph": phase, "id": number, "cat": "ac2g", "name": "ac2g", "bp": "e", **where}


def _launch(
    rank: int, number: int, at: float, wait: float, *, arrows: bool
) -> list[dict[str, Any]]:
    """A launch on a rank's host, and the kernel that begins so long after it."""
    host, device = _HOSTS[rank], _DEVICES[rank]
    call = {"cat": "cuda_runtime", "name": f"launch {rank}.{number}", "pid": host, "tid": 1}
    kernel = {"cat": "kernel", "name": f"kernel {rank}.{number}", "pid": device, "tid": 7}
    args = {"device": 0, "stream": 7, "correlation": number}
    result = [
        {"ph": "X", "ts": at, "dur": 1, **call, "args": {"correlation": number}},
        {"ph": "X", "ts": at + wait, "dur": 2, **kernel, "args": args},
    ]
    if arrows:
        result += [_arrow("s", number, host, 1, at), _arrow("f", number, device, 7, at + wait)]
    return result


def _merged(first: list[float], second: list[float], *, wait: float, arrows: bool) -> list[Any]:
    """Two ranks that launch at these times (us), in steps of 100."""
    trace: list[dict[str, Any]] = []
    for rank, times in enumerate((first, second)):
        for number in range(2):
            where = {"pid": _HOSTS[rank], "tid": 1, "ts": 100 * number + rank, "dur": 90}
            name = f"ProfilerStep#{number}"
            trace.append({"ph": "X", "cat": "user_annotation", "name": name, **where})
        for number, at in enumerate(times, start=1):
            trace += _launch(rank, number, at, wait, arrows=arrows)
    return trace


def _linked(profile: Any) -> list[tuple[str | None, str | None]]:
    names, links = trace_of(profile).name.to_list(), links_of(profile)
    pairs = zip(links.cause.tolist(), links.target.tolist(), strict=True)
    return sorted((names[cause], names[target]) for cause, target in pairs)


def _repeated(profile: Any) -> list[int]:
    return [warning.count for warning in profile.warnings if warning.kind == "repeated_ids"]


def _steps_of_kernels(profile: Any) -> dict[str, int | None]:
    result = rows(profile, "events", "name", "step_id")
    return {name: step for name, step in result if name.startswith("kernel")}


@pytest.mark.parametrize("arrows", [False, True])
def test_work_belongs_to_the_process_that_most_of_its_device_was_launched_by(tmp_path, arrows):
    """The second rank's launch 2 comes before the first rank's kernel 2, and after its launch."""
    trace = _merged([10, 20, 130], [15, 22, 131], wait=4, arrows=arrows)
    with opened(tmp_path, trace) as profile:
        steps = _steps_of_kernels(profile)
        assert _linked(profile) == [
            (f"launch {rank}.{number}", f"kernel {rank}.{number}")
            for rank in range(2)
            for number in (1, 2, 3)
        ]
        assert _repeated(profile) == [3]
        if arrows:
            # In order of their begins: first, second, first, second.
            assert steps == {
                "kernel 0.1": 0, "kernel 0.2": 0, "kernel 0.3": 2,
                "kernel 1.1": 1, "kernel 1.2": 1, "kernel 1.3": 3,
            }  # fmt: skip


@pytest.mark.parametrize("arrows", [False, True])
def test_where_two_processes_fit_alike_work_belongs_to_none(tmp_path, arrows):
    trace = _merged([10, 120], [11, 121], wait=40, arrows=arrows)
    with opened(tmp_path, trace) as profile:
        assert set(_steps_of_kernels(profile).values()) == {None}
        assert _linked(profile) == []
        assert links_of(profile).unlinked == 4
        assert _repeated(profile) == [2]


@pytest.mark.parametrize("arrows", [False, True])
def test_parts_of_one_process_are_separate_in_time(tmp_path, arrows):
    trace = _merged([10, 20], [], wait=4, arrows=arrows)
    late = [
        {**event, "ts": event["ts"] + 1000, "name": event["name"].replace("0.", "late ")}
        for event in trace
    ]
    with opened(tmp_path, [*trace, *late]) as profile:
        steps = _steps_of_kernels(profile)
        assert _linked(profile) == [
            ("launch 0.1", "kernel 0.1"),
            ("launch 0.2", "kernel 0.2"),
            ("launch late 1", "kernel late 1"),
            ("launch late 2", "kernel late 2"),
        ]
        assert _repeated(profile) == []
        if arrows:
            assert (steps["kernel 0.1"], steps["kernel late 1"]) == (0, 4)


def test_an_id_of_one_process_finds_it_from_a_device_of_another(tmp_path):
    """Kineto writes threads that it does not know as those of another process."""
    trace = _merged([10, 20], [15], wait=4, arrows=False)
    call, _ = _launch(1, 9, 30, 4, arrows=False)
    _, kernel = _launch(0, 9, 30, 4, arrows=False)
    trace += [{**call, "pid": 300}, kernel]
    with opened(tmp_path, trace) as profile:
        assert ("launch 1.9", "kernel 0.9") in _linked(profile)


def test_a_number_on_both_sides_of_a_call_repeats_nothing(tmp_path):
    """MTIA's calls of its firmware, which stand on a device's number and launch nothing."""
    trace = _merged([10, 20], [], wait=4, arrows=False)
    call, _ = _launch(1, 9, 30, 4, arrows=False)
    trace += [{**call, "cat": "mtia_runtime", "pid": pid} for pid in (_HOSTS[0], _DEVICES[0])]
    with opened(tmp_path, trace) as profile:
        assert len(_linked(profile)) == 2
        assert _repeated(profile) == []
