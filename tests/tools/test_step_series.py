"""Time and memory step by step, against plain loops over the rows of SQL."""

import json
from itertools import pairwise

import pytest
from tests.each_row import each_row

import peakline

SAMPLES = (
    "programs/leak_list.xplane.pb.gz",
    "programs/leak_list_healthy.xplane.pb.gz",
    "programs/time/slow_step.xplane.pb.gz",
    "memory_log/session_default_allocator.log.gz",
    "memory_log/tf1_control_flow.log.gz",
    "run_metadata/tf1_cnn_2.pb.gz",
    "chrome_trace/noleak.pt.trace.json.gz",
)


@pytest.fixture(scope="module", params=SAMPLES)
def profile(request, root):
    with peakline.open(root / "tests" / "data" / request.param) as opened:
        yield opened


def series(profile, **asked):
    return json.loads(profile.tool("step_series", **asked).content)["series"]


def rows_of(profile, table):
    return profile.table(table).to_pylist() if table in profile.tables else []


def steps_of(profile):
    """Begin, end, longest time and name of every step by its id, in order of time."""
    longest = {}
    for row in rows_of(profile, "step_breakdown"):
        if row["is_cut_off"]:
            continue
        known = longest.get(row["step_id"])
        if known is None or row["wall_ps"] > known["wall_ps"]:
            longest[row["step_id"]] = row
    if longest:
        return sorted(longest.values(), key=lambda row: row["start_ps"])
    return sorted(rows_of(profile, "steps"), key=lambda row: row["start_ps"])


def expected_memory(profile, allocator, edges):
    """Least, most and last value from each edge to the next, by walking the records; None where
    the allocator does not report what is in use.
    """
    used = [
        (row["time_ps"], row["in_use_bytes"] + (row["reserved_bytes"] or 0))
        for row in rows_of(profile, "allocator_events")
        if row["allocator"] == allocator and row["in_use_bytes"] is not None
    ]
    if not used:
        return None
    found = []
    for begin, until in pairwise(edges):
        before = [value for time, value in used if time < begin][-1:]
        within = before + [value for time, value in used if begin <= time < until]
        found.append((min(within), max(within), within[-1]) if within else (None, None, None))
    return found


@pytest.mark.parametrize("width", [800, 5, 1])
def test_bins_are_those_of_a_plain_loop(profile, width):
    told, steps = series(profile, width=width), steps_of(profile)
    assert told["steps"] == len(steps)
    assert len(told["start_ps"]) <= width
    if steps:
        assert sum(told["count"]) == len(steps)
        parts = [
            steps[at : at + many] for at, many in zip(told["first"], told["count"], strict=True)
        ]
        assert told["start_ps"] == [part[0]["start_ps"] for part in parts]
        assert told["name"] == [part[0]["name"] or str(part[0]["step_id"]) for part in parts]
        if "wall_ps" in steps[0]:
            assert told["wall_low_ps"] == [min(row["wall_ps"] for row in part) for part in parts]
            assert told["wall_high_ps"] == [max(row["wall_ps"] for row in part) for part in parts]
    edges = [*told["start_ps"], told["end_ps"]]
    assert edges == sorted(edges)
    for one in told["allocators"]:
        found = list(zip(one["low"], one["high"], one["end"], strict=True))
        expected = expected_memory(profile, one["allocator"], edges)
        if expected is not None:
            assert found == expected, one["allocator"]
        assert max(high for _, high, _ in found if high is not None) == one["peak_bytes"]


def test_by_time_bins_are_even_parts_of_the_records(root):
    with peakline.open(root / "tests/data/programs/leak_list.xplane.pb.gz") as opened:
        told = series(opened, by="time", width=50)
        times = [row["time_ps"] for row in rows_of(opened, "allocator_events")]
        assert (told["steps"], told["name"], told["wall_high_ps"]) == (0, [], None)
        edges = [*told["start_ps"], told["end_ps"]]
        assert (edges[0], edges[-1]) == (min(times), max(times) + 1)
        assert {
            int((other - one) / (edges[1] - edges[0]) + 0.5) for one, other in pairwise(edges)
        } == {1}
        (one,) = told["allocators"]
        found = list(zip(one["low"], one["high"], one["end"], strict=True))
        assert found == expected_memory(opened, one["allocator"], edges)


@each_row(("name", "leaks"), [("leak_list", True), ("leak_list_healthy", False)])
def test_a_leak_rises_from_step_to_step(root, name, leaks):
    with peakline.open(root / "tests" / "data" / "programs" / f"{name}.xplane.pb.gz") as opened:
        low = series(opened)["allocators"][0]["low"]
    rises = sum(one < other for one, other in pairwise(low))
    assert (rises > 0.7 * len(low)) == (low[-1] > 2 * low[0]) == leaks


def test_a_profile_of_neither_steps_nor_memory_has_no_series(root):
    with peakline.open(root / "tests" / "data" / "graph_def" / "frozen.pb") as opened:
        assert series(opened) is None
