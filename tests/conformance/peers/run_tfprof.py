"""Ask TensorFlow's own tfprof. Runs in the peers' environment, without Peakline.

    python run_tfprof.py REQUESTS RESULTS

REQUESTS is a JSON list of

    {"graph": GraphDef file, "as_is": whether the graph is not built again first,
     "runs": [[step, RunMetadata file], ...], "traces": null or a file of
     {node: [[file, line, function], ...]}, the outermost frame first,
     "shaped": null or where to write the graph with the shapes that TensorFlow finds,
     "cases": [{"view", "options", "proto": where to write the answer,
                "text": null or where to write the printed form}, ...]}

Files may be compressed with gzip. The view ``advise`` has no options and no printed form. RESULTS
gets one JSON line per finished request: null, or the text of the error.
"""

from __future__ import annotations

import gzip
import json
import os
import sys
from pathlib import Path
from typing import Any

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "2"
os.environ["CUDA_VISIBLE_DEVICES"] = ""

import tensorflow as tf  # type: ignore[import-not-found]
from tensorflow.core.profiler import tfprof_log_pb2  # type: ignore[import-not-found]
from tensorflow.python.profiler import (  # type: ignore[import-not-found]
    model_analyzer,
    tfprof_logger,
)
from tensorflow.python.util import (  # type: ignore[import-not-found]
    _pywrap_tfprof as tfprof,
)


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


def op_log(path: str) -> Any:
    """The traces as tfprof takes them."""
    log = tfprof_log_pb2.OpLogProto()
    numbers: dict[str, int] = {}

    def number(text: str) -> int:
        return numbers.setdefault(text, len(numbers) + 1)

    for node, frames in json.loads(Path(path).read_text()).items():
        entry = log.log_entries.add(name=node)
        for file, line, function in frames:
            entry.code_def.traces.add(
                file_id=number(file), lineno=line, function_id=number(function)
            )
    for text, key in numbers.items():
        log.id_to_string[key] = text
    return log


def options_of(case: dict[str, Any]) -> bytes:
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
        self.traces = op_log(request["traces"]) if request["traces"] else None
        if request["shaped"]:
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
                answer = tfprof.PrintModelAnalysis(*arguments, view, options_of(case))
                Path(case["proto"]).write_bytes(answer)
            return
        tfprof.NewProfiler(self.graph_bytes(), self.log(self.traces))
        for step, run in self.runs:
            log = self.log(None, run)
            tfprof.AddStep(step, self.graph_bytes(), run.SerializeToString(), log)
        for case in cases:
            answer = tfprof.Profile(case["view"].encode(), options_of(case))
            Path(case["proto"]).write_bytes(answer)
        tfprof.DeleteProfiler()


def main() -> None:
    requests, results = sys.argv[1:]
    with Path(results).open("a") as lines:
        for request in json.loads(Path(requests).read_text()):
            try:
                Profiler(request).ask(request["cases"])
                outcome = None
            except Exception as error:  # noqa: BLE001 (whatever it is, it is the answer)
                outcome = f"{type(error).__name__}: {error}"
            lines.write(json.dumps(outcome) + "\n")
            lines.flush()


if __name__ == "__main__":
    main()
