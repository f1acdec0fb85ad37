"""Call stacks: their table, and which frame of one a person looks for."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np

from peakline.arrays import AnyArray, Int8Array, Int64Array
from peakline.tables.columns import Columns, Names

Frame = tuple[str, str, int]
"""Function, file and line; empty and 0 where they are not known."""

MEAN_DEPTH = 128
"""Stacks share their outer frames, and a table of stacks has these once for each. Where stacks are
deeper on average, of all of them only so many frames are read.
"""
LEFT_OUT: Frame = ("(outer frames left out)", "", 0)
"""The outermost frame of a stack of which not all are read."""

_LIBRARY = re.compile(
    r"(?:site|dist)-packages[/\\]|[/\\]torch[/\\]|[/\\]jax[/\\]_src[/\\]|torchinductor_"
    r"|[/\\]lib[/\\]python3[^/\\]*[/\\]|^<frozen |^<string>$|^<__array_function__"
)
_PYTHON = re.compile(r"\.(?:py|ipynb)$|^<ipython|ipykernel", re.IGNORECASE)


def stacks_table(
    stack: Int64Array, depth: Int64Array, frames: Sequence[Frame], frame: AnyArray
) -> Columns:
    """The ``stacks`` table: per row a stack, how deep in it, and the number of its frame."""
    return Columns(
        {
            "stack_id": stack,
            "depth": depth,
            "function": Names.encode([function for function, _, _ in frames]).take(frame),
            "file": Names.encode([file for _, file, _ in frames]).take(frame),
            "line": np.array([line for _, _, line in frames], np.int64)[frame],
        }
    )


def frame_kinds(frames: Sequence[Frame]) -> Int8Array:
    """What each frame is: the larger, the more it is what a person looks for.

    Of a stack that is the innermost frame outside of the libraries; where all are of libraries it
    is the innermost Python frame, and where none is Python's the innermost of all.
    """
    kinds = {file: _kind(file) for file in {file for _, file, _ in frames}}
    return np.array([kinds[file] for _, file, _ in frames], np.int8)


def callers(bounds: Int64Array, frame: Int64Array, frames: Sequence[Frame]) -> list[str | None]:
    """The frame that a person looks for, of every stack, as ``function file:line``; None without
    frames.

    Stack n has the ``frames`` with the numbers ``frame[bounds[n] : bounds[n + 1]]``.
    """
    kind = frame_kinds(frames)[frame]
    first = np.full(bounds.size - 1, -1, np.int64)
    for wanted in (_ANY, _PYTHON_FILE, _OWN):
        rows = np.flatnonzero(kind >= wanted)
        at = np.searchsorted(rows, bounds[:-1])
        inside = at < np.searchsorted(rows, bounds[1:])
        first[inside] = rows[at[inside]]
    texts: dict[int, str | None] = {-1: None}
    chosen = np.where(first >= 0, np.append(frame, -1)[first], -1).tolist()
    for number in chosen:
        if number not in texts:
            texts[number] = _shown(frames[number])
    return [texts[number] for number in chosen]


_ANY, _PYTHON_FILE, _OWN = range(3)
_LONGEST = 1000
"""A name is part of a text for every line that it stands in: of longer ones it is the begin."""


def _kind(file: str) -> int:
    if not _PYTHON.search(file):
        return _ANY
    return _PYTHON_FILE if _LIBRARY.search(file) else _OWN


def _shown(frame: Frame) -> str | None:
    function, file, line = frame
    name = re.split(r"[/\\]", file[-_LONGEST:])[-1]
    place = f"{name}:{line}" if name and line else name
    return f"{function[:_LONGEST]} {place}".strip() or None
