"""Measures Peakline against XProf, part by part, and writes RESULTS.md.

    make bench

or, with an environment that has XProf::

    python benchmarks/run.py --peers .venv-peers/bin/python --only time page

What a part measured is kept in ``results/PART.json`` until that part is measured again; RESULTS.md
is rendered from the files of all parts, always whole. ``--render`` only does that.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

from inputs import ROOT
from parts import PARTS, Failed, Wanted, measure
from render import render
from results import load_all, save

_RESULTS = ROOT / "benchmarks/results"


def main() -> int:
    """Command line; 1 where a part failed."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--peers", type=Path, help="Python that has XProf")
    parser.add_argument("--only", nargs="+", choices=list(PARTS), default=list(PARTS))
    parser.add_argument("--data", type=Path, default=ROOT / "bench-data", help="folder for data")
    parser.add_argument("--repeats", type=int, help="runs of each command; each part has its own")
    parser.add_argument("--no-large", dest="large", action="store_false", help="skip 3 GiB")
    parser.add_argument(
        "--results", type=Path, default=_RESULTS, help="folder for what was measured"
    )
    parser.add_argument("--render", action="store_true", help="measure nothing, write RESULTS.md")
    options = parser.parse_args()
    # The committed page lies where people look for it, any other beside its numbers.
    beside = options.results.parent if options.results == _RESULTS else options.results
    page = beside / "RESULTS.md"

    failed = False
    if not options.render:
        if options.peers is None and any(PARTS[name].peers for name in options.only):
            parser.error(f"--peers is needed for {', '.join(options.only)}")
        # Links are not followed: a virtual environment is found by the path that was called.
        peers = Path.cwd() / options.peers if options.peers else None
        wanted = Wanted(options.data.absolute(), peers, options.repeats, options.large)
        took: dict[str, float] = {}
        for name in options.only:
            begin = time.monotonic()
            failed |= not _measured(name, wanted, options.results)
            took[name] = time.monotonic() - begin
            # Now, so that a run which is ended before its end leaves a page that is whole.
            _render(options.results, page)
        for name, seconds in (took | {"together": sum(took.values())}).items():
            print(f"{name}: {seconds:,.0f} s")
    _render(options.results, page)
    print(f"{page}: written")
    return int(failed)


def _render(results: Path, page: Path) -> None:
    page.parent.mkdir(parents=True, exist_ok=True)
    page.write_text(render(load_all(results)))


def _measured(name: str, wanted: Wanted, results: Path) -> bool:
    """Measure one part and keep the numbers; False where it failed, which is told."""
    if lacking := PARTS[name].missing():
        print(f"{name}: left out, {lacking}")
        return True
    print(f"{name}: measuring", flush=True)
    try:
        record = measure(name, wanted)
    except Failed as error:
        print(f"{name}: {error}", file=sys.stderr)
        return False
    print(f"{name}: {save(record, results)}", flush=True)
    return True


if __name__ == "__main__":
    sys.exit(main())
