"""Names that programs give stretches of their own code: which stand for a turn of a loop."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable

__all__ = ["counted", "is_part"]

_PART = re.compile(
    r"(?i)(?:forward|backward|optimi[sz]er|\bloss|zero_?grad|data_?load|fetch|next_batch|to_device|"
    r"h2d|d2h|copy|all_?reduce|all_?gather|logging|checkpoint|save|warm_?up)"
)


def is_part(name: str) -> bool:
    """Whether a stretch of code called so is only a part of a turn."""
    return _PART.search(name) is not None


def counted(names: Iterable[str]) -> list[str]:
    """Each name with its number among its like, from 0 on."""
    count: Counter[str] = Counter()
    found = []
    for name in names:
        found.append(f"{name} {count[name]}")
        count[name] += 1
    return found
