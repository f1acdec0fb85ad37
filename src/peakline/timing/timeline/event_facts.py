"""What an event's arguments and its name say of its op, its bytes and its shapes, in short."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

_OPS = ("tf_op", "hlo_op", "op", "Name")
"""Names of arguments that hold the op, of XSpace and of TensorFlow's own timeline."""
_BYTES = (
    "bytes_accessed", "Bytes", "bytes", "allocation_bytes", "num_bytes", "size_bytes", "size",
)  # fmt: skip
_SHAPES = ("Input Dims", "Input dims", "tensor_shapes", "shape", "shape_with_layout")
_SIZE = re.compile(r"\bsize:(\d{1,19})\b", re.ASCII)
_RESULT = re.compile(r"%?[\w.-]+ = (\(.{1,2000}?\)|\w+\[[\d,<=]*\])(?:\{[^}]*\})? ", re.ASCII)
_WHOLE = re.compile(r"-?\d{1,19}", re.ASCII)
_LONGEST = 400


@dataclass(frozen=True)
class EventFacts:
    """The ``op`` that the event is for or is, how many ``bytes`` it moves, makes or reads, and the
    ``shape`` of what it takes or makes, as the file writes it. None where the file does not say.
    """

    op: str | None
    bytes: int | None
    shape: str | None


def facts_of(name: str, stats: Sequence[tuple[str, str | None]]) -> EventFacts:
    """The facts of an event called ``name`` with these arguments."""
    own: dict[str, str] = {}
    for key, value in stats:
        if value:
            own.setdefault(key, value)
    op = next((own[key] for key in _OPS if key in own), None)
    if op is None and " = " in name:
        op = name.partition(" = ")[0].removeprefix("%")
    shape = next((own[key] for key in _SHAPES if key in own), None)
    if shape is None and (result := _RESULT.match(name)):
        shape = result[1]
    return EventFacts(_cut(op), _bytes(own), _cut(shape))


def _bytes(own: dict[str, str]) -> int | None:
    for key in _BYTES:
        if (text := own.get(key)) and _WHOLE.fullmatch(text):
            return int(text)
    details = _SIZE.search(own.get("memcpy_details", own.get("memset_details", "")))
    return int(details[1]) if details else None


def _cut(text: str | None) -> str | None:
    return text if text is None or len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"
