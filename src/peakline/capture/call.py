"""One call of gRPC (https://grpc.io, "gRPC over HTTP2") whose answer goes where it is wanted as it
comes: over plaintext HTTP/2, to one server, without retries and proxies.
"""

from __future__ import annotations

import math
import os
import selectors
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from ipaddress import IPv6Address, ip_address
from typing import Any
from urllib.parse import unquote

from peakline.capture.http2 import BrokenError, Exchange

_CONNECT_S = 20.0
# A server of default settings drops clients that ping more often than every five minutes.
_KEEPALIVE_S = 330.0
_KEEPALIVE_TIMEOUT_S = 20.0
_BLOCK = 1 << 18
_MOST_BYTES = 2**31 - 1
"""What protobuf can serialise."""
_PREFIX = 5

_CODES = (
    "OK", "CANCELLED", "UNKNOWN", "INVALID_ARGUMENT", "DEADLINE_EXCEEDED", "NOT_FOUND",
    "ALREADY_EXISTS", "PERMISSION_DENIED", "RESOURCE_EXHAUSTED", "FAILED_PRECONDITION", "ABORTED",
    "OUT_OF_RANGE", "UNIMPLEMENTED", "INTERNAL", "UNAVAILABLE", "DATA_LOSS", "UNAUTHENTICATED",
)  # fmt: skip
_UNKNOWN = 2
_OF_HTTP = {
    400: "INTERNAL", 401: "UNAUTHENTICATED", 403: "PERMISSION_DENIED", 404: "UNIMPLEMENTED",
    429: "UNAVAILABLE", 502: "UNAVAILABLE", 503: "UNAVAILABLE", 504: "UNAVAILABLE",
}  # fmt: skip
_OF_RESET = {7: "UNAVAILABLE", 8: "CANCELLED", 11: "RESOURCE_EXHAUSTED", 12: "PERMISSION_DENIED"}
_UNITS = (("m", 1000.0), ("S", 1.0), ("M", 1 / 60), ("H", 1 / 3600))
_LARGEST_TIMEOUT = 10**8
_METADATA = frozenset(
    map(ip_address, ("fd00:ec2::254", "fd20:ce::254", "100.100.100.200", "168.63.129.16"))
)
"""Where clouds answer a machine about itself, besides link-local addresses."""

Sink = Callable[[memoryview], object]


class CallError(Exception):
    """A call without an answer: ``code`` is the name of gRPC's status, ``str()`` the details."""

    def __init__(self, code: str, details: str) -> None:
        super().__init__(details)
        self.code = code


class Call:
    """One call; `run` makes it, `cancel` ends it from any thread."""

    def __init__(self, address: str, method: str) -> None:
        self._address, self._method = address, method
        self._is_cancelled = False
        self._bell, self._rope = socket.socketpair()
        self._rope.settimeout(0)
        self._end = math.inf

    def cancel(self) -> bool:
        """End the call; `run` then raises CallError with the code CANCELLED."""
        self._is_cancelled = True
        self._wake()
        return True

    def run(
        self, request: bytes, sink: Sink, *, timeout_s: float, report: Callable[[str], object]
    ) -> None:
        """Send ``request``; what is answered goes to ``sink`` in pieces, none of them to be kept.

        ``report`` is called with ``recording`` when the connection stands and ``receiving`` when
        the answer begins. Raises CallError, and whatever ``sink`` and ``report`` raise.
        """
        self._end = time.monotonic() + timeout_s
        answer = _Answer(sink, report)
        exchange = Exchange(answer.take_headers, answer.take_data)
        try:
            with self._connected() as connection:
                try:
                    self._exchange(connection, exchange, request, report)
                finally:
                    exchange.cancel()
                    with suppress(OSError):
                        connection.send(exchange.to_send())
        except BrokenError as error:
            raise CallError("UNAVAILABLE", str(error)) from None
        finally:
            self._bell.close()
            self._rope.close()
        answer.check(exchange.reset_code)

    def _exchange(
        self,
        connection: socket.socket,
        exchange: Exchange,
        request: bytes,
        report: Callable[[str], object],
    ) -> None:
        buffer = memoryview(bytearray(_BLOCK))
        limit, is_pinged, out = time.monotonic() + _CONNECT_S, False, b""
        is_begun = False
        while not exchange.is_over:
            out += exchange.to_send()
            events = selectors.EVENT_READ | (selectors.EVENT_WRITE if out else 0)
            is_late = not self._wait(connection, limit, events=events)
            if is_late and (is_pinged or not is_begun):
                raise CallError("UNAVAILABLE", "it does not answer")
            if is_late:
                exchange.ping()
                is_pinged, limit = True, time.monotonic() + _KEEPALIVE_TIMEOUT_S
                continue
            out = out[_send(connection, out) :]
            size = _receive(connection, buffer)
            if not size:
                continue
            is_pinged, limit = False, time.monotonic() + _KEEPALIVE_S
            exchange.receive(buffer[:size])
            if exchange.is_open and not is_begun:
                is_begun = True
                report("recording")
                exchange.begin(self._headers(), _framed(request))

    def _headers(self) -> list[tuple[str, str]]:
        return [
            (":method", "POST"),
            (":scheme", "http"),
            (":path", self._method),
            (":authority", self._address),
            ("te", "trailers"),
            ("content-type", "application/grpc"),
            ("grpc-timeout", _timeout(self._end - time.monotonic())),
            ("user-agent", "peakline"),
        ]

    @contextmanager
    def _connected(self) -> Iterator[socket.socket]:
        """A connection to the first of the host's addresses that takes one."""
        reason = "it has no address"
        for family, kind, protocol, _, place in self._addresses():
            with socket.socket(family, kind, protocol) as connection:
                reason = self._connect(connection, place)
                if not reason:
                    yield connection
                    return
        raise CallError("UNAVAILABLE", reason)

    def _connect(self, connection: socket.socket, place: Any) -> str:
        """Connect to ``place``; why not, or nothing."""
        connection.settimeout(0)
        limit = time.monotonic() + _CONNECT_S
        try:
            with suppress(BlockingIOError):
                connection.connect(place)
            if not self._wait(connection, limit, events=selectors.EVENT_WRITE):
                return "it does not answer"
            failed = connection.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
            if failed:
                return os.strerror(failed)
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        except OSError as error:
            return error.strerror or str(error)
        return ""

    def _addresses(self) -> list[Any]:
        """What the host's name stands for, and nothing beside a machine that only an address may
        name; looking it up may take as long as it likes.
        """
        host, _, port = self._address.rpartition(":")
        result: list[Any] = []

        def look_up() -> None:
            try:
                result.append(socket.getaddrinfo(host.strip("[]"), port, type=socket.SOCK_STREAM))
            except (OSError, UnicodeError) as error:
                result.append(f"{host}: {getattr(error, 'strerror', None) or error}")
            self._wake()

        threading.Thread(target=look_up, name=f"look up {host}", daemon=True).start()
        limit = time.monotonic() + _CONNECT_S
        while not result:
            if not self._wait(None, limit):
                raise CallError("UNAVAILABLE", f"{host}: no name server answers")
        if isinstance(result[0], str):
            raise CallError("UNAVAILABLE", result[0])
        places = [place for place in result[0] if not _is_hidden(place[4][0])]
        if places or _is_address(host.strip("[]")):
            return places or list(result[0])
        raise CallError(
            "PERMISSION_DENIED",
            f"{host} stands for a link-local or metadata address, which no name may lead to",
        )

    def _wait(
        self, connection: socket.socket | None, limit: float, *, events: int = selectors.EVENT_READ
    ) -> bool:
        """Wait for ``connection``, or for being woken; False when that takes until ``limit``.

        Raises CallError when the call was cancelled or its time is over.
        """
        with selectors.DefaultSelector() as selector:
            selector.register(self._bell, selectors.EVENT_READ)
            if connection is not None:
                selector.register(connection, events)
            while True:
                now = time.monotonic()
                ready = {
                    key.fileobj for key, _ in selector.select(max(0.0, min(limit, self._end) - now))
                }
                if self._bell in ready:
                    self._bell.recv(_BLOCK)
                if self._is_cancelled:
                    raise CallError("CANCELLED", "ended before it was done")
                if time.monotonic() >= self._end:
                    raise CallError("DEADLINE_EXCEEDED", "")
                if connection in ready or (connection is None and ready):
                    return True
                if time.monotonic() >= limit:
                    return False

    def _wake(self) -> None:
        with suppress(OSError):  # it rings already, or the call is over
            self._rope.send(b"\0")


class _Answer:
    """What a server answers: headers, one message, trailers."""

    def __init__(self, sink: Sink, report: Callable[[str], object]) -> None:
        self._sink, self._report = sink, report
        self._prefix = bytearray()
        self._left = 0
        self._has_begun = False
        self._status: tuple[str, str] | None = None

    def take_headers(self, headers: dict[bytes, bytes]) -> None:
        """Headers or trailers."""
        status = headers.get(b":status", b"200")
        if status.startswith(b"1"):
            return
        code = headers.get(b"grpc-status")
        if code is not None:
            details = unquote(headers.get(b"grpc-message", b"").decode("ascii", "replace"))
            number = int(code) if code.isdigit() and len(code) <= 2 else _UNKNOWN
            self._status = (_CODES[number if number < len(_CODES) else _UNKNOWN], details)
        elif status != b"200":
            number = int(status[:3]) if status.isdigit() else 0
            raise CallError(_OF_HTTP.get(number, "UNKNOWN"), f"it answers with HTTP {number}")
        elif not self._has_begun:
            self._has_begun = True
            self._report("receiving")

    def take_data(self, piece: memoryview) -> None:
        """A part of the message with its prefix."""
        if not self._has_begun:
            raise BrokenError("an answer without headers")
        if len(self._prefix) < _PREFIX:
            head = piece[: _PREFIX - len(self._prefix)]
            self._prefix += head
            piece = piece[len(head) :]
            if len(self._prefix) < _PREFIX:
                return
            self._left = int.from_bytes(self._prefix[1:], "big")
            if self._prefix[0]:
                raise CallError("INTERNAL", "it sent a compressed answer, which nobody wanted")
            if self._left > _MOST_BYTES:
                raise CallError("RESOURCE_EXHAUSTED", "its answer is larger than 2 GiB")
        if len(piece) > self._left:
            raise CallError("INTERNAL", "it did not send one answer")
        self._left -= len(piece)
        if len(piece):
            self._sink(piece)

    def check(self, reset_code: int | None) -> None:
        """It is over: raises CallError for what is no answer."""
        if self._status is None:
            if reset_code is not None:
                raise CallError(_OF_RESET.get(reset_code, "INTERNAL"), "it ended the call")
            raise CallError("INTERNAL", "its answer ends without a status")
        code, details = self._status
        if code != "OK":
            raise CallError(code, details)
        if len(self._prefix) < _PREFIX or self._left:
            raise CallError("INTERNAL", "it did not send one answer")


def _is_address(host: str) -> bool:
    try:
        ip_address(host)
    except ValueError:
        return False
    return True


def _is_hidden(text: str) -> bool:
    """Whether no name leads to the address ``text``: names are others' to point where they like."""
    address = ip_address(text)
    if isinstance(address, IPv6Address):
        address = address.ipv4_mapped or IPv6Address(int(address))  # without a zone
    return address.is_link_local or address in _METADATA


def _send(connection: socket.socket, content: bytes) -> int:
    try:
        return connection.send(content) if content else 0
    except BlockingIOError:
        return 0
    except OSError as error:
        raise CallError("UNAVAILABLE", error.strerror or str(error)) from None


def _receive(connection: socket.socket, buffer: memoryview) -> int:
    """How many bytes came; 0 where there are none yet."""
    try:
        size = connection.recv_into(buffer)
    except BlockingIOError:
        return 0
    except OSError as error:
        raise CallError("UNAVAILABLE", error.strerror or str(error)) from None
    if not size:
        raise CallError("UNAVAILABLE", "it closed the connection")
    return size


def _framed(message: bytes) -> bytes:
    return b"\0" + len(message).to_bytes(4, "big") + message


def _timeout(seconds: float) -> str:
    """A time as gRPC's header has it, rounded up: at most eight digits, and a unit."""
    numbers = ((max(1, math.ceil(seconds * factor)), unit) for unit, factor in _UNITS)
    return next(f"{number}{unit}" for number, unit in numbers if number < _LARGEST_TIMEOUT)
