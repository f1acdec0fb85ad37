"""Which modules the page needs: a browser that knows it at once loads them together.

Without it a browser learns of a module only when another one that imports it has come: the page
would wait for five rounds of requests before it can begin, and a view for three more.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable, Iterator, Mapping

from peakline.web.files import Content

FIRST, MAIN = "/assets/js/first.js", "/assets/js/main.js"
"""What sends the first questions, and the page itself."""
_VIEW = re.compile(r"/assets/js/views/(\w+)/index\.js")


PAGE = "page"


def first_modules(contents: Mapping[str, Content]) -> list[str]:
    """The modules that are needed first, by their paths, the nearest first."""
    return _closure(contents, (FIRST,))


def later_modules(contents: Mapping[str, Content]) -> dict[str, list[str]]:
    """Under `PAGE` what the page needs besides whatever it shows, and what each view needs besides
    that, by the view's name.
    """
    first = first_modules(contents)
    page = [one for one in _closure(contents, (MAIN,)) if one not in first]
    common = {*first, *page}
    found = {PAGE: page}
    for path in contents:
        match = _VIEW.fullmatch(path)
        if match:
            found[match[1]] = [one for one in _closure(contents, (path,)) if one not in common]
    return found


def _closure(contents: Mapping[str, Content], entries: Iterable[str]) -> list[str]:
    """The modules ``entries`` and all that they import at once, a round after the other."""
    found: dict[str, None] = {}
    for entry in entries:
        front = [entry] if entry in contents and entry not in found else []
        while front:
            found |= dict.fromkeys(front)
            near = dict.fromkeys(one for path in front for one in _imports(contents, path))
            front = [one for one in near if one not in found]
    return list(found)


def _imports(contents: Mapping[str, Content], path: str) -> Iterator[str]:
    for relative in contents[path].imports:
        target = posixpath.normpath(posixpath.join(posixpath.dirname(path), relative))
        if target in contents:
            yield target
