"""Times beyond what sums can reach are taken as the nearest within it, and counted."""

from random import Random

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.each_row import each_row
from tests.formats.format_checks import ask_everything, content, run_verb

import peakline
from peakline.formats import open_reader
from peakline.formats.xplane import line_reader, times
from peakline.formats.xplane.events import PLAIN
from peakline.formats.xplane.times import (
    FARTHEST_LINE_PS,
    FARTHEST_PS,
    LONGEST_PS,
    add_durations,
    clock_zero_ns,
    limit_durations,
    nearest_start,
    place,
    place_runs,
)
from peakline.tables.reader import Warnings
from peakline.trace.events import FARTHEST, trace_of
from reference.xspace_builder import SpaceBuilder

MOST = 2**63 - 1
TODAY = 1_790_000_000_000_000_000
"""A moment in ns since 1970, which is more picoseconds than 64 bits hold."""
DEEP = 2**63 // 1000
"""So many ns are nearly the whole int64 range in ps."""


@pytest.fixture
def written(tmp_path):
    def write(builder):
        path = tmp_path / "host.xplane.pb"
        path.write_bytes(builder.space.SerializeToString())
        return str(path)

    return write


@pytest.fixture(params=["whole", "plain", "whole by pieces", "plain by pieces"])
def events_of(request, written, monkeypatch):
    """A function from a builder to ``(start, duration)`` of its events and how many times were
    too far: with steps or without, and with one event at most in a piece.
    """
    if request.param.endswith("pieces"):
        monkeypatch.setattr(line_reader, "_PART_EVENTS", 1)

    def read(builder):
        reader, warnings = open_reader(written(builder)), Warnings()
        wanted = None if request.param.startswith("whole") else PLAIN - {"category"}
        result = reader.read("events", warnings, wanted)
        again = reader.read("events", warnings, frozenset({"start_ps", "duration_ps"}))
        reader.close()
        rows = result.to_pylist()
        for name in ("start_ps", "duration_ps"):
            assert (again.array(name) == result.array(name)).all()
        far = {kind: count for kind, count, _ in warnings.entries()}
        return [(row["start_ps"], row["duration_ps"]) for row in rows], far

    return read


# Tables.


def test_what_a_profile_can_have_stays_as_it_is(events_of):
    builder = SpaceBuilder()
    line = builder.host().line("t", TODAY)
    line.event("e", FARTHEST_PS, LONGEST_PS).event("e", -FARTHEST_PS).event("e", -5, 0)
    assert events_of(builder) == ([(FARTHEST_PS, LONGEST_PS), (-FARTHEST_PS, 0), (-5, 0)], {})


def test_an_event_too_far_from_the_start(events_of):
    builder = SpaceBuilder()
    host = builder.host()
    host.line("a", 0).event("e", 7, 1).event("e", MOST, 1).event("e", -(2**63), 1)
    host.line("b", 3).event("e", FARTHEST_PS - 3000, 2).event("e", FARTHEST_PS - 2999, 2)
    assert events_of(builder) == (
        [(7, 1), (FARTHEST_PS, 1), (-FARTHEST_PS, 1), (FARTHEST_PS, 2), (FARTHEST_PS, 2)],
        {"times_too_far": 3},
    )


def test_a_duration_that_no_event_has(events_of):
    builder = SpaceBuilder()
    line = builder.host().line("t", 5)
    line.event("e", 1, MOST).event("e", 2, -1).event("e", 3, LONGEST_PS + 1).event("e", 4, 4)
    line.event("e", 0, -(2**63), num_occurrences=9)
    assert events_of(builder) == (
        [(1, LONGEST_PS), (2, 0), (3, LONGEST_PS), (4, 4), (None, 0)],
        {"times_too_far": 4},
    )


def test_a_start_and_a_duration_are_two_times(events_of):
    builder = SpaceBuilder()
    builder.host().line("t").event("e", MOST, MOST)
    assert events_of(builder) == ([(FARTHEST_PS, LONGEST_PS)], {"times_too_far": 2})


def test_events_without_a_start_are_not_too_far(events_of):
    builder = SpaceBuilder()
    host = builder.host()
    host.line("a", 0).event("e", 1, 1).event("e", 2, 1).event("e", 3, 1)
    host.line("b", TODAY).event("e", 0, 2, num_occurrences=4)
    assert events_of(builder) == ([(1, 1), (2, 1), (3, 1), (None, 2)], {})


def test_one_damaged_line_leaves_the_others_their_times(events_of):
    for damaged, nearest in ((-5, -FARTHEST_LINE_PS), (MOST, FARTHEST_LINE_PS)):
        builder = SpaceBuilder()
        host = builder.host()
        line = host.line("a", TODAY)
        for offset in range(10, 16):
            line.event("e", offset, 1)
        host.line("b", damaged).event("e", 30, 1).event("e", 0, 1, num_occurrences=2)
        host.line("b", damaged).event("e", 50, 2)
        host.line("c", TODAY + 1).event("e", 40, 1)
        assert events_of(builder) == (
            [(offset, 1) for offset in range(10, 16)]
            + [(nearest + 30, 1), (None, 1), (nearest + 50, 2), (1040, 1)],
            {"times_too_far": 2},
        )


def test_lines_too_far_are_counted_too(written):
    builder = SpaceBuilder()
    host = builder.host()
    host.line("a", TODAY).event("e", 10, 1)
    host.line("b", -(2**63))
    host.line("c", TODAY + 2)
    _, rows, result = content(written(builder))
    assert [line["start_ps"] for line in rows["lines"]] == [0, -FARTHEST_LINE_PS, 2000]
    assert result == {"times_too_far": 1}


def test_memory_events_too_far_are_sorted_and_counted_once(written):
    builder = SpaceBuilder()
    host = builder.host()
    for name, base, offsets in (("a", 4, (MOST, 9)), ("b", DEEP, (5,)), ("c", 3, (-(2**63),))):
        line = host.line(name, base)
        for offset in offsets:
            line.event("MemoryAllocation", offset, 0, {"allocator_name": "x", "addr": offset})
    with peakline.open(written(builder)) as profile:
        events = profile.columns("allocator_events").to_pylist()
        assert [(e["time_ps"], e["sequence"]) for e in events] == [
            (-FARTHEST_PS, 3),
            (1009, 1),
            (FARTHEST_LINE_PS + 5, 2),
            (FARTHEST_PS, 0),
        ]
        assert [(w.kind, w.count) for w in profile.warnings] == [("times_too_far", 3)]
        # As upstream reads them: by the line, whatever they are.
        offsets = [s["time_offset_ps"] for s in profile.columns("memory_snapshots").to_pylist()]
        assert offsets == [MOST, 9, 5, -(2**63)]
        profile.columns("events")
        assert [(w.kind, w.count) for w in profile.warnings] == [("times_too_far", 3)]


def test_steps_too_far(written):
    builder = SpaceBuilder()
    host = builder.host()
    root = {"_r": 1, "step_num": 1}
    host.line("a", TODAY).event("train", 100, 50, root).event("train", MOST, 5, root)
    host.line("b", TODAY).event("train", 300, -1, root).event("train", 400, MOST, root)
    with peakline.open(written(builder)) as profile:
        steps = profile.columns("steps").to_pylist()
        assert sorted((s["start_ps"], s["end_ps"]) for s in steps) == [
            (100, 150),
            (300, 300),
            (400, 400 + LONGEST_PS),
            (FARTHEST_PS, FARTHEST_PS + 5),
        ]
        assert [(w.kind, w.count) for w in profile.warnings] == [("times_too_far", 3)]
        profile.columns("events")
        assert [(w.kind, w.count) for w in profile.warnings] == [("times_too_far", 3)]


def test_module_runs_end_with_the_range(written):
    builder = SpaceBuilder()
    line = builder.plane("/device:TPU:0").line("XLA Modules", 0)
    line.event("m", 5, 6).event("m", MOST - 1, 1).event("m", MOST - 1, 2)
    with peakline.open(written(builder)) as profile:
        runs = profile.columns("module_runs").to_pylist()
        assert [(r["start_ps"], r["end_ps"]) for r in runs] == [
            (5, 11),
            (MOST - 1, MOST),
            (MOST - 1, MOST),
        ]
        assert [(w.kind, w.count) for w in profile.warnings] == [("times_too_far", 1)]


def test_steps_of_a_tpu_since_1970(written):
    builder = SpaceBuilder()
    line = builder.plane("/device:TPU:0").line("Steps", TODAY)
    line.event("0", 5000, 1000).event("1", 7000, -1).event("2", -(2**63), 7)
    with peakline.open(written(builder)) as profile:
        steps = profile.columns("steps").to_pylist()
        assert sorted((s["start_ps"], s["end_ps"]) for s in steps) == [
            (-FARTHEST_PS, 7 - FARTHEST_PS),
            (5000, 6000),
            (7000, 7000),
        ]


@pytest.mark.parametrize("tables", [[], ["events"], ["allocator_events"]])
def test_the_duration_is_that_of_the_content(written, tables):
    builder = SpaceBuilder()
    times = {"profile_start_time": 0, "profile_stop_time": 3}
    builder.plane("Task Environment", times)
    builder.host().line("t", 2).event("e", 0, 1500)
    with peakline.open(written(builder)) as profile:
        # The only line is where the clock begins.
        assert profile.duration_ps == 3000
    builder.plane("/device:GPU:0").line("s", 5).event("long", 100, 7000).event("late", 5000, 1)
    with peakline.open(written(builder)) as profile:
        for table in tables:
            profile.columns(table)
        # As in a file of several captures, of which the header knows one.
        assert profile.duration_ps == 3000 + 7100


def test_a_profiler_that_ran_for_ever(written):
    builder = SpaceBuilder()
    builder.host().line("t", 0).event("e", 1, 1)
    times = {"profile_start_time": 0, "profile_stop_time": MOST}
    builder.plane("Task Environment", times)
    with peakline.open(written(builder)) as profile:
        assert profile.duration_ps == FARTHEST_PS
        profile.columns("planes")
        assert [(w.kind, w.count) for w in profile.warnings] == [("times_too_far", 1)]


def test_strict_refuses_a_time_too_far(written):
    builder = SpaceBuilder()
    builder.host().line("t").event("e", MOST, 1)
    path = written(builder)
    with pytest.raises(peakline.errors.StrictError, match="times_too_far"):
        peakline.open(path, strict=True).columns("events")


# The rule itself.


def test_the_zero_is_the_earliest_line_where_one_clock_has_all():
    reach = FARTHEST_LINE_PS // 1000
    assert clock_zero_ns([], []) == 0
    assert clock_zero_ns([7, 3, 5], [1, 1, 1]) == 3
    assert clock_zero_ns([TODAY + reach, TODAY], [9, 0]) == TODAY


def test_else_it_is_where_most_of_the_content_is():
    reach = FARTHEST_LINE_PS // 1000
    assert clock_zero_ns([TODAY, 0, TODAY + 5], [4, 7, 4]) == TODAY
    assert clock_zero_ns([TODAY, 0, TODAY + 5], [4, 9, 4]) == 0
    assert clock_zero_ns([0, TODAY], [3, 3]) == 0
    assert clock_zero_ns([0, reach, reach + 1], [3, 3, 3]) == 0
    assert clock_zero_ns([0, reach, reach + 1, 2 * reach], [3, 3, 3, 3]) == reach
    assert clock_zero_ns([-(2**63), MOST, MOST], [3, 2, 2]) == MOST


def placed(offset, base):
    base = min(max(base, -(2**61)), 2**61)
    return min(max(offset + base, -FARTHEST_PS), FARTHEST_PS)


@each_row("base", [0, 5, 2**61, 2**61 + 1, -(2**61), -(2**62), 2**63, 2**64 + 9])
def test_sums_are_those_of_whole_numbers(base):
    edges = [-(2**63), -FARTHEST_PS, -1, 0, 1, FARTHEST_PS, 2**62, MOST]
    edges += [edge - base for edge in edges if -(2**63) <= edge - base <= MOST]
    array = np.array(edges, np.int64)
    far = place(array, base)
    assert array.tolist() == [placed(edge, base) for edge in edges]
    assert [nearest_start(base, edge) for edge in edges] == array.tolist()
    moved = abs(base) > 2**61
    assert far == sum(moved or placed(edge, base) != edge + base for edge in edges)
    alone = [np.array([edge], np.int64) for edge in edges]
    assert sum(place(one, base) for one in alone) == far
    assert [int(one[0]) for one in alone] == array.tolist()


def test_every_line_has_its_own_base():
    offset = np.array([1, 2, 3, 4, 5], np.int64)
    line = np.array([0, 0, 2, 1, 1], np.int32)
    case = np.array([2, 2, 2, times.OCCURRENCES, 2], np.uint8)
    assert place_runs(offset, line, [10, 10**22, -20], case) == 1
    assert offset.tolist() == [11, 12, -17, FARTHEST_LINE_PS + 4, FARTHEST_LINE_PS + 5]
    assert place_runs(offset[:0], line[:0], []) == 0


def test_durations_and_ends():
    duration = np.array([-1, 0, LONGEST_PS, LONGEST_PS + 1, MOST, -(2**63)], np.int64)
    assert limit_durations(duration) == 4
    assert duration.tolist() == [0, 0, LONGEST_PS, LONGEST_PS, LONGEST_PS, 0]
    starts = [0, MOST, MOST, -(2**63), -(2**63), 5]
    lengths = [0, 0, 1, -1, 1, -7]
    end, wrapped = add_durations(np.array(starts, np.int64), np.array(lengths, np.int64))
    assert end.tolist() == [0, MOST, MOST, -(2**63), 1 - 2**63, -2]
    assert wrapped == 2


def test_no_end_is_farther_than_a_trace_goes():
    assert FARTHEST_PS + LONGEST_PS == FARTHEST
    assert FARTHEST_LINE_PS < FARTHEST_PS


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
    result = {kind: count for kind, count, _ in warnings.entries()}
    reader.close()
    assert result.get("times_too_far", 0) - far in {0, 1}, "one more is that of the profiler"


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
