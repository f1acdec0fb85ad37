"""The other formats against what people use for them: TensorFlow's own Python, protobuf, XProf.

Every case is one question, asked of both programs in fresh processes that take turns; their
answers are compared before the times count.
"""

from __future__ import annotations

import gzip
import json
import random
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from inputs import LARGE, LARGEST, ROOT, SMALL, profile

DATA = ROOT / "tests" / "data"


def _equal(ours: Path, theirs: Path) -> bool:
    return ours.read_bytes() == theirs.read_bytes()


@dataclass(frozen=True)
class Case:
    """One question: a file, what it is called, and both programs (``python -c``, FILE, ANSWER).

    Without ``make`` the file is the profile of that name. ``peer`` None: there is nobody to
    compare with. ``again``: the peer keeps something between questions, so a second one is
    measured as well. ``same`` says whether both answers, in files, say the same.
    """

    file: str
    make: Callable[[Path], None] | None
    question: str
    ours: str
    peer: str | None
    peer_name: str = ""
    again: bool = False
    same: Callable[[Path, Path], bool] = _equal


def make_file(case: Case, folder: Path) -> Path:
    """The case's file, made when it is not there."""
    if case.make is None:
        return profile(folder, case.file)
    path = folder / case.file
    if not path.exists():
        part = path.with_suffix(".part")
        case.make(part)
        part.rename(path)
    return path


def _run_metadata(times: int) -> Callable[[Path], None]:
    """A real step's RunMetadata with its executions ``times`` times one after the other."""

    def make(path: Path) -> None:
        from peakline.schema import RunMetadata

        content = gzip.decompress((DATA / "run_metadata" / "tf1_cnn_2.pb.gz").read_bytes())
        real = RunMetadata.FromString(content)
        made = RunMetadata()
        for device in real.step_stats.dev_stats:
            more = made.step_stats.dev_stats.add(device=device.device)
            for number in range(times):
                for node in device.node_stats:
                    copy = more.node_stats.add()
                    copy.CopyFrom(node)
                    copy.all_start_micros += number * 1_000_000
                    copy.all_start_nanos += number * 1_000_000_000
        path.write_bytes(made.SerializeToString())

    return make


def _graph(nodes: int) -> Callable[[Path], None]:
    """Layers of cheap ops with names, inputs and attributes as real graphs have them."""

    def make(path: Path) -> None:
        from peakline.schema import GraphDef

        rng = random.Random(1)  # noqa: S311 (the same graph every time)
        names = ["input"]
        with path.open("wb") as file:
            versions = GraphDef()
            versions.versions.producer = 1395
            first = GraphDef()
            node = first.node.add(name="input", op="Placeholder")
            node.attr["dtype"].type = 1
            node.attr["shape"].shape.unknown_rank = True
            file.write(versions.SerializeToString() + first.SerializeToString())
            for number in range(1, nodes):
                one = GraphDef()
                name = f"model/block_{number // 64}/layer_{number % 64}/residual/Add_{number}"
                node = one.node.add(name=name, op="AddV2", device="/device:CPU:0")
                node.attr["T"].type = 1
                node.attr["_class"].list.s.append(f"loc:@{names[-1]}".encode())
                near = max(0, number - 40)
                node.input.extend(names[rng.randrange(near, number)] for _ in range(2))
                if number % 8 == 0:
                    node.input.append(f"^{names[rng.randrange(near, number)]}")
                names.append(name)
                file.write(one.SerializeToString())

    return make


def _memory_log(size: int) -> Callable[[Path], None]:
    """A real memory log repeated in time until it has ``size`` bytes."""

    def make(path: Path) -> None:
        content = gzip.decompress(
            (DATA / "memory_log" / "session_default_allocator.log.gz").read_bytes()
        )
        with path.open("wb") as file:
            for _ in range(size // len(content) + 1):
                file.write(content)

    return make


_OURS = """
import json, sys
import peakline
with peakline.open(sys.argv[1]) as profile:
    answer = {question}
with open(sys.argv[2], "w") as file:
    file.write(answer)
"""

_OUR_TIMELINE = """
import sys
import peakline
with peakline.open(sys.argv[1]) as profile:
    answer = profile.tool("trace_viewer", show_memory=True).content
with open(sys.argv[2], "wb") as file:
    file.write(answer)
"""

_TIMELINE = """
import sys
from tensorflow.core.protobuf import config_pb2
from tensorflow.python.client import timeline
with open(sys.argv[1], "rb") as file:
    metadata = config_pb2.RunMetadata.FromString(file.read())
answer = timeline.Timeline(metadata.step_stats).generate_chrome_trace_format(show_memory=True)
with open(sys.argv[2], "w") as file:
    file.write(answer)
"""

_GRAPH_SQL = (
    "select n.op, count(distinct n.name) nodes, count(e.source) inputs "
    "from nodes n left join edges e on e.target = n.name group by n.op order by n.op"
)
_IMPORT = """
import json, sys
import tensorflow as tf
graph_def = tf.compat.v1.GraphDef()
with open(sys.argv[1], "rb") as file:
    graph_def.ParseFromString(file.read())
with tf.Graph().as_default() as graph:
    tf.import_graph_def(graph_def, name="")
found = {}
for op in graph.get_operations():
    row = found.setdefault(op.type, [0, 0])
    row[0] += 1
    row[1] += len(op.inputs) + len(op.control_inputs)
answer = [{"op": op, "nodes": n, "inputs": k} for op, (n, k) in sorted(found.items())]
with open(sys.argv[2], "w") as file:
    file.write(json.dumps(answer))
"""
_LOG_SQL = (
    "select message, count(*) records, coalesce(sum(requested_bytes), 0)::bigint bytes "
    "from log_records group by message order by message"
)
_LOG_LOOP = """
import json, re, sys
from google.protobuf import text_format
from tensorflow.core.framework import log_memory_pb2
line = re.compile(r"__LOG_MEMORY__ (MemoryLog\\w+) \\{ (?:goo\\.gle/debug\\w+\\s+)?(.*)\\}")
found = {}
with open(sys.argv[1]) as file:
    for text in file:
        match = line.search(text)
        if match is None:
            continue
        record = text_format.Parse(match[2], getattr(log_memory_pb2, match[1])())
        row = found.setdefault(match[1], [0, 0])
        row[0] += 1
        if match[1] == "MemoryLogRawAllocation":
            row[1] += record.num_bytes
        elif match[1] in ("MemoryLogTensorAllocation", "MemoryLogTensorOutput"):
            row[1] += record.tensor.allocation_description.requested_bytes
answer = [{"message": m, "records": n, "bytes": b} for m, (n, b) in sorted(found.items())]
with open(sys.argv[2], "w") as file:
    file.write(json.dumps(answer))
"""


_PS_IN_NS = 1000
_GROUP_SQL = (
    "select name, count(*) n, sum(duration_ps)::bigint ps from events group by name order by name"
)
_EVENTS_DB = """
import json, shutil, sys
from xprof.cli.tools.oss import events_db_tool
query = (
    "select kernel_name as name, count(*) n, 1000 * sum(end_ns - start_ns) ps from Events "
    "group by 1 order by 1"
)
answer = json.loads(events_db_tool.query_events_db(sys.argv[1], query, bypass_cache=True))
with open(answer["path"]) as found, open(sys.argv[2], "w") as file:
    file.write(json.dumps(json.load(found)))
"""


def _like_events(ours: Path, theirs: Path) -> bool:
    """Whether names and counts are equal, and times but for XProf's rounding to nanoseconds."""
    pairs = zip(json.loads(ours.read_bytes()), json.loads(theirs.read_bytes()), strict=True)
    return all(
        (mine["name"], mine["n"]) == (other["name"], other["n"])
        and abs(mine["ps"] - int(other["ps"])) <= _PS_IN_NS * mine["n"]
        for mine, other in pairs
    )


def _events(file: str) -> Case:
    """The events of a profile by name, which XProf cannot read when it is the largest."""
    return Case(
        file,
        None,
        "SQL, events by name",
        _sql(_GROUP_SQL),
        None if file == LARGEST else _EVENTS_DB,
        "XProf query_events_db",
        again=file == LARGE,
        same=_like_events,
    )


def _sql(query: str) -> str:
    return _OURS.format(question=f"json.dumps(profile.sql({query!r}).to_pylist())")


CASES = [
    *(_events(file) for file in (SMALL, "40 MB", LARGE, LARGEST)),
    Case(
        "run_metadata_51MB.pb",
        _run_metadata(1500),
        "timeline with memory",
        _OUR_TIMELINE,
        _TIMELINE,
        "TensorFlow timeline",
    ),
    Case(
        "graph_200k.pb", _graph(200_000), "nodes and inputs by op", _sql(_GRAPH_SQL), _IMPORT,
        "TensorFlow import_graph_def",
    ),
    Case(
        "graph_1M.pb", _graph(1_000_000), "nodes and inputs by op", _sql(_GRAPH_SQL), None,
    ),
    Case(
        "memory_60MB.log", _memory_log(60_000_000), "records by message", _sql(_LOG_SQL),
        _LOG_LOOP, "text_format loop",
    ),
    Case(
        "memory_400MB.log", _memory_log(400_000_000), "records by message", _sql(_LOG_SQL),
        None,
    ),
]  # fmt: skip


def main() -> int:
    """Make the files named on the command line, or all: ``python formats.py FOLDER [FILE...]``."""
    folder, *names = sys.argv[1:]
    for case in CASES:
        if case.make is not None and (not names or case.file in names):
            path = make_file(case, Path(folder))
            print(json.dumps({"file": case.file, "bytes": path.stat().st_size}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
