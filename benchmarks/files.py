"""Files of all formats: Peakline against XProf, TensorFlow and protobuf on the same files.

    python benchmarks/files.py --peers .venv-peers/bin/python --data bench-data

Every measurement is a whole fresh process, from its start to its exit, writing its answer to a
file. Peakline and the others take turns, so that a change of the machine's pace meets all. XProf
keeps cache files beside its input: every run gets its own new folder with a hard link to the
data. The first run after installing is a case of its own. Prints one JSON document.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

from formats import CASES, Case, make_file
from inputs import ROOT, real, scaled
from measure import Run, run_once, summarise

_XPROF = """
import sys
from xprof.convert import raw_to_tool_data
data, _ = raw_to_tool_data.xspace_to_tool_data([sys.argv[1]], "memory_profile", {})
if data is None:
    sys.exit("no answer")
with open(sys.argv[2], "wb") as file:
    file.write(data if isinstance(data, bytes) else data.encode())
"""

_PEAKLINE = """
import sys
import peakline
with peakline.open(sys.argv[1]) as profile:
    data = profile.tool("memory_profile").content
with open(sys.argv[2], "wb") as file:
    file.write(data)
"""


class Bench:
    """The two environments and a folder for the runs on the same file system as the data."""

    def __init__(self, peers: Path, scratch: Path) -> None:
        # Links are not followed: a virtual environment is found by the path that was called.
        self.ours = Path(sys.executable).with_name("peakline")
        self.peers = peers
        self.scratch = scratch

    def peakline(self, words: list[str], data: Path, package: Path | None = None) -> Run:
        """``peakline WORDS`` with DATA in place of the word ``PATH``, from another ``package``."""
        with _folder(self.scratch, data) as (path, answer):
            places = {"PATH": str(path), "ANSWER": str(answer)}
            command = [self.ours, *(places.get(word, word) for word in words)]
            return run_once(command, env=_from(package))

    def tool(self, data: Path, outputs: list[object], package: Path | None = None) -> Run:
        """Peakline's memory_profile tool, called as XProf's is, from Python.

        What it answered is added to ``outputs``. ``package`` is another folder to import it from.
        """
        with _folder(self.scratch, data) as (path, answer):
            command = [sys.executable, "-c", _PEAKLINE, path, answer]
            run = run_once(command, env=_from(package))
            outputs.append(_essence(answer))
            return run

    def warm_up(self, data: Path) -> None:
        """Bring the file into the page cache, and what reads it."""
        _repeat(1, lambda: self.tool(data, []), lambda: self.peakline(["memory", "PATH"], data))

    def xprof(self, data: Path, outputs: list[object], limit_s: float = 900) -> Run:
        """XProf's memory_profile tool; what it answered is added to ``outputs``."""
        with _folder(self.scratch, data) as (path, answer):
            run = run_once([self.peers, "-c", _XPROF, path, answer], limit_s=limit_s)
            outputs.append(_essence(answer))
            return run

    def ask(self, python: Path, code: str, data: Path, folder: Path, answer: Path) -> Run:
        """Run ``code`` with the file and the place for the answer; caches stay in ``folder``."""
        return run_once([python, "-c", code, data, answer], env={"TMPDIR": str(folder)})


class _folder:  # noqa: N801 (used like a function)
    """A new folder with a hard link to the data under a host's file name, removed afterwards."""

    def __init__(self, scratch: Path, data: Path) -> None:
        self.path = Path(tempfile.mkdtemp(dir=scratch))
        os.link(data, self.path / "vm.xplane.pb")

    def __enter__(self) -> tuple[Path, Path]:
        return self.path / "vm.xplane.pb", self.path / "answer.json"

    def __exit__(self, *_: object) -> None:
        shutil.rmtree(self.path)


def _essence(answer: Path) -> object:
    """What both answers must have in common, per allocator; None when there is no answer."""
    if not answer.exists():
        return None
    profile = json.loads(answer.read_bytes())
    return {
        memory_id: {
            "sampled snapshots": len(memory["sampledTimelineSnapshots"]),
            "active allocations": len(memory["activeAllocations"]),
            "special allocations": memory["specialAllocations"],
            "summary": memory["profileSummary"],
            "steps": sorted(
                {row["activityMetadata"]["stepId"] for row in memory["sampledTimelineSnapshots"]}
            ),
        }
        for memory_id, memory in profile["memoryProfilePerAllocator"].items()
    }


def _repeat(times: int, *measures: Callable[[], Run]) -> list[list[Run]]:
    """Run the measures in turn, ``times`` times; a failed process ends the benchmark."""
    runs: list[list[Run]] = [[] for _ in measures]
    for _ in range(times):
        for kept, measure in zip(runs, measures, strict=True):
            run = measure()
            if run.exit_code:
                raise SystemExit(f"exit code {run.exit_code}: {run.stderr.strip()[-2000:]}")
            kept.append(run)
    return runs


def _row(name: str, path: Path, command: str, program: str, runs: list[Run]) -> dict[str, Any]:
    """One measured command on one file."""
    told = {"file": name, "bytes": path.stat().st_size, "command": command, "program": program}
    return told | asdict(summarise(runs))


def measure_tool(bench: Bench, name: str, path: Path, repeats: int) -> list[dict[str, Any]]:
    """Both programs' memory_profile on one file; raises SystemExit when the answers differ."""
    ours: list[object] = []
    theirs: list[object] = []
    runs = _repeat(repeats, lambda: bench.tool(path, ours), lambda: bench.xprof(path, theirs))
    if any(answer != ours[0] for answer in ours + theirs) or ours[0] is None:
        raise SystemExit(f"{name}: the answers differ:\n{ours[0]}\n{theirs[0]}")
    return [
        _row(name, path, "memory_profile", "Peakline", runs[0]),
        _row(name, path, "memory_profile", "XProf", runs[1]),
    ]


def measure_large(
    bench: Bench, name: str, path: Path, repeats: int
) -> tuple[list[dict[str, Any]], str]:
    """The file that protobuf libraries cannot read; also returns what XProf says about it."""
    runs = _repeat(repeats, lambda: bench.tool(path, []))
    row = _row(name, path, "memory_profile", "Peakline", runs[0])
    said = bench.xprof(path, [], limit_s=300)
    if not said.exit_code:
        return [row], f"{name}: XProf answered after {said.wall_s:.1f} s."
    words = [line for line in said.stderr.splitlines() if line.strip()]
    message = next((line for line in words if "parse" in line), words[-1] if words else "")
    message = re.sub(r"\S*/vm\.xplane\.pb", "FILE", message.rpartition("] ")[2])
    outcome = "timed out" if said.timed_out else f"exit code {said.exit_code}"
    return [row], f"{name}: no answer from XProf, {outcome} after {said.wall_s:.1f} s: `{message}`"


def measure_memory(bench: Bench, name: str, path: Path, repeats: int) -> list[dict[str, Any]]:
    """``peakline memory`` as a person and as a script calls it."""
    rows = []
    for words in (["memory", "PATH"], ["memory", "PATH", "--json"]):
        runs = _repeat(repeats, lambda words=words: bench.peakline(words, path))
        command = " ".join(words).replace(" PATH", "")
        rows.append(_row(name, path, command, "Peakline", runs[0]))
    return rows


def measure_answers(bench: Bench, name: str, path: Path, repeats: int) -> list[dict[str, Any]]:
    """The report, and the profile written for other tools."""
    rows = []
    for words in (
        ["report", "PATH", "-o", "ANSWER"],
        ["export", "PATH", "--to", "chrome-trace", "-o", "ANSWER"],
        ["export", "PATH", "--to", "perfetto", "-o", "ANSWER"],
        ["export", "PATH", "--to", "parquet", "-o", "ANSWER"],
    ):
        # The first one brings its modules into the page cache.
        runs = _repeat(repeats + 1, lambda words=words: bench.peakline(words, path))[0][1:]
        command = " ".join(words).removesuffix(" -o ANSWER").replace(" PATH", "")
        rows.append(_row(name, path, command, "Peakline", runs))
    return rows


def measure_case(bench: Bench, case: Case, data: Path, repeats: int) -> list[dict[str, Any]]:
    """Both programs on one question; raises SystemExit when a program fails or they differ."""
    path = make_file(case, data)
    ours, theirs, again = list[Run](), list[Run](), list[Run]()

    def ask(python: Path, code: str, folder: Path, name: str) -> Run:
        run = bench.ask(python, code, path, folder, folder / name)
        if run.exit_code:
            raise SystemExit(f"{case.file}: {run.stderr.strip()[-2000:]}")
        return run

    for number in range(repeats + 1):
        with tempfile.TemporaryDirectory(dir=bench.scratch) as place:
            folder = Path(place)
            run = ask(Path(sys.executable), case.ours, folder, "ours")
            if number == 0:
                # That one brought its modules into the page cache.
                continue
            ours.append(run)
            if case.peer is None:
                continue
            theirs.append(ask(bench.peers, case.peer, folder, "theirs"))
            if case.again:
                again.append(ask(bench.peers, case.peer, folder, "theirs"))
            if not case.same(folder / "ours", folder / "theirs"):
                raise SystemExit(f"{case.file}: the answers differ")
    programs = {"Peakline": ours, case.peer_name: theirs, f"{case.peer_name}, asked again": again}
    return [
        _row(case.file, path, case.question, program, runs)
        for program, runs in programs.items()
        if runs
    ]


def _from(package: Path | None) -> dict[str, str]:
    """The environment in which Peakline is imported from ``package``, where one is given."""
    return {} if package is None else {"PYTHONPATH": str(package)}


def measure_first(bench: Bench, name: str, path: Path, repeats: int) -> list[dict[str, Any]]:
    """The very first runs of an installation, each installed anew from the wheel."""

    def installed() -> Path:
        folder = Path(tempfile.mkdtemp(dir=bench.scratch))
        pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps"]
        (wheel,) = (ROOT / "build" / "wheel").glob("peakline-*.whl")
        subprocess.run([*pip, "--target", folder, wheel], check=True, capture_output=True)
        return folder

    tool, memory = _repeat(
        repeats,
        lambda: bench.tool(path, [], installed()),
        lambda: bench.peakline(["memory", "PATH"], path, installed()),
    )
    return [
        _row(name, path, "memory_profile, first run", "Peakline", tool),
        _row(name, path, "memory, first run", "Peakline", memory),
    ]


def main() -> int:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--peers", type=Path, required=True, help="Python that has XProf")
    parser.add_argument("--data", type=Path, default=ROOT / "bench-data", help="folder for data")
    parser.add_argument("--repeats", type=int, default=5, help="runs of each command")
    parser.add_argument("--no-large", dest="large", action="store_false", help="skip 3 GiB")
    options = parser.parse_args()
    few = min(options.repeats, 3)
    too_large = None
    files = {"1 MB (real)": real(options.data)}
    for name in ("40 MB", "390 MB", *(["3 GiB"] if options.large else [])):
        files[name] = scaled(options.data, name.replace(" ", ""))
    with tempfile.TemporaryDirectory(dir=options.data) as scratch:
        bench = Bench(Path.cwd() / options.peers, Path(scratch))
        rows = measure_first(bench, "1 MB (real)", files["1 MB (real)"], few)
        for name, path in files.items():
            print(f"measuring {name}", file=sys.stderr, flush=True)
            bench.warm_up(path)
            if name == "3 GiB":
                more, too_large = measure_large(bench, name, path, min(options.repeats, 2))
                rows += more
                rows += measure_memory(bench, name, path, 1)
            else:
                rows += measure_tool(bench, name, path, options.repeats)
                rows += measure_memory(bench, name, path, options.repeats)
            if name == "390 MB":
                rows += measure_answers(bench, name, path, few)
        for case in CASES:
            print(f"measuring {case.file}: {case.question}", file=sys.stderr, flush=True)
            rows += measure_case(bench, case, options.data, few)
    print(json.dumps({"rows": rows, "too_large": too_large}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
