"""Which events of a Chrome trace happened on a device: by their category, not by their pid."""

from typing import Any

from tests.sources.chrome_traces import opened, rows


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
