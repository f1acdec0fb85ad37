"""Says whether a change leaves the answers as they were: every verb's ``--json``, file by file.

    compare_answers.py BEFORE AFTER [FILE_OR_FOLDER...] [--every N]

BEFORE and AFTER are the Python interpreters of two environments, each with its own Peakline, such
as ``../before/.venv/bin/python .venv/bin/python``. Without files those of tests/data are compared,
with ``--every 7`` each seventh of them. A difference is a line: file, verb, where in the document,
before and after. Exits 1 where there is any.
"""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
VERBS = (
    "summary --json",
    "memory --json",
    "steps --json",
    "ops --json",
    "ops --by type --json",
    "programs --json",
    "fit --json",
    "graph --json",
    "trace --json",
    "check --max-peak 1 --max-step-time 1us --json",
    "diff --json",
)
"""What is run; ``diff`` compares a file with the one before it."""
SHOWN = 5
"""So many differences of one document are shown."""

# Runs in either environment: a line of words in, a line of exit code, output and errors out.
_WORKER = """
import contextlib, io, json, sys
from peakline.cli.main import app

for line in sys.stdin:
    out, err, code = io.StringIO(), io.StringIO(), 0
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            app(json.loads(line), standalone_mode=False)
        except SystemExit as end:
            code = end.code
        except BaseException as error:
            code, _ = type(error).__name__, err.write(str(error))
    print(json.dumps([code, out.getvalue(), err.getvalue()]), flush=True)
"""


class Side:
    """One environment's Peakline, in a process that answers command lines one by one."""

    def __init__(self, python: str) -> None:
        self.process = subprocess.Popen(
            [python, "-W", "ignore", "-c", _WORKER],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def send(self, words: list[str]) -> None:
        """Begin to answer a command line."""
        assert self.process.stdin is not None  # noqa: S101 (a pipe was requested)
        self.process.stdin.write(json.dumps(words) + "\n")
        self.process.stdin.flush()

    def receive(self) -> list[Any]:
        """Exit code, output and errors of the command line that was sent."""
        assert self.process.stdout is not None  # noqa: S101 (a pipe was requested)
        result: list[Any] = json.loads(self.process.stdout.readline())
        return result


def files_of(places: list[Path], every: int) -> list[Path]:
    """The files to compare, in order of name."""
    files = [
        path
        for place in places
        for path in ([place] if place.is_file() else sorted(place.rglob("*")))
        if path.is_file() and path.suffix not in {".py", ".md", ".zip", ".txt.lock"}
    ]
    return files[::every]


def differences(before: Any, after: Any, place: str = "") -> Iterator[tuple[str, Any, Any]]:
    """Where two documents differ, with both values."""
    if isinstance(before, dict) and isinstance(after, dict):
        for name in dict.fromkeys((*before, *after)):
            missing = "(nothing)"
            values = before.get(name, missing), after.get(name, missing)
            yield from differences(*values, f"{place}.{name}")
    elif isinstance(before, list) and isinstance(after, list) and len(before) == len(after):
        for number, pair in enumerate(zip(before, after, strict=True)):
            yield from differences(*pair, f"{place}[{number}]")
    elif before != after:
        yield place, before, after


def document(answer: list[Any]) -> Any:
    """An answer as a document: its JSON where it is one."""
    code, out, err = answer
    with contextlib.suppress(ValueError):
        out = json.loads(out)
    return {"exit": code, "": out, "errors": err}


def main() -> int:
    """Compare; 1 where any answer differs."""
    words = sys.argv[1:]
    every = int(words[words.index("--every") + 1]) if "--every" in words else 1
    if "--every" in words:
        del words[words.index("--every") : words.index("--every") + 2]
    if len(words) < 2:
        sys.exit(__doc__)
    sides = Side(words[0]), Side(words[1])
    files = files_of([Path(word) for word in words[2:]] or [ROOT / "tests" / "data"], every)
    compared = differing = 0
    for number, path in enumerate(files):
        for verb in VERBS:
            name, *options = verb.split()
            paths = [files[number - 1], path] if name == "diff" else [path]
            for side in sides:
                side.send([name, *map(str, paths), *options])
            before, after = (document(side.receive()) for side in sides)
            compared += 1
            result = list(differences(before, after))
            differing += bool(result)
            for place, *values in result[:SHOWN]:
                texts = (json.dumps(value)[:200] for value in values)
                print(f"{path}: {verb}: {place}:", *texts, sep="\n    ")
            if len(result) > SHOWN:
                print(f"{path}: {verb}: {len(result) - SHOWN} more differences")
    print(f"{compared:,} answers about {len(files):,} files compared, {differing:,} differ")
    return 1 if differing else 0


if __name__ == "__main__":
    sys.exit(main())
