"""Runs a command as a fresh process and measures the whole of it."""

from __future__ import annotations

import os
import platform
import statistics
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

SLOW_S = 30.0
ENOUGH = 3
"""Of a question that takes a program longer than `SLOW_S`, so many runs are enough."""


@dataclass(frozen=True)
class Run:
    """One process: wall time and CPU time in seconds, peak resident memory in bytes."""

    wall_s: float
    cpu_s: float
    peak_bytes: int
    exit_code: int
    timed_out: bool
    stdout: bytes
    stderr: str


@dataclass(frozen=True)
class Summary:
    """Median, least and most of several runs."""

    runs: int
    wall_s: float
    wall_least_s: float
    wall_most_s: float
    cpu_s: float
    peak_bytes: int


def run_once(
    command: Sequence[str | Path], *, env: Mapping[str, str] | None = None, limit_s: float = 900
) -> Run:
    """Run ``command`` to its end, from start to exit, and ask the kernel what it used.

    The peak resident memory is ``ru_maxrss`` of that one process. Linux counts the memory of the
    process that forks as well, so the caller must be small; this module imports nothing big.
    """
    environment = {**os.environ, **(env or {})}
    # Modules are compiled to bytecode once, as they are for everybody who does not forbid it.
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        begin = time.perf_counter()
        process = subprocess.Popen(
            [str(word) for word in command],
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=err,
            env=environment,
        )
        timed_out = False
        while True:
            pid, status, usage = os.wait4(process.pid, os.WNOHANG)
            wall_s = time.perf_counter() - begin
            if pid:
                break
            if wall_s > limit_s and not timed_out:
                timed_out = True
                process.kill()
            time.sleep(0.001)
        process.returncode = os.waitstatus_to_exitcode(status)
        out.seek(0)
        err.seek(0)
        return Run(
            wall_s,
            usage.ru_utime + usage.ru_stime,
            usage.ru_maxrss * 1024,
            process.returncode,
            timed_out,
            out.read(),
            err.read().decode(errors="replace"),
        )


def turns(most: int, runs: Sequence[Sequence[Run]], enough: int = ENOUGH) -> Iterator[int]:
    """Count ``most`` rounds, or ``enough`` where one of ``runs``, which grow meanwhile, is slow."""
    for number in range(most):
        is_slow = any(run.wall_s > SLOW_S for chosen in runs for run in chosen)
        if number >= enough and is_slow:
            return
        yield number


def summarise(runs: Sequence[Run]) -> Summary:
    """Medians of ``runs``, which must not be empty."""
    walls = [run.wall_s for run in runs]
    return Summary(
        len(runs),
        statistics.median(walls),
        min(walls),
        max(walls),
        statistics.median(run.cpu_s for run in runs),
        int(statistics.median(run.peak_bytes for run in runs)),
    )


def machine() -> dict[str, str]:
    """What it ran on, in words."""
    cpu = next(
        (
            line.partition(":")[2].strip()
            for line in Path("/proc/cpuinfo").read_text().splitlines()
            if line.startswith("model name")
        ),
        platform.processor() or platform.machine(),
    )
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    system = platform.freedesktop_os_release().get("PRETTY_NAME", platform.system())
    return {
        "CPU": cpu,
        "Cores": str(len(os.sched_getaffinity(0))),
        "Memory": f"{memory / 2**30:.1f} GiB",
        "System": f"{system}, Linux {platform.release()}",
    }


def load() -> str:
    """The load average of the last minute."""
    return f"{os.getloadavg()[0]:.2f}"


def commit(root: Path) -> str:
    """The commit that is checked out, ``-dirty`` where files differ from it; empty without git.

    What the benchmark itself writes does not count.
    """
    own = [":!benchmarks/results", ":!benchmarks/RESULTS.md"]
    head = run_once(["git", "-C", root, "rev-parse", "--short", "HEAD"])
    changed = run_once(["git", "-C", root, "status", "--porcelain", "--", ".", *own])
    name = head.stdout.decode().strip()
    return f"{name}-dirty" if name and changed.stdout else name


def version(python: str | Path, package: str) -> str:
    """The version of a package in the environment of an interpreter; empty where it is not."""
    code = f"from importlib.metadata import version; print(version({package!r}))"
    return run_once([python, "-c", code]).stdout.decode().strip()
