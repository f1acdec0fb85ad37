"""What a person calls a step."""

from __future__ import annotations

from collections.abc import Mapping

from peakline.tables.columns import Columns

_NAME = 28
"""Characters of a step's name that are shown; sessions' handles can be hundreds long."""
_RANDOM = 1 << 32
"""No runtime counts steps so far: such ids are random, and say nothing to a person."""


def labels_of(steps: Columns) -> dict[int, str]:
    """The names of the steps by id."""
    ids, names = steps.array("step_id").tolist(), steps.names("name").to_list()
    return {number: name or "" for number, name in zip(ids, names, strict=True)}


def step_text(step: int | None, labels: Mapping[int, str]) -> str:
    """A step's id, and its name where it says more; of an id that is a random number the name."""
    if step is None:
        return ""
    name = labels.get(step, "")
    if len(name) > _NAME:
        name = f"{name[: _NAME - 1]}…"
    if name in ("", str(step)):
        return str(step)
    return name if abs(step) >= _RANDOM else f"{step} ({name})"


def step_phrase(step: int, labels: Mapping[int, str]) -> str:
    """``step 3 (train)`` within a sentence; ``run 3`` where that is its name alone."""
    text = step_text(step, labels)
    return text if text.startswith("run ") else f"step {text}"
