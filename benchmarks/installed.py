"""What an installation takes: its size, its first runs, and what a command costs that does nothing.

    python benchmarks/installed.py --data bench-data

The wheel of ``build/wheel`` is installed by pip with all that it needs into a new environment. Its
first runs take turns with later ones, the wheel being installed anew before each first one: pip
writes the bytecode, nothing has been imported from it, and its files are in the page cache. Prints
one JSON document.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from inputs import ROOT, SMALL, profile
from measure import Run, run_once, summarise, turns

_USAGE = 2
_ANSWER = """
import sys
import peakline
with peakline.open(sys.argv[1]) as profile:
    profile.tool("memory_profile")
"""
_COMMANDS = {"python -c pass": 0, "peakline --version": 0, "peakline memory --nope": _USAGE}
"""What is asked for its processor time, and how it ends."""


def missing() -> str | None:
    """What there is not and must be."""
    return None if _wheels() else "there is no wheel in build/wheel"


def _wheels() -> list[Path]:
    return list((ROOT / "build" / "wheel").glob("peakline-*.whl"))


class Installation:
    """A new environment with the wheel and what it needs, and neither pip nor setuptools."""

    def __init__(self, folder: Path, wheel: Path) -> None:
        self.folder, self.wheel = folder, wheel
        command = [sys.executable, "-m", "venv", "--without-pip", folder]
        subprocess.run(command, check=True, stdout=sys.stderr)
        self._pip(wheel)

    def again(self) -> None:
        """Install the wheel once more, as if it had not been there."""
        self._pip("--no-deps", "--force-reinstall", self.wheel)

    def megabytes(self) -> int:
        """What ``du -sm`` says of its packages."""
        packages = next(self.folder.glob("lib/python*/site-packages"))
        du = shutil.which("du") or "du"
        result = subprocess.run([du, "-sm", packages], check=True, capture_output=True, text=True)
        return int(result.stdout.split()[0])

    def run(self, program: str, *words: str | Path, exit_code: int = 0) -> Run:
        """Run one of its programs, nothing being imported from elsewhere; raises SystemExit."""
        run = run_once([self.folder / "bin" / program, *words], env={"PYTHONPATH": ""})
        if run.exit_code != exit_code:
            raise SystemExit(f"{program}: exit code {run.exit_code}: {run.stderr[-2000:]}")
        return run

    def _pip(self, *words: str | Path) -> None:
        # pip writes the bytecode whatever the caller thinks of bytecode.
        environment = {**os.environ, "PYTHONPATH": ""}
        environment.pop("PYTHONDONTWRITEBYTECODE", None)
        python = self.folder / "bin" / "python"
        pip = [sys.executable, "-m", "pip", "--python", python, "install", "-qq"]
        subprocess.run([*pip, *words], check=True, stdout=sys.stderr, env=environment)


def measure_first(installed: Installation, path: Path, repeats: int) -> list[dict[str, Any]]:
    """The first run after installing and the next one, of the tool and of the command."""
    rows = []
    for question, program, words in (
        ("memory_profile", "python", ("-c", _ANSWER, path)),
        ("memory", "peakline", ("memory", path)),
    ):
        first, later = list[Run](), list[Run]()
        for _ in turns(repeats, [first, later]):
            installed.again()
            first.append(installed.run(program, *words))
            later.append(installed.run(program, *words))
        rows.append(_row(f"{question}, first run", first))
        rows.append(_row(f"{question}, later run", later))
    return rows


def measure_nothing(installed: Installation, repeats: int) -> list[dict[str, Any]]:
    """Commands that have nothing to do, beside a Python that has nothing to do."""
    runs: dict[str, list[Run]] = {command: [] for command in _COMMANDS}
    for number in range(repeats + 1):
        for command, exit_code in _COMMANDS.items():
            program, *words = command.split()
            run = installed.run(program, *words, exit_code=exit_code)
            if number > 0:
                # The run before that brought the modules into the page cache.
                runs[command].append(run)
    return [_row(command, chosen) for command, chosen in runs.items()]


def _row(command: str, runs: Sequence[Run]) -> dict[str, Any]:
    return {"command": command} | asdict(summarise(runs))


def main() -> int:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--data", type=Path, default=ROOT / "bench-data", help="folder for data")
    parser.add_argument("--repeats", type=int, default=5, help="installations of each question")
    options = parser.parse_args()
    if lacking := missing():
        raise SystemExit(lacking)
    path = profile(options.data, SMALL)
    with tempfile.TemporaryDirectory(dir=options.data) as scratch:
        print("installing", file=sys.stderr, flush=True)
        installed = Installation(Path(scratch) / "venv", _wheels()[0])
        result = {"megabytes": installed.megabytes(), "file": SMALL}
        # Not counted: the other packages are imported for the first time.
        installed.run("peakline", "memory", path)
        rows = measure_first(installed, path, options.repeats)
        rows += measure_nothing(installed, 2 * options.repeats)
    print(json.dumps(result | {"rows": rows}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
