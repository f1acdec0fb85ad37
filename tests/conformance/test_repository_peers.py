"""Formats that the peers read and write: log directories, schema, event files, exports."""

import json
import subprocess
from pathlib import Path

import pytest

import peakline
from peakline.repository import Repository
from peakline.schema import RunMetadata
from tests.conformance.peer import PROGRAMS, Peer, peers_python
from tests.export.written import DATA, SESSION, written_file

pytestmark = pytest.mark.conformance


@pytest.fixture(scope="module")
def peers():
    program = Peer("list_runs.py")
    yield program
    program.close()


@pytest.fixture(scope="module")
def written(peers, tmp_path_factory):
    """A log directory with a session of JAX, and the run "train" of TensorFlow."""
    logdir = tmp_path_factory.mktemp("logs")
    peers.ask({"write": str(logdir)})
    return logdir


def ours(logdir):
    return {run.name: [file.host for file in run.hosts()] for run in Repository(logdir).runs()}


def test_what_jax_and_tensorflow_write(peers, written):
    result = ours(written)
    assert sorted(name.count("/") for name in result) == [0, 1]
    assert result == peers.ask({"list": str(written)})


def test_what_xprof_leaves_behind_is_ignored(peers, written):
    before = ours(written)
    for run in Repository(written).runs():
        # Names that its converters and its server give their files.
        for name in ("ALL_HOSTS.op_stats_v2.pb", "vm.SSTABLE", ".cached_tools.json"):
            (Path(run.path) / name).write_bytes(b"x")
    assert ours(written) == before
    assert peers.ask({"list": str(written)}) == before


def test_a_session_of_ours(peers, tmp_path):
    with Repository(tmp_path).create_session("2026_11_20_17_02_06") as session:
        session.write("localhost:9012", lambda stream: stream.write(b""))
        session.write("worker.example.com", lambda stream: stream.write(b""))
    assert peers.ask({"list": str(tmp_path)}) == ours(tmp_path)


def test_the_samples(peers, sessions):
    theirs = peers.ask({"list": str(sessions)})
    result = ours(sessions)
    # XProf does not read compressed files and shows such a run without hosts.
    assert theirs.keys() == result.keys()
    assert all(not hosts or hosts == result[name] for name, hosts in theirs.items())


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


PROGRAM = """
import json, sys
import tensorflow as tf
from tensorflow.core.protobuf import config_pb2
from tensorflow.core.util import event_pb2

@tf.function
def f(x):
    return tf.reduce_sum(tf.matmul(x, x) + 1.0)

folder = sys.argv[1]
writer = tf.summary.create_file_writer(folder)
with writer.as_default():
    for step in range(40):
        tf.summary.scalar("loss", 1.0 / (step + 1), step=step)
    for step in (3, 8):
        tf.summary.trace_on(graph=True)
        f(tf.ones((step, step)))
        tf.summary.trace_export(f"trace {step}", step=step)
writer.close()
(path,) = tf.io.gfile.glob(folder + "/events.*")
found = []
for record in tf.data.TFRecordDataset(path):
    event = event_pb2.Event.FromString(record.numpy())
    for value in event.summary.value:
        if value.metadata.plugin_data.plugin_name.startswith("graph_run_metadata"):
            run = config_pb2.RunMetadata.FromString(value.tensor.string_val[0])
            graphs = [len(one.node) for one in run.partition_graphs]
            for one in run.function_graphs:
                graphs += [len(part.node) for part in one.partition_graphs]
                graphs.append(len(one.pre_optimization_graph.node))
                graphs.append(len(one.post_optimization_graph.node))
            found.append([value.tag, event.step, graphs])
print(json.dumps([path, found]))
"""


def test_the_graphs_of_a_trace_are_all_there(tmp_path):
    done = subprocess.run(
        [peers_python(), "-c", PROGRAM, tmp_path / "logs"],
        capture_output=True, text=True, timeout=300, check=True,
    )  # fmt: skip
    path, traces = json.loads(done.stdout.splitlines()[-1])
    assert [(tag, step) for tag, step, _ in traces] == [("trace 3", 3), ("trace 8", 8)]
    with peakline.open(path) as profile:
        runs = profile.sql("select name, event_step from traced_runs order by step_id").to_pylist()
        graphs = profile.columns("graphs").to_pylist()
    assert [(run["name"], run["event_step"]) for run in runs] == [("trace 3", 3), ("trace 8", 8)]
    for tag, _, nodes in traces:
        mine = [graph["nodes"] for graph in graphs if graph["graph"].startswith(f"{tag} ")]
        assert sorted(mine) == sorted(nodes)
        assert len(nodes) > 3


SOURCES = [SESSION, DATA / "sessions" / "jax_captured", DATA / "run_metadata" / "tf1_cnn_2.pb.gz"]


@pytest.fixture(scope="module")
def answers(live_tensorflow):
    """Per source: what was written, and what TensorFlow made of it."""
    files = [written_file(source, "run-metadata") for source in SOURCES]
    return [(RunMetadata.FromString(file), live_tensorflow.exported(file)) for file in files]


def test_the_timeline_shows_every_execution_on_its_device(answers):
    for metadata, answer in answers:
        devices = metadata.step_stats.dev_stats
        assert answer["executions"] == sum(len(device.node_stats) for device in devices) > 0
        assert {f"{device.device} Compute" for device in devices} <= set(answer["processes"])


def test_tfprof_counts_time_and_memory(answers):
    for _, answer in answers[::2]:
        assert answer["counted"] > 0
        assert answer["micros"] > 0
        assert answer["bytes"] > 0
