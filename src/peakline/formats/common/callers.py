"""Which frame of a call stack a person looks for."""

from __future__ import annotations

import re
from collections.abc import Sequence

Frame = tuple[str, str, int]
"""Function, file and line; empty and 0 where they are not known."""

_LIBRARY = re.compile(
    r"(?:site|dist)-packages[/\\]|[/\\]torch[/\\]|[/\\]jax[/\\]_src[/\\]|torchinductor_"
    r"|[/\\]lib[/\\]python3[^/\\]*[/\\]|^<frozen |^<string>$|^<__array_function__"
)
_PYTHON = re.compile(r"\.(?:py|ipynb)$|^<ipython|ipykernel", re.IGNORECASE)


def caller(frames: Sequence[Frame]) -> str | None:
    """The innermost frame outside the libraries as ``function file:line``; None without frames.

    ``frames`` are innermost first. Where all are of libraries it is the innermost Python frame,
    and where none is Python's the innermost of all.
    """
    python = [frame for frame in frames if _PYTHON.search(frame[1])]
    own = [frame for frame in python if not _LIBRARY.search(frame[1])]
    for function, file, line in (own or python or frames)[:1]:
        name = re.split(r"[/\\]", file)[-1]
        place = f"{name}:{line}" if name and line else name
        return f"{function} {place}".strip() or None
    return None
