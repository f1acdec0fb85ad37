"""The files of the page, by the path of their URL, its addresses and its policy.

There is no build step: a browser gets the modules as they lie in ``static/``, and needs no other
host than the server. What it gets says at once what it will need: the document names every module,
also those of each view, and one stylesheet holds all of them. Their addresses hold the name of the
edition, so that a browser keeps what it has and asks for the document alone when it comes again.
"""

from __future__ import annotations

import gzip
import hashlib
import posixpath
import re
from collections.abc import Iterable, Iterator, Mapping
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
    result = {}
    for place in sorted(static.rglob("*")):
        media_type = _MEDIA_TYPES.get(place.suffix)
        if media_type is not None and place.is_file():
            name = place.relative_to(static).as_posix()
            path = "/" if name == _INDEX else f"/assets/{name}"
            result[path] = PageFile(media_type, place)
    return result


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
    result = {PAGE: page}
    for path in contents:
        match = _VIEW.fullmatch(path)
        if match:
            result[match[1]] = [one for one in _closure(contents, (path,)) if one not in common]
    return result


def _closure(contents: Mapping[str, Content], entries: Iterable[str]) -> list[str]:
    """The modules ``entries`` and all that they import at once, a round after the other."""
    result: dict[str, None] = {}
    for entry in entries:
        front = [entry] if entry in contents and entry not in result else []
        while front:
            result |= dict.fromkeys(front)
            near = dict.fromkeys(one for path in front for one in _imports(contents, path))
            front = [one for one in near if one not in result]
    return list(result)


def _imports(contents: Mapping[str, Content], path: str) -> Iterator[str]:
    for relative in contents[path].imports:
        target = posixpath.normpath(posixpath.join(posixpath.dirname(path), relative))
        if target in contents:
            yield target


STYLES = "/assets/styles.css"
"""All stylesheets of the document, in its order."""
_PAGE = "/"
_ASSETS = "/assets/"
_STYLE = re.compile(r'<link rel="stylesheet" href="([^"]+)">\n')
_ADDRESS = re.compile(r'((?:src|href)=")assets/')


@dataclass(frozen=True)
class Edition:
    """All files at one time: by the path of their URL the media type, and the content."""

    name: str
    files: Mapping[str, tuple[str, Content]]


class Editions:
    """The editions of the page, of which the last is held. Thread-safe.

    ``files`` are those of `page_files`.
    """

    def __init__(self, files: Mapping[str, PageFile]) -> None:
        self._files = files
        self._last: tuple[list[Content], Edition] | None = None

    def known(self, name: str) -> Edition | None:
        """The edition of that name when it is the last one: the disk is left alone."""
        last = self._last
        return last[1] if last and last[1].name == name else None

    def current(self) -> Edition:
        """The edition of the files as they are now: whoever works on the page needs no restart.

        Looks at every file, and reads those that changed. Raises OSError when one is gone.
        """
        contents = {path: file.content() for path, file in self._files.items()}
        last, now = self._last, list(contents.values())
        # The same objects where nothing changed.
        if last and all(one is other for one, other in zip(last[0], now, strict=True)):
            return last[1]
        edition = _edition(contents, {path: file.media_type for path, file in self._files.items()})
        self._last = (now, edition)
        return edition

    def prepare(self) -> None:
        """Read and pack everything; raises as `current`."""
        for _, content in self.current().files.values():
            _ = content.packed


def _edition(contents: Mapping[str, Content], kinds: Mapping[str, str]) -> Edition:
    digest = hashlib.blake2b(digest_size=8)
    for path, content in contents.items():
        digest.update(f"{path} {content.tag}\n".encode())
    name = digest.hexdigest()
    files = {path: (kinds[path], content) for path, content in contents.items()}
    if _PAGE in contents:
        text = contents[_PAGE].plain.decode()
        styles = [f"/{one}" for one in _STYLE.findall(text)]
        sheet = b"\n".join(contents[one].plain for one in styles)
        files[STYLES] = ("text/css; charset=utf-8", Content(sheet))
        files[_PAGE] = (kinds[_PAGE], Content(_document(text, name, contents).encode()))
    return Edition(name, files)


def _document(text: str, name: str, contents: Mapping[str, Content]) -> str:
    """The document of the edition ``name``."""
    before, *_ = _STYLE.split(text, maxsplit=1)
    rest = _STYLE.sub("", text.removeprefix(before))
    style = f'<link rel="stylesheet" href="{STYLES[1:]}">\n'
    preloads = "".join(
        f'<link rel="modulepreload" href="{path[1:]}">\n' for path in first_modules(contents)
    )
    views = "".join(
        f'<meta name="modules-of-{view}" content="{_listed(paths)}">\n'
        for view, paths in later_modules(contents).items()
    )
    # Before the first script, which reads what its view needs.
    text = f"{before}{style}{rest}".replace("<script", f"{views}{preloads}<script", 1)
    return _ADDRESS.sub(rf"\1assets/{edition_part(name)}/", text)


def _listed(paths: Iterable[str]) -> str:
    return " ".join(path.removeprefix(_ASSETS) for path in paths)


def edition_part(name: str) -> str:
    """The part of an address that names the edition."""
    return f"v-{name}"


def without_edition(path: str) -> tuple[str, str]:
    """The path of an asset as in ``static/``, and the edition that it names; "" for none."""
    head, slash, rest = path.removeprefix(_ASSETS).partition("/")
    if path.startswith(_ASSETS) and slash and head.startswith("v-"):
        return f"{_ASSETS}{rest}", head.removeprefix("v-")
    return path, ""
