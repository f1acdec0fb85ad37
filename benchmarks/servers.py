"""Starts servers, ours and XProf's, and asks them over HTTP."""

from __future__ import annotations

import contextlib
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

_READY_S = 120.0
_REST_S = 5.0
"""So long a server may still import after it is up."""


def free_port() -> int:
    """A port of this machine that nobody uses now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def get(url: str) -> bytes:
    """The body of one HTTP answer; raises urllib.error.URLError."""
    with urllib.request.urlopen(url, timeout=600) as answer:  # noqa: S310 (always http)
        body: bytes = answer.read()
        return body


@contextlib.contextmanager
def server(command: Sequence[str | Path], ready: str) -> Iterator[int]:
    """Run a server until the block ends; gives its process id once ``ready``, a URL, is answered.

    Raises SystemExit with what it wrote when it ends before, or needs longer than `_READY_S`.
    """
    with _started(command, lambda: _answers(ready), 0.1) as pid:
        yield pid


@contextlib.contextmanager
def rested_server(side: str, logdir: Path, peers: Path | None) -> Iterator[int]:
    """Run Peakline's server, or XProf's by the Python ``peers``; gives its port once it rested.

    XProf writes what it has read beside the files: all that is new in ``logdir`` is removed at the
    end, so that the next one does not find it.
    """
    port = free_port()
    if side == "XProf" and peers:
        command = [peers.with_name("xprof"), "--logdir", logdir, "--port", str(port)]
        ready = f"http://127.0.0.1:{port}/data/plugin/profile/version"
    else:
        peakline = Path(sys.executable).with_name("peakline")
        command = [peakline, "serve", logdir, "--http-port", str(port), "--grpc-port", "0"]
        ready = f"http://127.0.0.1:{port}/api/tools"
    before = set(logdir.rglob("*"))
    try:
        with server(command, ready):
            time.sleep(_REST_S)
            yield port
    finally:
        for place in sorted(set(logdir.rglob("*")) - before, reverse=True):
            if place.is_dir():
                place.rmdir()
            else:
                place.unlink()


def first_answer(command: Sequence[str | Path], port: int, question: str) -> tuple[float, float]:
    """Seconds to a server's first answer to a URL: from its start, and from when it listens."""
    begin = time.perf_counter()
    with _started(command, lambda: _listens(port), 0.002):
        listens = time.perf_counter()
        get(question)
        end = time.perf_counter()
    return end - begin, end - listens


@contextlib.contextmanager
def _started(
    command: Sequence[str | Path], is_ready: Callable[[], bool], pause_s: float
) -> Iterator[int]:
    with tempfile.TemporaryFile() as log:
        words = [str(word) for word in command]
        process = subprocess.Popen(words, stdout=log, stderr=subprocess.STDOUT)
        try:
            end = time.monotonic() + _READY_S
            while not is_ready():
                if process.poll() is not None or time.monotonic() > end:
                    log.seek(0)
                    result = log.read()[-2000:].decode(errors="replace")
                    raise SystemExit(f"{words[0]} did not start: {result}")
                time.sleep(pause_s)
            yield process.pid
        finally:
            process.terminate()
            process.wait(60)


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def _answers(url: str) -> bool:
    try:
        get(url)
    except (urllib.error.URLError, OSError):
        return False
    return True
