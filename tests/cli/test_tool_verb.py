"""``peakline tool``: for one profile, and for a session of several hosts."""

import json
import os

import pytest
from tests.each_row import each_row
from tests.engine.ending import DATA, session_of

import peakline as library
from peakline.engine import Engine
from peakline.progress import Progress, showing
from peakline.repository import Repository


def test_the_bytes_are_the_tools_own(peakline, sessions, tmp_path):
    path = sessions / "tf2_cnn"
    with library.open(str(path)) as profile:
        expected = profile.tool("memory_profile").content
        proto = profile.tool("memory_profile", format="proto").content
    run = peakline("tool", "memory_profile", path)
    assert (run.code, run.out.encode()) == (0, expected)
    target = tmp_path / "out.pb"
    run = peakline("tool", "memory_profile", path, "--format", "proto", "-o", target)
    assert (run.code, run.out, target.read_bytes()) == (0, "", proto)


def test_parameters(peakline, sessions):
    path = sessions / "tf2_cnn"
    run = peakline("tool", "memory_profile", path, "-p", "max_snapshots=7", "-p", "version=1")
    (allocator,) = json.loads(run.out)["memoryProfilePerAllocator"].values()
    assert len(allocator["sampledTimelineSnapshots"]) == 7


def test_list(peakline, sessions):
    run = peakline("tool", "--list", sessions / "tf2_cnn")
    assert (run.code, run.err) == (0, "")
    assert "memory_profile" in run.out.splitlines()


@each_row(
    ("words", "code", "message"),
    [
        (["-p", "version"], 2, "expected KEY=VALUE"),
        (["-p", "=1"], 2, "expected KEY=VALUE"),
        (["-p", "version=1", "-p", "version=0"], 2, "given twice"),
        (["-p", "bogus=1"], 2, "no parameter 'bogus'"),
        (["-p", "format=json"], 2, "no parameter 'format'"),
        (["-p", "version=9"], 2, "version"),
        (["--format", "xml"], 2, "no format 'xml'"),
        (["--host", "other"], 3, "no host 'other'"),
        (["--session", "other"], 3, "no session 'other'"),
    ],
)
def test_errors(peakline, sessions, words, code, message):
    run = peakline("tool", "memory_profile", sessions / "tf2_cnn", *words)
    assert (run.code, run.out, run.err.count("\n")) == (code, "", 1)
    assert message in run.err


def test_an_unknown_tool(peakline, sessions):
    run = peakline("tool", "nonsense", sessions / "tf2_cnn")
    assert (run.code, run.out) == (2, "")
    assert "no tool 'nonsense'; there is: " in run.err
    run = peakline("tool", "memry_profile", sessions / "tf2_cnn")
    assert "no tool 'memry_profile'; did you mean 'memory_profile'?" in run.err


def test_a_file_is_replaced_only_by_force(peakline, sessions, tmp_path):
    target = tmp_path / "out.json"
    target.write_text("mine")
    words = ["tool", "memory_profile", sessions / "tf2_cnn", "-o", target]
    run = peakline(*words)
    assert (run.code, target.read_text()) == (2, "mine")
    assert "use --force" in run.err
    assert peakline(*words, "--force").code == 0
    assert json.loads(target.read_text())["numHosts"] == 1


def test_the_profile_itself_is_never_replaced(peakline, sessions, tmp_path):
    (source,) = (sessions / "tf2_cnn").rglob("*.gz")
    copy = tmp_path / "vm.xplane.pb.gz"
    copy.write_bytes(source.read_bytes())
    run = peakline("tool", "memory_profile", copy, "-o", copy, "--force")
    assert run.code == 2
    assert "is the profile itself" in run.err
    assert copy.read_bytes() == source.read_bytes()


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


def test_the_hosts_that_are_done_are_said_to_who_shows_it(peakline):
    with showing(Progress()) as progress:
        run = peakline("tool", "memory_findings", MULTIHOST)
    assert run.code == 0
    assert (progress.done, progress.total, progress.unit) == (2, 2, "hosts")
