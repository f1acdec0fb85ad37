"""The files of the page, by the path of their URL, its addresses and its policy.

There is no build step: a browser gets the modules as they lie in ``static/``. Plotly's script is
the one of the installed ``plotly`` package, so that the page needs no other host than the server.
"""

from __future__ import annotations

import base64
import gzip
import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path
from urllib.parse import quote, urlencode

PLOTLY_SCRIPT = "/assets/plotly.min.js"

_PLOTLY_STYLE = "/assets/plotly.css"
"""Empty: Plotly puts its rules into the stylesheet that has a certain id, and where there is none
makes an inline one, which the page's policy refuses.
"""

_INDEX = "index.html"
_MEDIA_TYPES: Mapping[str, str] = {
    ".css": "text/css; charset=utf-8",
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
    ".txt": "text/plain; charset=utf-8",
}
_GZIP_LEVEL = 6


class Content:
    """What a file holds: ``plain`` bytes, and a ``tag`` that names them."""

    def __init__(self, plain: bytes) -> None:
        self.plain = plain
        self.tag = hashlib.blake2b(plain, digest_size=16).hexdigest()

    @cached_property
    def packed(self) -> bytes:
        """The same as a gzip file, packed when it is needed for the first time."""
        # No time in its header: every server that has the file answers with the same bytes.
        return gzip.compress(self.plain, _GZIP_LEVEL, mtime=0)


@dataclass
class PageFile:
    """One file of the page; ``place`` is None for the one that is empty.

    It is read when somebody asks for it, and again after it has changed, so that whoever works on
    the page needs no restart.
    """

    media_type: str
    place: Path | None
    _known: tuple[tuple[int, int], Content] | None = field(default=None, repr=False)

    def content(self) -> Content:
        """The content as it is now. Raises OSError when the file is gone."""
        status = None if self.place is None else self.place.stat()
        stamp = (0, 0) if status is None else (status.st_mtime_ns, status.st_size)
        known = self._known
        if known is None or known[0] != stamp:
            known = (stamp, Content(b"" if self.place is None else self.place.read_bytes()))
            self._known = known
        return known[1]


def page_files() -> dict[str, PageFile]:
    """Every file by the path of its URL: ``/`` is the page, everything else is under ``/assets/``.

    Nothing is read yet. Files of other kinds than a page has are left out.
    """
    static = Path(str(files("peakline") / "web" / "static"))
    found = {
        PLOTLY_SCRIPT: PageFile(_MEDIA_TYPES[".js"], _plotly_script()),
        _PLOTLY_STYLE: PageFile(_MEDIA_TYPES[".css"], None),
    }
    for place in sorted(static.rglob("*")):
        media_type = _MEDIA_TYPES.get(place.suffix)
        if media_type is not None and place.is_file():
            name = place.relative_to(static).as_posix()
            path = "/" if name == _INDEX else f"/assets/{name}"
            found[path] = PageFile(media_type, place)
    return found


def _plotly_script() -> Path:
    """Where the installed ``plotly`` has its script; the package itself takes long to import."""
    found = find_spec("plotly")
    if found is None or found.origin is None:
        raise ModuleNotFoundError("plotly is not installed")
    return Path(found.origin).parent / "package_data" / "plotly.min.js"


def session_address(name: str, view: str, **state: str) -> str:
    """The fragment of a session's view: ``#/session/NAME/VIEW?host=H``; empty state is left out."""
    query = urlencode({key: value for key, value in state.items() if value}, quote_via=quote)
    return f"#/session/{quote(name, safe='')}/{view}{'?' if query else ''}{query}"


_ATTRIBUTES = ("font-weight:bold",)
"""The style attributes that Plotly sets in our figures: that of ``<b>`` in a text."""

_STYLESHEET = re.compile(r"\.textContent='((?:[^'\\]|\\.)*)',document\.head\.appendChild")
_ESCAPED = re.compile(r"\\(.)")


def content_policy(plotly: str) -> str:
    """The Content-Security-Policy of a page that may load the script ``plotly``.

    Nothing of another site is loaded, sent, framed or submitted to; scripts are files of this
    server, no text becomes one, and no text becomes markup (Trusted Types). Styles are files too,
    but for what Plotly cannot do without, each by the hash of what it says.

    The script brings the stylesheet of a map library, which it inserts into every page that loads
    it, as a map might be drawn. Where none is found in it, there is none to allow.
    """
    inserted = [_ESCAPED.sub(r"\1", found[1]) for found in _STYLESHEET.finditer(plotly)]
    return "; ".join((
        "default-src 'none'",
        "script-src 'self'",
        "worker-src 'self'",
        " ".join(("style-src 'self'", *map(_hash, inserted))),
        " ".join(("style-src-attr 'unsafe-hashes'", *map(_hash, _ATTRIBUTES))),
        "img-src 'self' data: blob:",
        "connect-src 'self'",
        "font-src 'self'",
        "form-action 'none'",
        "frame-ancestors 'none'",
        "base-uri 'none'",
        "require-trusted-types-for 'script'",
        "trusted-types peakline",
    ))  # fmt: skip


def _hash(text: str) -> str:
    digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode("ascii")
    return f"'sha256-{digest}'"
