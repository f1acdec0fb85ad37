"""A URL is read once, which says how far it is; a server that is away is no missing file."""

import contextlib
import gzip
import http.server
import itertools
import socket
import tempfile
import threading
import types
from functools import partial
from typing import ClassVar

import fsspec
import pytest
from tests.each_row import each_row
from tests.formats.format_samples import BY_NAME
from tests.waiting import HANG_S

import peakline
from peakline.errors import InputError, NotFoundError, UsageError
from peakline.formats.common import urls
from peakline.progress import Progress, showing
from peakline.repository import Repository, resolve

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


class _Hostile(_Quiet):
    """Answers as its path says; nothing of it ends by itself."""

    protocol_version = "HTTP/1.1"
    over: ClassVar = threading.Event()

    def do_HEAD(self):
        self.send_error(405)

    def do_GET(self):
        self.send_response(200)
        self.close_connection = True
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            getattr(self, self.path.strip("/"))()

    def _endlessly(self, piece):
        while not self.over.is_set():
            self.wfile.write(piece)

    def open_end(self):
        self.end_headers()
        self._endlessly(bytes(1 << 16))

    def chunks(self):
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        self._endlessly(b"10000\r\n" + bytes(1 << 16) + b"\r\n")

    def packed(self):
        self.send_header("Content-Encoding", "gzip")
        self.end_headers()
        self._endlessly(gzip.compress(bytes(1 << 20)))

    def too_short(self):
        self.send_header("Content-Length", str(2 * len(CONTENT)))
        self.end_headers()
        self.wfile.write(CONTENT)

    def silent(self):
        self.send_header("Content-Length", "10")
        self.end_headers()
        self.over.wait(HANG_S)


@pytest.fixture
def hostile():
    pytest.importorskip("fsspec.implementations.http")
    _Hostile.over.clear()
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), _Hostile) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        _Hostile.over.set()
        server.shutdown()
        thread.join()


@each_row(
    ("path", "reason"),
    [
        ("open_end", r"has more than 1\.0 MiB; PEAKLINE_MAX_DOWNLOAD=SIZE allows more$"),
        ("chunks", r"has more than 1\.0 MiB; "),
        ("packed", r"has more than 1\.0 MiB; "),
        ("too_short", r"cannot be read: .*"),
        ("silent", r"cannot be read: (no answer in time|.*[tT]imeout)"),
    ],
)
def test_an_answer_that_does_not_end_is_one_line(monkeypatch, tmp_path, hostile, path, reason):
    monkeypatch.setenv("PEAKLINE_MAX_DOWNLOAD", "1MiB")
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(urls, "_SLOW_S", 1.0)
    with pytest.raises(InputError, match=rf"/{path}: {reason}") as why:
        urls.spooled(f"{hostile}/{path}")
    assert "\n" not in str(why.value)
    assert not list(tmp_path.iterdir())


def test_a_download_that_hardly_comes_is_ended(monkeypatch):
    """By a clock that takes a quarter of a minute for every 4 kB."""
    fsspec.filesystem("memory").pipe("/downloads/run.pb", bytes(1 << 20))
    monkeypatch.setattr(urls, "_BLOCK", 4096)
    clock = itertools.count(0, 15)
    monkeypatch.setattr(urls, "time", types.SimpleNamespace(monotonic=lambda: next(clock)))
    with pytest.raises(InputError, match=r"run\.pb: only 20480 bytes came in 75 s; try again"):
        urls.spooled("memory://downloads/run.pb")
    clock = itertools.count(0, 0.5)
    urls.spooled("memory://downloads/run.pb").close()


def test_a_download_leaves_room_on_the_disk(monkeypatch):
    fsspec.filesystem("memory").pipe("/downloads/run.pb", CONTENT)
    usage = types.SimpleNamespace(free=(256 << 20) + len(CONTENT) - 1)
    monkeypatch.setattr(urls, "shutil", types.SimpleNamespace(disk_usage=lambda _: usage))
    with pytest.raises(InputError, match=r"run\.pb: no room for it in .*; TMPDIR names another"):
        urls.spooled("memory://downloads/run.pb")
    usage.free += 1
    urls.spooled("memory://downloads/run.pb").close()


def test_a_download_may_be_as_large_as_was_said(monkeypatch):
    fsspec.filesystem("memory").pipe("/downloads/run.pb", CONTENT)
    for size in (f"{len(CONTENT)}", "1GB", ""):
        monkeypatch.setenv("PEAKLINE_MAX_DOWNLOAD", size)
        urls.spooled("memory://downloads/run.pb").close()
    monkeypatch.setenv("PEAKLINE_MAX_DOWNLOAD", f"{len(CONTENT) - 1}")
    with pytest.raises(InputError, match=r"has more than 10\.0 KiB; PEAKLINE_MAX_DOWNLOAD=SIZE"):
        urls.spooled("memory://downloads/run.pb")
    monkeypatch.setenv("PEAKLINE_MAX_DOWNLOAD", "much")
    with pytest.raises(UsageError, match="PEAKLINE_MAX_DOWNLOAD: 'much' is no size"):
        urls.spooled("memory://downloads/run.pb")


def test_what_is_there_is_no_url(monkeypatch, tmp_path):
    """A file or a folder may be called as a URL begins."""
    monkeypatch.chdir(tmp_path)
    data = BY_NAME["steps.pb"].file
    (tmp_path / "run::2.pb").write_bytes(data)
    (tmp_path / "s3:" / "b").mkdir(parents=True)
    (tmp_path / "s3:" / "b" / "x.pb").write_bytes(data)
    folder = tmp_path / "log::1" / "plugins" / "profile" / "run"
    folder.mkdir(parents=True)
    (folder / "vm.xplane.pb").write_bytes(BY_NAME["space.pb"].file)
    for place in ("run::2.pb", "./run::2.pb", "file://run::2.pb", "s3://b/x.pb", "log::1"):
        with peakline.open(place) as profile:
            assert profile.tables
    assert [one.session_id for one in Repository("log::1").sessions()] == ["run"]
    with pytest.raises(UsageError, match=r"^no::x: .*Protocol not known: no; a path is \./no::x$"):
        resolve("no::x")
    with pytest.raises(NotFoundError, match=r"^\./no::x: no such file or directory$"):
        resolve("./no::x")
