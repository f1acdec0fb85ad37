"""Ask TensorFlow. Runs in the peers' environment, without Peakline.

A request has a ``kind``, and what belongs to it; files may be compressed with gzip:

``timeline``: ``{"run": RunMetadata file, "options", "target"}`` writes the Chrome trace of
TensorFlow's own timeline.

``import``: ``{"graph": GraphDef file, "run": whether its first node is run too}``; the answer is
null or the text of the error.

``export``: ``{"run": RunMetadata file}``; the answer is what the timeline and tfprof make of it:
the names of the processes, how many executions are shown, and executions and bytes that tfprof
counts.

``tfprof``: ``{"graph": GraphDef file, "as_is": whether the graph is not built again first,
"runs": [[step, RunMetadata file], ...], "traces": {node: [[file, line, function], ...]}, the
outermost frame first, "shaped": where to write the graph with the shapes that TensorFlow finds,
"cases": [{"view", "options", "proto": where to write the answer, "text": null or where to
write the printed form}, ...]}``. The view ``advise`` has no options and no printed form.
"""

import gzip
import json
import os
from pathlib import Path
from typing import Any

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
os.environ["CUDA_VISIBLE_DEVICES"] = ""

import tensorflow as tf  # type: ignore[import-not-found]
from serve import serve
from tensorflow.core.profiler import tfprof_log_pb2  # type: ignore[import-not-found]
from tensorflow.python.client import timeline  # type: ignore[import-not-found]
from tensorflow.python.profiler import model_analyzer, option_builder, tfprof_logger  # type: ignore[import-not-found]
from tensorflow.python.util import _pywrap_tfprof as tfprof  # type: ignore[import-not-found]


def read(path: str) -> bytes:
    content = Path(path).read_bytes()
    return gzip.decompress(content) if content.startswith(b"\x1f\x8b") else content


def read_run(path: str) -> Any:
    run = tf.compat.v1.RunMetadata()
    run.ParseFromString(read(path))
    return run


def read_graph(path: str) -> Any:
    """The graph as TensorFlow builds it again, with the shapes it can tell."""
    definition = tf.compat.v1.GraphDef()
    definition.ParseFromString(read(path))
    graph = tf.Graph()
    with graph.as_default():
        tf.import_graph_def(definition, name="")
    return graph


def op_log(traces: dict[str, list[list[Any]]]) -> Any:
    """The traces as tfprof takes them."""
    log = tfprof_log_pb2.OpLogProto()
    numbers: dict[str, int] = {}

    def number(text: str) -> int:
        return numbers.setdefault(text, len(numbers) + 1)

    for node, frames in traces.items():
        entry = log.log_entries.add(name=node)
        for file, line, function in frames:
            entry.code_def.traces.add(
                file_id=number(file), lineno=line, function_id=number(function)
            )
    for text, key in numbers.items():
        log.id_to_string[key] = text
    return log


def tfprof_options(case: dict[str, Any]) -> bytes:
    if case["view"] == "advise":
        built = model_analyzer._build_advisor_options(model_analyzer.ALL_ADVICE)
    else:
        output = f"file:outfile={case['text']}" if case["text"] else "none"
        built = model_analyzer._build_options({**case["options"], "output": output})
    return built.SerializeToString()


class Profiler:
    """What ``tf.compat.v1.profiler`` does: ``profile`` for one run or none, else ``Profiler``.

    A graph that is taken as it is need not have ops that TensorFlow knows.
    """

    def __init__(self, request: dict[str, Any]) -> None:
        self.graph = None if request["as_is"] else read_graph(request["graph"])
        self.definition = read(request["graph"]) if request["as_is"] else b""
        self.runs = [(step, read_run(path)) for step, path in request["runs"]]
        self.traces = op_log(request["traces"])
        Path(request["shaped"]).write_bytes(self.graph_bytes())

    def graph_bytes(self) -> bytes:
        return self.definition or model_analyzer._graph_string(self.graph)

    def log(self, traces: Any, run: Any = None) -> bytes:
        if self.graph is None:
            log = traces or tfprof_log_pb2.OpLogProto()
        else:
            log = tfprof_logger.merge_default_with_oplog(self.graph, traces, run, add_trace=False)
            if traces is not None:
                # The merger forgets the strings of the log it is given.
                log.id_to_string.update(traces.id_to_string)
        return log.SerializeToString()

    def ask(self, cases: list[dict[str, Any]]) -> None:
        if len(self.runs) <= 1:
            run = self.runs[0][1] if self.runs else None
            log = self.log(self.traces, run)
            arguments = (self.graph_bytes(), run.SerializeToString() if run else b"", log)
            for case in cases:
                view = case["view"].encode()
                answer = tfprof.PrintModelAnalysis(*arguments, view, tfprof_options(case))
                Path(case["proto"]).write_bytes(answer)
            return
        tfprof.NewProfiler(self.graph_bytes(), self.log(self.traces))
        for step, run in self.runs:
            log = self.log(None, run)
            tfprof.AddStep(step, self.graph_bytes(), run.SerializeToString(), log)
        for case in cases:
            answer = tfprof.Profile(case["view"].encode(), tfprof_options(case))
            Path(case["proto"]).write_bytes(answer)
        tfprof.DeleteProfiler()


def write_timeline(request: dict[str, Any]) -> None:
    """Write the Chrome trace of a run."""
    drawn = timeline.Timeline(read_run(request["run"]).step_stats)
    Path(request["target"]).write_text(drawn.generate_chrome_trace_format(**request["options"]))


def imported(request: dict[str, Any]) -> str | None:
    """The error of `tf.import_graph_def` (and of running the first node), or None."""
    graph = tf.compat.v1.GraphDef.FromString(read(request["graph"]))
    try:
        with tf.Graph().as_default() as target:
            tf.import_graph_def(graph, name="")
            if request["run"]:
                with tf.compat.v1.Session() as session:
                    session.run(target.get_operations()[0])
    except Exception as error:  # noqa: BLE001 (whatever it is, it is the answer)
        return f"{type(error).__name__}: {error}"[:2000]
    return None


def exported(request: dict[str, Any]) -> dict[str, Any]:
    """What an exported run is for the timeline and for tfprof."""
    run = read_run(request["run"])
    drawn = timeline.Timeline(run.step_stats).generate_chrome_trace_format(show_memory=True)
    trace = json.loads(drawn)["traceEvents"]
    with tf.Graph().as_default() as graph:
        for name in {n.node_name for d in run.step_stats.dev_stats for n in d.node_stats}:
            # tfprof knows only nodes of its graph.
            if name.replace("/", "").replace("_", "").isalnum() and not name.startswith("_"):
                tf.no_op(name=name)
        options = option_builder.ProfileOptionBuilder.time_and_memory()
        options["output"] = "none"
        root = tf.compat.v1.profiler.profile(graph, run, cmd="scope", options=options)
    return {
        "processes": [e["args"]["name"] for e in trace if e["ph"] == "M"],
        "executions": sum(e["ph"] == "X" for e in trace),
        "counted": root.total_run_count,
        "micros": root.total_exec_micros,
        "bytes": root.total_requested_bytes,
    }


def write_profiles(request: dict[str, Any]) -> None:
    """Write what tfprof says to each case."""
    Profiler(request).ask(request["cases"])


KINDS = {
    "timeline": write_timeline,
    "import": imported,
    "export": exported,
    "tfprof": write_profiles,
}

if __name__ == "__main__":
    serve(lambda request: KINDS[request["kind"]](request))
