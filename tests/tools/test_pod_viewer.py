"""XProf's pages of pods, megascale and counters."""

import json

import pytest
from tests.each_row import each_row
from tests.engine.ending import DATA

import peakline
from peakline.tools import find_tool, run_tool
from peakline.xprof.megascale_stats import _shown_bytes
from peakline.xprof.megascale_stats.ops import group_size
from peakline.xprof.megascale_stats.transfers import sent_bytes
from peakline.xprof.pod_viewer import _combine
from peakline.xprof.rules.step_kinds import SpanKind
from peakline.xprof.rules.step_model import CoreDetails, CoreStep, HostSteps, Step
from reference.megascale_spaces import (
    RENDEZVOUS,
    TRANSFER,
    US,
    ProgramBuilder,
    collective_info,
    megascale_space,
)
from reference.xspace_builder import SpaceBuilder, Uint

CNN = DATA / "sessions/tf2_cnn/plugins/profile/2026_11_20_16_57_05/vm.xplane.pb.gz"
MS = 10**9


def answer(parts, **parameters):
    return json.loads(_combine(parts, find_tool("pod_viewer").validated(parameters), "json"))


def host(name, windows, *, start_ns=None, device="CPU", hardware="CPU_ONLY", **core):
    details = {1: CoreDetails(name)}
    steps = tuple(
        Step(number, {1: CoreStep(begin, end - begin, **core)})
        for number, (begin, end) in enumerate(windows)
    )
    return name, (HostSteps(hardware, device, steps, details), start_ns)


def test_the_shape_is_xprofs():
    with peakline.open(CNN) as profile:
        result = json.loads(profile.tool("pod_viewer", compatible="xprof").content)
    assert list(result) == [
        "podStatsSequence", "diagnostics", "stepBreakdownEvents", "deviceType",
    ]  # fmt: skip
    steps = result["podStatsSequence"]["podStatsMap"]
    assert [step["stepNum"] for step in steps] == list(range(16))
    (record,) = steps[0]["podStatsPerCore"].values()
    assert record["totalDurationUs"] == 27636.231
    assert record["stepBreakdownUs"] == {
        "1": 0, "2": 0, "3": 0, "4": 27545.114, "5": 0, "6": 0, "7": 0, "8": 0, "9": 91.117,
    }  # fmt: skip
    assert record["bottleneck"] == "Host compute"
    assert [event["id"] for event in result["stepBreakdownEvents"]] == list(range(1, 10))


@each_row(
    ("kind", "event"),
    [
        (SpanKind.DEVICE_COMPUTE_16, "1"),
        (SpanKind.DEVICE_TO_DEVICE, "2"),
        (SpanKind.DEVICE_COLLECTIVES, "3"),
        (SpanKind.HOST_COMPUTE, "4"),
        (SpanKind.HOST_PREPARE, "5"),
        (SpanKind.HOST_WAIT_INPUT, "6"),
        (SpanKind.HOST_TO_DEVICE, "6"),
        (SpanKind.DEVICE_TO_HOST, "7"),
        (SpanKind.UNKNOWN, "9"),
        (SpanKind.HOST_TO_HOST, "4"),
    ],
)
def test_every_kind_of_time_is_somewhere(kind, event):
    result = answer([host("a", [(0, 5 * MS)], kinds={kind: 5 * MS})])
    record = result["podStatsSequence"]["podStatsMap"][0]["podStatsPerCore"]["1"]
    assert {number: us for number, us in record["stepBreakdownUs"].items() if us} == {event: 5000}


def test_a_tpu_shows_its_categories_which_xprof_does_not():
    categories = {
        "convolution": 1 * MS, "all-reduce": 2 * MS, "infeed": 3 * MS, "outfeed": 4 * MS,
        "send": 5 * MS, "IDLE": 6 * MS,
    }  # fmt: skip
    part = host("a", [(0, 21 * MS)], device="TPU v6", hardware="TPU", categories=categories)

    def record(**parameters):
        result = answer([part], **parameters)
        return result["podStatsSequence"]["podStatsMap"][0]["podStatsPerCore"]["1"]

    assert {n: us for n, us in record()["stepBreakdownUs"].items() if us} == {
        "1": 1000, "2": 5000, "3": 2000, "6": 3000, "7": 4000, "9": 6000,
    }  # fmt: skip
    assert record()["bottleneck"] == "All others"
    assert set(record(compatible="xprof")["stepBreakdownUs"].values()) == {0}


class TestHosts:
    # The second host's profile began 20 ms later.
    ONE = ((0, 10 * MS), (20 * MS, 30 * MS), (40 * MS, 50 * MS), (60 * MS, 70 * MS))
    TWO = ((0, 10 * MS), (20 * MS, 30 * MS), (40 * MS, 50 * MS))

    def test_cores_are_numbered_by_host(self):
        steps = answer([host("a", self.TWO), host("b", self.TWO)])["podStatsSequence"]
        cores = [sorted(step["podStatsPerCore"]) for step in steps["podStatsMap"]]
        assert cores == [["1", "1001"]] * 3

    def test_hosts_are_compared_on_one_axis(self):
        """Steps of a that begin with those of b are told apart by how long they are."""
        one = [(begin, end + number) for number, (begin, end) in enumerate(self.ONE)]
        parts = [
            host("a", one, start_ns=10**18), host("b", self.TWO, start_ns=10**18 + 20 * 10**6),
        ]  # fmt: skip

        def first(**parameters):
            steps = answer(parts, **parameters)["podStatsSequence"]["podStatsMap"]
            return [step["podStatsPerCore"]["1"]["totalDurationUs"] for step in steps]

        assert first() == [10000.000001, 10000.000002, 10000.000003]
        assert first(compatible="xprof") == [10000, 10000.000001, 10000.000002]

    def test_the_device_is_that_of_the_last_host_with_one(self):
        gpu = host("g", [], device="GPU", hardware="GPU")
        cpu = host("c", [])
        for parts in ([cpu, gpu], [gpu, cpu]):
            assert answer(parts)["deviceType"] == "GPU"
        assert answer([cpu])["deviceType"] == "CPU"


def test_without_steps_it_says_why(opened):
    builder = SpaceBuilder()
    builder.host().line("t").event("a", 0, 5)
    result = json.loads(opened(builder).tool("pod_viewer").content)
    assert result["podStatsSequence"] == {"podStatsMap": []}
    (warning,) = result["diagnostics"]["warnings"]
    assert warning.startswith("No step marker observed")


TOOL = "megascale_stats"


def one_exchange(*, program=7, host=True):
    """Two cores with a collective each: of its 400 µs, 40 are its own ops and 100 another's."""
    builder = SpaceBuilder()
    threads = builder.host().line("network", 5)
    if host:
        threads.event("MegaScale: send", US, US)
        # For core 1, 30 µs longer than its receive began.
        threads.event("device_100001_gid_meeting", 20 * US, 340 * US)
    made = ProgramBuilder("jit_f")
    said = {RENDEZVOUS: "meeting", TRANSFER: "ALL_GATHER"}
    made.exchange(1, said, ("f32", (1000,)))
    made.exchange(2, {RENDEZVOUS: "<b>other</b>"}, ("f32", (10,)))
    metadata = builder.plane("/host:metadata")
    entry = metadata.message.event_metadata[metadata.event_id("jit_f")]
    content = {"Hlo Proto": made.proto.SerializeToString(), "program_id": Uint(program)}
    metadata.add_stats(entry, content)
    for core in range(2):
        plane = builder.plane(f"/device:TPU:{core}")
        plane.line("XLA Modules", 5).event("jit_f(7)", US, 900 * US)
        ops = plane.line("XLA Ops", 5)
        for name, at, length in [
            ("send.1", 10, 10), ("send-done.1", 30, 10), ("send.2", 50, 60), ("recv.1", 150, 10),
            ("send-done.2", 200, 40), ("recv-done.1", 330 + 2 * core, 80),
        ]:  # fmt: skip
            kind = plane.message.event_metadata[plane.event_id(name)]
            kind.display_name = name
            stats = {"hlo_category": f"host {name[:-2]}"}
            if name == "send.1":
                stats["dcn_collective_info"] = collective_info(4, pairs=False)
            plane.add_stats(kind, stats)
            ops.event(name, at * US, length * US)
    return builder.space


def rows(tmp_path, space, **parameters):
    """The rows by rendezvous, and the warnings."""
    path = tmp_path / "host.xplane.pb"
    path.write_bytes(space.SerializeToString())
    with peakline.open(str(path)) as profile:
        (table,) = json.loads(run_tool(profile, TOOL, parameters).content)
        ids = [column["id"] for column in table["cols"]]
        result = [dict(zip(ids, (c["v"] for c in row["c"]), strict=True)) for row in table["rows"]]
        return {row["rendezvous_name"]: row for row in result}, profile.warnings


def test_one_exchange(tmp_path):
    result, warnings = rows(tmp_path, one_exchange())
    assert not warnings
    # The other collective never ended.
    assert list(result) == ["meeting"]
    row = result["meeting"]
    assert (row["send_op_name"], row["recv_op_name"]) == ("send.1", "recv-done.1")
    assert row["occurrences"] == 2
    # Of both cores; the other collective's 100 µs are no slack.
    assert row["slack_time"] == pytest.approx(0.321 - 0.03 - 0.1)
    assert row["observed_duration"] == pytest.approx(0.401)
    stalls = [row[f"{op}_stall"] for op in ("send", "send_done", "recv", "recv_done")]
    assert stalls == pytest.approx([0.01, 0.01, 0.01, 0.08])
    assert (row["stall_duration"], row["total_stall"]) == pytest.approx((0.11, 0.22))
    assert row["net_tx_bytes"] == 3000
    assert row["required_bandwidth"] == pytest.approx(3000 * 8 / 191e-6 / 1e9)
    # The host's event of core 1 ended 28 µs after the core began to wait.
    assert row["host_stall"] == "0.028"


def test_as_xprof_says_it(tmp_path):
    result, _ = rows(tmp_path, one_exchange(), compatible="xprof")
    row = result["meeting"]
    # One core, without what the host did; what the receive took is lost.
    assert (row["occurrences"], row["host_stall"], row["recv_stall"]) == (1, "-", 0)
    assert rows(tmp_path, one_exchange(host=False), compatible="xprof")[0] == {}
    assert list(rows(tmp_path, one_exchange(host=False))[0]) == ["meeting"]


def test_programs_that_are_not_there_are_counted(tmp_path):
    result, warnings = rows(tmp_path, one_exchange(program=8))
    assert result == {}
    assert [(w.kind, w.count) for w in warnings] == [("transfers_unknown", 12)]


def test_several_hosts_are_one_table(tmp_path):
    tool = find_tool(TOOL)
    parts = []
    for seed in (1, 3, 5):
        path = tmp_path / f"host{seed}.xplane.pb"
        path.write_bytes(megascale_space(seed).SerializeToString())
        with peakline.open(str(path)) as profile:
            parts.append((path.name, tool.partial(profile, tool.validated({}))))
    answers = [json.loads(tool.combine([p], tool.validated({}), "json"))[0] for p in parts]
    whole = json.loads(tool.combine(parts, tool.validated({}), "json"))[0]

    def column(table, place):
        return {row["c"][0]["v"]: row["c"][place]["v"] for row in table["rows"]}

    for place in (12, 13):
        for name, value in column(whole, place).items():
            assert value == pytest.approx(sum(column(one, place).get(name, 0) for one in answers))


@each_row(
    ("kind", "group", "sent"),
    [
        ("ONE_TO_ONE", 1, 1000), ("ALL_GATHER", 4, 750), ("ALL_REDUCE", 4, 1500),
        ("ALL_TO_ALL", 4, 750), ("REDUCE_SCATTER", 4, 3000), ("ALL_GATHER", 0, 0), ("", 4, 0),
    ],
)  # fmt: skip
def test_what_goes_over_the_network(kind, group, sent):
    assert sent_bytes(1000, group, kind) == sent


@each_row(
    ("content", "size"),
    [
        (b"", 0),
        (collective_info(3, pairs=False), 3),
        (collective_info(9, pairs=True), 1),
        # Cut anywhere, of other kinds of fields, with numbers that never end.
        (collective_info(3, pairs=False)[:-3], 0),
        (bytes([0x09, *range(8), 0x15, *range(4)]), 0),
        (bytes([0x12, *[0xFF] * 40]), 0),
        (bytes([0x0B, 1]), 0),
    ],
)
def test_how_many_exchange(content, size):
    assert group_size(content) == size


@each_row(
    ("size", "text"),
    [(0, "0B"), (1023, "1023B"), (14808, "14.5K"), (9098460, "8.68M"), (2**62, "4.00E")],
)
def test_how_sizes_are_shown(size, text):
    assert _shown_bytes(size) == text


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
    result = [[cell["v"] for cell in row["c"]] for row in table["rows"]]
    # The host's own are none of a device's; a device without a number has that of its name.
    assert result == [
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
