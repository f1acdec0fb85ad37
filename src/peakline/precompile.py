"""Compile kernels beside the process that needs them: ``python -m peakline.precompile FORMAT``.

On a new machine Numba compiles every kernel once and keeps the code. Its compiler works on one
kernel at a time, and the decoder's takes about as long as all others together, so the first
profile that is opened starts this program: while the one compiles the decoder, the other answers
a tiny profile with the decoder interpreted, which compiles the rest. A log or a Chrome trace has a
scanner of its own, which comes first: then this program compiles the decoder too.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from peakline.api import Profile

__all__ = ["main"]

_STATS = (
    "_r",
    "step_num",
    "_pt",
    "_p",
    "_ct",
    "_c",
    "bytes_allocated",
    "allocation_bytes",
    "addr",
    "tf_op",
    "allocator_name",
)
_NAMES = (
    "train",
    "MemoryAllocation",
    "MemoryDeallocation",
    "work",
    "ThreadpoolListener::StartRegion",
    "ThreadpoolListener::StopRegion",
)


def _tiny_profile() -> bytes:
    """Two steps with allocations and their ends, some handed from one thread to another."""
    from peakline.schema import XSpace

    def record(line: Any, metadata: int, offset: int) -> None:
        event = line.events.add(metadata_id=metadata, offset_ps=offset)
        for number in (6, 7, 8):
            event.stats.add(metadata_id=number, int64_value=64)
        event.stats.add(metadata_id=9, str_value="op")
        event.stats.add(metadata_id=10, ref_value=10)

    space = XSpace()
    plane = space.planes.add(name="/host:CPU")
    for number, name in enumerate(_NAMES):
        plane.event_metadata[number].name = name
    for number, name in enumerate(_STATS):
        plane.stat_metadata[number].name = name
    for start in (0, 500):
        line = plane.lines.add(id=start, name="thread", timestamp_ns=1)
        step = line.events.add(metadata_id=0, offset_ps=start, duration_ps=100)
        for number in range(4):
            step.stats.add(metadata_id=number, int64_value=1)
        record(line, 1, start + 50)
        record(line, 2, start + 60)
        other = line.events.add(metadata_id=3, offset_ps=start + 200, duration_ps=100)
        for number in (4, 5):
            other.stats.add(metadata_id=number, int64_value=1)
        record(line, 1, start + 210)
        record(line, 2, start + 220)
        for metadata, offset in ((4, start + 230), (5, start + 240)):
            line.events.add(metadata_id=metadata, offset_ps=offset)
    return space.SerializeToString()


def _tiny_run() -> bytes:
    """A step with an op that allocates and frees, and the graph of it."""
    from peakline.schema import RunMetadata

    run = RunMetadata()
    node = run.step_stats.dev_stats.add(device="/cpu:0").node_stats.add(
        node_name="a", all_start_micros=5, all_end_rel_micros=3, timeline_label="a = Add(b, c:1)"
    )
    memory = node.memory.add(allocator_name="cpu", total_bytes=8)
    memory.allocation_records.add(alloc_micros=5, alloc_bytes=8)
    memory.allocation_records.add(alloc_micros=6, alloc_bytes=-8)
    node.output.add().tensor_description.allocation_description.allocation_id = 1
    graph = run.partition_graphs.add()
    graph.node.add(name="b", op="Const").attr["dtype"].type = 1
    graph.node.add(name="a", op="Add", input=["b", "c:1", "^b"])
    return run.SerializeToString()


def _tiny_log() -> bytes:
    """A step, an allocation and its end."""
    import io

    from peakline.record import MemoryLog, Tensor

    stream = io.BytesIO()
    with MemoryLog(stream) as log:
        tensor = Tensor("float", (2,), "cpu", requested_bytes=8, allocation_id=1)
        log.record_step(1, "step")
        log.record_tensor_allocation("op", 1, tensor)
        log.record_tensor_output("op", 1, 0, tensor)
        log.record_tensor_deallocation(1, "cpu")
    return stream.getvalue()


_TINY: dict[str, Callable[[], bytes]] = {
    "run_metadata": _tiny_run,
    "step_stats": _tiny_run,
    "graph_def": _tiny_run,
    "meta_graph": _tiny_run,
    "saved_model": _tiny_run,
    "tfevents": _tiny_run,
    "log": _tiny_log,
    "memory_log": _tiny_log,
    "chrome_trace": _tiny_log,
}
_SCANNED_FIRST = frozenset(("log", "chrome_trace"))
"""Formats whose own scanner is what the other process compiles first."""


@contextmanager
def _interpreted(*kernels: tuple[ModuleType, str]) -> Iterator[None]:
    """Run the block with ``kernels``, each a module and its name there, interpreted."""
    compiled = [vars(module)[name] for module, name in kernels]
    for (module, name), kernel in zip(kernels, compiled, strict=True):
        vars(module)[name] = kernel.py_func
    try:
        yield
    finally:
        for (module, name), kernel in zip(kernels, compiled, strict=True):
            vars(module)[name] = kernel


def _compile_answers(profile: Profile) -> None:
    """Have compiled what the memory answer and the memory tool need, the last of it first.

    The other process begins with the first of it at about the time when this one gets here; so
    they meet in the middle, and neither compiles what the other is compiling.
    """
    from peakline.analysis import churn, lifetimes, signature_kernels, usage
    from peakline.analysis.memory import explain_memory

    events, steps = profile.columns("allocator_events"), profile.columns("steps")
    with _interpreted(
        (lifetimes, "_match"),
        (lifetimes, "_hash"),
        (usage, "_measure"),
        (signature_kernels, "_number"),
        (signature_kernels, "_mix"),
        (churn, "count_churn"),
    ):
        explain_memory(events, steps)
    explain_memory(events, steps)
    if profile.format == "xplane":
        profile.tool("memory_profile")


def main() -> None:
    """Read a tiny profile whole, and answer what `peakline memory` and the tools answer."""
    import numpy as np

    import peakline
    from peakline.wire import walker

    form = sys.argv[1] if len(sys.argv) > 1 else "xplane"
    if form not in _SCANNED_FIRST:
        # The decoder itself is being compiled elsewhere.
        vars(walker)["walk"] = vars(walker)["walk"].py_func
    with tempfile.TemporaryDirectory() as folder, np.errstate(all="ignore"):
        path = Path(folder) / "tiny"
        path.write_bytes(_TINY.get(form, _tiny_profile)())
        with peakline.open(str(path)) as profile:
            _compile_answers(profile)
            if profile.format != "xplane":
                for table in profile.tables:
                    profile.columns(table)


if __name__ == "__main__":
    main()
