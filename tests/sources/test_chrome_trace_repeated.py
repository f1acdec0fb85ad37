"""Merged traces: every process counts its launches from one on."""

from typing import Any

import pytest
from tests.sources.chrome_traces import opened, rows

from peakline.trace.events import trace_of
from peakline.trace.links import links_of

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
    found = [
        {"ph": "X", "ts": at, "dur": 1, **call, "args": {"correlation": number}},
        {"ph": "X", "ts": at + wait, "dur": 2, **kernel, "args": args},
    ]
    if arrows:
        found += [
            _arrow("s", number, host, 1, at),
            _arrow("f", number, device, 7, at + wait),
        ]
    return found


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
    found = rows(profile, "events", "name", "step_id")
    return {name: step for name, step in found if name.startswith("kernel")}


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
