"""What TensorFlow's tracer saves of GPUs, as StepStats and as the timeline that it makes of them.

The rows are those that ``device_tracer.cc`` and ``step_stats_collector.cc`` write, in the words of
several versions; the timeline is laid out as ``timeline.py`` lays it out.
"""

import json
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple


class Run(NamedTuple):
    """One entry of StepStats; times are in us. ``label`` is its timeline label."""

    device: str
    name: str
    op: str
    start: int
    length: int
    label: str = ""


class Gpu(NamedTuple):
    """How a version calls a GPU: by its executor, and by its tracer."""

    executor: str
    tracer: str


OLD = "/job:localhost/replica:0/task:0/gpu:{}", "/gpu:{}"
NEW = "/job:localhost/replica:0/task:0/device:GPU:{}", "/device:GPU:{}"
WORKER = "/job:worker/replica:0/task:3/device:GPU:{}", "/job:worker/replica:0/task:3/device:GPU:{}"


def gpu(names: tuple[str, str], number: int) -> Gpu:
    """One GPU in the words of a version."""
    return Gpu(*(name.format(number) for name in names))


def kernel(on: Gpu, stream: int, name: str, op: str, start: int, length: int) -> Iterator[Run]:
    """A kernel: what the host spent on launching it, what ran, and that again."""
    yield Run(on.executor, name, op, start - 16, 15, f"{name} = {op}(x, y)")
    for part in (f"stream:{stream}", "stream:all"):
        yield Run(f"{on.tracer}/{part}", f"{name}:{op}", op, start, length, f"{name}:{op}")


def copy(on: Gpu, stream: int, name: str, op: str, start: int, length: int) -> Iterator[Run]:
    """A copy: what ran, and that again."""
    for part in (f"stream:{stream}", "memcpy"):
        yield Run(f"{on.tracer}/{part}", f"{name}:{op}", op, start, length, op)


def timeline(runs: Iterable[Run]) -> str:
    """The timeline of ``runs`` as ``generate_chrome_trace_format()`` writes it."""
    pids: dict[str, int] = {}
    events: list[dict[str, Any]] = []
    for run in runs:
        if run.device not in pids:
            pids[run.device] = 2 * len(pids) + 1
            for pid, what in enumerate(("Compute", "Tensors"), pids[run.device]):
                name = {"name": f"{run.device} {what}"}
                events.append({"ph": "M", "pid": pid, "name": "process_name", "args": name})
        events.append({
            "ph": "X", "cat": "Op", "pid": pids[run.device], "tid": 0, "ts": run.start,
            "dur": run.length, "name": run.op,
            "args": {"name": run.name.partition(":")[0], "op": run.op},
        })  # fmt: skip
    return json.dumps({"traceEvents": events})


def step_stats(runs: Iterable[Run]) -> str:
    """``runs`` as the text format of StepStats."""
    by_device: dict[str, list[str]] = {}
    for run in runs:
        by_device.setdefault(run.device, []).append(
            f'  node_stats {{ node_name: "{run.name}" all_start_micros: {run.start}'
            f" op_end_rel_micros: {run.length} all_end_rel_micros: {run.length}"
            f' timeline_label: "{run.label}" }}\n'
        )
    return "".join(
        f'dev_stats {{\n  device: "{device}"\n{"".join(nodes)}}}\n'
        for device, nodes in by_device.items()
    )


def union(runs: Iterable[Run]) -> int:
    """For how many us any of ``runs`` goes on, counted us by us."""
    return len({moment for run in runs for moment in range(run.start, run.start + run.length)})
