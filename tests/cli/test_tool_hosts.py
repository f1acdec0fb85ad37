"""``peakline tool`` for a session of several hosts: one answer of all of them."""

import io
import os

import pytest
from tests.each_row import each_row
from tests.engine.ending import DATA, session_of

from peakline.engine import Engine
from peakline.repository import Repository

MULTIHOST = DATA / "sessions/tf2_multihost"
FOLDER = MULTIHOST / "plugins/profile/2026_11_20_17_33_46"
ONE, OTHER = sorted(FOLDER.glob("*.xplane.pb"))


@pytest.fixture
def broken(tmp_path):
    session = session_of(tmp_path, {"a.xplane.pb": ONE, "b.xplane.pb": OTHER})
    os.truncate(session.host("b").path, 7)
    return session.path


@each_row("executor", ["threads", "processes"])
@each_row("path", [MULTIHOST, FOLDER])
def test_it_is_the_answer_of_all(peakline, path, executor):
    session = Repository(MULTIHOST).sessions()[0]
    right = Engine().tool(session, "step_breakdown", format="csv")
    run = peakline(
        "tool", "step_breakdown", path, "--format", "csv", "--executor", executor, "--workers", 1
    )
    assert (run.code, run.out.encode(), run.err) == (0, right.content, "")


def test_one_host_is_its_own(peakline):
    run = peakline("tool", "step_breakdown", MULTIHOST, "--host", "localhost_47507")
    assert (run.code, '"host"' in run.out) == (0, False)


def test_a_tool_that_shows_one_host_says_so(peakline):
    run = peakline("tool", "op_stats", MULTIHOST)
    assert (run.code, run.out) == (2, "")
    assert "2 hosts, choose one with --host: localhost_47507, localhost_56665" in run.err


def test_the_list_is_of_all_hosts(peakline):
    run = peakline("tool", "--list", MULTIHOST)
    assert run.code == 0
    assert {"memory_profile", "pod_viewer", "step_breakdown"} <= set(run.out.split())


def test_a_host_that_fails_is_one_line(peakline, broken):
    run = peakline("tool", "memory_findings", broken)
    assert (run.code, run.out[:13]) == (0, '{"findings":[')
    (line,) = run.err.splitlines()
    assert line.startswith("peakline: warning: left out: host b: ")


def test_strict_fails_for_it(peakline, broken):
    run = peakline("tool", "memory_findings", broken, "--strict")
    assert (run.code, run.out, run.err.count("\n")) == (3, "", 1)
    assert "host b: " in run.err


def test_the_answer_replaces_no_profile(peakline, broken):
    target = f"{broken}/a.xplane.pb"
    run = peakline("tool", "memory_findings", broken, "-o", target, "--force")
    assert (run.code, "is the profile itself" in run.err) == (2, True)
    with open(target, "rb") as file:  # noqa: PTH123
        assert file.read() == ONE.read_bytes()


@each_row(
    ("words", "message"),
    [
        (["--executor", "fork"], "'fork' is not one of"),
        (["--workers", "0"], "--workers"),
        (["--scheduler", "tcp://a:1"], "--scheduler is for --executor dask"),
        (["--executor", "dask", "--scheduler", "nowhere"], "write tcp://HOST:PORT"),
    ],
)
def test_what_is_wrong_is_one_line(peakline, words, message):
    run = peakline("tool", "memory_findings", MULTIHOST, *words)
    assert (run.code, run.out, run.err.count("\n")) == (2, "", 1)
    assert message in run.err


def test_progress_is_for_a_terminal(peakline, monkeypatch):
    class Terminal(io.StringIO):
        def isatty(self):
            return True

    screen = Terminal()
    monkeypatch.setattr("sys.stderr", screen)
    run = peakline("tool", "memory_findings", MULTIHOST)
    assert run.code == 0
    assert "hosts" in screen.getvalue()
    assert "2/2" in screen.getvalue()
