"""Holds the main verbs to their memory and instructions on a profile of 40 MB.

    python benchmarks/guard.py [--data bench-data] [--record]

Each verb runs as a whole process on two processors. Its peak memory, and the instructions it runs
where the machine counts them (``perf stat``), may be 5 % above the figures in ``guard.json``; more
fails, and names the verb. ``--record`` writes the figures of this machine: after a change that is
worth what it takes, in the commit that says why, or after one that takes less. Wall time is no part
of it: the benchmark measures that, on a quiet machine.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from inputs import profile
from measure import run_once

FIGURES = Path(__file__).with_name("guard.json")
SIZE = "40 MB"
VERBS = {
    "summary": ["summary"],
    "memory": ["memory"],
    "steps": ["steps"],
    "ops": ["ops"],
    "fit": ["fit"],
    "sql": ["sql", "PATH", "select name, count(*), sum(duration_ps) from events group by name"],
}
ROOM = 1.05
RUNS = 3
"""The least of so many counts: what a run takes beyond it, it shares with the machine."""
_PROCESSORS = 2

Figures = dict[str, dict[str, int]]


def measured(python: Path, words: list[str], data: Path) -> dict[str, int]:
    """Peak memory in bytes of one verb, and instructions where the machine counts them."""
    words = [str(data) if word == "PATH" else word for word in words]
    if str(data) not in words:
        words = [*words, str(data)]
    command = [str(python.with_name("peakline")), *words]
    runs = [run_once(command) for _ in range(RUNS)]
    failed = next((run for run in runs if run.exit_code), None)
    if failed is not None:
        sys.exit(f"peakline {words[0]} failed: {failed.stderr}")
    result = {"peak_bytes": min(run.peak_bytes for run in runs)}
    counted = instructions(command)
    return result if counted is None else result | {"instructions": counted}


def instructions(command: list[str]) -> int | None:
    """Instructions that ``command`` runs in user mode; None where nothing counts them."""
    if shutil.which("perf") is None:
        return None
    with tempfile.NamedTemporaryFile("r", encoding="utf-8") as report:
        perf = ["perf", "stat", "-x", ",", "-e", "instructions:u", "-o", report.name, "--"]
        subprocess.run([*perf, *command], check=False, capture_output=True)
        counts = [line.split(",")[0] for line in report if "instructions" in line]
    return int(counts[0]) if counts and counts[0].isdigit() else None


def exceeded(now: Figures, figures: Figures) -> list[str]:
    """What is above its figure and the room, or has none: a line each."""
    lines = []
    for verb, entry in now.items():
        if "peak_bytes" not in figures.get(verb, {}):
            lines.append(f"{verb}: no figure of its peak memory; --record writes it")
        for name, value in entry.items():
            figure = figures.get(verb, {}).get(name)
            if figure is not None and value > ROOM * figure:
                more = value / figure - 1
                lines.append(f"{verb}: {name} {value:,}, {more:.0%} above the {figure:,} allowed")
    return lines


def main() -> int:
    """Measure and compare; 1 where a verb takes more than it may."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--data", type=Path, default=Path("bench-data"))
    parser.add_argument("--record", action="store_true")
    words = parser.parse_args()
    if hasattr(os, "sched_setaffinity"):
        # How many threads read ahead is part of the memory.
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:_PROCESSORS])
    data = profile(words.data, SIZE)
    figures: Figures = json.loads(FIGURES.read_text("utf-8")) if FIGURES.exists() else {}
    now = {verb: measured(Path(sys.executable), line, data) for verb, line in VERBS.items()}
    for verb, entry in now.items():
        for name, value in entry.items():
            figure = figures.get(verb, {}).get(name)
            said = "no figure" if figure is None else f"{value / figure:.2f} of {figure:,}"
            print(f"{verb:8} {name:12} {value:15,}  {said}")
    if words.record:
        for verb, entry in now.items():
            figures[verb] = figures.get(verb, {}) | entry
        FIGURES.write_text(json.dumps(figures, indent=2) + "\n", encoding="utf-8")
        return 0
    lines = exceeded(now, figures)
    print(*(f"takes too much: {line}" for line in lines), sep="\n")
    return 1 if lines else 0


if __name__ == "__main__":
    sys.exit(main())
