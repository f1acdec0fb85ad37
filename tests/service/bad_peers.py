"""Profilers that misbehave below the level of a gRPC library, and half-open connections.

They speak as much HTTP/2 as that takes (frames of RFC 9113, see `tests.capture.dying_peer`).
"""

import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field

from tests.capture import big_peer, dying_peer
from tests.capture.dying_peer import (
    ACK,
    CONTENT_TYPE,
    DATA,
    END_HEADERS,
    HEADERS,
    PING,
    PREFACE,
    SETTINGS,
    STATUS_200,
    frame,
)
from tests.waiting import HANG_S

_XSPACE = 8
_INITIAL_WINDOW_SIZE = b"\x00\x04"
_END_STREAM = 1
_PROMISED = 1 << 24
_SENT = 12_000
"""Below the first window of a stream, 65,535 bytes."""


def exact_answer(profile: bytes) -> bytes:
    """A ProfileResponse with these very bytes as its profile; a library would write others."""
    return big_peer.field(_XSPACE, profile)


@dataclass
class HalfAnswer:
    """``received`` is set when the other side has taken the beginning of the answer."""

    address: str = ""
    received: threading.Event = field(default_factory=threading.Event)


@contextmanager
def half_answer() -> Iterator[HalfAnswer]:
    """A profiler that sends the beginning of an answer and then nothing more."""
    state, open_ones = HalfAnswer(), []
    listener = socket.create_server(("127.0.0.1", 0))
    state.address = f"127.0.0.1:{listener.getsockname()[1]}"

    def send(connection: socket.socket) -> None:
        with suppress(OSError):
            _send_half(connection, state)

    def serve() -> None:
        with suppress(OSError):
            while True:
                connection, _ = listener.accept()
                open_ones.append(connection)
                threads.append(threading.Thread(target=send, args=(connection,)))
                threads[-1].start()

    threads = [threading.Thread(target=serve)]
    threads[0].start()
    try:
        yield state
    finally:
        # Nobody is accepted any more when the first thread has ended.
        _shut(listener)
        threads[0].join(HANG_S)
        for one in open_ones:
            _shut(one)
        for thread in threads:
            thread.join(HANG_S)


def _shut(one: socket.socket) -> None:
    with suppress(OSError):
        one.shutdown(socket.SHUT_RDWR)
    one.close()


def _send_half(connection: socket.socket, state: HalfAnswer) -> None:
    with connection.makefile("rb") as stream:
        stream.read(len(PREFACE))
        connection.sendall(frame(SETTINGS, 0, 0))
        while head := stream.read(9):
            stream.read(int.from_bytes(head[:3], "big"))
            kind, flags = head[3], head[4]
            if kind == SETTINGS and not flags & ACK:
                connection.sendall(frame(SETTINGS, ACK, 0))
            elif kind == HEADERS:
                message = b"\0" + _PROMISED.to_bytes(4, "big") + big_peer.answer(1 << 16)
                connection.sendall(
                    frame(HEADERS, END_HEADERS, int.from_bytes(head[5:], "big"),
                          STATUS_200 + CONTENT_TYPE)
                    + frame(DATA, 0, int.from_bytes(head[5:], "big"), message[:_SENT])
                    + frame(PING, 0, 0, bytes(8))
                )  # fmt: skip
            elif kind == PING and flags & ACK:
                # Frames are read in order: all that was sent before has been taken.
                state.received.set()


@contextmanager
def noise() -> Iterator[str]:
    """The address of something that answers every connection with what is no HTTP/2."""
    listener = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        with suppress(OSError):
            while True:
                connection, _ = listener.accept()
                with connection, suppress(OSError):
                    connection.sendall(b"\xde\xad\xbe\xef" * 1000)
                    connection.shutdown(socket.SHUT_WR)
                    while connection.recv(1 << 16):
                        pass

    thread = threading.Thread(target=serve)
    thread.start()
    try:
        yield f"127.0.0.1:{listener.getsockname()[1]}"
    finally:
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        thread.join(HANG_S)


@contextmanager
def dying() -> Iterator[str]:
    """The address of a process that sends the beginning of an answer and dies of SIGKILL."""
    with dying_process() as (address, _):
        yield address


@contextmanager
def dying_process(*words: str) -> Iterator[tuple[str, subprocess.Popen[str]]]:
    """The same, and the process itself. Nobody else gets the port when that is gone."""
    with socket.socket() as reserved:
        reserved.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        reserved.bind(("127.0.0.1", 0))
        port = reserved.getsockname()[1]
        with _process(dying_peer.__file__, str(port), *words) as process:
            assert process.stdout.readline() == "listens\n"
            yield f"127.0.0.1:{port}", process


@contextmanager
def big(size: int) -> Iterator[str]:
    """The address of a process that answers with a profile of about ``size`` bytes."""
    with _process(big_peer.__file__, str(size)) as process:
        yield f"127.0.0.1:{int(process.stdout.readline())}"


@contextmanager
def _process(script: str, *words: str) -> Iterator[subprocess.Popen[str]]:
    command = [sys.executable, script, *words]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True) as process:
        try:
            yield process
        finally:
            process.kill()


def half_call(
    connection: socket.socket, path: str, calls: int = 1, request: bytes | None = None
) -> None:
    """Over a fresh connection begin calls of the gRPC method ``path`` whose requests never come;
    or where there is a ``request``, calls whose answers are never read.
    """
    headers = b"".join(
        b"\x00" + bytes([len(name)]) + name + bytes([len(value)]) + value
        for name, value in (
            (b":method", b"POST"),
            (b":scheme", b"http"),
            (b":path", path.encode()),
            (b":authority", b"localhost"),
            (b"content-type", b"application/grpc"),
            (b"te", b"trailers"),
        )
    )
    no_window = b"" if request is None else _INITIAL_WINDOW_SIZE + bytes(4)
    connection.sendall(PREFACE + frame(SETTINGS, 0, 0, no_window))
    for number in range(calls):
        connection.sendall(frame(HEADERS, END_HEADERS, 2 * number + 1, headers))
        if request is not None:
            message = b"\0" + len(request).to_bytes(4, "big") + request
            connection.sendall(frame(DATA, _END_STREAM, 2 * number + 1, message))
