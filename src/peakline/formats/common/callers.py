"""Call stacks: their table, and which frame of one a person looks for."""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence

import numpy as np

from peakline.arrays import AnyArray, Int8Array, Int64Array
from peakline.formats.common.native_frames import is_machinery, native_op
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


def is_own(file: str) -> bool:
    """Whether a file below a folder of ``sys.path`` (``train.py``, ``torch/storage.py``) is of the
    program itself, and not of a library or Python's own.
    """
    first = re.split(r"[/\\]", file)[0].removesuffix(".py")
    return first not in sys.stdlib_module_names and _kind(f"/{file}") == _OWN


def callers(bounds: Int64Array, frame: Int64Array, frames: Sequence[Frame]) -> list[str | None]:
    """The frame that a person looks for, of every stack, as ``function file:line``; None without
    frames.

    Stack n has the ``frames`` with the numbers ``frame[bounds[n] : bounds[n + 1]]``. Of one without
    Python, as on the threads of PyTorch's backward pass, it is the node of autograd, else the
    innermost op, else what is no machinery (`peakline.formats.common.native_frames`).
    """
    kinds = [
        kind + _NODE if kind else _native_kind(function)
        for kind, (function, _, _) in zip(frame_kinds(frames).tolist(), frames, strict=True)
    ]
    kind = np.array(kinds, np.int8)[frame]
    first = np.full(bounds.size - 1, -1, np.int64)
    for wanted in range(_NODE + _OWN + 1):
        rows = np.flatnonzero(kind >= wanted)
        at = np.searchsorted(rows, bounds[:-1])
        inside = at < np.searchsorted(rows, bounds[1:])
        first[inside] = rows[at[inside]]
    texts: dict[int, str | None] = {-1: None}
    chosen = np.where(first >= 0, np.append(frame, -1)[first], -1).tolist()
    for number in chosen:
        if number not in texts:
            is_native = kinds[number] in {_OP, _NODE}
            texts[number] = native_op(frames[number][0]) if is_native else _shown(frames[number])
    return [texts[number] for number in chosen]


_ANY, _PYTHON_FILE, _OWN = range(3)
_MACHINERY, _OTHER, _OP, _NODE = range(-1, 3)
_LONGEST = 1000
"""A name is part of a text for every line that it stands in: of longer ones it is the begin."""


def _kind(file: str) -> int:
    if not _PYTHON.search(file):
        return _ANY
    return _PYTHON_FILE if _LIBRARY.search(file) else _OWN


def _native_kind(function: str) -> int:
    if is_machinery(function):
        return _MACHINERY
    op = native_op(function)
    return _OTHER if not op else _OP if op.startswith("aten::") else _NODE


def _shown(frame: Frame) -> str | None:
    function, file, line = frame
    name = re.split(r"[/\\]", file[-_LONGEST:])[-1]
    place = f"{name}:{line}" if name and line else name
    return f"{function[:_LONGEST]} {place}".strip() or None
