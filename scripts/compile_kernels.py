"""Have the kernels compiled before the tests start.

Numba compiles a kernel when it is first called, and keeps the code beside the installed package.
Workers of the tests that begin together would each compile what they need first, and servers that
tests start would compile while their clients wait. So one process asks everything of one small file
of every format; what it misses is small.
"""

from __future__ import annotations

import contextlib
import sys
import tempfile
import time
from pathlib import Path
from random import Random

_ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(_ROOT), str(_ROOT / "tests")]


def main() -> None:
    """Compile, and say how long it took."""
    from tests.sources.format_checks import ask_everything, run_verb, verbs
    from tests.sources.format_samples import samples

    begin = time.monotonic()
    data = _ROOT / "tests" / "data"
    with tempfile.TemporaryDirectory() as folder:
        for sample in samples(data):
            path = Path(folder) / sample.name
            path.write_bytes(sample.file)
            ask_everything(path, Random(sample.name))  # noqa: S311 (any numbers do)
            for words in verbs(path):
                run_verb(words)
    for path in sorted(data.glob("sessions/*/**/*.xplane.pb*")):
        _use_tools(path)
    print(f"kernels compiled in {time.monotonic() - begin:.0f} s")


def _use_tools(path: Path) -> None:
    """Have a profile answered by every tool, in our way and in XProf's."""
    import peakline
    from peakline.errors import PeaklineError
    from peakline.tools import available_tools

    with peakline.open(path) as profile:
        for tool in available_tools(profile):
            for options in ({}, {"compatible": "xprof"}):
                with contextlib.suppress(PeaklineError):
                    profile.tool(tool, **options)


if __name__ == "__main__":
    main()
