"""What TensorFlow's own timeline and tfprof make of RunMetadata: run by a Python that has them.

    python read_export.py RESULTS FILE...

RESULTS gets a JSON list, per file: the names of the processes of the trace, how many executions it
shows, and executions and bytes that tfprof counts.
"""

import json
import sys
from pathlib import Path

import tensorflow as tf
from tensorflow.core.protobuf import config_pb2
from tensorflow.python.client import timeline
from tensorflow.python.profiler import option_builder

results = []
for source in sys.argv[2:]:
    metadata = config_pb2.RunMetadata.FromString(Path(source).read_bytes())
    trace = json.loads(
        timeline.Timeline(metadata.step_stats).generate_chrome_trace_format(show_memory=True)
    )["traceEvents"]
    with tf.Graph().as_default() as graph:
        for name in {n.node_name for d in metadata.step_stats.dev_stats for n in d.node_stats}:
            # tfprof knows only nodes of its graph.
            if name.replace("/", "").replace("_", "").isalnum() and not name.startswith("_"):
                tf.no_op(name=name)
        options = option_builder.ProfileOptionBuilder.time_and_memory()
        options["output"] = "none"
        root = tf.compat.v1.profiler.profile(graph, metadata, cmd="scope", options=options)
    results.append(
        {
            "processes": [e["args"]["name"] for e in trace if e["ph"] == "M"],
            "executions": sum(e["ph"] == "X" for e in trace),
            "counted": root.total_run_count,
            "micros": root.total_exec_micros,
            "bytes": root.total_requested_bytes,
        }
    )
Path(sys.argv[1]).write_text(json.dumps(results))
