"""Runs every question on every case, and prints what took most: the offenders.

    python -m tests.amplification.matrix --size 100000 --only xplane --question summary
"""

import argparse
import gzip
import json
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable
from importlib import import_module
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from tests.amplification.questions import FILE, OUT, broad, questions

CASES = Path(__file__).with_name("cases")
Case = Callable[[int], bytes]


def cases() -> dict[str, Case]:
    """By ``FORMAT.CASE``: every public function of the modules of `cases`."""
    found = {}
    for path in sorted(CASES.glob("[a-z]*.py")):
        module = import_module(f"tests.amplification.cases.{path.stem}")
        for name, made in vars(module).items():
            if callable(made) and made.__module__ == module.__name__ and name[0] != "_":
                found[f"{path.stem}.{name}"] = made
    return found


class Zygote:
    """The process that answers, and measures."""

    def __init__(self, most_bytes: int = 3_000_000_000, most_seconds: int = 30) -> None:
        self._limits = {"bytes": most_bytes, "seconds": most_seconds}
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.amplification.zygote"],
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
        self._process.wait()

    def measured(self, asked: Iterable[list[str]]) -> list[dict[str, Any]]:
        """What each question took, and how it ended."""
        asked = list(asked)
        self._process.stdin.write(json.dumps({"questions": asked, **self._limits}) + "\n")
        self._process.stdin.flush()
        return [json.loads(self._process.stdout.readline()) for _ in asked]


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


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--size", type=int, default=100_000)
    parser.add_argument("--only", default="")
    parser.add_argument("--question", default="")
    parser.add_argument("--skip", default="\0")
    parser.add_argument("--broad", action="store_true")
    parser.add_argument("--gzip", action="store_true")
    parser.add_argument("--out")
    parser.add_argument("--mb", type=float, default=100)
    parser.add_argument("--seconds", type=float, default=1)
    o = parser.parse_args()
    out = open(o.out, "a") if o.out else None
    wanted = [q for q in (broad() if o.broad else questions()) if o.question in " ".join(q) and o.skip not in " ".join(q)]
    with tempfile.TemporaryDirectory() as folder, Zygote() as zygote:
        base = zygote.measured([["--version"]])[0]["peak_bytes"]
        path = Path(folder) / "worst"
        place = {FILE: str(path), OUT: f"{folder}/out"}
        asked = [[place.get(word, word) for word in question] for question in wanted]
        for name, made in cases().items():
            if not any(only in name for only in o.only.split(",")):
                continue
            write(path, made(o.size), packed=o.gzip)
            worst_mb = worst_s = (0, "")
            for question, words, took in zip(wanted, asked, zygote.measured(asked), strict=True):
                if took["seconds"] > o.seconds or (took["peak_bytes"] - base) / 1e6 > o.mb:
                    # By itself, without what is left of others.
                    again = zygote.measured([words])[0]
                    took = min(took, again, key=lambda one: one["seconds"]) | {"peak_bytes": min(again["peak_bytes"], took["peak_bytes"])}
                mb, s = (took["peak_bytes"] - base) / 1e6, took["seconds"]
                row = [name, o.size, " ".join(question), round(mb), round(s, 2), took["code"], took["said"][-200:].strip()]
                if out:
                    print(json.dumps(row), file=out, flush=True)
                worst_mb, worst_s = max(worst_mb, (mb, " ".join(question))), max(worst_s, (s, " ".join(question)))
                if mb > o.mb or s > o.seconds or took["code"] not in (0, 1, 2, 3):
                    print(*row, flush=True)
            print(f"# {name}: {worst_mb[0]:.0f} MB ({worst_mb[1]}), {worst_s[0]:.2f} s ({worst_s[1]})", flush=True)


if __name__ == "__main__":
    main()
