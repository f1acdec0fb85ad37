"""Which modules the page needs: a browser that knows it at once loads them together.

Without it a browser learns of a module only when another one that imports it has come: the page
would wait for five rounds of requests before it can begin.
"""

from __future__ import annotations

import posixpath
from collections.abc import Iterator, Mapping

from peakline.web.files import PageFile

_ENTRY = "/assets/js/main.js"


def needed_modules(files: Mapping[str, PageFile]) -> list[str]:
    """All modules that the page needs whatever it shows, by their paths, the nearest first.

    Raises OSError when a file is gone.
    """
    found = {_ENTRY: None} if _ENTRY in files else {}
    front = list(found)
    while front:
        near = dict.fromkeys(one for path in front for one in _imports(files, path))
        front = [one for one in near if one not in found]
        found |= dict.fromkeys(front)
    return list(found)


def _imports(files: Mapping[str, PageFile], path: str) -> Iterator[str]:
    for relative in files[path].content().imports:
        target = posixpath.normpath(posixpath.join(posixpath.dirname(path), relative))
        if target in files:
            yield target
