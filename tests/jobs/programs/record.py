"""Records the jobs of this folder: ``record.py NAME... --torch PYTHON --tf PYTHON --jax PYTHON``.

Each variant runs ``--repeats`` times, a process for each rank, as ``train.py`` of a neutral folder,
and the run whose steps are in the middle is stored in ``tests/data/jobs/NAME/VARIANT``. The truth
beside them has what was planted, what the ranks' own clocks said, and of all repeats of the healthy
twin what a step took.
"""

from __future__ import annotations

import argparse
import gzip
import itertools
import json
import os
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
DATA = HERE.parents[1] / "data" / "jobs"
PLACE = Path(tempfile.gettempdir()) / "project"
_CAPTURE = """
import os, sys, time
import tensorflow as tf
while not all(os.path.exists(f"{sys.argv[1]}/ready_{rank}") for rank in (0, 1)):
    time.sleep(0.05)
options = tf.profiler.experimental.ProfilerOptions(host_tracer_level=2, python_tracer_level=0)
tf.profiler.experimental.client.trace(sys.argv[2], sys.argv[1], 1000, options=options)
"""


@dataclass(frozen=True)
class Recorded:
    """A job: its program and frame, how many ranks it has, how files are named, what is planted."""

    program: str
    kind: str
    frame: str
    ranks: int
    names: str
    root: dict[str, Any]
    groups: str


JOBS = {
    "ddp_input": Recorded(
        "torch_job.py", "ddp", "torch", 4, "rank{rank}.json.gz",
        {"rank": 2, "cause": "slow input", "what": "the loader's batches take 120 ms, not 30"},
        "data parallel",
    ),
    "ddp_host": Recorded(
        "torch_job.py", "host", "torch", 2, "trace_rank_{rank}.json.gz",
        {"rank": 1, "cause": "slow host", "what": "train.py augment() takes 90 ms, not 2"},
        "data parallel",
    ),
    "ddp_fat": Recorded(
        "torch_job.py", "fat", "torch", 4, "rank_{rank}/trace.json.gz",
        {"rank": 0, "cause": "memory", "what": "rank 0 holds a copy of 200 batches in each step"},
        "data parallel",
    ),
    "fsdp_host": Recorded(
        "torch_job.py", "fsdp", "torch", 4, "handler",
        {"rank": 1, "cause": "slow host", "what": "augment() takes 90 ms, not 2"},
        "fully sharded (fully_shard)",
    ),
    "pipeline_stage": Recorded(
        "torch_job.py", "pipeline", "torch", 4, "rank-{rank}.trace.json.gz",
        {"rank": 2, "cause": "more work", "what": "10 further matrix products each microbatch"},
        "four stages of Schedule1F1B, 4 microbatches",
    ),
    "mesh_work": Recorded(
        "torch_job.py", "mesh", "torch", 4, "dp{dp}_tp{tp}.json.gz",
        {"rank": 3, "cause": "more work", "what": "30 further matrix products in each step"},
        "2 x 2: fully_shard over dp, tensor parallel over tp",
    ),
    "tf_workers": Recorded(
        "tf_worker.py", "", "tf", 2, "",
        {"rank": 1, "cause": "slow input", "what": "the generator's batches take 100 ms, not 30"},
        "MultiWorkerMirroredStrategy",
    ),
    "jax_devices": Recorded(
        "jax_devices.py", "", "jax", 4, "x",
        {"rank": 2, "cause": "more work", "what": "device 2 has 60 rounds of its loop, not 3"},
        "shard_map over four devices of one process",
    ),
}  # fmt: skip


def run(job: Recorded, variant: str, python: str, out: Path) -> bool:
    """Run a job once into a folder, and say whether all ranks came to their end."""
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir()
    shutil.rmtree(PLACE, ignore_errors=True)
    PLACE.mkdir()
    shutil.copyfile(HERE / job.program, PLACE / "train.py")
    processes = 1 if job.frame == "jax" else job.ranks
    # The files of a capture are named by port: in order of the ranks.
    ports = sorted(_free_port() for _ in range(5))
    shared = {
        **os.environ, "WORLD_SIZE": str(processes), "VARIANT": variant, "OUT": str(out),
        "NAMES": job.names, "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(ports[0]),
        "GLOO_SOCKET_IFNAME": "lo", "PORTS": f"{ports[1]},{ports[2]}",
        "CUDA_VISIBLE_DEVICES": "-1", "TF_ENABLE_ONEDNN_OPTS": "0", "JAX_PLATFORMS": "cpu",
        "XLA_FLAGS": "--xla_force_host_platform_device_count=4", "TF_CPP_MIN_LOG_LEVEL": "2",
    }  # fmt: skip
    commands = [
        ([python, "train.py", job.kind], {"RANK": str(rank), "PROFILER": str(ports[3 + rank % 2])})
        for rank in range(processes)
    ]
    if job.frame == "tf":
        servers = ",".join(f"grpc://localhost:{port}" for port in ports[3:])
        commands.append(([python, "-c", _CAPTURE, str(out), servers], {}))
    running = [
        subprocess.Popen(
            command, env=shared | own, cwd=PLACE, stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        for command, own in commands
    ]  # fmt: skip
    for process in running:
        process.wait(180)
    return len(list(out.glob("clock_*.json"))) == processes


def _free_port() -> int:
    with socket.socket() as opened:
        opened.bind(("127.0.0.1", 0))
        return opened.getsockname()[1]


def step_times(out: Path) -> dict[int, list[float]]:
    """The ms that each rank's own clock said of its steps."""
    result = {}
    for path in sorted(out.glob("clock_*.json")):
        clock = json.loads(path.read_text())
        ends = clock["ends_ns"]
        steps = [(after - before) / 1e6 for before, after in itertools.pairwise(ends)]
        result[clock["rank"]] = [round(step, 3) for step in steps]
    return result


def middle(steps: dict[int, list[float]]) -> float:
    """The step time of a job: of each step the middle rank, of these the middle."""
    return statistics.median(statistics.median(each) for each in zip(*steps.values(), strict=False))


def profiles(out: Path) -> list[Path]:
    """The profiles in a run's folder."""
    # JAX also writes what a viewer shows of its XSpace.
    return sorted(out.rglob("*.xplane.pb")) or sorted(out.rglob("*.json.gz"))


def store(out: Path, target: Path) -> dict[str, str]:
    """Store a run's profiles, and say which rank each is of."""
    shutil.rmtree(target, ignore_errors=True)
    files = {}
    for place, source in enumerate(profiles(out)):
        whole = source.read_bytes()
        rank: object = place
        if source.suffix == ".gz":
            whole = gzip.decompress(whole)
            rank = json.loads(whole)["distributedInfo"]["rank"]
        name = str(source.relative_to(out)).removesuffix(".gz") + ".gz"
        path = target / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(gzip.compress(whole, 9, mtime=0))
        files[str(rank)] = f"{target.name}/{name}"
    return dict(sorted(files.items()))


def peaks(target: Path, files: dict[str, str]) -> dict[str, int]:
    """The most that each rank's allocator had, of what the trace itself says."""
    result = {}
    for rank, name in files.items():
        trace = json.loads(gzip.decompress((target / name).read_bytes()))
        totals = [
            event["args"]["Total Allocated"]
            for event in trace["traceEvents"]
            if event["name"] == "[memory]"
        ]
        result[rank] = max(totals)
    return result


def record(name: str, python: str, repeats: int) -> None:
    """Record both variants of a job."""
    job = JOBS[name]
    target = DATA / name
    truth: dict[str, Any] = {
        "program": f"tests/jobs/programs/{job.program} {job.kind}".strip(),
        "parallel": job.groups,
        "ranks": job.ranks,
    }
    for variant in ("faulty", "healthy"):
        with tempfile.TemporaryDirectory() as scratch:
            runs = []
            for attempt in range(repeats):
                out = Path(scratch) / str(attempt)
                # TensorFlow's workers crash in some captures.
                while not run(job, variant, python, out):
                    sys.stdout.write(f"{name} {variant}: not all ranks ended, again\n")
                runs.append((middle(step_times(out)), out))
                sys.stdout.write(f"{name} {variant} {runs[-1][0]:.1f} ms\n")
                sys.stdout.flush()
            runs.sort(key=lambda item: item[0])
            chosen = runs[len(runs) // 2][1]
            files = store(chosen, target / variant)
            said: dict[str, Any] = {
                "root": job.root if variant == "faulty" else None,
                "files": files,
                "step_ms": round(middle(step_times(chosen)), 3),
                "step_ms_of_runs": [round(value, 3) for value, _ in runs],
                "steps_ms": step_times(chosen),
            }
            if job.kind == "fat":
                said["peak_bytes"] = peaks(target, files)
            truth[variant] = said
    every = truth["healthy"]["step_ms_of_runs"]
    truth["without_ms"] = statistics.median(every)
    (target / "truth.json").write_text(json.dumps(truth, indent=1) + "\n", encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--torch", default=sys.executable)
    parser.add_argument("--tf", default=sys.executable)
    parser.add_argument("--jax", default=sys.executable)
    parser.add_argument("--repeats", type=int, default=3)
    options = parser.parse_args()
    for name in options.names or JOBS:
        record(name, getattr(options, JOBS[name].frame), options.repeats)


if __name__ == "__main__":
    main()
