"""gRPC's connections: whose they are, and which are closed: of too many some, and those that flood.

gRPC's library accepts them itself. It has a limit for all of them, beyond which nobody comes in,
and none for a peer; it says nothing of those that make no call. So the process's own sockets are
looked through here now and then, where the system lists them (Linux): of a peer that has too many,
and of all when they are nearly too many, those are closed whose clients have said nothing for the
longest time. Clients of gRPC connect again when they make the next call.

Nor does the library end a head that has no end: it reads on, and keeps of it what it likes. So each
connection may send so many bytes for every call that it begins, and few besides.
"""

from __future__ import annotations

import asyncio
import os
import socket
import struct
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from peakline.service.addresses import literal_address
from peakline.service.callers import peer_of
from peakline.service.grpc_answering import Calls
from peakline.service.metrics import Metrics

_DESCRIPTORS = Path("/proc/self/fd")
_LOOK_S = 0.25
_ROOM = 16
"""One in so many of all places is kept free: gRPC refuses whoever comes to a full house."""
_TCP_INFO = getattr(socket, "TCP_INFO", 11)
_TCP_INFO_READ = struct.Struct("@52xI72xQ")
"""Of struct tcp_info (linux/tcp.h): milliseconds since data came, and the bytes that ever came."""
_CALL_BYTES = 1 << 20
_MOST_AHEAD = 16 << 20
"""What calls that have begun may send later: a hundred slow ones of usual size."""
_MOST_BESIDES = 4 << 20
_BESIDES_EACH_LOOK = 16 << 10
"""For what is no call: pings, windows that are opened, calls that are refused."""


@dataclass(frozen=True)
class _Connection:
    descriptor: int
    address: tuple[str, int]
    silent_ms: int
    received: int
    """Bytes since it began."""

    @property
    def peer(self) -> str:
        """Whose it is."""
        return peer_of(self.address[0])

    @property
    def name(self) -> str:
        """What gRPC calls it."""
        host, port = self.address
        host = str(literal_address(host) or host)
        return f"ipv6:%5B{host}%5D:{port}" if ":" in host else f"ipv4:{host}:{port}"


class GrpcConnections:
    """Keeps the connections to a port below ``most``, and those of a peer at ``most_each``, and
    ends those that send much without a call.

    For the thread of an event loop.
    """

    def __init__(self, most: int, most_each: int, metrics: Metrics) -> None:
        self._port = 0
        self._most = max(1, most - most // _ROOM)
        self._most_each = most_each
        self._metrics = metrics
        self._calls: Sequence[Calls] = ()
        self._begun: Counter[str] = Counter()
        self._sent: dict[str, tuple[int, int]] = {}
        """By connection: its bytes at the last look, and how many of them are no call's."""
        self._task: asyncio.Task[None] | None = None

    def watch(self, port: int, *calls: Calls) -> None:
        """Begin. Connections for which one of ``calls`` is at work are not closed."""
        self._port, self._calls = port, calls
        if _DESCRIPTORS.is_dir():
            self._metrics.watch_connections("grpc", lambda: sum(1 for _ in _connections(port)))
            self._task = asyncio.create_task(self._watch())

    def begins(self, name: str) -> None:
        """A call has begun on the connection that gRPC calls ``name``."""
        if self._task is not None:
            self._begun[name] += 1

    def hang_up(self, name: str) -> None:
        """End the connection that gRPC calls ``name``, and with it all its calls.

        There is no other way to be rid of an answer that its client does not read.
        """
        with suppress(OSError):
            for connection in _connections(self._port):
                if connection.name == name and _shut(connection):
                    self._metrics.hung_up("full")

    async def close(self) -> None:
        """Look no more."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def _watch(self) -> None:
        while True:
            await asyncio.sleep(_LOOK_S)
            with suppress(OSError):  # where no descriptor is left to look with
                connections = list(_connections(self._port))
                for reason, closed in (
                    ("head", self._flooding(connections)),
                    ("full", self._too_many(connections)),
                ):
                    for connection in closed:
                        if _shut(connection):
                            self._metrics.hung_up(reason)

    def _flooding(self, connections: list[_Connection]) -> list[_Connection]:
        """Those that have sent much more than their calls account for."""
        begun, self._begun = self._begun, Counter()
        before, self._sent = self._sent, {}
        result = []
        for connection in connections:
            name, received = connection.name, connection.received
            last, besides = before.get(name, (0, 0))
            if received < last:  # another client, from the same port
                last = besides = 0
            besides = min(besides, max(0, besides - _BESIDES_EACH_LOOK))
            besides = max(-_MOST_AHEAD, besides - begun[name] * _CALL_BYTES) + received - last
            self._sent[name] = received, besides
            if besides > _MOST_BESIDES:
                result.append(connection)
        return result

    def _too_many(self, connections: list[_Connection]) -> Iterator[_Connection]:
        """Those that have to go, the longest silent first."""
        of_peer: dict[str, int] = {}
        for connection in connections:
            of_peer[connection.peer] = of_peer.get(connection.peer, 0) + 1
        left = len(connections)
        idle = [one for one in connections if not any(one.name in c.at_work for c in self._calls)]
        for connection in sorted(idle, key=lambda one: -one.silent_ms):
            if left > self._most or of_peer[connection.peer] > self._most_each:
                left -= 1
                of_peer[connection.peer] -= 1
                yield connection


def _connections(port: int) -> Iterable[_Connection]:
    """This process's connections that came to ``port``."""
    for name in os.listdir(_DESCRIPTORS):  # noqa: PTH208 (names only)
        with suppress(OSError):
            one = _socket(int(name))
            try:
                connection = _connection(one, port)
            finally:
                one.detach()
            if connection is not None:
                yield connection


def _socket(descriptor: int) -> socket.socket:
    """The descriptor, whatever it is, as a socket; the family is that with the longest address."""
    return socket.socket(socket.AF_INET6, socket.SOCK_STREAM, 0, fileno=descriptor)


def _connection(one: socket.socket, port: int) -> _Connection | None:
    local = one.getsockname()
    if not isinstance(local, tuple) or len(local) < 2 or local[1] != port:
        return None
    address = one.getpeername()[:2]
    info = one.getsockopt(socket.IPPROTO_TCP, _TCP_INFO, _TCP_INFO_READ.size)
    # Linux before 4.1 ends before the number of bytes.
    return _Connection(
        one.fileno(), address, *_TCP_INFO_READ.unpack(info.ljust(_TCP_INFO_READ.size, b"\0"))
    )


def _shut(connection: _Connection) -> bool:
    """End it, if its descriptor still is what it was."""
    with suppress(OSError), _socket(os.dup(connection.descriptor)) as own:
        if own.getpeername()[:2] == connection.address:
            own.shutdown(socket.SHUT_RDWR)
            return True
    return False
