"""The log directory that the page is tested on: a session for every kind of sample."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from tests.reference.xspace_builder import SpaceBuilder

__all__ = ["HOSTILE", "SAMPLES", "make_logdir"]

DATA = Path(__file__).parent.parent / "data"
PROGRAMS = (
    "busy_pipeline",
    "doubled_batch",
    "doubled_batch_healthy",
    "fragmentation",
    "huge_temporary",
    "leak_list",
    "time/eager_loop",
    "time/input_bound",
    "time/recompiling",
    "time/slow_step",
)
OTHERS = {
    "memory_log": "memory_log/session_default_allocator.log.gz",
    "memory_log_bfc": "memory_log/tf1_control_flow.log.gz",
    "oom_report": "oom_report/tf_bfc_oom.log.gz",
    "torch_trace": "chrome_trace/noleak.pt.trace.json.gz",
    "jax_heap": "pprof/device_memory.pprof.pb.gz",
    "run_metadata": "run_metadata/tf1_cnn_2.pb.gz",
    "graph": "graph_def/frozen.pb",
    "damaged": None,
}
"""Sessions of one host whose file is of another format than XSpace."""

HOSTILE = "<img src=x onerror=alert(1)>"
"""A session's name, and what everything in it is called."""

SAMPLES: dict[str, tuple[Path, ...]] = {
    **{
        place.parent.parent.parent.parent.name: tuple(sorted(place.parent.iterdir()))
        for place in sorted(DATA.glob("sessions/*/plugins/profile/*/*"))
    },
    **{name.rpartition("/")[2]: (DATA / "programs" / f"{name}.xplane.pb.gz",) for name in PROGRAMS},
    **{name: (DATA / place,) for name, place in OTHERS.items() if place is not None},
}
"""The files of every session, by its name: folders of ``tests/data/sessions``, and others."""


def make_logdir(logdir: Path, *names: str) -> Path:
    """Fill ``logdir`` with the samples called ``names`` (default: all, with two of its own)."""
    for name in names or SAMPLES:
        session = _session(logdir, name)
        for file in SAMPLES[name]:
            is_xspace = ".xplane.pb" in file.name
            _link(file, session / (file.name if is_xspace else "host.profile"))
    if not names:
        (_session(logdir, "damaged") / "host.xplane.pb").write_bytes(b"\x0a\xff\xff\xff\xff\x07no")
        (_session(logdir, HOSTILE) / "host.xplane.pb").write_bytes(hostile_profile())
    return logdir


def hostile_profile() -> bytes:
    """Steps, ops and memory whose every name is markup that would run a script."""
    built = SpaceBuilder()
    host = built.host()
    line = host.line(HOSTILE, timestamp_ns=1000)
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
                    "allocator_name": HOSTILE,
                    "bytes_allocated": live,
                    "bytes_available": 1 << 20,
                    "bytes_reserved": 0,
                    "peak_bytes_in_use": 4096,
                    "requested_bytes": 4000,
                    "allocation_bytes": 4096,
                    "addr": 4096 + step,
                    "fragmentation": 0.0,
                    "tf_op": HOSTILE,
                    "region_type": HOSTILE,
                    "data_type": 1,
                    "tensor_shapes": HOSTILE,
                },
            )
    return bytes(built.space.SerializeToString())


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
