"""What each file of a folder answers, a line for each: ``NAME DIGEST``.

    python tests/kernels/answers.py FOLDER --uncompiled

The lines are the same whether the kernels are compiled or run by Python (`kernels.uncompiled`).
"""

import argparse
import hashlib
import sys
from pathlib import Path

_ROOT = Path(__file__).resolve().parent.parent.parent
sys.path[:0] = [str(_ROOT), str(_ROOT / "tests")]


def main() -> None:
    """Print a line per file."""
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("--uncompiled", action="store_true")
    options = parser.parse_args()
    if options.uncompiled:
        from kernels import uncompiled

        uncompiled.install()
    for path in sorted(options.folder.iterdir()):
        sys.stdout.write(f"{path.name} {_answer(path)}\n")


def _answer(path: Path) -> str:
    """A digest of all that the file answers."""
    from tests.formats.format_checks import content

    import peakline
    from peakline.errors import PeaklineError
    from peakline.graph.check import check_graphs
    from peakline.tools import available_tools

    digest = hashlib.sha256()

    def add(question) -> None:
        try:
            said = question()
        except PeaklineError as error:
            said = str(error)
        digest.update(repr(said).encode("utf-8", "surrogatepass"))

    add(lambda: content(path))
    try:
        with peakline.open(path) as profile:
            for tool in available_tools(profile):
                for options in ({}, {"compatible": "xprof"}):
                    add(lambda tool=tool, options=options: profile.tool(tool, **options).content)
            add(lambda: list(check_graphs(profile)))
    except PeaklineError as error:
        digest.update(str(error).encode("utf-8", "surrogatepass"))
    return digest.hexdigest()[:16]


if __name__ == "__main__":
    main()
