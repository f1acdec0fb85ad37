"""The whole server in the process of the test, for what needs no process of its own."""

import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.waiting import HANG_S

from peakline.service.run import Server
from peakline.service.settings import Settings


@contextmanager
def server_here(*roots: Path | str, **settings: Any) -> Iterator[Server]:
    """Serve on free ports until the end of the block, which calls that still run do not outlive."""
    usual = {"grpc_port": 0, "http_port": 0, "access_log": "off", "grace_s": 0.0}
    server = Server(Settings(roots=tuple(map(str, roots)), **usual | settings))
    # What it asks itself beforehand it has asked: see `everything_imported`.
    server._warm_up._answer = lambda: None
    with server:
        yield server


def listens(port: int) -> bool:
    """Whether somebody takes connections at ``port`` of this machine."""
    try:
        socket.create_connection(("127.0.0.1", port), timeout=HANG_S).close()
    except ConnectionError:  # refused; or reset, as it was on its way when the socket was closed
        return False
    return True
