"""Our message definitions against those of TensorFlow, TensorBoard and XProf."""

import json
import subprocess

import pytest

from tests.conformance.peer import PROGRAMS, peers_python

pytestmark = pytest.mark.conformance

# Where a release is behind what is upstream: these came after TensorFlow 2.21. Those of XLA are in
# XProf's library.
LATER = {
    "tensorflow.ProfileOptions": (16,),
    "xla.BufferAssignmentProto": (5,),
    "xla.HloComputationProto": (9,),
    "xla.HloInstructionProto": (72, 73, 98, 99, 100, 101, 102, 103),
    "xla.HloModuleProto": (21, 22, 23, 24, 25),
    "xla.LiteralProto": (34, 35, 36),
    "xla.MeshProto": (3,),
    "xla.NamedShardingProto": (8,),
    "xla.OpMetadata": (20,),
    "xla.OriginalValueProto": (2, 3),
}
BEHIND = {
    "tensorflow": (
        *(f"{name}, field {number}: " for name, numbers in LATER.items() for number in numbers),
        *(f"{name}, declaration order: " for name in LATER),
        *(
            f"{name}, enum xla.PrimitiveType: "
            for name in ("xla.BufferAllocationProto.Assigned", "xla.LayoutProto", "xla.ShapeProto")
        ),
        "xla.NamedShardingProto, enum xla.NamedShardingProto.ReductionOpProto: ",
        "xla.PrecisionConfig, enum xla.PrecisionConfig.Algorithm: ",
    ),
    # Of this one ours has only what stands inside.
    "xprof": ("tensorflow.profiler.OpMetrics, ",),
    # XProf's is ahead: the field that older programs have is gone.
    "xprof_library": ("xla.CollectiveDeviceListProto, ",),
}


@pytest.fixture(scope="module")
def python():
    return peers_python()


def run(python, script, *arguments):
    done = subprocess.run(
        [python, str(PROGRAMS / script), *arguments], check=False, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


@pytest.fixture(scope="module")
def results(python):
    return json.loads(run(python, "schema_peers.py"))


@pytest.fixture(params=["tensorflow", "tensorboard", "xprof", "xprof_library"])
def result(request, results):
    if results[request.param] is None:
        pytest.skip(f"{request.param} is not installed beside the peers")
    return request.param, results[request.param]


def test_enough_is_compared(result):
    name, compared = result
    least = {"tensorflow": 150, "tensorboard": 110, "xprof": 8, "xprof_library": 39}[name]
    assert len(compared["messages"]) >= least
    services = {"tensorflow.ProfileAnalysis", "tensorflow.ProfilerService"}
    assert set(compared["services"]) == (services if name == "xprof_library" else set())


def test_definitions_are_equal(result):
    name, compared = result
    new = [text for text in compared["differences"] if not text.startswith(BEHIND.get(name, ()))]
    assert new == []


def test_filled_messages_survive_both_ways(result):
    _, compared = result
    assert compared["round_trip_failures"] == []


def test_every_message_of_ours_has_a_peer(results):
    known = {
        name for peer in results.values() if isinstance(peer, dict) for name in peer["messages"]
    }
    # Our own envelope, pprof and Perfetto, which none of the peers carries; and one message
    # of a file that XProf holds only together with a dozen others.
    others = ("peakline.", "perftools.", "perfetto.", "tensorflow.profiler.CoreDetails")
    alone = {name for name in results["ours"] if name.startswith(others)}
    assert set(results["ours"]) - known == alone


@pytest.mark.parametrize(
    "order",
    [
        "peakline tensorflow",
        "tensorflow peakline",
        "peakline tensorboard",
        "tensorboard peakline",
        "tensorflow xprof tensorboard peakline",
        "peakline xprof tensorboard tensorflow",
    ],
)
def test_packages_live_together_in_any_order(python, results, order):
    names = order.split()
    missing = [name for name in names if name != "peakline" and results[name] is None]
    if missing:
        pytest.skip(f"{', '.join(missing)} is not installed beside the peers")
    run(python, "schema_import_order.py", *names)
