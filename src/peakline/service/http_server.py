"""The HTTP face as a running thing: its sockets, its protocol, and the thread of its event loop."""

from __future__ import annotations

import asyncio
import errno
import os
import socket
import ssl
import threading

import h11
import uvicorn
from fastapi import FastAPI
from uvicorn.protocols.http.h11_impl import H11Protocol

from peakline.errors import PeaklineError, UsageError
from peakline.service.addresses import join_port
from peakline.service.http.problems import problem_response
from peakline.service.settings import Settings
from peakline.service.settings_check import resolved

_BACKLOG = 1024
_MOST_CONNECTIONS = 1000
"""More at once are answered 503: descriptors are what a process has few of."""
_START_S = 60.0
_LAST_S = 5.0
"""How long tasks that were cancelled may take to end."""


def bind(host: str, port: int) -> list[socket.socket]:
    """Listening sockets for every address of ``host``, all with one port (0: a free one).

    Raises UsageError, with nothing left open, when the port is in use or cannot be had.
    """
    sockets: list[socket.socket] = []
    refused: OSError | None = None
    for family, _, _, _, found_at in dict.fromkeys(resolved(host, port)):
        try:
            # Every address is of the older protocol as well, as gRPC does.
            place = (found_at[0], port, *found_at[2:])
            both = place[0] == "::" and socket.has_dualstack_ipv6()
            sockets.append(
                socket.create_server(place, family=family, backlog=_BACKLOG, dualstack_ipv6=both)
            )
        except OSError as error:
            # A name may stand for an address that this machine lacks, as ::1 without IPv6.
            if error.errno not in {errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT}:
                for opened in sockets:
                    opened.close()
                raise UsageError(_bind_complaint(host, port, error)) from None
            refused = error
            continue
        port = sockets[0].getsockname()[1]
    if not sockets:
        raise UsageError(_bind_complaint(host, port, refused or OSError("no address")))
    return sockets


def _bind_complaint(host: str, port: int, error: OSError) -> str:
    place = join_port(host, port)
    if error.errno == errno.EADDRINUSE:
        return f"HTTP port {port}: {place} is in use; choose another port, or 0 for any free one"
    reason = os.strerror(error.errno) if error.errno else error
    return f"HTTP port {port}: cannot listen on {place}: {reason}"


class HttpServer:
    """Serves ``app`` on ``sockets`` (from `bind`), which it closes in the end."""

    def __init__(self, app: FastAPI, settings: Settings, sockets: list[socket.socket]) -> None:
        self._sockets = sockets
        self._server = uvicorn.Server(
            uvicorn.Config(
                app,
                http=ProblemProtocol,
                log_config=None,
                access_log=False,
                server_header=False,
                proxy_headers=False,  # a caller would choose its own address in the log
                ws="none",
                limit_concurrency=_MOST_CONNECTIONS,
                ssl_certfile=settings.tls_cert,
                ssl_keyfile=settings.tls_key,
                ssl_ca_certs=settings.tls_client_ca,
                ssl_cert_reqs=ssl.CERT_REQUIRED if settings.tls_client_ca else ssl.CERT_NONE,
            )
        )
        self._ended = threading.Event()
        self._failure: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name="http", daemon=True)

    @property
    def port(self) -> int:
        """The port, also when a free one was chosen."""
        return int(self._sockets[0].getsockname()[1])

    def start(self) -> None:
        """Serve from now on. Raises PeaklineError when the application does not come up."""
        self._thread.start()
        waited = 0.0
        while not self._server.started and waited < _START_S:
            if self._ended.wait(0.01):
                break
            waited += 0.01
        if not self._server.started:
            self.stop(0)
            raise PeaklineError(f"the HTTP application did not start: {self._failure}")

    def begin_stop(self, grace_s: float) -> None:
        """Accept nothing more; after ``grace_s`` what still runs is cancelled. Does not wait."""
        # uvicorn says a whole number; it waits for any.
        self._server.config.timeout_graceful_shutdown = grace_s  # type: ignore[assignment]
        self._server.should_exit = True

    def stop(self, grace_s: float) -> None:
        """`begin_stop` unless that was done, and wait for the end."""
        if not self._server.should_exit:
            self.begin_stop(grace_s)
        if self._thread.is_alive():
            self._thread.join(grace_s + _LAST_S)
        for listener in self._sockets:
            listener.close()

    def _run(self) -> None:
        try:
            self._server.run(sockets=self._sockets)
        except BaseException as error:  # noqa: BLE001  (raised by `start`, which waits)
            self._failure = error
        finally:
            self._ended.set()


class ProblemProtocol(H11Protocol):
    """Uvicorn's protocol, which answers what is no request by itself, before any application."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Serve a connection, or close it if the server ends (then it has a time of grace).

        One can be accepted at that very moment. Uvicorn closes those that were made before, and
        would wait for this one, though nobody uses it, until the grace is over.
        """
        super().connection_made(transport)
        if self.config.timeout_graceful_shutdown is not None:
            self.shutdown()

    def send_400_response(self, msg: str) -> None:
        """Say what is wrong with the bytes that came, and hang up."""
        answer = problem_response(
            400,
            "INVALID_ARGUMENT",
            f"{msg.rstrip('.')}: a request line and headers in ASCII, with one Host, are wanted",
            {"Connection": "close", "X-Content-Type-Options": "nosniff"},
        )
        response = h11.Response(status_code=400, headers=answer.raw_headers, reason=b"Bad Request")
        for event in (response, h11.Data(data=bytes(answer.body)), h11.EndOfMessage()):
            self.transport.write(self.conn.send(event) or b"")
        self.transport.close()
