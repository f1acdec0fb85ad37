"""perf_counters: the counters of devices, and what ours shows that XProf takes for nothing."""

import json

import peakline
from peakline.tools import find_tool, run_tool
from reference.xspace_builder import SpaceBuilder, Uint


def counters():
    builder = SpaceBuilder()
    builder.host().line("thread", 5).event("work", 0, 10, {"counter_value": 1})
    said = builder.plane("/device:TPU:1", {"global_chip_id": 3}).line("kernel", 5)
    said.event("Cycles", 0, 0, {"counter_value": Uint(2**64 - 1)})
    said.event("Ratio", 10, 0, {"counter_value": 2.5, "performance_counter_sets": "a,b"})
    builder.plane("/device:TPU:6").line("kernel", 5).event("Cycles", 0, 0, {"counter_value": 255})
    return builder.space


def test_rows(tmp_path):
    path = tmp_path / "vm.xplane.pb"
    path.write_bytes(counters().SerializeToString())
    with peakline.open(str(path)) as profile:
        assert find_tool("perf_counters").supports(profile)
        table = json.loads(run_tool(profile, "perf_counters").content)
        strict = json.loads(run_tool(profile, "perf_counters", {"compatible": "xprof"}).content)
        csv = run_tool(profile, "perf_counters", format="csv").content.decode()
    found = [[cell["v"] for cell in row["c"]] for row in table["rows"]]
    # The host's own are none of a device's; a device without a number has that of its name.
    assert found == [
        ["vm", 3.0, "kernel", 1.0, "cycles", float(2**64 - 1), "", ""],
        ["vm", 3.0, "kernel", 1.0, "ratio", 2.5, "", "a,b"],
        ["vm", 6.0, "kernel", 1.0, "cycles", 255.0, "", ""],
    ]
    assert [row["c"][5]["f"] for row in table["rows"]] == ["0xffffffffffffffff", "2.5", "0xff"]
    assert [row["c"][5]["v"] for row in strict["rows"]] == [float(2**64 - 1), 0.0]
    assert csv.splitlines()[0].startswith('"Host","Chip","Kernel"')
    assert len(csv.splitlines()) == 4


def test_a_profile_without_counters(tmp_path):
    builder = SpaceBuilder()
    builder.plane("/device:TPU:0").line("kernel", 5).event("Cycles", 0, 0)
    path = tmp_path / "vm.xplane.pb"
    path.write_bytes(builder.space.SerializeToString())
    with peakline.open(str(path)) as profile:
        assert not find_tool("perf_counters").supports(profile)
        assert json.loads(run_tool(profile, "perf_counters").content)["rows"] == []
