"""What a text that names a place means: a path of this machine, or a URL that fsspec opens."""

from __future__ import annotations

import os
import re

_URL = re.compile(r"(?!(?:file|local)://)[a-z][a-z0-9+.-]*(?:://|::)", re.IGNORECASE)


def is_url(path: str) -> bool:
    """Whether ``path`` names a place by a URL that fsspec must open.

    A path that exists on this machine is none, whatever its name; ``./run::2`` is never one.
    """
    return _URL.match(path) is not None and not os.path.lexists(path)


def as_path(path: str) -> str:
    """The path of this machine ``path`` in a form that nobody takes for a URL."""
    return os.path.join(os.curdir, path) if _URL.match(path) else path  # noqa: PTH118 (removes it)
