"""The HTTP face as a running thing: its sockets, and the thread of its event loop."""

from __future__ import annotations

import errno
import os
import socket
import ssl
import threading

import uvicorn
from starlette.types import ASGIApp

from peakline.errors import PeaklineError, UsageError
from peakline.service.addresses import join_port
from peakline.service.http.middleware import LONGEST_HEAD
from peakline.service.http_connections import Connections, Door
from peakline.service.limits import connection_limits
from peakline.service.metrics import Metrics
from peakline.service.places import Places
from peakline.service.settings import Settings
from peakline.service.settings_check import resolved

_BACKLOG = 1024
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

    def __init__(
        self, app: ASGIApp, settings: Settings, sockets: list[socket.socket], metrics: Metrics
    ) -> None:
        self._sockets = sockets
        config = uvicorn.Config(
            app,
            http="h11",
            log_config=None,
            access_log=False,
            server_header=False,
            h11_max_incomplete_event_size=LONGEST_HEAD,
            proxy_headers=False,  # a caller would choose its own address in the log
            ws="none",
            timeout_keep_alive=settings.idle_timeout_s,  # type: ignore[arg-type]  # it waits for any
            ssl_certfile=settings.tls_cert,
            ssl_keyfile=settings.tls_key,
            ssl_ca_certs=settings.tls_client_ca,
            ssl_cert_reqs=ssl.CERT_REQUIRED if settings.tls_client_ca else ssl.CERT_NONE,
        )
        self._server = _Server(config, settings, metrics)
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


class _Server(uvicorn.Server):
    """Uvicorn's server, whose connections come through a `Door` for each socket."""

    def __init__(self, config: uvicorn.Config, settings: Settings, metrics: Metrics) -> None:
        super().__init__(config)
        self._connections = Connections(
            config,
            self.server_state,
            Places(*connection_limits(settings)),
            metrics,
            head_s=settings.head_timeout_s,
            idle_s=settings.idle_timeout_s,
        )
        metrics.watch_connections("http", lambda: len(self._connections.places))

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Listen at ``sockets``, which uvicorn would do without asking who comes."""
        await super().startup(sockets=[])
        self._connections.app_state = self.lifespan.state
        self.servers += [Door(one, self._connections) for one in sockets or ()]  # type: ignore[misc]
