"""The parts of the benchmark: a program each, which prints what it measured as JSON."""

from __future__ import annotations

import datetime as dt
import json
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import browser
import installed
from inputs import LARGE, ROOT, profile
from measure import commit, load, machine, version
from results import Record

_OURS = ("peakline", "numpy")
_XPROF = ("xprof", "tensorflow-cpu", "protobuf")


@dataclass(frozen=True)
class Wanted:
    """What the command line asks of every part: folders, and how often."""

    data: Path
    peers: Path | None
    repeats: int | None
    large: bool


@dataclass(frozen=True)
class Part:
    """One part's program, its words, and the packages whose versions matter, ours and XProf's.

    The words PEERS, DATA, FILE (the profile of 386 MB) and REPEATS stand for what is wanted;
    ``repeats`` is how often where that is not said. ``missing`` says what there is not and must
    be.
    """

    program: str
    words: tuple[str, ...]
    repeats: int | None = None
    has_large: bool = False
    packages: tuple[str, ...] = _OURS
    peers: tuple[str, ...] = ()
    missing: Callable[[], str | None] = lambda: None


PARTS = {
    "files": Part(
        "files.py",
        ("--peers", "PEERS", "--data", "DATA", "--repeats", "REPEATS"),
        repeats=5,
        has_large=True,
        packages=(*_OURS, "pyarrow", "duckdb"),
        peers=_XPROF,
    ),
    "install": Part(
        "installed.py",
        ("--data", "DATA", "--repeats", "REPEATS"),
        repeats=5,
        missing=installed.missing,
    ),
    "lifetimes": Part("lifetimes.py", ("--repeats", "REPEATS"), repeats=5),
    "replay": Part("replay.py", ("--repeats", "REPEATS"), repeats=3),
    "programs": Part(
        "programs.py",
        ("--peers", "PEERS", "--data", "DATA", "--repeats", "REPEATS"),
        repeats=5,
        peers=_XPROF,
    ),
    "service": Part(
        "service.py",
        ("--peers", "PEERS", "--data", "DATA", "--repeats", "REPEATS"),
        repeats=3,
        packages=(*_OURS, "grpcio", "uvicorn"),
        peers=_XPROF,
    ),
    "load": Part(
        "load.py",
        ("--peers", "PEERS", "--data", "DATA", "--repeats", "REPEATS"),
        repeats=2,
        packages=(*_OURS, "grpcio", "uvicorn"),
        peers=_XPROF,
    ),
    "time": Part(
        "time_tools.py",
        ("--peers", "PEERS", "--data", "DATA", "--repeats", "REPEATS"),
        repeats=5,
        has_large=True,
        peers=_XPROF,
    ),
    "timeline": Part("timeline.py", ("FILE",)),
    "hosts": Part("hosts.py", ("--repeats", "REPEATS"), repeats=3),
    "jobs": Part(
        "jobs.py",
        ("--peers", "PEERS", "--repeats", "REPEATS"),
        repeats=3,
        packages=(*_OURS, "distributed"),
        peers=("HolisticTraceAnalysis", "pandas"),
    ),
    "page": Part(
        "page.py",
        ("--peers", "PEERS", "--repeats", "REPEATS", "FILE"),
        repeats=2,
        packages=(*_OURS, "playwright"),
        peers=_XPROF,
        missing=browser.missing,
    ),
    "views": Part(
        "views.py",
        ("--peers", "PEERS", "--data", "DATA", "--repeats", "REPEATS"),
        repeats=3,
        packages=(*_OURS, "playwright"),
        peers=_XPROF,
        missing=browser.missing,
    ),
}


class Failed(Exception):
    """A part's program ended with an error, which it has told."""


def measure(name: str, wanted: Wanted) -> Record:
    """Run a part's program; raises `Failed`. What it says while it works goes to standard error."""
    part = PARTS[name]
    repeats = wanted.repeats or part.repeats
    places = {
        "PEERS": str(wanted.peers),
        "DATA": str(wanted.data),
        "REPEATS": str(repeats),
        "FILE": str(profile(wanted.data, LARGE)) if "FILE" in part.words else "",
    }
    large = [] if wanted.large or not part.has_large else ["--no-large"]
    versions = {"Python": sys.version.split()[0]}
    versions |= {package: version(sys.executable, package) for package in part.packages}
    for package in part.peers:
        versions[f"{package} (peers)"] = version(str(wanted.peers), package)
    facts, of = machine() | {"Load before": load()}, commit(ROOT)
    program = ROOT / "benchmarks" / part.program
    words = [*(places.get(word, word) for word in part.words), *large]
    begin = time.monotonic()
    done = subprocess.run([sys.executable, program, *words], stdout=subprocess.PIPE, check=False)
    if done.returncode:
        raise Failed(f"{part.program} ended with {done.returncode}")
    seconds = time.monotonic() - begin
    said = ["--peers PYTHON"] if part.peers else []
    said += [f"--only {name}", *([f"--repeats {repeats}"] if part.repeats else []), *large]
    return Record(
        name,
        dt.datetime.now(dt.UTC).date().isoformat(),
        f"python benchmarks/run.py {' '.join(said)}",
        facts | {"Load after": load()},
        versions,
        json.loads(done.stdout),
        of,
        round(seconds, 1),
    )
