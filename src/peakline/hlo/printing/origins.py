"""What a program's values were before it was compiled, as XLA writes it
(``OriginalValue::ToString``, ``OriginalValueRecoveryTable::ToString``).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from peakline.errors import InputError
from peakline.hlo.printing.quoting import braced

if TYPE_CHECKING:
    from peakline.schema import OriginalArrayProto, OriginalValueProto

_WIDEST = 1 << 12
"""Parts of a tuple up to which its gaps are written."""
_DEEPEST = 64
_MOST_PARTS = 1 << 16
"""Parts of a value, those of its tuples and their gaps, up to which it is written."""


class _Node:
    """A part of a value: an array, or a tuple of parts."""

    __slots__ = ("leaf", "parts")

    def __init__(self) -> None:
        self.leaf: str | None = None
        self.parts: dict[int, _Node] = {}


def origin_text(value: OriginalValueProto) -> str:
    """``({"a"}, {"b" {0}})``: the instruction that gave each array of a value, and the calls
    around it.
    """
    root = _Node()
    for element in () if value.is_synthetic_call else value.elements:
        index = element.shape_index
        if len(index) > _DEEPEST or any(not 0 <= place < _WIDEST for place in index):
            continue
        node = root
        for place in index:
            node = node.parts.setdefault(place, _Node())
        known = element.HasField("original_array")
        node.leaf = f"{{{array_text(element.original_array)}}}" if known else "{}"
    if _parts(root) > _MOST_PARTS + len(value.elements):
        raise InputError("what a value was before compilation has too many gaps to be written")
    text = _written(root)
    if value.HasField("call_hierarchy"):
        return f'{text},["{value.call_hierarchy}"]'
    return text


def array_text(array: OriginalArrayProto) -> str:
    """``"a" {0}``: an instruction, and the place in its result."""
    name = f'"{array.instruction_name}"'
    return f"{name} {braced(array.shape_index)}" if array.shape_index else name


def _parts(root: _Node) -> int:
    count, waiting = 0, [root]
    while waiting:
        parts = waiting.pop().parts
        count += max(parts, default=-1) + 1
        waiting += parts.values()
    return count


def _written(node: _Node) -> str:
    # As deep as an index is long.
    if node.leaf is not None and not node.parts:
        return node.leaf
    parts = (
        _written(node.parts[place]) if place in node.parts else "()"
        for place in range(max(node.parts, default=-1) + 1)
    )
    return f"({', '.join(parts)})"
