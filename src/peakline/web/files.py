"""The files of the page, by the path of their URL, its addresses and its policy.

There is no build step: a browser gets the modules as they lie in ``static/``, and needs no other
host than the server.
"""

from __future__ import annotations

import gzip
import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from importlib.resources import files
from pathlib import Path
from urllib.parse import quote, urlencode

_INDEX = "index.html"
_MEDIA_TYPES: Mapping[str, str] = {
    ".css": "text/css; charset=utf-8",
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
    ".txt": "text/plain; charset=utf-8",
}
_GZIP_LEVEL = 6
_IMPORT = re.compile(r'^(?:import|export)\b[^;"(]*"(\.[^"]+)"', re.MULTILINE)
"""An import that is not dynamic, nor a type in a comment; it begins a line."""


class Content:
    """What a file holds: ``plain`` bytes, and a ``tag`` that names them."""

    def __init__(self, plain: bytes) -> None:
        self.plain = plain
        self.tag = hashlib.blake2b(plain, digest_size=16).hexdigest()

    @cached_property
    def imports(self) -> list[str]:
        """What a module imports at once, relative to it."""
        return _IMPORT.findall(self.plain.decode("utf-8", "replace"))

    @cached_property
    def packed(self) -> bytes:
        """The same as a gzip file, packed when it is needed for the first time."""
        # No time in its header: every server that has the file answers with the same bytes.
        return gzip.compress(self.plain, _GZIP_LEVEL, mtime=0)


@dataclass
class PageFile:
    """One file of the page.

    It is read when somebody asks for it, and again after it has changed, so that whoever works on
    the page needs no restart.
    """

    media_type: str
    place: Path
    _known: tuple[tuple[int, int], Content] | None = field(default=None, repr=False)

    def content(self) -> Content:
        """The content as it is now. Raises OSError when the file is gone."""
        status = self.place.stat()
        stamp = (status.st_mtime_ns, status.st_size)
        known = self._known
        if known is None or known[0] != stamp:
            known = (stamp, Content(self.place.read_bytes()))
            self._known = known
        return known[1]


def page_files() -> dict[str, PageFile]:
    """Every file by the path of its URL: ``/`` is the page, everything else is under ``/assets/``.

    Nothing is read yet. Files of other kinds than a page has are left out.
    """
    static = Path(str(files("peakline") / "web" / "static"))
    found = {}
    for place in sorted(static.rglob("*")):
        media_type = _MEDIA_TYPES.get(place.suffix)
        if media_type is not None and place.is_file():
            name = place.relative_to(static).as_posix()
            path = "/" if name == _INDEX else f"/assets/{name}"
            found[path] = PageFile(media_type, place)
    return found


def session_address(name: str, view: str, **state: str) -> str:
    """The fragment of a session's view: ``#/session/NAME/VIEW?host=H``; empty state is left out."""
    query = urlencode({key: value for key, value in state.items() if value}, quote_via=quote)
    return f"#/session/{quote(name, safe='')}/{view}{'?' if query else ''}{query}"


_POLICY = (
    "default-src 'none'",
    "script-src 'self'",
    "worker-src 'self'",
    "style-src 'self'",
    "img-src 'self' data: blob:",
    "connect-src 'self'",
    "font-src 'self'",
    "form-action 'none'",
    "frame-ancestors 'none'",
    "base-uri 'none'",
    "require-trusted-types-for 'script'",
    "trusted-types peakline",
)


def content_policy() -> str:
    """The Content-Security-Policy of the page.

    Nothing of another site is loaded, sent, framed or submitted to; scripts, workers and styles are
    files of this server, no text becomes one, and no text becomes markup (Trusted Types).
    """
    return "; ".join(_POLICY)
