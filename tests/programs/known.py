"""The recorded programs and the truth about them, for every test that asks an analysis for it."""

import functools
import json
from pathlib import Path
from typing import Any

import peakline
from peakline.tables.profile import Profile

HERE = Path(__file__).resolve().parent
DATA = HERE.parent / "data" / "programs"
TRUTH: dict[str, dict[str, Any]] = json.loads((HERE / "truth.json").read_text())
RECORDINGS = sorted(name for name in TRUTH if "file" in TRUTH[name])
"""The recordings of TensorFlow: an XSpace each."""
FAULTY = [name for name in RECORDINGS if TRUTH[name]["faults"]]
HEALTHY = [name for name in RECORDINGS if not TRUTH[name]["faults"]]


def path(name: str) -> Path:
    """The file of a recording."""
    return DATA / TRUTH[name]["file"]


@functools.cache
def opened(name: str) -> Profile:
    """The recording ``name``, open."""
    return peakline.open(path(name))


def fault(name: str) -> dict[str, Any]:
    """The fault of a recording, or, of a healthy one, the fault that its twin has."""
    truth = TRUTH[name]
    (known,) = truth["faults"] or TRUTH[truth["twin"]]["faults"]
    return known
