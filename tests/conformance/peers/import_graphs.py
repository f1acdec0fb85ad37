"""Ask TensorFlow to import graphs. Runs in the peers' environment, without Peakline.

    python import_graphs.py REQUESTS RESULTS [run]

With ``run``, the first node of every graph is run as well. REQUESTS is a JSON list of paths of
serialised GraphDefs. RESULTS gets one JSON line per finished request: null, or the text of the
error. A crash of the library ends the process; the first request without a line is then the one
that did it.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"

import tensorflow as tf  # type: ignore[import-not-found]


def imported(graph: Any, *, run: bool) -> str | None:
    """The error of `tf.import_graph_def` (and of running the first node), or None."""
    try:
        with tf.Graph().as_default() as target:
            tf.import_graph_def(graph, name="")
            if run:
                with tf.compat.v1.Session() as session:
                    session.run(target.get_operations()[0])
    except Exception as error:  # noqa: BLE001
        return f"{type(error).__name__}: {error}"[:2000]
    return None


def main() -> None:
    requests, results, *options = sys.argv[1:]
    with Path(results).open("a") as lines:
        for path in json.loads(Path(requests).read_text()):
            graph = tf.compat.v1.GraphDef()
            graph.ParseFromString(Path(path).read_bytes())
            lines.write(json.dumps(imported(graph, run="run" in options)) + "\n")
            lines.flush()


if __name__ == "__main__":
    main()
