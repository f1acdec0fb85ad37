"""Whatever numbers a file has for its times: an answer, in order, with what was lost counted."""

from random import Random

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.sources.format_checks import ask_everything, run_verb

import peakline
from peakline.formats import open_reader
from peakline.formats.xplane.times import FARTHEST_LINE_PS, FARTHEST_PS, LONGEST_PS
from peakline.tables.reader import Warnings
from peakline.trace.events import trace_of
from reference.xspace_builder import SpaceBuilder

TODAY = 1_790_000_000_000_000_000
_EDGES = [0, 1, -1, 2**62, 2**63 - 1, -(2**63), FARTHEST_PS, FARTHEST_PS + 1, LONGEST_PS, -(2**62)]
_BASES = [*_EDGES, TODAY, TODAY + 5, 2**63 // 1000, 2**64 // 1000, FARTHEST_LINE_PS // 1000]
_MEMORY = {
    "allocator_name": "bfc", "bytes_allocated": 64, "bytes_reserved": 0, "bytes_available": 64,
    "allocation_bytes": 64, "requested_bytes": 60, "addr": 4096,
}  # fmt: skip
_KINDS = {
    "/host:CPU": {
        "train": {"_r": 1, "step_num": 3},
        "MatMul:MatMul": {},
        "MemoryAllocation": _MEMORY,
        "MemoryDeallocation": _MEMORY | {"bytes_allocated": 0},
        "ThreadpoolListener::StartRegion": {"_c": 5, "_ct": 1},
        "ThreadpoolListener::StopRegion": {},
    },
    "/device:GPU:0": {"kernel": {"correlation_id": 4}, "copy": {"correlation_id": 5}},
    "/device:TPU:0": {"fusion": {"hlo_op": "fusion", "program_id": 3}, "0": {}},
}
_LINES = {
    "/host:CPU": ["python", "pool"],
    "/device:GPU:0": ["Stream #1(Compute)", "Stream #2"],
    "/device:TPU:0": ["Steps", "XLA Modules", "XLA Ops"],
}


def _numbers(edges):
    near = st.builds(int.__add__, st.sampled_from(edges), st.integers(-9, 9))
    usual = st.integers(0, 5000)
    every = st.one_of(usual, usual, near, st.integers(-(2**63), 2**63 - 1))
    return every.map(lambda number: min(max(number, -(2**63)), 2**63 - 1))


@st.composite
def _spaces(draw):
    builder = SpaceBuilder()
    for plane_name in draw(st.permutations(list(_LINES)))[: draw(st.integers(1, 3))]:
        plane = builder.plane(plane_name)
        for line_name in _LINES[plane_name]:
            line = plane.line(line_name, draw(_numbers(_BASES)))
            for _ in range(draw(st.integers(0, 5))):
                name = draw(st.sampled_from(list(_KINDS[plane_name])))
                many = draw(st.sampled_from([None, None, None, 3]))
                line.event(
                    name, draw(_numbers(_EDGES)), draw(_numbers(_EDGES)),
                    _KINDS[plane_name][name], num_occurrences=many,
                )  # fmt: skip
    if draw(st.booleans()):
        times = {
            f"profile_{which}_time": draw(_numbers([TODAY, 0, 2**63 - 1]))
            for which in ("start", "stop")
        }
        builder.plane("Task Environment", times)
    return builder.space


def _events_of(space):
    """The base of each event's line, and the event, in the order of the file."""
    return [
        (line.timestamp_ns * 1000, event)
        for plane in space.planes
        for line in plane.lines
        for event in line.events
    ]


_settings = settings(suppress_health_check=[HealthCheck.function_scoped_fixture])


@pytest.fixture
def path(tmp_path):
    return tmp_path / "host.xplane.pb"


@settings(_settings, max_examples=40)
@given(_spaces())
def test_every_time_is_the_nearest_to_the_exact_one(path, space):
    path.write_bytes(space.SerializeToString() + b"\x22\x01h")
    reader, warnings = open_reader(str(path)), Warnings()
    rows = reader.read("events", warnings).to_pylist()
    zero, far = reader.zero_ps, 0
    for row, (base, event) in zip(rows, _events_of(space), strict=True):
        duration = min(max(event.duration_ps, 0), LONGEST_PS)
        assert row["duration_ps"] == duration
        far += duration != event.duration_ps
        if event.WhichOneof("data") == "num_occurrences":
            assert row["start_ps"] is None
            continue
        exact = base + event.offset_ps - zero
        line = min(max(base - zero, -FARTHEST_LINE_PS), FARTHEST_LINE_PS)
        start = min(max(line + event.offset_ps, -FARTHEST_PS), FARTHEST_PS)
        assert row["start_ps"] == start
        far += line != base - zero or start != exact
    told = {kind: count for kind, count, _ in warnings.entries()}
    reader.close()
    assert told.get("times_too_far", 0) - far in {0, 1}, "one more is that of the profiler"


@settings(_settings, max_examples=30)
@given(_spaces())
def test_what_is_promised_to_be_in_order_is(path, space):
    path.write_bytes(space.SerializeToString() + b"\x22\x01h")
    with peakline.open(str(path)) as profile:
        times = profile.columns("allocator_events").array("time_ps")
        assert (times[1:] >= times[:-1]).all()
        steps = profile.columns("steps")
        assert (steps.array("end_ps") >= steps.array("start_ps")).all()
        trace = trace_of(profile)
        assert (trace.end >= trace.start).all()
        for line in trace.lines:
            assert (np.diff(trace.start[line.events]) >= 0).all()
        events = profile.columns("events")
        row = trace.rows(slice(0, trace.size))
        # Nothing is left for the trace to cut off where nobody counts it.
        assert (trace.start == events.array("start_ps")[row]).all()
        assert (trace.end - trace.start == events.array("duration_ps")[row]).all()


@settings(_settings, max_examples=5)
@given(_spaces(), st.integers(0, 2**32))
def test_everything_can_be_asked_in_any_order(path, space, seed):
    path.write_bytes(space.SerializeToString() + b"\x22\x01h")
    ask_everything(path, Random(seed))


def _run_verbs(path, space):
    path.write_bytes(space.SerializeToString() + b"\x22\x01h")
    for verb in ("memory", "steps", "ops", "trace", "summary"):
        run_verb([verb, str(path)])
        run_verb([verb, "--json", str(path)])


@settings(_settings, max_examples=4)
@given(_spaces())
def test_no_verb_fails(path, space):
    _run_verbs(path, space)


@pytest.mark.soak
@settings(_settings, max_examples=200)
@given(_spaces(), st.integers(0, 2**32))
def test_everything_can_be_asked_of_many(path, space, seed):
    path.write_bytes(space.SerializeToString() + b"\x22\x01h")
    ask_everything(path, Random(seed))
    _run_verbs(path, space)
