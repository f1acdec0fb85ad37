"""The recorded programs that mark their steps, and the truth about their steps."""

import json
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
STEPS = HERE.parent / "data" / "programs" / "steps"
TRUTH: dict[str, dict[str, Any]] = json.loads((HERE / "steps_truth.json").read_text())
XSPACE = [name for name in TRUTH if not name.startswith("torch")]
KINETO = [name for name in TRUTH if name.startswith("torch")]
MARKED = [name for name in TRUTH if TRUTH[name]["marked_by"]]


def path(name: str) -> Path:
    """The file of a recording."""
    return STEPS / TRUTH[name]["file"]


def whole_steps(name: str) -> list[dict[str, Any]]:
    """The steps that are in the file with begin and end, in order."""
    first, last = TRUTH[name].get("profiled", (0, float("inf")))
    return [
        step
        for step in TRUTH[name]["steps"]
        if (step["number"] is None or first <= step["number"] <= last)
        # An XSpace has a mark only once it has ended.
        and not (name in XSPACE and step.get("cut_off"))
    ]
