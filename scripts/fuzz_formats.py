"""Damaged files of every format, asked everything that can be asked (`make soak`).

A mutant belongs to a seed and a number. It fails when a question ends in anything but an answer
or an error of our own, takes too long, or takes far more memory than its file; it is then
written to a folder, with what is needed to see it again:

    python scripts/fuzz_formats.py --mutants 5000 --seed 7
    python scripts/fuzz_formats.py --seed 7 --first 4711 --mutants 1
    python scripts/fuzz_formats.py --only pickle --samples FOLDER
"""

from __future__ import annotations

import argparse
import faulthandler
import gzip
import json
import os
import re
import sys
import tempfile
import time
import traceback
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

_ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(_ROOT), str(_ROOT / "tests")]

if TYPE_CHECKING:
    from random import Random

    from tests.formats.format_samples import Sample

_EVERYTHING_EVERY = 400
"""One mutant in so many is asked everything, the others one question each."""
_READ_AGAIN = 0.1
"""How many of the others are exported to Perfetto, and what is written is read again."""
_TOO_MANY = 40
_SLOW_SECONDS = 20
_HANGS_SECONDS = 300
_MOST_GROWTH_KIB = 1 << 20
"""Files are smaller than 1 MiB."""
_LARGEST_SAMPLE = 1 << 20


_LOST: list[BaseException | None] = []
"""Errors of C functions, which have no caller that could handle them: kernels with checked bounds
have some."""


def main() -> int:
    """Run and return the exit code: 1 when a mutant failed."""
    sys.unraisablehook = lambda lost: _LOST.append(lost.exc_value)
    options = _options()
    from tests.formats.format_samples import samples, texts_of_programs

    data = _ROOT / "tests" / "data"
    chosen = [s for s in (*samples(data), *texts_of_programs(data)) if options.only in s.name]
    if options.samples is not None:
        chosen += [s for s in _more_samples(options.samples) if options.only in s.name]
    if not chosen:
        print(f"no sample is called {options.only}", file=sys.stderr)
        return 2
    # An access outside a buffer ends the process; this says where it was.
    faulthandler.enable()
    run = _Run(options.seed, options.failures, chosen)
    failed = run.whole_ones_fail()
    start, result = time.monotonic(), 0.0
    done, spent = 0, 0.0
    while done < options.mutants and spent < options.seconds and failed < _TOO_MANY:
        failed += not run.passes(options.first + done)
        done += 1
        spent = time.monotonic() - start
        if spent - result > 10:
            result = spent
            _tell(f"{done} mutants, {done / spent:.1f}/s, {failed} failed")
    _tell(", ".join(f"{count} {name}" for name, count in sorted(run.tried.items())))
    _tell(f"seed {options.seed}: {done} mutants, {run.answered} answered, {failed} failed")
    return int(failed > 0)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Damaged files of every format.")
    parser.add_argument("--mutants", type=float, default=float("inf"), help="at most so many")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="at most so long")
    parser.add_argument("--seed", type=int, default=1, help="other mutants for another seed")
    parser.add_argument("--first", type=int, default=0, help="the number of the first")
    parser.add_argument("--only", default="", help="samples whose name has this in it")
    parser.add_argument("--samples", type=Path, help="a folder with more whole files")
    parser.add_argument(
        "--failures", type=Path, default=_ROOT / "build" / "fuzz", help="where failing ones go"
    )
    return parser.parse_args()


def _more_samples(folder: Path) -> list[Sample]:
    from tests.formats.format_samples import Sample

    result = []
    for path in sorted(folder.rglob("*")):
        if not path.is_file():
            continue
        data = path.read_bytes()
        if path.suffix == ".gz":
            data = gzip.decompress(data)
        if len(data) <= _LARGEST_SAMPLE:
            is_text = b"\0" not in data[:4096]
            result.append(Sample(path.name, "", data, "text" if is_text else "bytes"))
    return result


class _Run:
    """Makes the mutants, asks them, and keeps those that fail."""

    def __init__(self, seed: int, failures: Path, samples: list[Sample]) -> None:
        self._seed, self._failures, self._samples = seed, failures, samples
        self._formats = sorted({sample.format for sample in samples})
        self.tried: Counter[str] = Counter()
        self._folder = Path(tempfile.mkdtemp(prefix="fuzz-"))
        self.answered = 0

    def whole_ones_fail(self) -> int:
        """How many samples fail as they are; asked first, so that all is compiled afterwards."""
        from tests.formats.format_damage import dice

        return sum(
            not self._passes(sample, sample.file, dice(self._seed, -1), -1, all_of_it=True)
            for sample in self._samples
        )

    def passes(self, n: int) -> bool:
        """Whether mutant ``n`` is answered as it must be."""
        from tests.formats.format_damage import damaged, dice

        rng = dice(self._seed, n)
        form = rng.choice(self._formats)
        sample = rng.choice([one for one in self._samples if one.format == form])
        self.tried[form or "of --samples"] += 1
        return self._passes(
            sample, damaged(rng, sample), rng, n, all_of_it=not n % _EVERYTHING_EVERY
        )

    def _passes(self, sample: Sample, data: bytes, rng: Random, n: int, *, all_of_it: bool) -> bool:
        start = time.process_time()
        _forget_peak()
        before = _memory_kib("VmRSS")
        try:
            # A process that is ended leaves the mutant behind.
            faulthandler.dump_traceback_later(_HANGS_SECONDS, exit=True)
            self.answered += self._ask(sample, data, rng, all_of_it=all_of_it)
            _raise_lost()
            if n >= 0:
                # Imports take time and memory that no mutant answers for.
                _within_limits(time.process_time() - start, _memory_kib("VmHWM") - before)
        except Exception:  # noqa: BLE001 (whatever it is, it is what the run looks for)
            self._keep(sample, data, n)
            return False
        finally:
            faulthandler.cancel_dump_traceback_later()
        return True

    def _ask(self, sample: Sample, data: bytes, rng: Random, *, all_of_it: bool) -> bool:
        from tests.formats import format_checks

        path, other = self._folder / f"mutant-{sample.name}", self._folder / sample.name
        path.unlink(missing_ok=True)
        path.write_bytes(data)
        if not other.exists():
            other.write_bytes(sample.file)
        if not all_of_it and rng.random() < _READ_AGAIN:
            answered = format_checks.read_again(path)
            self.tried["read again as Perfetto"] += answered
            return answered
        if not all_of_it:
            return format_checks.ask_one(path, other, rng)
        answered = format_checks.ask_everything(path, rng)
        for words in format_checks.all_verbs(path, other):
            format_checks.run_verb(words)
        return answered

    def _keep(self, sample: Sample, data: bytes, n: int) -> None:
        name = f"formats-{self._seed}-{n}"
        self._failures.mkdir(parents=True, exist_ok=True)
        (self._failures / f"{name}-{sample.name}").write_bytes(data)
        error = traceback.format_exc()
        about = {"sample": sample.name, "error": error}
        (self._failures / f"{name}.json").write_text(json.dumps(about, indent=1))
        _tell(f"mutant {n} of {sample.name} failed: {error.strip().splitlines()[-1][:200]}")


def _raise_lost() -> None:
    if _LOST:
        lost = _LOST.pop()
        _LOST.clear()
        raise RuntimeError("an error in a C function") from lost


def _within_limits(seconds: float, growth_kib: int) -> None:
    if seconds > _SLOW_SECONDS:
        raise TimeoutError(f"{seconds:.0f} s")
    if growth_kib > _MOST_GROWTH_KIB:
        raise MemoryError(f"{growth_kib >> 10} MiB")


def _forget_peak() -> None:
    """Let ``VmHWM`` begin anew (Linux: 5 in clear_refs)."""
    if os.access("/proc/self/clear_refs", os.W_OK):
        Path("/proc/self/clear_refs").write_text("5")


def _memory_kib(name: str) -> int:
    """An entry of the process's status; 0 where the system has none."""
    status = Path("/proc/self/status")
    match = re.search(rf"{name}:\s+(\d+) kB", status.read_text()) if status.exists() else None
    return int(match[1]) if match else 0


def _tell(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
