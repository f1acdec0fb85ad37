"""Everything that is long on purpose, for as long as there is time (`make soak MINUTES=90`).

    python scripts/soak.py --minutes 90
    python scripts/soak.py --minutes 20 --only wire formats
    python scripts/soak.py --only formats formats-sanitized --mutants 100000

Eight parts, one after the other; each has its share of the time that is left when it begins. Every
part says what it tried, and with which seed: with that it can be tried again.
"""

from __future__ import annotations

import argparse
import os
import random
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO, cast

_ROOT = Path(__file__).resolve().parent.parent
_PROGRAMS = _ROOT / "tests" / "data" / "programs"
_NOTHING_TO_RUN = 5
"""What pytest ends with where no test is chosen."""


@dataclass(frozen=True)
class Part:
    """``share`` is of the time that is left; ``command`` takes the seconds and a seed."""

    name: str
    what: str
    share: float
    command: Callable[[int, int], list[str]]
    environment: dict[str, str]
    repeats: bool = False
    """Whether it tries something else when it is run again."""
    counts: bool = False
    """Whether it goes on for a number of mutants, where one is given, rather than for a time."""
    kernels: str = ""
    """Its build of the kernels (buildtools/kernels.py); empty: the installed one."""


def _pytest(*words: str) -> Callable[[int, int], list[str]]:
    def command(seconds: int, seed: int) -> list[str]:
        options = ["-q", "--numprocesses", "auto", "--dist", "loadfile", "-p", "no:cacheprovider"]
        chosen = [word.replace("SEED", str(seed)) for word in words]
        return [sys.executable, "-m", "pytest", *options, "--stop-after", str(seconds), *chosen]

    return command


def _fuzzer(name: str) -> Callable[[int, int], list[str]]:
    script = str(_ROOT / "scripts" / name)
    return lambda seconds, seed: [
        sys.executable, script, "--seconds", str(seconds), "--seed", str(seed)
    ]  # fmt: skip


def _counted(part: Part, mutants: int) -> Part:
    """The part with a number of mutants in place of a time, if it counts and there is one."""
    if not (part.counts and mutants):
        return part
    return replace(
        part, command=lambda _, seed: [*part.command(10**9, seed), "--mutants", str(mutants)]
    )


_PARTS = (
    Part("tests", "200 clients, gigabytes, full disks, S3, Dask, every view of every sample", 0.3,
         _pytest("-m", "soak"), {}),
    Part("browser", "the tests of the page, six times slower and answers overtaking each other",
         0.3, _pytest("tests/web", "-m", "not soak"), {"PEAKLINE_BROWSER_SLOWDOWN": "6"}),
    Part("peers", "200 random inputs for every comparison with XProf and TensorFlow", 0.5,
         _pytest("-m", "conformance", "tests/conformance"),
         {"PEAKLINE_CONFORMANCE_SEEDS": "200", "PEAKLINE_SAMPLES": str(_PROGRAMS)}),
    Part("examples", "other examples for every property", 0.2,
         _pytest("-m", "hypothesis", "--hypothesis-profile", "random", "--hypothesis-seed", "SEED"),
         {}, repeats=True),
    Part("wire", "damaged messages through the decoder, with checked bounds", 0.25,
         _fuzzer("fuzz_wire.py"), {}, kernels="checked"),
    Part("wire-sanitized", "damaged messages through the decoder, under sanitizers", 0.35,
         _fuzzer("fuzz_wire.py"), {}, kernels="sanitized"),
    Part("formats", "damaged files of every format through every table, tool and verb", 0.5,
         _fuzzer("fuzz_formats.py"), {}, counts=True, kernels="checked"),
    Part("formats-sanitized", "the same under sanitizers", 1.0,
         _fuzzer("fuzz_formats.py"), {}, counts=True, kernels="sanitized"),
)  # fmt: skip


def main() -> int:
    """Run the parts and return 1 when one failed."""
    options = _options()
    end = time.monotonic() + 60 * options.minutes
    done: list[str] = []
    failed = 0
    for part in (_counted(part, options.mutants) for part in _PARTS):
        if options.only and part.name not in options.only:
            continue
        if part.name == "peers" and "PEAKLINE_PEERS_PYTHON" not in os.environ:
            done.append(f"{part.name}: left out, PEAKLINE_PEERS_PYTHON names no interpreter")
            continue
        is_last = part.name == _PARTS[-1].name or (options.only and part.name == options.only[-1])
        share = 1.0 if is_last else part.share
        outcome = _run(part, share * (end - time.monotonic()), options.seed)
        failed += outcome.startswith("failed")
        done.append(f"{part.name}: {outcome}")
    print(f"\nsoak of {options.minutes:g} minutes, seed {options.seed}")
    print("\n".join(f"  {line}" for line in done))
    return int(failed > 0)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Everything that is long on purpose.")
    parser.add_argument("--minutes", type=float, default=60, help="how long, in all")
    parser.add_argument(
        "--seed", type=int, default=random.SystemRandom().randrange(10**6), help="of what is drawn"
    )
    parser.add_argument(
        "--mutants", type=int, default=0,
        help="so many files in each of formats and formats-sanitized, whatever time that takes",
    )  # fmt: skip
    parser.add_argument(
        "--only", nargs="+", metavar="PART", default=[], choices=[part.name for part in _PARTS],
        help=f"of {', '.join(part.name for part in _PARTS)}",
    )  # fmt: skip
    return parser.parse_args()


def _run(part: Part, seconds: float, seed: int) -> str:
    """Run one part, again and again where that tries something new; what came of it."""
    environment = part.environment | {"PEAKLINE_FAULTS_SEED": str(seed)}
    if part.kernels:
        built = _built(part.kernels)
        if built is None:
            return "left out: it needs gcc"
        environment |= built
    begin = time.monotonic()
    rounds = 0
    while True:
        left = int(begin + seconds - time.monotonic())
        if rounds and left < (time.monotonic() - begin) / rounds:
            break
        command = part.command(max(left, 1), seed + rounds)
        print(f"\n== {part.name}: {part.what}\n{' '.join(command)}", flush=True)
        code, last = _run_and_show(command, environment)
        rounds += 1
        if code not in (0, _NOTHING_TO_RUN):
            return f"failed in round {rounds}, after {time.monotonic() - begin:.0f} s: {last}"
        if not part.repeats:
            break
    times = f" {rounds} times" if part.repeats else ""
    return f"passed{times} in {time.monotonic() - begin:.0f} s: {last}"


def _built(kernels: str) -> dict[str, str] | None:
    """Build the package with that kind of kernels; the environment to run it in, None where it
    cannot be.
    """
    folder = _ROOT / "build" / kernels
    environment = {"PYTHONPATH": str(folder)}
    if kernels == "sanitized":
        compiler = shutil.which("gcc")
        if compiler is None:
            return None
        library = subprocess.run(
            [compiler, "-print-file-name=libasan.so"], capture_output=True, text=True, check=True
        ).stdout.strip()
        # Python itself is not sanitized: what it never frees is not looked at.
        environment |= {"LD_PRELOAD": library, "ASAN_OPTIONS": "detect_leaks=0"}
    print(f"\n== building {kernels} kernels", flush=True)
    subprocess.run(
        [sys.executable, "setup.py", "--quiet", "build", "--build-lib", str(folder)],
        cwd=_ROOT, env=os.environ | {"PEAKLINE_KERNELS": kernels}, check=True,
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    return environment


def _run_and_show(command: list[str], environment: dict[str, str]) -> tuple[int, str]:
    """Show what a command prints; its exit code and its last line, which sums up what it did."""
    last = ""
    with subprocess.Popen(
        command, cwd=_ROOT, env=os.environ | environment, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    ) as process:  # fmt: skip
        for line in cast("IO[str]", process.stdout):
            print(line, end="", flush=True)
            last = line.strip(" =\n") or last
    return process.returncode, last


if __name__ == "__main__":
    sys.exit(main())
