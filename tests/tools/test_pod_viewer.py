"""pod_viewer: XProf's message for one host and several, and what ours adds to it."""

import json

from tests.each_row import each_row
from tests.engine.ending import DATA

import peakline
from peakline.tools import find_tool
from peakline.xprof.pod_viewer import _combine
from peakline.xprof.rules.step_kinds import SpanKind
from peakline.xprof.rules.step_model import CoreDetails, CoreStep, HostSteps, Step
from reference.xspace_builder import SpaceBuilder

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
        found = json.loads(profile.tool("pod_viewer", compatible="xprof").content)
    assert list(found) == [
        "podStatsSequence", "diagnostics", "stepBreakdownEvents", "deviceType",
    ]  # fmt: skip
    steps = found["podStatsSequence"]["podStatsMap"]
    assert [step["stepNum"] for step in steps] == list(range(16))
    (record,) = steps[0]["podStatsPerCore"].values()
    assert record["totalDurationUs"] == 27636.231
    assert record["stepBreakdownUs"] == {
        "1": 0, "2": 0, "3": 0, "4": 27545.114, "5": 0, "6": 0, "7": 0, "8": 0, "9": 91.117,
    }  # fmt: skip
    assert record["bottleneck"] == "Host compute"
    assert [event["id"] for event in found["stepBreakdownEvents"]] == list(range(1, 10))


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
    found = answer([host("a", [(0, 5 * MS)], kinds={kind: 5 * MS})])
    record = found["podStatsSequence"]["podStatsMap"][0]["podStatsPerCore"]["1"]
    assert {number: us for number, us in record["stepBreakdownUs"].items() if us} == {event: 5000}


def test_a_tpu_shows_its_categories_which_xprof_does_not():
    categories = {
        "convolution": 1 * MS, "all-reduce": 2 * MS, "infeed": 3 * MS, "outfeed": 4 * MS,
        "send": 5 * MS, "IDLE": 6 * MS,
    }  # fmt: skip
    part = host("a", [(0, 21 * MS)], device="TPU v6", hardware="TPU", categories=categories)

    def record(**parameters):
        found = answer([part], **parameters)
        return found["podStatsSequence"]["podStatsMap"][0]["podStatsPerCore"]["1"]

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
    found = json.loads(opened(builder).tool("pod_viewer").content)
    assert found["podStatsSequence"] == {"podStatsMap": []}
    (warning,) = found["diagnostics"]["warnings"]
    assert warning.startswith("No step marker observed")
