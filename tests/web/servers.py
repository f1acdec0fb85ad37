"""Servers over samples: a process as users start it, and quick ones in this process."""

import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.service.server_process import running_server
from tests.waiting import HANG_S, until

from peakline.service.run import Server
from peakline.service.settings import Settings


@dataclass(frozen=True)
class PageServer:
    """A running server: ``url`` is its page, without a slash at the end."""

    url: str
    logdir: Path
    token: str = ""


@contextmanager
def process_server(logdir: Path, *words: object) -> Iterator[PageServer]:
    """``peakline serve`` with these words, a process of its own; it knows what is in every session.

    Before it knows, its list of sessions is not complete, and the page asks again and again.
    """
    with running_server(logdir, "--access-log", "off", *words) as process:
        server = PageServer(f"http://127.0.0.1:{process.http_port}", logdir)
        until(lambda: _lists_all(server), "a complete list of sessions")
        yield server


@contextmanager
def thread_server(*logdirs: Path, token: str = "", **settings: Any) -> Iterator[PageServer]:
    """The same in threads of this process, with `Settings` of these names; its HTTP face alone."""
    server = Server(
        Settings(
            roots=tuple(map(str, logdirs)),
            grpc_port=None,
            http_port=0,
            access_log="off",
            grace_s=1,
            **settings,
        )
    )
    # Only a matter of speed, and this process may have done it already.
    server._warm_up._answer = lambda: None
    with server:
        yield PageServer(server.url, logdirs[0], token)


def _lists_all(server: PageServer) -> bool:
    with urllib.request.urlopen(f"{server.url}/api/sessions", timeout=HANG_S) as answer:  # noqa: S310
        return "are not all known yet" not in answer.headers.get("Peakline-Notes", "")
