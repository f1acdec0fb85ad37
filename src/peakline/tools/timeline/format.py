"""How the answers of the ``timeline`` tool are written: as columns of bytes, or the same as JSON.

``docs/timeline.md`` describes the bytes; `peakline.tools.timeline.reader` reads them.

They are not Arrow's IPC format, since that gains nothing here. A tile is a few columns of several
lengths (per track, per item, single numbers), which a record batch can only hold as lists in one
row. Such a batch of a tile of 22,729 items has 821,104 bytes, not 819,296, and takes 187 us to
write, not 123 us (with PyArrow 26). In the page it takes 122 us to read, not 11 us, and needs a
library of 49 kB (flechette 2.7; apache-arrow 21.2: 193 kB), where a reader of 1.9 kB does.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from peakline.arrays import AnyArray
from peakline.toolbox.written import compact_json

_MAGIC = b"PEAKTIME"
_VERSION = 1
_HEADER = np.dtype(
    [("magic", "S8"), ("version", "<u4"), ("view", "<u4"), ("columns", "<u4"), ("reserved", "<u4"),
     ("size", "<u8")]
)  # fmt: skip
_ENTRY = np.dtype(
    [("name", "S24"), ("type", "<u4"), ("is_scalar", "<u4"), ("offset", "<u8"), ("length", "<u8")]
)
_VIEWS = {
    "lanes": 0, "tile": 1, "counter": 2, "search": 3, "event": 4, "find": 5, "area": 6, "arrows": 7,
    "steps": 8,
}  # fmt: skip
_TYPES = {"uint8": 1, "int32": 2, "uint32": 3, "int64": 4, "float64": 5}
_JSON = 6
_ALIGNED = 8


@dataclass(frozen=True, eq=False)
class Stored:
    """A column of numbers, and the type that it has in the bytes; JSON has them as they are."""

    values: AnyArray
    type: str


Value = Stored | int | list[Any] | dict[str, Any] | None
"""A column: numbers, one number, or a JSON value (texts, a document)."""


def stored(values: AnyArray, kind: str) -> Stored:
    """A column of numbers of ``kind``: uint8, int32, uint32, int64 or float64."""
    return Stored(np.asarray(values), kind)


def as_json(view: str, columns: Mapping[str, Value]) -> bytes:
    """One JSON object: ``view``, and every column by name. What is no number is null."""
    document: dict[str, object] = {"view": view}
    for name, value in columns.items():
        document[name] = _plain(value) if isinstance(value, Stored) else value
    return compact_json(document, ascii_only=False)


def _plain(column: Stored) -> list[Any]:
    values: list[Any] = column.values.tolist()
    if column.values.dtype.kind == "f" and np.isnan(column.values).any():
        return [None if value != value else value for value in values]  # noqa: PLR0124
    return values


def as_binary(view: str, columns: Mapping[str, Value]) -> bytes:
    """The same columns as bytes, each at a multiple of 8."""
    entries = np.zeros(len(columns), _ENTRY)
    at = _HEADER.itemsize + entries.nbytes
    parts: list[bytes] = []
    for entry, (name, value) in zip(entries, columns.items(), strict=True):
        kind, length, content = _content(value)
        entry["name"], entry["type"], entry["is_scalar"] = name, kind, isinstance(value, int)
        entry["offset"], entry["length"] = at, length
        content += bytes(-len(content) % _ALIGNED)
        parts.append(content)
        at += len(content)
    header = np.zeros((), _HEADER)
    header["magic"], header["version"], header["view"] = _MAGIC, _VERSION, _VIEWS[view]
    header["columns"], header["size"] = len(columns), at
    return b"".join([header.tobytes(), entries.tobytes(), *parts])


def _content(value: Value) -> tuple[int, int, bytes]:
    """The type of a column, its length in elements, and its bytes."""
    if isinstance(value, int):
        value = Stored(np.array([value]), "int64")
    if isinstance(value, Stored):
        numbers = value.values.astype(np.dtype(value.type).newbyteorder("<"))
        return _TYPES[value.type], numbers.size, numbers.tobytes()
    text = compact_json(value, ascii_only=False)
    return _JSON, len(text), text
