"""Requests of browsers: whose pages may change something here, and by which name we are called.

A page of another site can send requests to a server on the reader's machine. Two headers
distinguish them, and no page can forge them: ``Host`` (a page whose name was re-pointed at this
machine still sends that name) and ``Origin`` (Fetch standard, section 3.2).
"""

from __future__ import annotations

import socket
from contextlib import suppress
from typing import NamedTuple

from peakline.errors import UsageError
from peakline.service.addresses import host_of, literal_address, plain_host
from peakline.service.settings import Settings

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
