"""The HTTP face as a running thing: its sockets, its connections, the thread of its event loop.

Uvicorn counts connections without asking whose they are, and waits for a request's head for ever.
Here the sockets are accepted by a `Door`, so that those in a TLS handshake count as well, each has
a place of `Places`, and a `GuardedProtocol` knows whether its client keeps the server waiting.
"""

from __future__ import annotations

import asyncio
import errno
import os
import re
import socket
import ssl
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import h11
import uvicorn
from starlette.types import ASGIApp
from uvicorn.protocols.http.h11_impl import H11Protocol, RequestResponseCycle
from uvicorn.server import ServerState

from peakline.errors import PeaklineError, UsageError
from peakline.service.addresses import join_port
from peakline.service.callers import peer_of
from peakline.service.http.middleware import HANG_UP, LONGEST_HEAD, NO_PLACE
from peakline.service.http.problems import problem_response
from peakline.service.metrics import Metrics
from peakline.service.places import Places, connection_limits, is_scarce
from peakline.service.settings import Settings, resolved

_AT_ONCE = 128
"""Connections that are accepted in a row, before those that there are have their turn."""
_PAUSE_S = 0.1
_FREED = 16
_SHORT = frozenset((errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM))
_SPARE, _SPARE_EACH = 64, 16
"""Connections beyond the places: they get to know that there is none, or the server's health."""
_PROGRESS_BYTES = 16 << 10
_UNREAD_BYTES = 32 << 10
"""Of an answer, beyond what the system takes: then no more is sent until the client reads."""

_TWO_READINGS = re.compile(
    rb"(?<!\r)\n|\n[ \t]"
    rb"|\n(?i:content-length[ \t]*:(?s:.*)\ntransfer-encoding|"
    rb"transfer-encoding[ \t]*:(?s:.*)\ncontent-length)[ \t]*:"
)
"""A head that a proxy in front can read in another way than h11, which takes bare line feeds,
folded lines, and of two lengths the chunks (RFC 9112, sections 2.2, 5.2 and 6.3): what one takes
for a body would be a request to the other."""


@dataclass
class Connections:
    """What all connections of a server share. ``head_s`` is how long a request's head may take
    from the connection's begin on, ``idle_s`` how long a client may say nothing, or read nothing
    of its answer, or send a body at less than 16 KiB in that time.
    """

    config: uvicorn.Config
    state: ServerState
    places: Places[GuardedProtocol]
    metrics: Metrics
    head_s: float
    idle_s: float
    app_state: dict[str, Any] = field(default_factory=dict)
    spare: Places[GuardedProtocol] = field(default_factory=lambda: Places(_SPARE, _SPARE_EACH))

    def admit(self, accepted: socket.socket, address: Any) -> GuardedProtocol | None:
        """A protocol for a connection that has a place, or a spare one; None: it was closed."""
        accepted.settimeout(0)
        # asyncio does it only for sockets that were made with the protocol's number; without it the
        # end of an answer waits 40 ms for the other side.
        with suppress(OSError):  # who has gone already
            accepted.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        protocol = GuardedProtocol(self, accepted, peer_of(str(address[0])))
        if self.places.take(protocol):
            return protocol
        self.metrics.refused("connections")
        protocol.places = self.spare
        protocol.app_state[NO_PLACE] = True
        if self.spare.take(protocol):
            return protocol
        accepted.close()
        return None


class Door:
    """Accepts the connections of one listening socket; what uvicorn takes for its own server."""

    def __init__(self, listener: socket.socket, connections: Connections) -> None:
        self._listener = listener
        self._connections = connections
        self._loop = asyncio.get_running_loop()
        self._opening: dict[asyncio.Task[None], GuardedProtocol] = {}
        self._pause: asyncio.TimerHandle | None = None
        listener.settimeout(0)
        self._open()

    def close(self) -> None:
        """Accept nothing more, and end handshakes that go on."""
        if self._pause is not None:
            self._pause.cancel()
        self._loop.remove_reader(self._listener.fileno())
        for protocol in self._opening.values():
            protocol.hang_up()

    async def wait_closed(self) -> None:
        """When nobody is on the way in any more."""
        await asyncio.gather(*self._opening, return_exceptions=True)

    def _open(self) -> None:
        self._loop.add_reader(self._listener.fileno(), self._accept)

    def _accept(self) -> None:
        for _ in range(_AT_ONCE):
            try:
                accepted, address = self._listener.accept()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                return
            except OSError as error:
                if error.errno not in _SHORT:
                    raise
                # No descriptor is left for whoever comes.
                self._make_room()
                self._loop.remove_reader(self._listener.fileno())
                self._pause = self._loop.call_later(_PAUSE_S, self._open)
                return
            scarce = is_scarce(accepted.fileno())
            if scarce:
                self._make_room()
            protocol = self._connections.admit(accepted, address)
            if protocol is not None:
                task = self._loop.create_task(self._connect(protocol, accepted))
                self._opening[task] = protocol
                task.add_done_callback(self._opening.pop)
            if scarce:
                # Those who gave way close their descriptors when the loop goes on: before that the
                # next one would look scarce too, and take the places of those who have just come.
                return

    def _make_room(self) -> None:
        """Some who do nothing give way."""
        for _ in range(_FREED):
            self._connections.places.free_one()

    async def _connect(self, protocol: GuardedProtocol, accepted: socket.socket) -> None:
        context, limit_s = self._connections.config.ssl, self._connections.head_s
        handshake: dict[str, Any] = (
            {}
            if context is None
            else {"ssl_handshake_timeout": limit_s, "ssl_shutdown_timeout": limit_s}
        )
        try:
            await self._loop.connect_accepted_socket(
                lambda: protocol, accepted, ssl=context, **handshake
            )
        except (OSError, asyncio.CancelledError):
            protocol.places.leave(protocol)
            protocol.hang_up()


class GuardedProtocol(H11Protocol):
    """Uvicorn's protocol with limits for its client, which answers by itself what is no request."""

    def __init__(self, connections: Connections, accepted: socket.socket, peer: str) -> None:
        super().__init__(
            connections.config,
            connections.state,
            {**connections.app_state, HANG_UP: self.give_way},
            asyncio.get_running_loop(),
        )
        self.peer, self.group = peer, ""
        self.places = connections.places
        self._connections = connections
        self._accepted = accepted
        self._is_made = self._is_lost = False
        self._answering = 0
        self._answer, self.app = self.app, self._answer_one
        self._timer: asyncio.TimerHandle | None = None
        self._awaits_head = True
        self._body_of: object = None
        self._received = 0
        """Bytes of the head, or of the body since its last progress."""
        self._unsent = 0

    # -- what uvicorn and the event loop report -------------------------------------------------

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Serve a connection, or close it if the server ends (then it has a time of grace).

        One can be accepted at that very moment. Uvicorn closes those that were made before, and
        would wait for this one, though nobody uses it, until the grace is over.
        """
        super().connection_made(transport)
        transport.set_write_buffer_limits(_UNREAD_BYTES)
        self._is_made = True
        if self.config.timeout_graceful_shutdown is not None:
            self.shutdown()
        else:
            self._await_head()

    def connection_lost(self, exc: Exception | None) -> None:
        """Free the place, or when what was done for the client has ended."""
        self._stop_timer()
        self._is_lost = True
        if self._answering:
            self.places.works(self)
        else:
            self.places.leave(self)
        super().connection_lost(exc)
        self.app, self.app_state = self._answer, {}  # they lead back here

    def data_received(self, data: bytes) -> None:
        """Take what the client sends, and note whether that is what it has to."""
        if not self._is_answering() and not self._awaits_head:
            self._await_head()
        self._received += len(data)
        super().data_received(data)
        if self._is_answering():
            self._note_request()
        elif self.conn.their_state is h11.IDLE and not self.conn.trailing_data[0]:
            self._received = 0  # the end of a body that nobody wanted

    def handle_events(self) -> None:
        """Go on with what came, unless it is a head that has two readings.

        Every head is looked at before h11 is: it reads one only at the begin of this, also the next
        of several that came at once.
        """
        if self.conn.their_state is h11.IDLE:
            head = self.conn.trailing_data[0].partition(b"\r\n\r\n")[0]
            if _TWO_READINGS.search(head):
                self.send_400_response("Bare line feeds, folded lines or two lengths of the body")
                return
        super().handle_events()

    def on_response_complete(self) -> None:
        """Wait for the next request, or to be rid of the client."""
        super().on_response_complete()
        if self.places is self._connections.spare:
            self.transport.close()
        if self.transport.is_closing():
            self._await_reading()
        elif self._is_answering():
            self._note_request()
        elif self.conn.their_state is h11.SEND_BODY:
            # Refused before it was read: the rest is thrown away, in the time of a head.
            self._await_head()
        else:
            self._stop_timer()  # uvicorn has its own for who sends nothing
            self._awaits_head = False
            self.places.waits(self)

    def pause_writing(self) -> None:
        """Wait until the client reads."""
        super().pause_writing()
        self._await_reading()

    def resume_writing(self) -> None:
        """Go on."""
        super().resume_writing()
        if self._is_answering():
            self._body_of = None
            self._note_request()

    def timeout_keep_alive_handler(self) -> None:
        """Close a connection that nobody uses, also one whose last answer nobody reads."""
        super().timeout_keep_alive_handler()
        self._await_reading()

    def send_400_response(self, msg: str) -> None:
        """Say what is wrong with the bytes that came, and hang up."""
        wanted = "a request line and headers in ASCII, with one Host, are wanted"
        self._refuse(400, "INVALID_ARGUMENT", f"{msg.rstrip('.')}: {wanted}")

    # -- what the client owes -------------------------------------------------------------------

    def give_way(self) -> None:
        """End: somebody else has the place."""
        self._connections.metrics.hung_up("full")
        self.hang_up()

    def hang_up(self) -> None:
        """End the connection, whatever is on its way."""
        if self._is_made:
            self.transport.abort()
            return
        # A TLS handshake goes on, which sees the end of the connection.
        with suppress(OSError):
            self._accepted.shutdown(socket.SHUT_RDWR)

    async def _answer_one(self, scope: Any, receive: Any, send: Any) -> None:
        self._answering += 1
        try:
            await self._answer(scope, receive, send)
        finally:
            self._answering -= 1
            if self._is_lost and not self._answering:
                self.places.leave(self)

    def _is_answering(self) -> bool:
        cycle: RequestResponseCycle | None = self.cycle  # None before the first request
        return not getattr(cycle, "response_complete", True)

    def _note_request(self) -> None:
        if self.transport.is_closing():
            return
        self._awaits_head = False
        if not self.cycle.more_body:
            self._stop_timer()
            self.places.works(self)
        elif self._body_of is not self.cycle or self._received >= _PROGRESS_BYTES:
            self._body_of = self.cycle
            self._received = 0
            self.places.waits(self)
            self._set_timer(self._connections.idle_s, self._no_body)

    def _await_head(self) -> None:
        self._awaits_head = True
        self._received = 0
        self.places.waits(self)
        self._set_timer(self._connections.head_s, self._no_head)

    def _await_reading(self) -> None:
        self._unsent = self.transport.get_write_buffer_size()
        self.places.waits(self)
        self._set_timer(self._connections.idle_s, self._no_reading)

    def _no_head(self) -> None:
        self._connections.metrics.hung_up("head")
        if self._received and self.conn.our_state is h11.IDLE:
            limit_s = self._connections.head_s
            self._refuse(
                408, "DEADLINE_EXCEEDED", f"the request's head did not come within {limit_s:g} s"
            )
        else:
            self.hang_up()

    def _no_body(self) -> None:
        if self.flow.read_paused:
            # It is the server that takes no more at present.
            self.places.works(self)
            self._set_timer(self._connections.idle_s, self._no_body)
        else:
            self._connections.metrics.hung_up("body")
            self.hang_up()

    def _no_reading(self) -> None:
        if self.transport.get_write_buffer_size() <= self._unsent - _PROGRESS_BYTES:
            self._await_reading()
        else:
            self._connections.metrics.hung_up("reading")
            self.hang_up()

    def _refuse(self, status: int, code: str, detail: str) -> None:
        answer = problem_response(
            status, code, detail, {"Connection": "close", "X-Content-Type-Options": "nosniff"}
        )
        response = h11.Response(
            status_code=status, headers=answer.raw_headers, reason=_REASONS[status]
        )
        for event in (response, h11.Data(data=bytes(answer.body)), h11.EndOfMessage()):
            self.transport.write(self.conn.send(event) or b"")
        self.transport.close()
        self._await_reading()

    def _set_timer(self, seconds: float, then: Callable[[], object]) -> None:
        self._stop_timer()
        self._timer = self.loop.call_later(seconds, then)

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


_REASONS = {400: b"Bad Request", 408: b"Request Timeout"}


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
