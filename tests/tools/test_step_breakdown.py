"""step_breakdown: the table of one host, and those of several on one axis."""

import csv
import io
import json

import pytest
from tests.engine.ending import DATA, session_of

import peakline
from peakline.engine import Engine
from reference.xspace_builder import SpaceBuilder

CNN = DATA / "sessions/tf2_cnn/plugins/profile/2026_11_20_16_57_05/vm.xplane.pb.gz"
MS = 10**9
S2026 = 1_795_000_000 * 10**9


def job(start_ns: int, waits_ms: int = 0, compute_ms: int = 4, first: int = 0) -> bytes:
    """A host of four steps of 10 ms, one each 20 ms, which ends each with a collective."""
    builder = SpaceBuilder()
    line = builder.host().line("python", timestamp_ns=start_ns)
    for step in range(4):
        at = step * 20 * MS
        line.event(f"train {step + first}", at, 10 * MS, {"_r": 1, "step_num": step + first})
        line.event("MatMul:MatMul", at, compute_ms * MS)
        line.event("CollectiveReduceV2:CollectiveReduceV2", at + compute_ms * MS, waits_ms * MS)
    return builder.space.SerializeToString()


@pytest.fixture
def two(tmp_path):
    """The clock of b is 3 ms ahead; a computes longer, and b waits for it."""
    files = {"a.xplane.pb": job(S2026, 1, 8), "b.xplane.pb": job(S2026 + 3 * 10**6, 5, 4)}
    for name, content in files.items():
        (tmp_path / name).write_bytes(content)
    return session_of(tmp_path / "log", {name: tmp_path / name for name in files})


def test_one_host_is_the_table():
    with peakline.open(CNN) as profile:
        table = profile.table("step_breakdown").to_pylist()
        found = json.loads(profile.tool("step_breakdown").content)
        rows = list(
            csv.DictReader(
                io.StringIO(profile.tool("step_breakdown", format="csv").content.decode())
            )
        )
    assert found["steps"] == table
    assert [int(row["wall_ps"]) for row in rows] == [row["wall_ps"] for row in table]
    assert found["variation"][0]["steps"] == len(table) == 16
    assert found["straggler"] is None


def test_the_parts_add_up():
    with peakline.open(CNN) as profile:
        for step in json.loads(profile.tool("step_breakdown").content)["steps"]:
            parts = [v for k, v in step.items() if k.endswith("_ps") and k not in _NO_PARTS]
            assert sum(parts) == step["wall_ps"]


_NO_PARTS = {"start_ps", "end_ps", "wall_ps", "gap_before_ps", "communication_total_ps"}


def test_several_hosts_are_on_one_axis(two):
    found = json.loads(Engine().tool(two, "step_breakdown").content)
    starts = {host: [s["start_ps"] for s in found["steps"] if s["host"] == host] for host in "ab"}
    # The collectives end together, 9 ms into the steps of both.
    assert starts["a"] == starts["b"]
    assert found["clocks"]["hosts"][1]["skew_ps"] == 3 * MS
    assert found["clocks"]["zero_ns"] == S2026
    apart = Engine().tool(two, "step_breakdown", parameters={"align": "false"})
    assert {s["start_ps"] for s in json.loads(apart.content)["steps"] if s["step_id"] == 0} == {0}


def test_who_keeps_the_others_waiting(two):
    found = json.loads(Engine().tool(two, "step_breakdown").content)
    straggler = found["straggler"]
    assert (straggler["name"], straggler["evidence"]) == ("a", "communication")
    assert straggler["behind_ps"] == 4 * MS
    assert [told["host"] for told in found["variation"]] == ["a", "b"]


def test_a_host_whose_clock_is_late_keeps_nobody_waiting(tmp_path):
    files = {"a.xplane.pb": job(S2026), "b.xplane.pb": job(S2026 + 10**6)}
    for name, content in files.items():
        (tmp_path / name).write_bytes(content)
    session = session_of(tmp_path / "log", {name: tmp_path / name for name in files})
    assert json.loads(Engine().tool(session, "step_breakdown").content)["straggler"] is None


def test_csv_of_several_has_the_host(two):
    content = Engine().tool(two, "step_breakdown", format="csv").content.decode()
    rows = list(csv.DictReader(io.StringIO(content)))
    assert [row["host"] for row in rows] == ["a"] * 4 + ["b"] * 4


def test_formats_share_what_the_hosts_gave(two):
    engine = Engine()
    engine.tool(two, "step_breakdown")
    misses = engine.cache.stats()
    engine.tool(two, "step_breakdown", format="csv")
    assert engine.cache.stats() == misses


@pytest.mark.parametrize("limit", [0, 3])
def test_the_first_rows_come_with_the_figures_of_all(two, limit):
    whole = json.loads(Engine().tool(two, "step_breakdown").content)
    some = json.loads(Engine().tool(two, "step_breakdown", parameters={"limit": limit}).content)
    assert some.pop("steps") == whole.pop("steps")[:limit]
    assert some == whole


def test_without_steps_there_are_no_rows(tmp_path):
    path = tmp_path / "g.pbtxt"
    path.write_text('node { name: "a" op: "NoOp" }\n')
    with peakline.open(path) as profile:
        found = json.loads(profile.tool("step_breakdown").content)
        assert found == {"steps": [], "variation": [], "straggler": None}
