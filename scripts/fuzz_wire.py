"""Long mutation fuzzing of the decoder and of the readers (`make soak`).

Every mutant belongs to a seed and a number; one that fails is written to a folder, with what is
needed to see it again:

    python scripts/fuzz_wire.py --mutants 100000 --seed 7
    python scripts/fuzz_wire.py --seconds 600
    python scripts/fuzz_wire.py --seed 7 --first 4711 --mutants 1
"""

from __future__ import annotations

import argparse
import faulthandler
import json
import sys
import tempfile
import time
import traceback
from pathlib import Path
from typing import TYPE_CHECKING

_ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(_ROOT), str(_ROOT / "tests")]

if TYPE_CHECKING:
    from tests.wire.fuzzing import Fuzzer, Mutant

_READER_EVERY = 20
"""One mutant in so many is a whole file, read through every table."""
_TOO_MANY = 25
_SLOW_SECONDS = 30
"""A mutant is a few kilobytes; who needs longer than this hangs."""


_LOST: list[BaseException | None] = []
"""Errors of C functions, which have no caller that could handle them: kernels with checked bounds
have some."""


def main() -> int:
    """Run and return the exit code: 1 when a mutant failed."""
    sys.unraisablehook = lambda lost: _LOST.append(lost.exc_value)
    options = _options()
    from tests.wire.fuzzing import Fuzzer

    # An access outside the buffer ends the process; this says where it was.
    faulthandler.enable()
    failed, start, result = 0, time.monotonic(), 0.0
    with tempfile.TemporaryDirectory() as folder:
        fuzzer = Fuzzer(options.seed, _ROOT / "tests" / "data" / "sessions", Path(folder))
        done = spent = 0
        while done < options.mutants and spent < options.seconds and failed < _TOO_MANY:
            failed += not _passes(fuzzer, options.first + done, options.failures)
            done += 1
            spent = time.monotonic() - start
            if spent - result > 10:
                result = spent
                _tell(f"{done} mutants, {done / spent:.0f}/s, {failed} failed")
    _tell(f"seed {options.seed}: {done} mutants, {failed} failed")
    return int(failed > 0)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Damaged files through the decoder.")
    parser.add_argument("--mutants", type=float, default=float("inf"), help="at most so many")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="at most so long")
    parser.add_argument("--seed", type=int, default=1, help="other mutants for another seed")
    parser.add_argument("--first", type=int, default=0, help="the number of the first")
    parser.add_argument(
        "--failures", type=Path, default=_ROOT / "build" / "fuzz", help="where failing ones go"
    )
    return parser.parse_args()


def _passes(fuzzer: Fuzzer, n: int, failures: Path) -> bool:
    mutant = fuzzer.mutant(n, reader=n % _READER_EVERY == 0)
    start = time.monotonic()
    try:
        fuzzer.check(mutant)
        if _LOST:
            raise RuntimeError("an error in a C function") from _LOST.pop()  # noqa: TRY301 (as below)
        if time.monotonic() - start > _SLOW_SECONDS:
            raise TimeoutError(f"more than {_SLOW_SECONDS} s")  # noqa: TRY301 (one report for all)
    except Exception:  # noqa: BLE001 (whatever it is, it is what the run looks for)
        _keep(mutant, f"{fuzzer.seed}-{n}", failures)
        return False
    return True


def _keep(mutant: Mutant, name: str, failures: Path) -> None:
    failures.mkdir(parents=True, exist_ok=True)
    (failures / f"{name}.bin").write_bytes(mutant.data)
    about = mutant.describe() | {"error": traceback.format_exc()}
    (failures / f"{name}.json").write_text(json.dumps(about, indent=1))
    last = traceback.format_exc().strip().splitlines()[-1]
    _tell(f"mutant {name} failed: {last[:150]} ({failures / name}.json)")


def _tell(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
