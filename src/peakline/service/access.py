"""What a request may touch: transport-free rules, used by every face.

Every rule raises one of `peakline.errors` or answers a question with a boolean. Nothing here
trusts a path that a request names: it is resolved, links included, and compared with the resolved
roots part by part. Links may change afterwards: repositories open what is in them through a
`Confinement`.

A page of another site can send requests to a server on the reader's machine. Two headers
distinguish them, and no page can forge them: ``Host`` (a page whose name was re-pointed at this
machine still sends that name) and ``Origin`` (Fetch standard, section 3.2).
"""

from __future__ import annotations

import os
import re
import secrets
import socket
from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import NamedTuple, TypeVar

from peakline.errors import ForbiddenError, InputError, NotFoundError, UsageError
from peakline.repository import HostFile, Repository, Session, check_name
from peakline.repository.confined import Confinement
from peakline.repository.session import Entry
from peakline.repository.store import Missing, Store, Unreadable
from peakline.repository.stores import store_for
from peakline.service.addresses import host_of, literal_address, plain_host
from peakline.service.capture_hosts import CaptureHosts
from peakline.service.settings import Settings
from peakline.service.tokens import is_token, read_tokens, token_matches, weaknesses

_DEFAULT_PORTS = {"http": 80, "https": 443}
_LOCAL = ("localhost", "127.0.0.1", "::1")


class Origin(NamedTuple):
    """Who a page belongs to: two pages are of one origin when all three are equal."""

    scheme: str
    host: str
    port: int


def parse_origin(text: str) -> Origin:
    """``scheme://host[:port]`` of http or https; UsageError for anything else, also ``null``."""
    scheme, separator, place = text.partition("://")
    scheme = scheme.lower()
    if not separator or scheme not in _DEFAULT_PORTS or not text.isascii():
        raise UsageError(f"{text[:80]!r} is no origin; write https://host or https://host:port")
    host, port = host_of(place)
    return Origin(scheme, host, _DEFAULT_PORTS[scheme] if port is None else port)


class BrowserRules:
    """The names of this server and the origins that may change something.

    Raises UsageError for an allowed host or origin that is none.
    """

    def __init__(self, settings: Settings) -> None:
        self._scheme = settings.scheme
        self._names: set[tuple[str, int | None]] = {(name, None) for name in _LOCAL}
        self._any_address = False
        bound = literal_address(settings.host)
        if bound is None:
            self._names.add((plain_host(settings.host), None))
        elif not bound.is_loopback:
            # An address in Host cannot be a re-pointed name. Where others may reach the server,
            # it has addresses that it does not know, behind routers and containers.
            self._any_address = True
        else:
            self._names.add((str(bound), None))
        # Bound to every address: the machine's own name is a name of this server.
        if bound is not None and bound.is_unspecified:
            with suppress(UsageError):  # a name that no Host header could hold
                self._names.add((plain_host(socket.gethostname()), None))
        for text in settings.allowed_hosts:
            try:
                self._names.add(host_of(text))
            except UsageError:
                raise UsageError(f"--allow-host {text!r}: write NAME or NAME:PORT") from None
        self._origins = set()
        for text in settings.allowed_origins:
            try:
                self._origins.add(parse_origin(text.removesuffix("/")))
            except UsageError:
                raise UsageError(
                    f"--allow-origin {text!r}: write https://host or https://host:port"
                ) from None

    def host_header_allowed(self, host: str | None) -> bool:
        """Whether ``host``, the header's value, is one of this server's names.

        The port may be any, because of forwarded ports, unless ``--allow-host`` names one.
        """
        try:
            name, port = host_of(host or "")
        except UsageError:
            return False
        if (name, None) in self._names or (name, port) in self._names:
            return True
        return self._any_address and literal_address(name) is not None

    def origin_allowed(self, origin: str | None, host: str | None) -> bool:
        """Whether a page of ``origin`` may change something, sent to ``host`` (the two headers).

        No ``Origin`` means no browser's cross-origin request. ``null`` stands for any sandboxed
        or local page and is never allowed.
        """
        if origin is None:
            return True
        try:
            page = parse_origin(origin)
            own = parse_origin(f"{self._scheme}://{host or ''}")
        except UsageError:
            return False
        return page == own or page in self._origins


_SESSIONS = ("plugins", "profile")
_URL = re.compile(r"([a-z][a-z0-9+.-]*)://(.*)", re.IGNORECASE | re.DOTALL)
_LOCAL_URLS = frozenset(("file", "local"))
_LEAST_HIDDEN = 8
_ID = re.compile(r"[A-Za-z0-9._-]{1,64}")
_SHOWN = 200
_LONGEST_PATH = 4096
_MOST_PARTS = 1000
_MOST_REPOSITORIES = 256
"""Every directory below a root can be named."""


_E = TypeVar("_E", bound=Entry)


class Access:
    """The rules of one server. Raises UsageError for settings that are no rules."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        browser = BrowserRules(settings)
        self.host_header_allowed = browser.host_header_allowed
        self.origin_allowed = browser.origin_allowed
        self.capture_target = CaptureHosts(settings).target
        self.roots = root_names(settings.roots)
        """The served log directories by the names that callers may use for them."""
        places = (*settings.roots, *settings.linked)
        self._confinement = Confinement(
            tuple(_local(place) for place in places if not _is_remote(place))
        )
        self._tokens: tuple[str, ...] = ()
        self._repositories: dict[str, Repository] = {}
        self.reload_tokens()

    # -- the repository -------------------------------------------------------------------------

    def repository(self, repository_root: str) -> Repository:
        """The repository that a request names, by a name of `roots` or a path; empty means the
        only one.

        The answer is the resolved place, so that a link that is changed afterwards is not
        followed again. Raises UsageError where the name is no path or leaves a choice,
        ForbiddenError where it is outside the served roots.
        """
        _check_length("log directory", repository_root)
        roots = self._settings.roots
        if not repository_root and len(roots) > 1:
            raise UsageError(
                f"this server has {len(roots)} log directories; say which as repository_root"
            )
        named = self.roots.get(repository_root, repository_root)
        place = self._resolve_root(named or roots[0])
        # One of each place: it knows which directories hold profiles.
        known = self._repositories.get(place)
        if known is None:
            if len(self._repositories) >= _MOST_REPOSITORIES:
                self._repositories.clear()
            known = Repository(place)
            known.confine(self._confinement)
            known.rule = self.inside
            self._repositories[place] = known
        return known

    def new_repository(self, repository_root: str) -> Repository:
        """As `repository`, to store a session in: a served root or a directory that is there.

        Raises UsageError besides where sessions would come to lie inside a session or beside
        those of nobody's log directory, NotFoundError for a directory that does not exist.
        """
        repository = self.repository(repository_root)
        place = repository.logdir
        base = place.removesuffix("/" + "/".join(_SESSIONS))
        if not {place, base}.isdisjoint(self._places()):
            return repository
        shown = repr(repository_root[:_SHOWN])
        if "/" + "/".join(_SESSIONS) + "/" in base + "/" or self._holds_profile(base):
            raise UsageError(f"{shown} is inside the sessions of a log directory")
        if not self._is_directory(base):
            raise NotFoundError(f"{shown}: no such directory")
        return repository

    def run(self, repository_root: str, name: str, *, nested: bool = False) -> Session:
        """The session called ``name``; with ``nested`` also a run such as ``train/ID``.

        Raises UsageError for what is no name, NotFoundError for no such session, ForbiddenError
        for one that is a link out of the served roots.
        """
        _check_length("session id", name)
        for part in name.split("/") if nested else (name,):
            check_name("session id", part)
        session = self.repository(repository_root).session(name)
        self.confine(session.path)
        return session

    def host_files(self, session: Session) -> list[HostFile]:
        """The session's hosts whose files lie, links followed, inside the served roots."""
        return self.inside(session.hosts())

    def confine(self, path: str) -> str:
        """``path`` (a session, a host's file) resolved, when it lies inside a served root.

        Raises ForbiddenError when it, or a link in it, leads out.
        """
        if not self._is_inside(path, list(self._places())):
            raise ForbiddenError("a link leads out of the served log directories")
        return path if _URL.match(path) else os.path.realpath(path)

    def inside(self, entries: Iterable[_E]) -> list[_E]:
        """Those of ``entries`` (sessions, host files) that `confine` accepts."""
        places = list(self._places())
        parents: dict[str, bool] = {}
        """Whether a directory is inside by its own parts alone, without following a link."""

        def is_plain(path: str) -> bool:
            parent, _, name = path.rpartition("/")
            if parent not in parents:
                parents[parent] = (
                    not _is_remote(path)
                    and self._is_inside(parent, places)
                    and os.path.realpath(parent) == parent
                )
            # The usual case, of which there are many: one system call.
            return parents[parent] and name not in ("", ".", "..") and not os.path.islink(path)  # noqa: PTH114

        return [
            entry
            for entry in entries
            if is_plain(entry.path) or self._is_inside(entry.path, places)
        ]

    # -- callers --------------------------------------------------------------------------------

    def token_matches(self, authorization: str | None) -> bool:
        """Whether the ``authorization`` header shows a token; True when none is required."""
        return not self._tokens or token_matches(authorization, self._tokens)

    def without_tokens(self, text: str) -> str:
        """``text`` without the tokens, which a caller may have written where a name belongs. One of
        fewer than 8 characters stays: it would be found in any text.
        """
        for token in self._tokens:
            if len(token) >= _LEAST_HIDDEN:
                text = text.replace(token, "(a token)")
        return text

    def request_id(self, given: Iterable[str]) -> str:
        """The caller's id of a request: of those ``given`` the first that is a plain word, and no
        token; else a new one.
        """
        word = next(filter(_ID.fullmatch, given), "")
        if not word or (self.guarded and self.token_matches(f"Bearer {word}")):
            return secrets.token_hex(8)
        return word

    @property
    def guarded(self) -> bool:
        """Whether callers must show a token."""
        return bool(self._tokens)

    def cautions(self) -> list[str]:
        """What makes the tokens weak; one line for each."""
        path = self._settings.token_file
        return [] if path is None else weaknesses(path, self._tokens)

    def reload_tokens(self) -> None:
        """Read the token file again. Raises UsageError, and the old tokens stay."""
        given = () if self._settings.token is None else (self._settings.token,)
        if not all(map(is_token, given)):
            raise UsageError("a token is visible ASCII without spaces")
        path = self._settings.token_file
        self._tokens = given if path is None else (*given, *read_tokens(path))

    # -- how a place is resolved ----------------------------------------------------------------

    def _places(self) -> Iterator[str]:
        """The served roots and linked files, resolved; anew each time, as an operator may re-point
        a root.
        """
        for root in (*self._settings.roots, *self._settings.linked):
            yield _normal_url(root) if _is_remote(root) else os.path.realpath(_local(root))

    def _resolve_root(self, name: str) -> str:
        """The log directory ``name``, inside a served root also by where its sessions are."""
        shown = repr(name[:_SHOWN])
        if any(ord(character) < 32 or ord(character) == 127 for character in name):
            raise UsageError(f"{shown} is no log directory: it holds control characters").quoting(
                shown
            )
        places = list(self._places())
        if _is_remote(name):
            place = _normal_url(name)
        else:
            try:
                place = os.path.realpath(_local(name))
            except (OSError, ValueError):  # too long, too many links, text that is no name
                raise UsageError(f"{shown} is no log directory").quoting(shown) from None
        sessions = "/".join((place.rstrip("/"), *_SESSIONS))
        if sessions in places:
            return sessions  # the root that is served is the directory of the sessions itself
        if not any(_under(place, root) for root in places):
            raise ForbiddenError(
                f"{shown} is outside the log directories that this server serves"
            ).quoting(shown)
        if not self._is_inside(sessions, places):
            raise ForbiddenError(
                f"{shown}: a link leads out of the served log directories"
            ).quoting(shown)
        return place

    def _is_directory(self, place: str) -> bool:
        try:
            return self._store(place).kind(place) == "directory"
        except Missing:  # below a file
            return False
        except Unreadable as error:
            raise InputError(f"the log directory cannot be read: {error}") from None

    def _holds_profile(self, place: str) -> bool:
        """Whether the directory is a session itself."""
        try:
            return self._store(place).folder(place).holds_profile()
        except Unreadable:
            return False

    def _store(self, place: str) -> Store:
        return store_for(place, confinement=self._confinement)

    @staticmethod
    def _is_inside(path: str, places: list[str]) -> bool:
        """Whether ``path`` resolves into one of ``places``, which are resolved."""
        if _is_remote(path):
            return any(_under(_normal_url(path), place) for place in places)
        for place in places:
            # The usual case, without a system call for every part of the place itself: no part
            # below it is a link.
            if _under(path, place) and ".." not in path.split("/"):
                below = path
                while len(below) > len(place) and not os.path.islink(below):  # noqa: PTH114
                    below = os.path.dirname(below)  # noqa: PTH120
                if len(below) <= len(place):
                    return True
        try:
            resolved = os.path.realpath(path)
        except (OSError, ValueError):
            return False
        return any(_under(resolved, place) for place in places)


def _check_length(kind: str, path: str) -> None:
    """Raise UsageError for a path that no file system takes: resolving one looks at each part."""
    size, parts = len(path.encode(errors="surrogatepass")), path.count("/") + 1
    if size > _LONGEST_PATH or parts > _MOST_PARTS:
        shown = repr(path[:_SHOWN])
        raise UsageError(
            f"{shown}... is no {kind}: it has {size} bytes in {parts} parts;"
            f" {_LONGEST_PATH} and {_MOST_PARTS} are the most"
        ).quoting(shown)


def _is_remote(name: str) -> bool:
    match = _URL.match(name)
    return match is not None and match[1].lower() not in _LOCAL_URLS


def _local(name: str) -> str:
    """A local path; ``file:///logs`` is ``/logs``."""
    match = _URL.match(name)
    return name if match is None else match[2]


def _under(path: str, root: str) -> bool:
    """Whether ``path`` is ``root`` or below it, by whole parts."""
    return path == root or path.startswith(root if root.endswith("/") else root + "/")


def _normal_url(url: str) -> str:
    """``url`` with its scheme in lower case and no empty or dotted parts.

    Raises ForbiddenError for what could mean another place than it says: ``..``, a chain of file
    systems (``::``), a query or a fragment.
    """
    match = _URL.match(url)
    if match is None:
        return url
    scheme, place = match[1].lower(), match[2]
    parts = [part for part in place.split("/") if part not in ("", ".")]
    if ".." in parts or "::" in url or "\\" in place or "?" in place or "#" in place:
        shown = repr(url[:_SHOWN])
        raise ForbiddenError(f"{shown} is outside the log directories that are served").quoting(
            shown
        )
    return f"{scheme}://" + "/".join(parts)


_SCHEME = re.compile(r"^[a-zA-Z][a-zA-Z0-9+.-]*://")
_NAMELESS = "logs"


def root_names(roots: Iterable[str]) -> dict[str, str]:
    """The roots by name, in their order: the last part of a path, and as many parts before it as
    distinguish it from the others. The same place twice has one name, and no name shows where the
    server has its files.
    """
    parts = {root: _parts(root) for root in roots}
    named: dict[str, str] = {}
    for root, own in parts.items():
        others = [other for other in parts.values() if other != own]
        many = 1
        while many < len(own) and any(other[-many:] == own[-many:] for other in others):
            many += 1
        named.setdefault("/".join(own[-many:]) or _NAMELESS, root)
    return named


def _parts(root: str) -> tuple[str, ...]:
    """The parts of a local path or a URL, without those below which every log directory has its
    sessions.
    """
    scheme = _SCHEME.match(root)
    place = root[scheme.end() :] if scheme else os.path.abspath(root)  # noqa: PTH100 (no Path: a URL's rules differ)
    parts = tuple(part for part in place.split("/") if part not in ("", "."))
    return parts[:-2] if parts[-2:] == _SESSIONS and len(parts) > len(_SESSIONS) else parts
