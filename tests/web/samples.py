"""The log directory that the page is tested on: a session for every kind of sample."""

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path

from tests.guard.attacks import rich
from tests.reference.xspace_builder import SpaceBuilder
from tests.timing.gpu_jobs import COLLECTIVES, Job, Work, write

from reference.op_spaces import random_op_space

DATA = Path(__file__).parent.parent / "data"
PROGRAMS = (
    "busy_pipeline", "doubled_batch", "doubled_batch_healthy", "fragmentation", "huge_temporary",
    "leak_list", "steps/tf_functions", "steps/tf_train_eval", "time/eager_loop", "time/input_bound",
    "time/recompiling", "time/slow_step",
)  # fmt: skip
OTHERS = {
    "memory_log": "memory_log/session_default_allocator.log.gz",
    "memory_log_bfc": "memory_log/tf1_control_flow.log.gz",
    "oom_report": "oom_report/tf_bfc_oom.log.gz",
    "torch_break": "programs/steps/torch_break.pt.trace.json.gz",
    "torch_snapshot": "fit/torch/limited/snapshot_oom.pickle.gz",
    "torch_trace": "chrome_trace/noleak.pt.trace.json.gz",
    "jax_heap": "pprof/device_memory.pprof.pb.gz",
    "run_metadata": "run_metadata/tf1_cnn_2.pb.gz",
    "graph": "graph_def/frozen.pb",
    "saved_model": "graph_def/saved_model.pb.gz",
    "hlo_dump": "xla_dump/module_0000.jit_flow.cpu_after_optimizations.hlo.pb",
}
"""Sessions of one host whose file is of another format than XSpace."""

HOSTILE = "<img src=x onerror=alert(1)>"
"""A session's name, and what everything in it is called."""

THREADS = 450
"""The lines of the session ``threads``."""

SAMPLES: dict[str, tuple[Path, ...]] = {
    **{
        place.parent.parent.parent.parent.name: tuple(sorted(place.parent.iterdir()))
        for place in sorted(DATA.glob("sessions/*/plugins/profile/*/*"))
    },
    **{name.rpartition("/")[2]: (DATA / "programs" / f"{name}.xplane.pb.gz",) for name in PROGRAMS},
    **{name: (DATA / place,) for name, place in OTHERS.items()},
}
"""The files of every session, by its name: folders of ``tests/data/sessions``, and others."""


def make_logdir(logdir: Path, *names: str) -> Path:
    """Fill ``logdir`` with the samples called ``names`` (default: all, and those of `MADE`)."""
    for name in names or SAMPLES:
        session = _session(logdir, name)
        for file in SAMPLES[name]:
            is_xspace = ".xplane.pb" in file.name
            _link(file, session / (file.name if is_xspace else "host.profile"))
    if not names:
        for name, make in MADE.items():
            suffix = "profile" if name == "threads" else "xplane.pb"
            (_session(logdir, name) / f"host.{suffix}").write_bytes(make())
    return logdir


def gpu_profile() -> bytes:
    """A job on three GPUs, made by hand as no CPU records one; the second GPU delays the others."""

    def work(_step: int, device: int) -> list[Work]:
        computes = 6000 if device == 1 else 3000
        return [
            Work("gemm", 100, computes, launched=50),
            Work("ncclAllReduce", 100 + computes, 9000 - computes, COLLECTIVES, launched=60),
        ]

    return write(Job(work, devices=3))


def kernel_profile() -> bytes:
    """Kernels of all kinds."""
    return random_op_space(11).SerializeToString()


def thread_profile() -> bytes:
    """An event in each of many threads."""
    events = [
        event
        for thread in range(THREADS)
        for event in (
            {
                "ph": "M",
                "name": "thread_name",
                "pid": 1,
                "tid": thread,
                "args": {"name": f"worker {thread}"},
            },
            {"ph": "X", "name": "work", "pid": 1, "tid": thread, "ts": thread, "dur": 50},
        )
    ]
    return json.dumps({"traceEvents": events}).encode()


STEPS = 6_400
"""The steps of the session ``many_steps``, of which every 500th waits for three elements."""


def many_steps_profile() -> bytes:
    """A loop of very many short steps, some of which wait for their input."""
    built = SpaceBuilder()
    line = built.host().line("python")
    at = 0
    for step in range(STEPS):
        waits = [30, 30, 30] if step % 500 == 499 else [2 + step % 3]
        work = 7 + step % 5
        line.event("train", at * 10**6, (sum(waits) + work) * 10**6, {"_r": 1, "step_num": step})
        for wait in waits:
            line.event("Iterator::Root::Prefetch", at * 10**6, wait * 10**6)
            at += wait
        line.event("$train.py:30 augment", at * 10**6, work * 10**6)
        line.event(f"layer_{step % 5}/MatMul:MatMul", at * 10**6, (work - 2) * 10**6)
        at += work
    return bytes(built.space.SerializeToString())


def hostile_profile() -> bytes:
    """Steps, ops and memory whose every name is markup that would run a script."""
    built = SpaceBuilder()
    line = built.host().line(HOSTILE, timestamp_ns=1000)
    for step in range(3):
        start = step * 10**9
        line.event(f"{HOSTILE} {step}", start, 9 * 10**8, {"step_num": step, "_r": 1})
        line.event(HOSTILE, start + 10**8, 10**8, {HOSTILE: HOSTILE, "tf_op": f"{HOSTILE}:MatMul"})
        for order, (name, live) in enumerate(
            (("MemoryAllocation", 4096), ("MemoryDeallocation", 0))
        ):
            line.event(
                name,
                start + (2 + order) * 10**8,
                1000,
                {
                    "allocator_name": HOSTILE, "bytes_allocated": live, "bytes_available": 1 << 20,
                    "bytes_reserved": 0, "peak_bytes_in_use": 4096, "requested_bytes": 4000,
                    "allocation_bytes": 4096,
                    "addr": 4096 + step,
                    "fragmentation": 0.0, "tf_op": HOSTILE, "region_type": HOSTILE, "data_type": 1,
                    "tensor_shapes": HOSTILE,
                },
            )  # fmt: skip
    return bytes(built.space.SerializeToString())


MADE: dict[str, Callable[[], bytes]] = {
    "attacks": lambda: rich("leak.xplane.pb").content,
    "damaged": lambda: b"\x0a\xff\xff\xff\xff\x07no",
    "gpus": gpu_profile,
    "kernels": kernel_profile,
    "many_steps": many_steps_profile,
    "threads": thread_profile,
    HOSTILE: hostile_profile,
}
"""What makes the file of each session that has no sample, by its name."""


def _session(logdir: Path, name: str) -> Path:
    place = logdir / "plugins" / "profile" / name
    place.mkdir(parents=True)
    return place


def _link(file: Path, place: Path) -> None:
    """The same content without a copy, where the file system can."""
    try:
        os.link(file, place)
    except OSError:
        shutil.copyfile(file, place)
