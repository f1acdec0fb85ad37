"""Measures what is said of a large compiled program against XProf, whole processes in turn.

    python benchmarks/programs.py --peers .venv-peers/bin/python --data bench-data

Prints JSON: rows of ``file``, ``bytes``, ``command``, ``program`` and what `measure.summarise`
gives. The program is a real one many times over (`repeat_program.py`). XProf's memory_viewer reads
it as its own file beside an empty profile. Before a time counts, both answers must have the same
peak.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from dataclasses import asdict
from pathlib import Path
from typing import Any

from inputs import ROOT
from measure import Run, run_once, summarise, turns

SIZE = "100 MB"
LABEL = "jit_train_step(28)"

_TOOL = """
import sys
import peakline
path, answer, *more = sys.argv[1:]
with peakline.open(path) as profile:
    content = profile.tool("memory_viewer", **dict(one.split("=") for one in more)).content
with open(answer, "wb") as file:
    file.write(content)
"""
_VERB = """
import contextlib, sys
from peakline.cli.main import app
path, answer = sys.argv[1:]
with open(answer, "w") as file, contextlib.redirect_stdout(file):
    app(["programs", path], standalone_mode=False)
"""
_THEIRS = """
import sys
from pathlib import Path
from xprof.convert import _pywrap_profiler_plugin as plugin
path, answer, label = sys.argv[1:]
beside = str(Path(path).with_name("vm.xplane.pb"))
content, _ = plugin.xspace_to_tools_data([beside], "memory_viewer", {"module_name": label})
with open(answer, "wb") as file:
    file.write(content)
"""

_PEAK = """
import json, sys
with open(sys.argv[1], "rb") as file:
    print(json.load(file)["peakHeapMib"])
"""


def main() -> int:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--peers", type=Path, required=True, help="Python that has XProf")
    parser.add_argument("--data", type=Path, default=ROOT / "bench-data", help="folder for data")
    parser.add_argument("--repeats", type=int, default=5, help="runs of each command")
    options = parser.parse_args()
    path = program(options.data, SIZE)
    with tempfile.TemporaryDirectory(dir=options.data) as scratch:
        rows = _measured(Path.cwd() / options.peers, Path(scratch), path, options.repeats)
    print(json.dumps(rows))
    return 0


def program(data: Path, size: str) -> Path:
    """The program of about ``size`` in the folder ``data``; made when it is not there."""
    data.mkdir(parents=True, exist_ok=True)
    path = data / f"train_step_{size.replace(' ', '')}.hlo_proto.pb"
    if not path.exists():
        part = path.with_suffix(".part")
        script = ROOT / "benchmarks/repeat_program.py"
        command = [sys.executable, script, "--target", size.replace(" ", ""), part]
        subprocess.run(command, check=True, stdout=sys.stderr)
        part.rename(path)
    return path


def _measured(peers: Path, scratch: Path, path: Path, repeats: int) -> list[dict[str, Any]]:
    """Every command in turn; raises SystemExit where one fails or the answers differ."""
    file = scratch / f"{LABEL}.hlo_proto.pb"
    os.link(path, file)
    (scratch / "vm.xplane.pb").touch()
    ours, answer = Path(sys.executable), scratch / "answer"
    commands = {
        ("programs", "Peakline"): (ours, _VERB, ()),
        ("memory_viewer", "Peakline"): (ours, _TOOL, ()),
        ("memory_viewer", "XProf"): (peers, _THEIRS, (LABEL,)),
    }

    def run(python: Path, code: str, more: tuple[str, ...]) -> Run:
        print(f"measuring {python.parent.parent.name}", file=sys.stderr, flush=True)
        done = run_once([python, "-c", code, file, answer, *more])
        if done.exit_code:
            raise SystemExit(done.stderr.strip()[-2000:])
        return done

    # The first run brings the modules and the file into the page cache; with the same answer.
    peaks = {}
    for key, command in commands.items():
        run(*command)
        if key[0] == "memory_viewer":
            # By another process: the memory of this one would count for those that it starts.
            result = run_once([ours, "-c", _PEAK, answer])
            peaks[key] = result.stdout.strip()
    if len(set(peaks.values())) != 1:
        raise SystemExit(f"the answers differ: {peaks}")
    runs: dict[tuple[str, str], list[Run]] = {key: [] for key in commands}
    for _ in turns(repeats, list(runs.values())):
        for key, command in commands.items():
            runs[key].append(run(*command))
    facts = {"file": SIZE, "bytes": path.stat().st_size}
    return [
        facts | {"command": command, "program": which} | asdict(summarise(runs[command, which]))
        for command, which in commands
    ]


if __name__ == "__main__":
    sys.exit(main())
