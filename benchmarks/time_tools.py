"""Measures the tools of time against XProf's, whole processes that take turns.

    python benchmarks/time_tools.py --peers .venv-peers/bin/python --data bench-data

Prints JSON: rows of ``file``, ``bytes``, ``tool``, ``program`` and what `measure.summarise` gives.
Both programs are called from Python in a fresh process with the file in a folder of its own, since
XProf keeps tables beside its input, and write their answer to a file. Before a time counts, the
answers are compared: with ``compatible=xprof`` ours must say what XProf says. That run is measured
once; what takes turns with XProf is ours without that parameter. Ours alone is asked for the first
tile of the timeline, which XProf does not have, and about the file of 3 GiB, which XProf cannot
read, to show how time grows with the file; ``--no-large`` leaves that out.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
import tempfile
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from inputs import LARGE, LARGEST, ROOT, SMALL, profile
from measure import Run, run_once, summarise, turns


@dataclass(frozen=True)
class Question:
    """A tool with its parameters, and what both answers must have in common.

    Without ``essence`` XProf has no such tool.
    """

    name: str
    parameters: dict[str, str]
    essence: Callable[[Any], object] | None = None
    tool: str = ""


_OURS = """
import json, sys
import peakline
path, answer, tool, parameters = sys.argv[1:]
with peakline.open(path) as profile:
    content = profile.tool(tool, **json.loads(parameters)).content
with open(answer, "wb") as file:
    file.write(content)
"""
_THEIRS = """
import json, sys
from xprof.convert import raw_to_tool_data
path, answer, tool, parameters = sys.argv[1:]
options = {"use_saved_result": False, "trace_viewer_options": json.loads(parameters)}
data, _ = raw_to_tool_data.xspace_to_tool_data([path], tool, options)
with open(answer, "wb") as file:
    file.write(data if isinstance(data, bytes) else data.encode())
"""


def main() -> int:
    """Command line."""
    parser = argparse.ArgumentParser(description="Measure the tools of time against XProf's.")
    parser.add_argument("--peers", type=Path, required=True, help="Python that has XProf")
    parser.add_argument("--data", type=Path, default=ROOT / "bench-data", help="folder for data")
    parser.add_argument("--repeats", type=int, default=5, help="runs of each command")
    parser.add_argument("--no-large", dest="large", action="store_false", help="skip 3 GiB")
    parser.add_argument("--only", nargs="+", help="files with these names, to try something")
    options = parser.parse_args()
    rows: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory(dir=options.data) as scratch:
        bench = Bench(Path.cwd() / options.peers, Path(scratch))
        for name in (SMALL, "40 MB", LARGE, *([LARGEST] if options.large else [])):
            if name not in (options.only or [name]):
                continue
            path = profile(options.data, name)
            for question in QUESTIONS:
                print(f"measuring {question.name}, {name}", file=sys.stderr, flush=True)
                if name == LARGEST or question.essence is None:
                    rows += _alone(bench, question, name, path, options.repeats)
                else:
                    rows += _compared(bench, question, name, path, options.repeats)
    print(json.dumps(rows))
    return 0


class Bench:
    """XProf's Python, and a folder for the runs on the same file system as the data."""

    def __init__(self, peers: Path, scratch: Path) -> None:
        self.peers = peers
        self.scratch = scratch

    def ours(self, question: Question, path: Path, **more: str) -> tuple[Run, object]:
        """Our run, and the essence of its answer."""
        return self._run(Path(sys.executable), _OURS, question, path, more)

    def theirs(self, question: Question, path: Path) -> tuple[Run, object]:
        """XProf's run, and the essence of its answer."""
        return self._run(self.peers, _THEIRS, question, path, {})

    def _run(
        self, python: Path, code: str, question: Question, path: Path, more: dict[str, str]
    ) -> tuple[Run, object]:
        folder = Path(tempfile.mkdtemp(dir=self.scratch))
        try:
            data, answer = folder / "vm.xplane.pb", folder / "answer"
            os.link(path, data)
            parameters = json.dumps(question.parameters | more)
            tool = question.tool or question.name
            run = run_once([python, "-c", code, data, answer, tool, parameters])
            if run.exit_code:
                raise SystemExit(f"{question.name}: {run.stderr.strip()[-2000:]}")
            result = json.loads(answer.read_bytes()) if question.essence else None
            return run, question.essence(result) if question.essence else None
        finally:
            shutil.rmtree(folder)


def _compared(
    bench: Bench, question: Question, name: str, path: Path, repeats: int
) -> list[dict[str, Any]]:
    """Both programs in turn; raises SystemExit when the answers differ."""
    # The first run brings the modules and the file into the page cache.
    bench.ours(question, path)
    compatible, expected = bench.ours(question, path, compatible="xprof")
    ours, theirs = list[Run](), list[Run]()
    for _ in turns(repeats, [ours, theirs]):
        ours.append(bench.ours(question, path)[0])
        run, answer = bench.theirs(question, path)
        theirs.append(run)
        if answer != expected:
            raise SystemExit(f"{question.name}: the answers differ: {expected} {answer}")
    programs = {"Peakline": ours, "Peakline, compatible=xprof": [compatible], "XProf": theirs}
    return [_row(name, path, question, program, runs) for program, runs in programs.items()]


def _alone(
    bench: Bench, question: Question, name: str, path: Path, repeats: int
) -> list[dict[str, Any]]:
    """Ours alone: twice about the largest file, once where that is slow."""
    runs = list[Run]()
    most, enough = (min(repeats, 2), 1) if name == LARGEST else (repeats, repeats)
    for _ in turns(most, [runs], enough):
        runs.append(bench.ours(question, path)[0])
    return [_row(name, path, question, "Peakline", runs)]


def _overview(answer: Any) -> object:
    steps = answer[1]
    return len(steps["rows"]), steps["p"], answer[2]["p"], answer[3]["p"]["statement"]


def _ops(answer: Any) -> object:
    return [len(table["rows"]) for table in answer], answer[0]["rows"][:100]


def _events(answer: Any) -> object:
    shown = [event for event in answer["traceEvents"] if event.get("ph") == "X"]
    return len(shown), answer["fullTimespan"]


QUESTIONS = (
    Question("overview_page", {}, _overview),
    Question("framework_op_stats", {}, _ops),
    Question(
        "trace_viewer@", {"resolution": "8000", "start_time_ms": "0", "end_time_ms": "0"}, _events
    ),
    Question("timeline, first tile", {"view": "tile", "width": "1000"}, tool="timeline"),
)


def _row(
    name: str, path: Path, question: Question, program: str, runs: list[Run]
) -> dict[str, Any]:
    result = {"file": name, "bytes": path.stat().st_size, "tool": question.name, "program": program}
    return result | asdict(summarise(runs))


if __name__ == "__main__":
    sys.exit(main())
