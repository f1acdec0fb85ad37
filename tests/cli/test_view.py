"""``peakline view``: one file, session or log directory as a page, until Ctrl-C."""

import http.server
import io
import json
import os
import queue
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import pytest
from tests.each_row import each_row
from tests.waiting import HANG_S, until

from peakline.__main__ import main
from peakline.deadline import check_deadline
from peakline.service import background
from peakline.service.run import Server
from peakline.service.settings import Settings

CODE = "import sys; from peakline.__main__ import main; sys.exit(main())"
LEAK = "programs/leak_list.xplane.pb.gz"
MULTIHOST = "sessions/tf2_multihost/plugins/profile/2026_11_20_17_33_46"


_URL = re.compile(r" at (http://127\.0\.0\.1:\d+/\S*); Ctrl-C ends it$")
_END = "peakline: ending; running requests have 1 s\n"


@dataclass
class Viewing:
    """A running ``peakline view``; ``url`` is what it said."""

    url: str
    temporary: Path

    def api(self, path: str) -> bytes:
        answer = httpx.get(f"{self.base}/api/{path}", timeout=HANG_S)
        assert answer.status_code == 200, answer.text
        return answer.content

    @property
    def base(self) -> str:
        return self.url.partition("/#")[0].rstrip("/")

    @property
    def fragment(self) -> str:
        return urlsplit(self.url).fragment


@pytest.fixture
def data(root):
    return root / "tests" / "data"


class Lines(io.StringIO):
    """A text stream whose lines can be waited for."""

    def __init__(self) -> None:
        super().__init__()
        self.lines: queue.SimpleQueue[str] = queue.SimpleQueue()

    def write(self, text: str) -> int:
        begun = self.getvalue().rpartition("\n")[2]
        for line in (begun + text).split("\n")[:-1]:
            self.lines.put(line)
        return super().write(text)


@pytest.fixture(scope="module", autouse=True)
def everything_imported():
    """What a server imports while it warms up is imported before one runs in this process.

    pytest parses what is imported, to explain assertions, and Python 3.11 cannot parse in two
    threads at a time (its parser counts the depth of both together).
    """
    warming = background.WarmUp(lambda: None)
    warming.start()
    assert warming.wait(HANG_S)


@pytest.fixture
def temporary(tmp_path):
    """The folder for temporary files."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    return folder


@pytest.fixture
def viewing(temporary, capsys, monkeypatch):
    """Run it in this process: ``viewing(check, path, "--host", "h")``.

    ``check`` is called in another thread while it runs; then Ctrl-C ends it.
    """
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    # Only a matter of speed.
    monkeypatch.setattr(background.WarmUp, "_answer", lambda _: None)
    # It would end the process where a thread takes long to end.
    monkeypatch.setattr("peakline.cli.view.leave", lambda **_: None)
    said, failures = Lines(), []
    before = signal.getsignal(signal.SIGINT)

    def look(check):
        try:
            line = said.lines.get(timeout=HANG_S)
            result = _URL.search(line)
            assert result, line
            check(Viewing(result[1], temporary))
        except BaseException as error:  # noqa: BLE001  (raised below)
            failures.append(error)
        finally:
            if signal.getsignal(signal.SIGINT) is not before:
                os.kill(os.getpid(), signal.SIGINT)

    def run(check, *words):
        # Here: before the test pytest put its own there.
        monkeypatch.setattr(sys, "stderr", said)
        looker = threading.Thread(target=look, args=(check,))
        looker.start()
        try:
            code = main(["view", *map(str, words), "--no-browser"])
        finally:
            said.lines.put("it has ended")
            looker.join(HANG_S)
        for failure in failures:
            raise failure
        assert (code, capsys.readouterr().out) == (0, "")
        assert said.getvalue().partition("\n")[2] == _END
        assert list(temporary.iterdir()) == []

    return run


@pytest.fixture
def viewing_process(temporary):
    """Run it in a process: ``viewing_process(path, number=signal.SIGTERM)``, the block's end."""

    @contextmanager
    def run(*words, browser="", number=signal.SIGINT) -> Iterator[Viewing]:
        process = subprocess.Popen(
            [sys.executable, "-c", CODE, "view", *map(str, words)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "TMPDIR": str(temporary), "BROWSER": browser},
        )
        try:
            line = process.stderr.readline()
            result = _URL.search(line)
            assert result, line + process.stderr.read()
            yield Viewing(result[1], temporary)
            process.send_signal(number)
            out, err = process.communicate(timeout=HANG_S)
            assert (process.returncode, out, err) == (0, "", _END)
        finally:
            process.kill()
            process.communicate()
        assert list(temporary.iterdir()) == []

    return run


@pytest.mark.parametrize(
    ("file", "session", "view"),
    [
        (LEAK, "leak_list", "timeline"),
        ("sessions/jax_cpu/plugins/profile/2026_11_20_17_20_28/vm.xplane.pb.gz", "vm", "timeline"),
        ("memory_log/tf1_control_flow.log.gz", "tf1_control_flow.log.gz", "memory"),
        ("pprof/device_memory.pprof.pb.gz", "device_memory.pprof.pb.gz", "memory"),
        ("chrome_trace/noleak.pt.trace.json.gz", "noleak", "timeline"),
        ("graph_def/frozen.pb", "frozen.pb", "summary"),
    ],
)
def test_a_file_is_a_session_of_its_own_name(viewing, data, file, session, view):
    def check(result):
        assert result.fragment == f"/session/{session}/{view}"
        (listed,) = json.loads(result.api("sessions"))
        assert (listed["session_id"], listed["hosts"]) == (session, [session])
        assert len(list(result.temporary.iterdir())) == 1

    viewing(check, data / file)


def test_the_service_answers_as_the_command_line(viewing, data, peakline):
    answers = []

    def check(result):
        answers.append(result.api("sessions/leak_list/tools/memory_findings").decode())

    viewing(check, data / LEAK)
    assert answers == [peakline("tool", "memory_findings", data / LEAK).out]


def test_a_session_directory_shows_its_hosts_and_nothing_beside_it(viewing, data, tmp_path):
    place = tmp_path / "plugins" / "profile"
    shutil.copytree(data / MULTIHOST, place / "mine")
    shutil.copytree(data / MULTIHOST, place / "other")

    def check(result):
        assert result.fragment == "/session/mine/timeline?host=localhost_56665"
        (listed,) = json.loads(result.api("sessions"))
        assert listed["hosts"] == ["localhost_47507", "localhost_56665"]

    viewing(check, place / "mine", "--host", "localhost:56665")


@pytest.fixture
def two_sessions(data, tmp_path):
    logdir = tmp_path / "logs"
    for name in ("one", "two"):
        shutil.copytree(data / MULTIHOST, logdir / "plugins" / "profile" / name)
    return logdir


def test_a_log_directory_opens_at_its_list(viewing, two_sessions):
    def check(result):
        assert result.url.endswith("/")
        assert not list(result.temporary.glob("*/plugins"))

    viewing(check, two_sessions)


def test_a_log_directory_opens_at_the_session_that_is_named(viewing, two_sessions):
    def check(result):
        assert result.fragment == "/session/one/job"

    viewing(check, two_sessions, "--session", "one")


def test_a_log_directory_of_one_session_opens_at_it(viewing, data):
    def check(result):
        assert result.fragment == "/session/2026_11_20_16_57_05/timeline"

    viewing(check, data / "sessions" / "tf2_cnn")


def test_standard_input_is_kept_while_it_is_shown(viewing, data, monkeypatch):
    def check(result):
        assert result.fragment == "/session/stdin/timeline"
        assert json.loads(result.api("sessions/stdin/tools/summary"))

    with (data / LEAK).open("rb") as content:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(content))
        viewing(check, "-")


def test_a_url_is_fetched(viewing, data):
    class Handler(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *_):
            """Say nothing."""

    def check(result):
        assert result.fragment == "/session/leak_list/timeline"

    with http.server.ThreadingHTTPServer(
        ("127.0.0.1", 0), lambda *words: Handler(*words, directory=str(data))
    ) as server:
        threading.Thread(target=server.serve_forever).start()
        try:
            viewing(check, f"http://127.0.0.1:{server.server_port}/{LEAK}")
        finally:
            server.shutdown()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_closed_terminal_ends_it(viewing_process, data, number):
    with viewing_process(data / LEAK, "--no-browser", number=number) as result:
        assert len(list(result.temporary.iterdir())) == 1


@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)]
)
def test_nothing_stays_of_what_is_ended_before_it_serves(tmp_path, number, code):
    with subprocess.Popen(
        [sys.executable, "-c", CODE, "view", "-", "--no-browser"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, "TMPDIR": str(tmp_path)},
    ) as process:
        try:
            until(lambda: list(tmp_path.glob("peakline-view-*/plugins/profile/stdin/*")))
            process.send_signal(number)
            assert process.wait(HANG_S) == code
            assert (process.stdout.read(), process.stderr.read()) == (b"", b"")
        finally:
            process.kill()
    assert list(tmp_path.iterdir()) == []


STUCK = """
import sys, threading
from peakline.__main__ import main
from peakline.service.run import Server
Server.stop = lambda *_: threading.Event().wait()
sys.exit(main())
"""


def test_nothing_stays_after_a_second_ctrl_c(data, tmp_path):
    with subprocess.Popen(
        [sys.executable, "-c", STUCK, "view", data / LEAK, "--no-browser"],
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "TMPDIR": str(tmp_path)},
    ) as process:
        try:
            assert "; Ctrl-C ends it" in process.stderr.readline()
            assert len(list(tmp_path.glob("peakline-view-*"))) == 1
            process.send_signal(signal.SIGINT)
            assert "ending" in process.stderr.readline()
            process.send_signal(signal.SIGINT)
            assert process.wait(HANG_S) == 130
        finally:
            process.kill()
    assert list(tmp_path.iterdir()) == []


def test_what_warms_up_delays_the_end_no_longer_than_requests_may(tmp_path, monkeypatch):
    allowed = []
    server = Server(Settings(roots=(str(tmp_path),), grpc_port=None, http_port=0, grace_s=1))
    monkeypatch.setattr(server._warm_up, "stop", lambda seconds: allowed.append(seconds) or False)
    assert not server.stop()
    assert 0 < allowed[0] <= 1


def test_what_warms_up_ends_in_the_middle_of_an_answer(monkeypatch):
    begun = threading.Event()

    def answer(_profile, _tool, **_):
        begun.set()
        until(check_deadline)

    monkeypatch.setattr("peakline.api.Profile.tool", answer)
    after = []
    warming = background.WarmUp(then=lambda: after.append("then"))
    warming.start()
    assert begun.wait(HANG_S)
    assert warming.stop(HANG_S / 2)
    assert after == []


def test_nothing_can_be_changed(viewing, data):
    def check(result):
        answer = httpx.post(
            f"{result.base}/api/uploads?session_id=x",
            content=b"content",
            headers={"Content-Type": "application/octet-stream"},
            timeout=HANG_S,
        )
        assert (answer.status_code, answer.json()["code"]) == (403, "PERMISSION_DENIED")
        assert httpx.get(f"{result.base}/api/sessions/x", timeout=HANG_S).status_code == 404

    viewing(check, data / LEAK)


def test_the_browser_is_opened_at_the_page(viewing_process, data, tmp_path):
    opened = tmp_path / "opened"
    browser = tmp_path / "browser"
    os.mkfifo(opened)
    browser.write_text(f'#!/bin/sh\nprintf "%s" "$1" > {shlex.quote(str(opened))}\n')
    browser.chmod(0o755)
    with viewing_process(data / LEAK, browser=f"{shlex.quote(str(browser))} %s") as result:
        assert opened.read_text() == result.url


@each_row(
    ("words", "code", "reason"),
    [
        (["nosuch"], 3, "no such file or directory"),
        (["README.md"], 3, "README.md: memory ran out by this log, in words"),
        (["docs"], 3, "no sessions here"),
        (["tests/data/sessions/tf2_cnn", "--session", "x"], 3, "no session 'x'"),
        (["tests/data/sessions/tf2_cnn", "--host", "x"], 3, "no host 'x'"),
        (["README.md", "--session", "x"], 2, "--session needs a log directory"),
        (["README.md", "--port", "70000"], 2, "'--port'"),
    ],
)
def test_what_cannot_be_shown_is_one_line(peakline, monkeypatch, root, words, code, reason):
    monkeypatch.chdir(root)
    run = peakline("view", *words, "--no-browser")
    assert (run.code, run.out) == (code, "")
    assert reason in run.err
    assert run.err.count("\n") == 1
