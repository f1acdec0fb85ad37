"""Lists as XLA writes them."""

from __future__ import annotations

from collections.abc import Iterable


def braced(items: Iterable[object], by: str = ",") -> str:
    """Items in braces."""
    return "{" + by.join(map(str, items)) + "}"
