"""Events files that TensorFlow 2 writes: the graphs of ``tf.summary.trace_export``."""

import json
import subprocess

import pytest

import peakline
from tests.conformance.peer import peers_python

pytestmark = pytest.mark.conformance

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
