"""A URL is read once, which says how far it is; a server that is away is no missing file."""

import http.server
import socket
import threading
from functools import partial

import fsspec
import pytest

from peakline.errors import InputError, NotFoundError
from peakline.formats.common import urls
from peakline.progress import Progress, showing
from peakline.repository import resolve

CONTENT = bytes(range(256)) * 40


class _Said(Progress):
    """Notes each state as it is said."""

    def __init__(self):
        super().__init__()
        self.states = []

    @property
    def done(self):
        return self._done

    @done.setter
    def done(self, done):
        self._done = done
        if getattr(self, "stage", "") and done:
            self.states.append((self.stage, done, self.total))


def _states(url, monkeypatch):
    monkeypatch.setattr(urls, "_BLOCK", 4096)
    with showing(_Said()) as progress, urls.spooled(url) as spool:
        assert spool.read() == CONTENT
        return progress.states


WANTED = [("downloading", done, len(CONTENT)) for done in (4096, 8192, len(CONTENT))]


def test_a_download_says_how_many_bytes_it_has(monkeypatch):
    fsspec.filesystem("memory").pipe("/downloads/run.pb", CONTENT)
    assert _states("memory://downloads/run.pb", monkeypatch) == WANTED


@pytest.fixture
def site(tmp_path):
    """A server of HTTP with one file; gives its address."""
    pytest.importorskip("fsspec.implementations.http")
    (tmp_path / "run.pb").write_bytes(CONTENT)
    handler = partial(_Quiet, directory=tmp_path)
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


class _Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass


def test_one_over_http_too(monkeypatch, site):
    # This server gives a file as a whole: it does not know ranges.
    *_, last = _states(f"{site}/run.pb", monkeypatch)
    assert last == WANTED[-1]
    with pytest.raises(NotFoundError, match=r"nothing\.pb: no such file or directory$"):
        resolve(f"{site}/nothing.pb")


def test_a_server_that_is_away_is_no_missing_file():
    pytest.importorskip("fsspec.implementations.http")
    with socket.socket() as taken:
        # Bound, and not listening: who connects is refused.
        taken.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{taken.getsockname()[1]}/run.pb"
        with pytest.raises(InputError, match=r"run\.pb: .*(Connect|refused)"):
            resolve(url)
