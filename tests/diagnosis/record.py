"""Record the pairs, each variant in a process of its own: ``record.py [NAME...] [--into FOLDER]``.

The frameworks that a program needs must be installed in the Python that runs this. What it wrote
goes to ``FOLDER/NAME/faulty`` and ``FOLDER/NAME/healthy``, compressed, with ``truth.json``: what
the program's own clock and counters said. A program runs as ``train.py`` of a neutral folder, so
that no name in a profile gives the fault away.
"""

from __future__ import annotations

import argparse
import gzip
import importlib
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
RECORDED = ROOT / "tests" / "data" / "diagnosis"
PROGRAMS = Path(__file__).parent / "programs"
VARIANTS = ("faulty", "healthy")


def names() -> list[str]:
    """All pairs there are programs of."""
    return sorted(path.stem for path in PROGRAMS.glob("*.py") if path.stem[0] != "_")


def module_of(name: str):
    """The program's module: ``PAIR`` and ``record(folder, faulty=...)``."""
    return importlib.import_module(f"tests.diagnosis.programs.{name}")


def record(name: str, variant: str, into: Path) -> None:
    """Run one variant, and put what it wrote in place of what was recorded before."""
    environment = {**os.environ, **module_of(name).PAIR.environment, "PYTHONPATH": str(ROOT)}
    target = into / name / variant
    place = Path(tempfile.gettempdir()) / "project"
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir()
    shutil.copyfile(PROGRAMS / f"{name}.py", place / "train.py")
    with tempfile.TemporaryDirectory() as scratch:
        call = (
            f"import sys; sys.path.insert(0, {str(place)!r}); import json, pathlib, train; "
            f"folder = pathlib.Path({scratch!r}); truth = train.record(folder, "
            f"faulty={variant == 'faulty'}); "
            "(folder / 'truth.json').write_text(json.dumps(truth, indent=1) + chr(10))"
        )
        subprocess.run([sys.executable, "-c", call], env=environment, check=True, cwd=place)
        shutil.rmtree(target, ignore_errors=True)
        for source in sorted(Path(scratch).rglob("*")):
            if source.is_file():
                _stored(source, target / source.relative_to(scratch))


def _stored(source: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    if source.name == "truth.json":
        shutil.copyfile(source, target)
        return
    whole = source.read_bytes()
    if whole.startswith(b"\x1f\x8b"):
        whole = gzip.decompress(whole)
    Path(f"{target}.gz").write_bytes(gzip.compress(whole, 9, mtime=0))


def main() -> None:
    """Record the named pairs, or all of them."""
    sys.path.insert(0, str(ROOT))
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--into", type=Path, default=RECORDED)
    options = parser.parse_args()
    for name in options.names or names():
        for variant in VARIANTS:
            record(name, variant, options.into)
            sys.stdout.write(f"{name} {variant}\n")


if __name__ == "__main__":
    main()
