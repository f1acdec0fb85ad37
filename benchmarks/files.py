"""Files of all formats: Peakline against XProf, TensorFlow and protobuf on the same files.

    python benchmarks/files.py --peers .venv-peers/bin/python --data bench-data

Every measurement is a whole fresh process, from its start to its exit, writing its answer to a
file. Peakline and the others take turns, so that a change of the machine's pace meets all. XProf
keeps cache files beside its input: every run gets its own new folder with a hard link to the
data. Prints one JSON document.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import sys
import tempfile
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

from inputs import LARGE, LARGEST, ROOT, SMALL, profile
from measure import ENOUGH, Run, run_once, summarise, turns

from formats import CASES, Case, make_file

_STEP_BETWEEN = "5 MB"
"""A profile of which memory_profile alone is asked, to show where the two programs meet."""

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
        self.ours = Path(sys.executable).with_name("peakline")
        self.peers = peers
        self.scratch = scratch

    def peakline(self, words: list[str], data: Path) -> Run:
        """``peakline WORDS`` with DATA in place of the word ``PATH``."""
        with _folder(self.scratch, data) as (path, answer):
            places = {"PATH": str(path), "ANSWER": str(answer)}
            return run_once([self.ours, *(places.get(word, word) for word in words)])

    def tool(self, data: Path, outputs: list[object]) -> Run:
        """Peakline's memory_profile tool, called as XProf's is, from Python.

        What it answered is added to ``outputs``.
        """
        with _folder(self.scratch, data) as (path, answer):
            run = run_once([sys.executable, "-c", _PEAKLINE, path, answer])
            outputs.append(_essence(answer))
            return run

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


def _warm_up(path: Path) -> None:
    """Bring the file into the page cache."""
    with path.open("rb") as file:
        while file.read(1 << 20):
            pass


def _repeat(times: int, *measures: Callable[[], Run], enough: int = ENOUGH) -> list[list[Run]]:
    """Run the measures in `turns`; a failed process ends the benchmark."""
    runs: list[list[Run]] = [[] for _ in measures]
    for _ in turns(times, runs, enough):
        for chosen, measure in zip(runs, measures, strict=True):
            run = measure()
            if run.exit_code:
                raise SystemExit(f"exit code {run.exit_code}: {run.stderr.strip()[-2000:]}")
            chosen.append(run)
    return runs


def _row(name: str, path: Path, command: str, program: str, runs: list[Run]) -> dict[str, Any]:
    """One measured command on one file."""
    result = {"file": name, "bytes": path.stat().st_size, "command": command, "program": program}
    return result | asdict(summarise(runs))


def measure_tool(bench: Bench, name: str, path: Path, repeats: int) -> list[dict[str, Any]]:
    """Both programs' memory_profile on one file; raises SystemExit when the answers differ."""
    ours: list[object] = []
    theirs: list[object] = []
    measures = (lambda: bench.tool(path, ours), lambda: bench.xprof(path, theirs))
    # However slow XProf is: that is the figure that matters most.
    runs = _repeat(repeats, *measures, enough=repeats)
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
    message = re.sub(r"(?:/[^/]+)*/vm\.xplane\.pb", "FILE", message.rpartition("] ")[2])
    outcome = "timed out" if said.timed_out else f"exit code {said.exit_code}"
    return [row], f"{name}: no answer from XProf, {outcome} after {said.wall_s:.1f} s: `{message}`"


def measure_verbs(bench: Bench, name: str, path: Path, repeats: int) -> list[dict[str, Any]]:
    """``peakline memory``, ``summary`` and ``steps``, as a person calls them."""
    verbs = ("memory", "summary", "steps")
    enough = 1 if name == LARGEST else ENOUGH
    runs = _repeat(
        repeats,
        *(lambda verb=verb: bench.peakline([verb, "PATH"], path) for verb in verbs),
        enough=enough,
    )
    return [
        _row(name, path, verb, "Peakline", chosen) for verb, chosen in zip(verbs, runs, strict=True)
    ]


def measure_answers(bench: Bench, name: str, path: Path, repeats: int) -> list[dict[str, Any]]:
    """The report, and once the profile written for other tools, which takes long."""
    rows = []
    for times, words in (
        (repeats, ["report", "PATH", "-o", "ANSWER"]),
        (1, ["export", "PATH", "--to", "chrome-trace", "-o", "ANSWER"]),
        (1, ["export", "PATH", "--to", "perfetto", "-o", "ANSWER"]),
        (1, ["export", "PATH", "--to", "parquet", "-o", "ANSWER"]),
    ):
        runs = _repeat(times, lambda words=words: bench.peakline(words, path))
        command = " ".join(words).removesuffix(" -o ANSWER").replace(" PATH", "")
        rows.append(_row(name, path, command, "Peakline", runs[0]))
    return rows


def measure_case(bench: Bench, case: Case, data: Path, repeats: int) -> list[dict[str, Any]]:
    """Both programs on one question; raises SystemExit when a program fails or they differ."""
    path = make_file(case, data)
    _warm_up(path)
    ours, theirs, again = list[Run](), list[Run](), list[Run]()

    def ask(python: Path, code: str, folder: Path, name: str) -> Run:
        run = bench.ask(python, code, path, folder, folder / name)
        if run.exit_code:
            raise SystemExit(f"{case.file}: {run.stderr.strip()[-2000:]}")
        return run

    for _ in turns(repeats, [ours, theirs]):
        with tempfile.TemporaryDirectory(dir=bench.scratch) as place:
            folder = Path(place)
            if not ours:
                # Not counted: that one brings its modules into the page cache.
                ask(Path(sys.executable), case.ours, folder, "ours")
            ours.append(ask(Path(sys.executable), case.ours, folder, "ours"))
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


def measure_profile(bench: Bench, name: str, path: Path, repeats: int) -> list[dict[str, Any]]:
    """Everything that is asked of a profile that XProf can read too."""
    rows = measure_tool(bench, name, path, repeats)
    if name != _STEP_BETWEEN:
        rows += measure_verbs(bench, name, path, repeats)
    if name == LARGE:
        rows += measure_answers(bench, name, path, repeats)
    return rows


def main() -> int:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--peers", type=Path, required=True, help="Python that has XProf")
    parser.add_argument("--data", type=Path, default=ROOT / "bench-data", help="folder for data")
    parser.add_argument("--repeats", type=int, default=5, help="runs of each command")
    parser.add_argument("--no-large", dest="large", action="store_false", help="skip 3 GiB")
    parser.add_argument("--only", nargs="+", help="files with these names, to try something")
    options = parser.parse_args()
    rows: list[dict[str, Any]] = []
    too_large = None

    def is_wanted(name: str) -> bool:
        return (options.large or name != LARGEST) and name in (options.only or [name])

    with tempfile.TemporaryDirectory(dir=options.data) as scratch:
        # Links are not followed: a virtual environment is found by the path that was called.
        bench = Bench(Path.cwd() / options.peers, Path(scratch))
        # Not counted: these bring the modules into the page cache.
        measure_profile(bench, SMALL, profile(options.data, SMALL), 1)
        for name in filter(is_wanted, (SMALL, _STEP_BETWEEN, "40 MB", LARGE, LARGEST)):
            print(f"measuring {name}", file=sys.stderr, flush=True)
            path = profile(options.data, name)
            _warm_up(path)
            if name == LARGEST:
                few = min(options.repeats, 2)
                more, too_large = measure_large(bench, name, path, few)
                rows += more + measure_verbs(bench, name, path, few)
            else:
                rows += measure_profile(bench, name, path, options.repeats)
        for case in CASES:
            if is_wanted(case.file):
                print(f"measuring {case.file}: {case.question}", file=sys.stderr, flush=True)
                few = 2 if case.file == LARGEST else ENOUGH if case.make else options.repeats
                rows += measure_case(bench, case, options.data, min(options.repeats, few))
    print(json.dumps({"rows": rows, "too_large": too_large}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
