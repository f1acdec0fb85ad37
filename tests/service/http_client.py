"""A running HTTP face for tests: the real app behind the real server, on a free port."""

import json
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
from tests.waiting import HANG_S

from peakline.engine import Engine
from peakline.service.access import Access
from peakline.service.access_log import AccessLog
from peakline.service.core import Analysis
from peakline.service.http import create_app
from peakline.service.http_server import HttpServer, bind
from peakline.service.prometheus import PrometheusMetrics
from peakline.service.settings import Settings

BINARY = {"Content-Type": "application/octet-stream"}


def whole_lines(log: Path) -> list[dict[str, Any]]:
    """The lines of a log of JSON; the last one may be half written at this moment."""
    *lines, _ = log.read_text().split("\n")
    return [json.loads(line) for line in lines]


@dataclass(frozen=True)
class Face:
    """A server, what it is made of, and a client of it."""

    port: int
    app: Any
    engine: Engine
    analysis: Analysis
    metrics: PrometheusMetrics
    log_path: Path
    client: httpx.Client

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def log_lines(self) -> list[dict[str, Any]]:
        return whole_lines(self.log_path)

    def raw(self, request: bytes) -> tuple[int, bytes]:
        """Send these bytes over a connection of their own, which the server has to close (ask it
        to with ``Connection: close``); status and the whole answer.
        """
        with socket.create_connection(("127.0.0.1", self.port), timeout=HANG_S) as connection:
            connection.sendall(request)
            answer = b""
            while piece := connection.recv(1 << 16):
                answer += piece
        return int(answer.split(b" ", 2)[1]), answer


@contextmanager
def serving(folder: Path, *roots: Path | str, **settings: Any) -> Iterator[Face]:
    """A server of ``roots`` that writes its log into ``folder``, until the end of the block."""
    chosen = Settings(roots=tuple(map(str, roots)), **{"http_port": 0} | settings)
    log_path = folder / "http-access.log"
    access, engine, metrics = Access(chosen), Engine(), PrometheusMetrics()
    analysis = Analysis(chosen, access=access, engine=engine, metrics=metrics)
    log = AccessLog(str(log_path), hide=access.without_tokens)
    app = create_app(chosen, analysis, access, log, metrics)
    server = HttpServer(app, chosen, bind(chosen.host, chosen.http_port), metrics)
    server.start()
    try:
        with httpx.Client(base_url=f"http://127.0.0.1:{server.port}", timeout=HANG_S) as client:
            yield Face(server.port, app, engine, analysis, metrics, log_path, client)
    finally:

        def end() -> None:
            server.stop(1)
            log.close()
            engine.close()

        # uvicorn looks a few times a second whether it shall end: nobody has to wait for that. A
        # program waits for its threads before it ends.
        threading.Thread(target=end, name="stopping").start()


def problem(response: httpx.Response, status: int, code: str) -> str:
    """The detail of a problem document, which ``response`` must be, of this status and code."""
    assert response.status_code == status, response.text
    assert response.headers["content-type"] == "application/problem+json"
    document = response.json()
    assert set(document) == {"type", "title", "status", "detail", "code"}
    assert (document["status"], document["code"]) == (status, code)
    detail = document["detail"]
    assert isinstance(detail, str)
    assert detail
    assert "\n" not in detail
    assert "Traceback" not in detail
    return detail
