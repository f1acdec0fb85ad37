"""framework_op_stats against XProf's: every table, column and row.

Samples, random spaces full of ops, the random spaces of the other tests with times that a clock can
give, and several hosts together.
"""

import json

import pytest

import peakline
from peakline.tools import find_tool, run_tool
from reference.op_spaces import random_op_space
from reference.random_xspace import random_xspace
from reference.xspace_builder import SpaceBuilder
from tests.conformance.oracle import OWN_SAMPLES, SEEDS
from tests.conformance.stats_tables import difference, different, ours, rows, theirs, written

TOOL = "framework_op_stats"
LONGEST = 2**53


def is_ordinary(space) -> bool:
    """Whether its times are those of a clock, and not what overflows it."""
    return all(
        0 <= line.timestamp_ns < LONGEST // 1000
        and 0 <= event.offset_ps < LONGEST
        and 0 <= event.duration_ps < LONGEST
        for plane in space.planes
        for line in plane.lines
        for event in line.events
    )


def test_every_sample(xprof):
    assert len(xprof.spaces) > (20 if xprof.is_recorded and xprof.is_whole else 5)
    assert different(xprof, TOOL, xprof.spaces) == {}


@pytest.mark.conformance
def test_spaces_full_of_ops(live_xprof, tmp_path):
    spaces = {f"ops{seed}": random_op_space(seed) for seed in range(SEEDS)}
    assert different(live_xprof, TOOL, written(tmp_path, spaces)) == {}


@pytest.mark.conformance
def test_random_spaces(live_xprof, tmp_path):
    spaces = {f"random{seed}": random_xspace(seed) for seed in range(SEEDS + SEEDS // 2)}
    ordinary = {name: space for name, space in spaces.items() if is_ordinary(space)}
    assert len(ordinary) > SEEDS * 0.9
    assert different(live_xprof, TOOL, written(tmp_path, ordinary)) == {}


@pytest.mark.conformance
def test_what_is_cut(live_xprof, tmp_path):
    builder = SpaceBuilder()
    line = builder.host().line("thread")
    for number in range(620):
        line.event(f"op{number}:Op", number * 10_000, 1000 + number)
    (path,) = written(tmp_path, {"many": builder.space})
    assert different(live_xprof, TOOL, [path]) == {}
    with peakline.open(str(path)) as profile:
        table = json.loads(run_tool(profile, TOOL, {"compatible": "xprof"}).content)[0]
        # 620 ops and IDLE.
        assert len(table["rows"]) == 500
        assert [(w.kind, w.count) for w in profile.warnings] == [("ops_cut", 121)]
        assert len(json.loads(run_tool(profile, TOOL).content)[0]["rows"]) == 621


@pytest.mark.conformance
@pytest.mark.parametrize("tool", [TOOL, "kernel_stats"])
def test_several_hosts(live_xprof, tmp_path, tool):
    paths = written(tmp_path, {f"host{seed}": random_op_space(seed) for seed in (9, 11, 29)})
    found = find_tool(tool)
    parameters = found.validated({"compatible": "xprof"})
    found = found.answering(parameters)
    parts = []
    for path in paths:
        with peakline.open(str(path)) as profile:
            parts.append((path.name, found.partial(profile, parameters)))
    own = json.loads(found.combine(parts, parameters, "json"))
    assert difference(own, theirs(live_xprof, tool, *paths)) is None


@pytest.mark.conformance
def test_an_allocation_is_no_execution(live_xprof, tmp_path):
    """The case of docs/differences/framework_op_stats.md: 16 runs with an allocation each."""
    builder = SpaceBuilder()
    line = builder.host().line("thread")
    for number in range(16):
        line.event("a/MatMul:MatMul", number * 10_000, 4000)
        line.event("MemoryAllocation", number * 10_000 + 1000, 0, {"tf_op": "a/MatMul:MatMul"})
    (path,) = written(tmp_path, {"allocations": builder.space})
    other = {row[3]: row for row in rows(theirs(live_xprof, TOOL, path)[1])}
    own = {row[3]: row for row in rows(ours(path, TOOL)[1])}
    # Occurrences, total time, average time.
    assert other["a/MatMul"][4:7] == [32.0, 0.064, 0.002]
    assert own["a/MatMul"][4:7] == [16.0, 0.064, 0.004]


def test_ours_differs_by_the_allocations_alone(xprof):
    """On TensorFlow's samples, which run no op eagerly, nothing else is different."""
    paths = [path for path in xprof.spaces if OWN_SAMPLES[0] / "tf2_cnn" in path.parents]
    assert paths
    for path in paths:
        other = {row[3]: row for row in rows(theirs(xprof, TOOL, path)[1])}
        own = {row[3]: row for row in rows(ours(path, TOOL)[1])}
        allocations = allocated(path)
        for name, row in own.items():
            if name in other and row[-1] != "Eager":
                assert row[5] == pytest.approx(other[name][5], rel=1e-9)
                assert other[name][4] - row[4] == allocations.get(name, 0), name
        # What XProf has besides was only ever seen to allocate, or is eager here.
        for name in other.keys() - own.keys():
            assert other[name][5] == 0.0
            assert other[name][4] == allocations[name]


def allocated(path):
    """How often memory was allocated or freed for each op."""
    with peakline.open(str(path)) as profile:
        found = profile.sql(
            "SELECT split_part(s.value, ':', 1) AS op, count(*) AS n FROM event_stats s "
            "JOIN events e USING (event_id) WHERE s.name = 'tf_op' AND s.value <> '' "
            "AND e.name LIKE 'Memory%' GROUP BY 1"
        ).to_pylist()
    return {row["op"]: row["n"] for row in found}
