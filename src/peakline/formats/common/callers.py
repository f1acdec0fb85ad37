"""Call stacks: their table, and which frame of one a person looks for."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np

from peakline.arrays import AnyArray, Int64Array
from peakline.tables.columns import Columns, Names

Frame = tuple[str, str, int]
"""Function, file and line; empty and 0 where they are not known."""

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


def own_frame(frames: Sequence[Frame]) -> Frame | None:
    """The innermost frame outside the libraries; None without frames.

    ``frames`` are innermost first. Where all are of libraries it is the innermost Python frame,
    and where none is Python's the innermost of all.
    """
    python = [frame for frame in frames if _PYTHON.search(frame[1])]
    own = [frame for frame in python if not _LIBRARY.search(frame[1])]
    return next(iter(own or python or frames), None)


def caller(frames: Sequence[Frame]) -> str | None:
    """`own_frame` as ``function file:line``; None without frames."""
    frame = own_frame(frames)
    if frame is None:
        return None
    function, file, line = frame
    name = re.split(r"[/\\]", file)[-1]
    place = f"{name}:{line}" if name and line else name
    return f"{function} {place}".strip() or None
