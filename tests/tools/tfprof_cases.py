"""Runs, graphs and options for op_stats: random ones, several runs as one profile, answers."""

import random
from collections.abc import Iterator, Sequence

import numpy as np

from peakline.formats.run_metadata.runs import Run
from peakline.formats.run_metadata.tables import RunTables
from peakline.schema import RunMetadata, message
from peakline.tables import Profile

NODE_NAMES = (
    "a", "a/b", "a/b/c", "a-b", "a//d", "b", "b/BatchNorm", "b/BatchNorm/mul", "c/d/e", "c/d/f",
    "gradients/a/b_grad/x", "gradients/a/b_grad/y", "gradients/c/d/e_grad/z", "gradients/_grad/q",
    "x1", "x2", "x3", "x4", "x5", "x6", "x7", "x8", "ü/ß",
)  # fmt: skip
_OTHER_NAMES = ("_SOURCE", "RecvTensor", "MEMCPYHtoD", "late", "late/one", "a/b:Mul", "q:r:s")
_OPS = ("NoOp", "OpA", "OpB", "OpC", "FusedBatchNorm", *(f"T{number}" for number in range(18)))
_DEVICES = (
    "/job:localhost/replica:0/task:0/device:CPU:0", "/job:localhost/replica:0/task:0/device:GPU:0",
    "/job:worker/replica:0/task:1/device:CPU:1", "/device:GPU:0/stream:all",
    "/device:GPU:0/stream:13", "/device:GPU:0/memcpy", "/gpu:0/stream:all", "/gpu:0",
    "/device:TPU:0",
)  # fmt: skip
_PATTERNS = (
    ".*", "a.*", ".*/.*", "x[1-4]", "gradients.*", "(a|b).*", "c/d/.", "[^/]+", "ü.*", "nothing",
)  # fmt: skip
_TYPES = (".*", "OpA", "Op.*", "T1?[0-9]", ".*cpu:0", ".*gpu.*", "_kTFScopeParent", "late", "none")
_CODE = (".*", r"main\.py.*", ".*:build", ".*gradient.*", "model.*", "nothing")


class _Runs:
    """Reads several runs as one file of them would be read."""

    format = "run_metadata"
    path = "runs"
    host = ""

    def __init__(self, runs: Sequence[tuple[int, bytes]]) -> None:
        content, start, result = b"", 0, []
        for step, run in runs:
            result.append(Run(f"step {step}", step, start, len(run)))
            content += run
            start += len(run)
        self._tables = RunTables(np.frombuffer(content, np.uint8), result)

    @property
    def tables(self):
        return self._tables.names

    def check(self):
        """It is in memory."""

    def read(self, table, warnings, columns=None):
        return self._tables.read(table, warnings, columns)

    def duration_ps(self):
        return 0

    def close(self):
        pass


def open_runs(runs: Sequence[tuple[int, bytes]]) -> Profile:
    """A profile of the steps' serialized RunMetadata."""
    return Profile(_Runs(runs))


def random_graph(seed: int):
    """A graph whose ops no library knows; every node says its output's shape."""
    rng = random.Random(seed)
    graph = message("tensorflow.GraphDef")()
    names = [name for name in NODE_NAMES if rng.random() < 0.9]
    rng.shuffle(names)
    for name in names:
        node = graph.node.add(name=name, op=rng.choice(_OPS))
        for _ in range(rng.randrange(4)):
            port = rng.choice(("", "", ":0", ":1"))
            node.input.append(rng.choice(("", "", "", "^")) + rng.choice((*names, "gone")) + port)
        node.input.sort(key=lambda text: text.startswith("^"))
        for place, text in enumerate(node.input):
            if text.startswith("^"):
                node.input[place] = text.partition(":")[0]
        shapes = node.attr["_output_shapes"].list.shape
        for _ in range(rng.choice((1, 1, 2))):
            shape = shapes.add()
            for _ in range(rng.randrange(4)):
                shape.dim.add(size=rng.choice((1, 7, 32)))
        if rng.random() < 0.3:
            _random_shape(rng, node.attr["shape"].shape)
        if rng.random() < 0.3:
            node.attr["data_format"].s = rng.choice((b"NHWC", b"NCHW"))
    return graph


def _random_shape(rng, shape):
    shape.SetInParent()
    if rng.random() < 0.1:
        shape.unknown_rank = True
        return
    for _ in range(rng.randrange(4)):
        shape.dim.add(size=rng.choice((-1, 0, 3, 5, 1000)))


def random_run(seed: int) -> RunMetadata:
    """Executions on devices of every kind, some without times; memory of several allocators."""
    rng = random.Random(seed)
    run = RunMetadata()
    run.step_stats.SetInParent()
    for device in rng.sample(_DEVICES, rng.randrange(1, 6)):
        stats = run.step_stats.dev_stats.add(device=device)
        for _ in range(rng.randrange(25)):
            node = stats.node_stats.add(
                node_name=rng.choice((*NODE_NAMES, *NODE_NAMES, *_OTHER_NAMES)),
                all_start_micros=rng.choice((0, *range(1000, 1050))),
                op_end_rel_micros=rng.choice((0, 1, 5, 5, 150, 20_000, 3_000_000)),
            )
            for _ in range(rng.randrange(3)):
                node.memory.add(
                    allocator_name=rng.choice(("cpu", "GPU_0_bfc", "gpu_host_bfc")),
                    total_bytes=rng.choice((0, 256, 1 << 20)),
                    peak_bytes=rng.choice((0, 256, 4096)),
                    live_bytes=rng.choice((0, 256, 512)),
                )
            if rng.random() < 0.3:
                node.memory_stats.temp_memory_size = rng.choice((0, 64))
                node.memory_stats.persistent_memory_size = rng.choice((0, 1000))
                node.memory_stats.device_persistent_memory_size = 77
            for _ in range(rng.randrange(3)):
                output = node.output.add(slot=rng.randrange(2))
                if rng.random() < 0.8:
                    place = output.tensor_description.allocation_description
                    place.requested_bytes = rng.choice((0, 40, 400))
                    place.allocated_bytes = rng.choice((0, 256))
    return run


def random_traces(seed: int, names: Sequence[str]) -> dict[str, list[list[object]]]:
    """Per node the frames that made it, the outermost first: file, line, function."""
    rng = random.Random(seed)
    files = ("/src/main.py", "/src/lib/model.py", "layers.py")
    functions = ("build", "train", "a_function_with_a_long_name", "<module>")
    return {
        name: [
            [rng.choice(files), rng.choice((1, 2)), rng.choice(functions)]
            for _ in range(rng.randrange(1, 5))
        ]
        for name in names
        if rng.random() < 0.9
    }


def with_traces(graph, traces):
    """The graph with its nodes' stack traces inside, as a GraphDef carries them."""
    traced = message("tensorflow.GraphDef")()
    traced.CopyFrom(graph)
    info = traced.debug_info
    files: list[str] = []
    for name, frames in traces.items():
        trace = info.traces[f"{name}@"]
        for file, line, function in reversed(frames):
            if file not in files:
                files.append(file)
            trace.file_line_cols.add(file_index=files.index(file), line=line, func=function)
    info.files.extend(files)
    return traced


def random_options(seed: int, view: str, steps: Sequence[int] = ()) -> dict[str, object]:
    """Options of every kind, most of them absent."""
    rng = random.Random(f"{seed} {view}")

    def some(values, most):
        return [rng.choice(values) for _ in range(rng.randrange(1, most + 1))]

    orders = (
        "name", "bytes", "peak_bytes", "residual_bytes", "output_bytes", "micros",
        "accelerator_micros", "cpu_micros", "params", "float_ops", "occurrence",
    )  # fmt: skip
    columns = (
        *(order for order in orders if order != "name"),
        "device",
        "op_types",
        "input_shapes",
    )
    names = (
        _CODE if view == "code" else (*_OPS[:4], "T.*", *_PATTERNS) if view == "op" else _PATTERNS
    )
    options: dict[str, object] = {
        "order_by": rng.choice(orders),
        "max_depth": rng.choice((1, 2, 3, 5, 10000, 10000, 10000)),
        "account_type_regexes": [".*"],
        "start_name_regexes": [".*"],
        "trim_name_regexes": [],
        "show_name_regexes": [".*"],
        "hide_name_regexes": [],
        "select": sorted(set(some(columns, 6))),
    }
    for name, values in (
        ("min_bytes", (1, 300, 5000)),
        ("min_peak_bytes", (1, 300)),
        ("min_residual_bytes", (1, 300)),
        ("min_output_bytes", (1, 300)),
        ("min_micros", (1, 10, 1000)),
        ("min_accelerator_micros", (1, 10)),
        ("min_cpu_micros", (1, 10, 1000)),
        ("min_params", (1, 10)),
        ("min_float_ops", (1, 1000)),
        ("min_occurrence", (1, 2, 3)),
    ):
        if rng.random() < 0.08:
            options[name] = rng.choice(values)
    if rng.random() < 0.3:
        options["account_type_regexes"] = some(_TYPES, 2)
    if rng.random() < 0.2:
        options["start_name_regexes"] = some(names, 2)
    if rng.random() < 0.2:
        # A trimmed root ends the code view, and in the original the process.
        options["trim_name_regexes"] = some([name for name in names if name != ".*"], 2)
    if rng.random() < 0.2:
        options["show_name_regexes"] = some(names, 2)
    if rng.random() < 0.2:
        options["hide_name_regexes"] = some(names, 1)
    if rng.random() < 0.3:
        options["account_displayed_op_only"] = True
    if steps and rng.random() < 0.5:
        options["step"] = rng.choice(list(steps))
    return options


def rows_of(content: bytes, view: str) -> list[tuple[int, object]]:
    """Depth and message of every node, without its children, in their order.

    Chains of op types are deeper than a protobuf parser goes.
    """
    name, children = (
        ("GraphNodeProto", 12) if view in {"scope", "graph"} else ("MultiGraphNodeProto", 11)
    )
    kind = message(f"tensorflow.tfprof.{name}")
    rows = []
    pending = [(0, content)]
    while pending:
        depth, data = pending.pop()
        own, below = b"", []
        for number, field, inner in _fields(data):
            if number == children:
                below.append((depth + 1, inner))
            else:
                own += field
        rows.append((depth, kind.FromString(own)))
        pending += reversed(below)
    return rows


def _fields(data: bytes) -> Iterator[tuple[int, bytes, bytes]]:
    """Number, bytes and, where it has a length, content of each field."""
    at = 0
    while at < len(data):
        start = at
        tag, at = _varint(data, at)
        size, end = _varint(data, at)
        inner = b""
        if tag & 7 == 2:
            at, end = end, end + size
            inner = data[at:end]
        yield tag >> 3, data[start:end], inner
        at = end


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            return value, at
