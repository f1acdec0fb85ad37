"""Runs every question on every case, and prints what took most.

python -m tests.amplification.matrix --size 100000 --only xplane --question summary
"""

import argparse
import gzip
import json
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from tests.amplification.questions import FILE, OUT, broad, questions

CASES = Path(__file__).with_name("cases")
Case = Callable[[int], bytes]
_MUCH_BYTES, _MUCH_S = 100_000_000, 1.0


def cases() -> dict[str, Case]:
    """By ``FORMAT.CASE``: every public function of the modules of `cases`."""
    result = {}
    for path in sorted(CASES.glob("[a-z]*.py")):
        module = import_module(f"tests.amplification.cases.{path.stem}")
        for name, made in vars(module).items():
            if callable(made) and made.__module__ == module.__name__ and name[0] != "_":
                result[f"{path.stem}.{name}"] = made
    return result


class Measuring:
    """The process that answers, and measures."""

    def __init__(self, most_bytes: int = 3_000_000_000, most_seconds: int = 60) -> None:
        self._limits = {"bytes": most_bytes, "seconds": most_seconds}
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.amplification.measuring"],
            cwd=Path(__file__).parents[2],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, e: BaseException | None, t: TracebackType | None
    ) -> None:
        self._process.stdin.close()
        self._process.stdout.close()
        self._process.wait()

    def measured(self, request: Iterable[list[str]]) -> list[dict[str, Any]]:
        """What each question took, and how it ended."""
        request = list(request)
        self._process.stdin.write(json.dumps({"questions": request, **self._limits}) + "\n")
        self._process.stdin.flush()
        return [json.loads(self._process.stdout.readline()) for _ in request]


def write(path: Path, data: bytes | dict[str, bytes], *, packed: bool = False) -> None:
    """Put a case into a file, or a directory."""
    if path.is_dir():
        shutil.rmtree(path)
    if isinstance(data, dict):
        path.unlink(missing_ok=True)
        path.mkdir()
        for name, content in data.items():
            (path / name).write_bytes(content)
    else:
        path.write_bytes(gzip.compress(data, 9, mtime=0) if packed else data)


@dataclass(frozen=True)
class Took:
    """What a question about a case took: bytes beyond those of the imports, seconds of CPU."""

    case: str
    size: int
    question: str
    bytes: int
    seconds: float
    code: int
    said: str


def measured(
    measuring: Measuring,
    names: Iterable[str],
    size: int,
    request: list[tuple[str, ...]],
    *,
    packed: bool = False,
) -> Iterator[Took]:
    """What every question takes about the named cases. What takes much is tried again by itself.

    ``packed`` as gzip files, where they are files: ``size`` is what they unpack to.
    """
    made = cases()
    base = measuring.measured([["--version"]])[0]["peak_bytes"]
    with tempfile.TemporaryDirectory() as folder:
        place = {FILE: f"{folder}/worst", OUT: f"{folder}/out"}
        filled = [[place.get(word, word) for word in question] for question in request]
        for name in names:
            write(Path(place[FILE]), made[name](size), packed=packed)
            for question, words, took in zip(
                request, filled, measuring.measured(filled), strict=True
            ):
                most = took["peak_bytes"] - base
                if took["seconds"] > _MUCH_S or most > _MUCH_BYTES:
                    again = measuring.measured([words])[0]
                    took["seconds"] = min(took["seconds"], again["seconds"])
                    most = min(most, again["peak_bytes"] - base)
                yield Took(
                    name, size, " ".join(question), most, took["seconds"], took["code"],
                    took["said"][-200:].strip(),
                )  # fmt: skip


def main() -> None:
    """Print what took more than a share, and the worst of every case."""
    parser = argparse.ArgumentParser(description="What the worst files take.")
    parser.add_argument("--size", type=int, default=100_000, help="bytes of a file")
    parser.add_argument("--only", default="", help="cases with one of these in their names")
    parser.add_argument("--question", default="", help="questions that have this in them")
    parser.add_argument("--broad", action="store_true", help="fewer questions")
    parser.add_argument("--gzip", action="store_true", help="as gzip files")
    options = parser.parse_args()
    request = [
        q for q in (broad() if options.broad else questions()) if options.question in " ".join(q)
    ]
    chosen = [name for name in cases() if any(one in name for one in options.only.split(","))]
    worst: dict[str, tuple[int, float]] = {}
    with Measuring() as measuring:
        for took in measured(measuring, chosen, options.size, request, packed=options.gzip):
            most = worst.get(took.case, (0, 0.0))
            worst[took.case] = max(most[0], took.bytes), max(most[1], took.seconds)
            if took.bytes > _MUCH_BYTES or took.seconds > _MUCH_S or took.code not in range(4):
                _say(f"{took}")
    for name, (most, seconds) in worst.items():
        _say(f"{name}: {most / 1e6:.0f} MB, {seconds:.2f} s")


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
