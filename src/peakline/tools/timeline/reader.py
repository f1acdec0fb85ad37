"""Reads the bytes of the ``timeline`` tool: the reference for readers in other languages.

``docs/timeline.md`` describes them. Needs nothing but NumPy, and copies nothing: the columns are
views of the bytes.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

_HEADER = struct.Struct("<8sIIIIQ")
_ENTRY = struct.Struct("<24sIIQQ")
_VIEWS = ("lanes", "tile", "counter", "search", "event", "find", "area", "arrows", "steps")
_TYPES = {1: "<u1", 2: "<i4", 3: "<u4", 4: "<i8", 5: "<f8"}
_JSON = 6


@dataclass(frozen=True)
class Answer:
    """One answer: which view it is, and its columns by name.

    A column is an array, an int, or a JSON value.
    """

    view: str
    columns: Mapping[str, Any]

    def __getitem__(self, name: str) -> Any:
        return self.columns[name]


def read_timeline(content: bytes) -> Answer:
    """The answer in ``content``; raises ValueError where it is none, or is cut short.

    >>> answer = profile.tool("timeline", view="lanes", format="bin")
    >>> peakline.read_timeline(answer.content)["events"]
    9088
    """
    if len(content) < _HEADER.size:
        raise ValueError("too short for a header")
    magic, version, view, count, _, size = _HEADER.unpack_from(content)
    if magic != b"PEAKTIME" or version != 1:
        raise ValueError("no timeline answer of version 1")
    if size != len(content) or view >= len(_VIEWS):
        raise ValueError(f"{len(content)} bytes, where the header says {size}")
    columns: dict[str, Any] = {}
    for number in range(count):
        at = _HEADER.size + number * _ENTRY.size
        if at + _ENTRY.size > size:
            raise ValueError("the directory reaches beyond the end")
        name, kind, is_scalar, offset, length = _ENTRY.unpack_from(content, at)
        width = 1 if kind == _JSON else np.dtype(_TYPES.get(kind, "V0")).itemsize
        if width == 0:
            continue  # a type of a later version
        if offset % 8 or offset + length * width > size:
            raise ValueError(f"column {name!r} does not lie in the bytes")
        value: Any
        if kind == _JSON:
            value = json.loads(content[offset : offset + length])
        else:
            value = np.frombuffer(content, _TYPES[kind], length, offset)
        columns[name.rstrip(b"\0").decode("ascii")] = int(value[0]) if is_scalar else value
    return Answer(_VIEWS[view], columns)
