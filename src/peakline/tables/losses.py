"""What reading a profile loses, counted."""

from __future__ import annotations


class Warnings:
    """Counts of everything lost, skipped or guessed, by kind; a kind keeps its first detail."""

    __retained__ = "_entries _once"

    def __init__(self) -> None:
        self._entries: dict[str, tuple[int, str]] = {}
        self._once: set[tuple[str, str]] = set()

    def add(self, kind: str, detail: str, count: int = 1) -> None:
        """Count ``count`` more of ``kind``; nothing happens for a count of 0."""
        if count > 0:
            before, first = self._entries.get(kind, (0, detail))
            self._entries[kind] = (before + count, first)

    def add_once(self, kind: str, detail: str, count: int = 1) -> None:
        """As `add`, but for what was counted so before: an answer may be made again."""
        if (kind, detail) not in self._once:
            self._once.add((kind, detail))
            self.add(kind, detail, count)

    def __len__(self) -> int:
        return len(self._entries)

    def entries(self) -> list[tuple[str, int, str]]:
        """``(kind, count, detail)`` in order of first appearance."""
        # A list first: another thread may be reading, and counting.
        return [(kind, count, detail) for kind, (count, detail) in list(self._entries.items())]
