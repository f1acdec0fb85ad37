"""What a text says that its translation does not: counted, with the first of each kind named."""

from __future__ import annotations

from peakline.safe_text import one_line
from peakline.tables.reader import Warnings

_FREE_BYTES, _MOST_TIMES = 1 << 20, 4


class Losses:
    """Counts into ``warnings``; the text has ``text_bytes``."""

    def __init__(self, warnings: Warnings, text_bytes: int = 0) -> None:
        self._warnings = warnings
        self._room = _FREE_BYTES + _MOST_TIMES * text_bytes

    def has_room(self, shape: bytes) -> bool:
        """Whether ``shape`` may stand once more where the text does not write it.

        One that does not fit is counted: a few letters could stand for a shape of any length.
        """
        fits = len(shape) <= self._room
        if fits:
            self._room -= len(shape)
        else:
            self._warnings.add("hlo_shapes", "very long shapes that very many operands have")
        return fits

    def attribute(self, name: bytes) -> None:
        """An attribute that is unknown."""
        self._warnings.add(
            "hlo_attributes", f"unknown attributes in the HLO text; the first is {_shown(name)}"
        )

    def value(self, text: bytes, at: int, name: bytes) -> None:
        """A value, near ``at``, that is none of the attribute ``name``."""
        if any(kind == "hlo_values" for kind, _, _ in self._warnings.entries()):
            # To find the line takes a pass over the text.
            self._warnings.add("hlo_values", "")
            return
        line = text.count(b"\n", 0, at) + 1
        self._warnings.add(
            "hlo_values",
            f"values that are not understood; the first is {_shown(name)}, line {line}",
        )

    def reference(self, count: int = 1) -> None:
        """Names of operands or computations that nothing has."""
        self._warnings.add("hlo_reference", "names in the HLO text of nothing that it holds", count)

    def entry(self) -> None:
        """A module none of whose computations is marked as its entry; XLA marks one, at the end."""
        self._warnings.add(
            "hlo_entry", "no computation is marked ENTRY, the text may be cut; the last is taken"
        )

    def repeated(self, name: bytes) -> None:
        """A name that is there already."""
        self._warnings.add("hlo_repeated", f"names that stand twice; the first is {_shown(name)}")


def _shown(name: bytes) -> str:
    return one_line(name[:60].decode("utf-8", "replace"))
