"""framework_op_stats against XProf's: every table, column and row.

Samples, spaces full of ops (random, PEAKLINE_CONFORMANCE_SEEDS of them), the random spaces of the
other tests with times that a clock can give, and several hosts together.
"""

from __future__ import annotations

import json
import os

import pytest

import peakline
from peakline.tools import find_tool, run_tool
from reference.op_spaces import random_op_space
from reference.random_xspace import random_xspace
from reference.xspace_builder import SpaceBuilder
from tests.conformance.oracle import Question, ask_xprof
from tests.conformance.stats_tables import (
    OWN_SAMPLES,
    PYTHON,
    ask,
    difference,
    ours,
    rows,
    samples,
    written,
)

pytestmark = pytest.mark.conformance
TOOL = "framework_op_stats"
SEEDS = int(os.environ.get("PEAKLINE_CONFORMANCE_SEEDS", "200"))
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


def differences(paths, tool=TOOL):
    answers = ask(paths, tool)
    found = {}
    for path, answer in zip(paths, answers, strict=True):
        assert answer.error is None, (path.name, answer.error)
        other = json.loads(answer.tools[tool])
        found[path.name] = difference(ours(path, tool, compatible="xprof"), other)
    return {name: text for name, text in found.items() if text}


def test_every_sample():
    assert len(samples()) > 20
    assert differences(samples()) == {}


def test_spaces_full_of_ops(tmp_path):
    spaces = {f"ops{seed}": random_op_space(seed) for seed in range(SEEDS)}
    assert differences(written(tmp_path, spaces)) == {}


def test_random_spaces(tmp_path):
    spaces = {f"random{seed}": random_xspace(seed) for seed in range(SEEDS + SEEDS // 2)}
    ordinary = {name: space for name, space in spaces.items() if is_ordinary(space)}
    assert len(ordinary) > SEEDS * 0.9
    assert differences(written(tmp_path, ordinary)) == {}


def test_what_is_cut(tmp_path):
    builder = SpaceBuilder()
    line = builder.host().line("thread")
    for number in range(620):
        line.event(f"op{number}:Op", number * 10_000, 1000 + number)
    (path,) = written(tmp_path, {"many": builder.space})
    assert differences([path]) == {}
    with peakline.open(str(path)) as profile:
        table = json.loads(run_tool(profile, TOOL, {"compatible": "xprof"}).content)[0]
        # 620 ops and IDLE.
        assert len(table["rows"]) == 500
        assert [(w.kind, w.count) for w in profile.warnings] == [("ops_cut", 121)]
        assert len(json.loads(run_tool(profile, TOOL).content)[0]["rows"]) == 621


@pytest.mark.parametrize("tool", [TOOL, "kernel_stats"])
def test_several_hosts(tmp_path, tool):
    paths = written(tmp_path, {f"host{seed}": random_op_space(seed) for seed in (9, 11, 29)})
    question = Question(paths[0], memory_profile=False, tools={tool: {}}, files=paths[1:])
    (answer,) = ask_xprof(PYTHON, [question])
    found = find_tool(tool)
    parameters = found.validated({"compatible": "xprof"})
    parts = []
    for path in paths:
        with peakline.open(str(path)) as profile:
            parts.append((path.name, found.partial(profile, parameters)))
    own = json.loads(found.combine(parts, parameters, "json"))
    assert difference(own, json.loads(answer.tools[tool])) is None


def test_an_allocation_is_no_execution(tmp_path):
    """The case of docs/differences/framework_op_stats.md: 16 runs with an allocation each."""
    builder = SpaceBuilder()
    line = builder.host().line("thread")
    for number in range(16):
        line.event("a/MatMul:MatMul", number * 10_000, 4000)
        line.event("MemoryAllocation", number * 10_000 + 1000, 0, {"tf_op": "a/MatMul:MatMul"})
    (path,) = written(tmp_path, {"allocations": builder.space})
    (answer,) = ask([path], TOOL)
    other = {row[3]: row for row in rows(json.loads(answer.tools[TOOL])[1])}
    own = {row[3]: row for row in rows(ours(path, TOOL)[1])}
    # Occurrences, total time, average time.
    assert other["a/MatMul"][4:7] == [32.0, 0.064, 0.002]
    assert own["a/MatMul"][4:7] == [16.0, 0.064, 0.004]


def test_ours_differs_by_the_allocations_alone():
    """On TensorFlow's samples, which run no op eagerly, nothing else is different."""
    paths = [
        path
        for path in samples()
        if "tf2_cnn" in str(path) and any(root in path.parents for root in OWN_SAMPLES)
    ]
    assert paths
    for path, answer in zip(paths, ask(paths, TOOL), strict=True):
        other = {row[3]: row for row in rows(json.loads(answer.tools[TOOL])[1])}
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
