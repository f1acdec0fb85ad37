"""Sample profiles for tests that change nothing of them, each opened once in a process.

What such a profile has read and answered stays with it: a test that counts what is read, or looks
at the warnings that its own question adds, opens one of its own.
"""

import atexit
from functools import cache
from pathlib import Path

import peakline

DATA = Path(__file__).parent / "data"


@cache
def shared(path: Path | str) -> peakline.Profile:
    """The profile at ``path``, which is below `DATA` where it is relative."""
    profile = peakline.open(DATA / path)
    atexit.register(profile.close)
    return profile
