"""Measures the tools of time against XProf's on one file, whole processes that take turns.

    python benchmarks/time_tools.py --peers .venv-peers/bin/python --data bench-data

Prints JSON: rows of ``file``, ``bytes``, ``tool``, ``program`` and what `measure.summarise` gives.
Both programs are called from Python in a fresh process with the file in a folder of its own, since
XProf keeps tables beside its input, and write their answer to a file. Before a time counts, the
answers are compared: with ``compatible=xprof`` ours must say what XProf says; measured is ours with
that parameter and without. The file of 3 GiB, which XProf cannot read, is measured with ours alone,
to show how time grows with the file; ``--no-large`` leaves it out.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
import tempfile
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

from inputs import ROOT, scaled
from measure import Run, run_once, summarise

_VIEW = {"resolution": "8000", "start_time_ms": "0", "end_time_ms": "0"}
TOOLS: dict[str, dict[str, str]] = {
    "overview_page": {},
    "framework_op_stats": {},
    "trace_viewer@": _VIEW,
}

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
    parser.add_argument("--repeats", type=int, default=3, help="runs of each command")
    parser.add_argument("--no-large", dest="large", action="store_false", help="skip 3 GiB")
    options = parser.parse_args()
    rows = []
    with tempfile.TemporaryDirectory(dir=options.data) as name:
        scratch = Path(name)
        path = scaled(options.data, "390MB")
        peers = Path.cwd() / options.peers
        for tool, parameters in TOOLS.items():
            print(f"measuring {tool}", file=sys.stderr, flush=True)
            rows += _measure(tool, parameters, path, peers, scratch, options.repeats)
        if options.large:
            large = scaled(options.data, "3GiB")
            for tool, parameters in TOOLS.items():
                print(f"measuring {tool}, 3 GiB", file=sys.stderr, flush=True)
                # The kernels are compiled, and what this is compared with takes turns with XProf.
                repeats = range(min(options.repeats, 2))
                runs = [_ours(tool, parameters, large, scratch)[0] for _ in repeats]
                rows.append(_row(large, tool, "Peakline", runs))
    print(json.dumps(rows))
    return 0


def _measure(
    tool: str, parameters: dict[str, str], path: Path, peers: Path, scratch: Path, repeats: int
) -> list[dict[str, Any]]:
    # The first runs compile; the answer of the compatible one is what is compared.
    _ours(tool, parameters, path, scratch)
    _, ours = _ours(tool, parameters | {"compatible": "xprof"}, path, scratch)
    runs: dict[str, list[Run]] = {"Peakline": [], "Peakline, compatible=xprof": [], "XProf": []}
    for _ in range(repeats):
        runs["Peakline"].append(_ours(tool, parameters, path, scratch)[0])
        compatible, again = _ours(tool, parameters | {"compatible": "xprof"}, path, scratch)
        runs["Peakline, compatible=xprof"].append(compatible)
        run, theirs = _run(peers, _THEIRS, tool, parameters, path, scratch)
        runs["XProf"].append(run)
        if not ours == again == theirs:
            raise SystemExit(f"{tool}: the answers differ: {ours} {again} {theirs}")
    return [_row(path, tool, program, found) for program, found in runs.items()]


def _ours(tool: str, parameters: dict[str, str], path: Path, scratch: Path) -> tuple[Run, object]:
    return _run(Path(sys.executable), _OURS, tool, parameters, path, scratch)


def _run(
    python: Path, code: str, tool: str, parameters: dict[str, str], path: Path, scratch: Path
) -> tuple[Run, object]:
    """One process, and the essence of what it answered."""
    folder = Path(tempfile.mkdtemp(dir=scratch))
    try:
        data, answer = folder / "vm.xplane.pb", folder / "answer"
        os.link(path, data)
        run = run_once([python, "-c", code, data, answer, tool, json.dumps(parameters)])
        if run.exit_code:
            raise SystemExit(f"{tool}: {run.stderr.strip()[-2000:]}")
        return run, _ESSENCE[tool](json.loads(answer.read_bytes()))
    finally:
        shutil.rmtree(folder)


def _overview(answer: Any) -> object:
    steps = answer[1]
    return len(steps["rows"]), steps["p"], answer[2]["p"], answer[3]["p"]["statement"]


def _ops(answer: Any) -> object:
    return [len(table["rows"]) for table in answer], answer[0]["rows"][:100]


def _events(answer: Any) -> object:
    shown = [event for event in answer["traceEvents"] if event.get("ph") == "X"]
    return len(shown), answer["fullTimespan"]


_ESSENCE: dict[str, Callable[[Any], object]] = {
    "overview_page": _overview,
    "framework_op_stats": _ops,
    "trace_viewer@": _events,
}


def _row(path: Path, tool: str, program: str, runs: list[Run]) -> dict[str, Any]:
    summary = asdict(summarise(runs))
    return {
        "file": path.name, "bytes": path.stat().st_size, "tool": tool, "program": program, **summary
    }  # fmt: skip


if __name__ == "__main__":
    sys.exit(main())
