"""The command line, with servers in this process."""

import contextlib
import json
import os
import pty
import re
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

import pytest
from tests.capture.peers import answer_of, peer, profile_of, sample_profile, waiting_peer
from tests.each_row import each_row
from tests.waiting import HANG_S

from peakline.__main__ import main
from peakline.repository import Repository

OTHER = "tf2_multihost/plugins/profile/2026_11_20_17_33_46/localhost_56665.xplane.pb"


@pytest.fixture
def run(capsys):
    """Run the verb; gives the exit code and both outputs."""

    def run(*words):
        capsys.readouterr()
        return (main(["capture", *map(str, words)]), *capsys.readouterr())

    return run


@pytest.fixture
def memory_of(capsys):
    def memory_of(*words):
        capsys.readouterr()
        assert main(["memory", *map(str, words)]) == 0
        return capsys.readouterr().out

    return memory_of


@pytest.fixture
def summary_of(capsys):
    def summary_of(*words):
        capsys.readouterr()
        assert main(["summary", *map(str, words)]) == 0
        return capsys.readouterr().out

    return summary_of


def test_one_host_ends_with_the_summary(run, summary_of, tmp_path, sessions):
    content = answer_of(sample_profile(sessions))
    with peer(lambda *_: content) as worker:
        code, out, err = run(worker.address, "--logdir", tmp_path, "--duration", "1ms")
    assert (code, err) == (0, "")
    (session,) = Repository(tmp_path).sessions()
    assert re.fullmatch(r"\d{4}(_\d{2}){5}", session.session_id)
    assert out == f"{session.path}\n\n{summary_of(session.path)}"
    assert "peak" in out


def test_the_summary_may_be_left_out(run, tmp_path, sessions):
    content = answer_of(sample_profile(sessions))
    with peer(lambda *_: content) as worker:
        code, out, err = run(worker.address, "--logdir", tmp_path, "--no-summary")
    (session,) = Repository(tmp_path).sessions()
    assert (code, out, err) == (0, f"{session.path}\n", "")


def test_several_hosts_end_with_the_answer_about_all(run, summary_of, tmp_path, sessions):
    contents = [sample_profile(sessions), (sessions / OTHER).read_bytes()]
    with ExitStack() as stack:
        workers = [
            stack.enter_context(peer(lambda *_, content=content: answer_of(content)))
            for content in contents
        ]
        words = [",".join(worker.address for worker in workers), "--logdir", tmp_path]
        words += ["--duration", "1ms", "--session-id", "s", "--host-name", "a", "--host-name", "b"]
        code, out, err = run(*words)
    assert (code, err) == (0, "")
    lines = out.splitlines()
    assert lines[1].split() == ["HOST", "STATE", "SIZE", "PEAK"]
    assert lines[2].startswith("a ")
    assert lines[3].startswith("b ")
    session = tmp_path / "plugins/profile/s"
    assert out.endswith("\n\n" + summary_of(session))
    assert f"{session} (job of 2 ranks, xplane)\n" in out


def test_json_is_one_document(run, memory_of, tmp_path, sessions):
    content = answer_of(sample_profile(sessions))
    with peer(lambda *_: content) as worker, peer(lambda *_: b"junk") as broken:
        code, out, err = run(
            worker.address, broken.address, "--logdir", tmp_path, "--duration", "1ms", "--json",
            "--session-id", "s", "--host-name", "a", "--host-name", "b",
        )  # fmt: skip
    document = json.loads(out)
    assert code == 4
    assert document["path"] == str(tmp_path / "plugins" / "profile" / "s")
    assert not document["empty_trace"]
    first, second = document["hosts"]
    assert (first["host"], first["address"], first["state"]) == ("a", worker.address, "stored")
    assert first["bytes"] > 1000
    assert first["memory"] == json.loads(memory_of(tmp_path, "--json"))
    assert (second["state"], second["memory"]) == ("failed", None)
    assert err == f"peakline: {broken.address}: failed: {second['error']}\n"


def test_all_hosts_failing_is_one_line(run, tmp_path):
    with peer(lambda *_: b"junk") as one, peer(lambda *_: b"") as two:
        code, out, err = run(one.address, two.address, "--logdir", tmp_path, "--duration", "1ms")
    assert (code, out) == (4, "")
    assert err.count("\n") == 1
    assert one.address in err
    assert "the host stored its profile on its own disk" in err


def test_nothing_recorded(run, tmp_path):
    with peer(lambda *_: answer_of(empty_trace=True)) as worker:
        words = (worker.address, "--logdir", tmp_path, "--duration", "1ms", "--attempts", "1")
        code, out, err = run(*words)
        assert (code, out) == (4, "")
        assert "nothing was recorded" in err
        code, out, _ = run(*words, "--json")
    document = json.loads(out)
    assert (document["empty_trace"], document["path"]) == (True, None)
    assert [host["state"] for host in document["hosts"]] == ["empty"]
    assert not list(tmp_path.rglob("*.pb"))


def test_a_profile_without_memory_events(run, tmp_path):
    with peer(lambda *_: profile_of()) as worker:
        code, out, err = run(worker.address, "--logdir", tmp_path, "--duration", "1ms")
    assert (code, err) == (0, "")
    assert "not judged: none of the events is known as an op" in out


@each_row(
    "words",
    [
        ["nowhere"],
        ["a/b:1"],
        ["a:1", "a:1"],
        ["a:1", "b:2", "--host-name", "x"],
        ["a:1", "--host-name", "../x"],
        ["a:1", "b:2", "--host-name", "x:1", "--host-name", "x_1"],
        ["a:1", "--duration", "2"],
        ["a:1", "--duration", "0s"],
        ["a:1", "--attempts", "0"],
        ["a:1", "--option", "x"],
        ["a:1", "--option", "duration_ms=1"],
        ["a:1", "--option", "host_tracer_level=high"],
        ["a:1", "--option", "x=1", "--option", "x=2"],
        ["a:1", "--session-id", "../s"],
        ["a:1", "--timeout", "0s"],
    ],
)
def test_usage(run, tmp_path, words):
    code, out, err = run(*words, "--logdir", tmp_path / "logs")
    assert (code, out) == (2, "")
    assert err.startswith("peakline: ")
    assert err.count("\n") == 1
    assert not (tmp_path / "logs").exists()


def test_a_session_that_exists(run, tmp_path):
    with peer(lambda *_: profile_of()) as worker:
        words = (worker.address, "--logdir", tmp_path, "--duration", "1ms", "--session-id", "s")
        assert run(*words)[0] == 0
        code, out, err = run(*words)
    assert (code, out) == (2, "")
    assert "exists" in err
    assert len(worker.requests) == 1


@pytest.fixture
def on_a_terminal(monkeypatch, capsys):
    """Run the verb with a terminal as its standard error; the exit code, standard output, and what
    the terminal showed.
    """

    def on_a_terminal(*words, columns):
        outer, inner = pty.openpty()
        with ThreadPoolExecutor(1) as pool, open(inner, "w") as terminal:  # noqa: PTH123 (opened)
            shown = pool.submit(shown_on, outer)
            with monkeypatch.context() as patch, terminal:
                patch.setenv("TERM", "xterm")
                patch.setenv("COLUMNS", str(columns))
                patch.setattr(sys, "stderr", terminal)
                code = main(["capture", *map(str, words)])
        return code, capsys.readouterr().out, plain(shown.result())

    return on_a_terminal


def shown_on(outer, noticed=lambda _: None):
    """All that comes until nobody writes any more; ``noticed`` is called with what came so far."""
    shown = b""
    with contextlib.suppress(OSError):
        while piece := os.read(outer, 4096):
            shown += piece
            noticed(shown)
    os.close(outer)
    return shown


def plain(shown):
    """The text without what moves the cursor and colours."""
    return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", shown.decode())


def test_a_terminal_shows_each_host(on_a_terminal, tmp_path):
    with peer(lambda *_: profile_of()) as worker, peer(lambda *_: b"junk") as broken:
        code, out, shown = on_a_terminal(
            worker.address, broken.address, "--logdir", tmp_path, "--duration", "1ms",
            "--host-name", "[red]good", "--host-name", "bad", columns=200,
        )  # fmt: skip
    assert code == 4, shown
    assert re.search(r"\[red\]good .*stored", shown)
    assert re.search(r"bad .*failed: its answer is damaged", shown)
    assert Path(out.splitlines()[0]).is_dir()


def test_a_long_error_takes_no_room_from_the_names(on_a_terminal, tmp_path):
    names = [f"trainer-{number}.example.com" for number in range(2)]
    with peer(lambda *_: profile_of()) as worker, peer(lambda *_: b"junk") as broken:
        _, _, shown = on_a_terminal(
            worker.address, broken.address, "--logdir", tmp_path, "--duration", "1ms",
            "--host-name", names[0], "--host-name", names[1], columns=70,
        )  # fmt: skip
    assert re.search(rf"{names[0]} .*stored", shown)
    assert re.search(rf"{names[1]} .*fa.*\u2026", shown)


def test_an_interrupted_capture_ends_with_the_word_about_it(tmp_path):
    def interrupt(shown):
        if b"recording" in shown and not interrupted:
            interrupted.append(process.send_signal(signal.SIGINT))

    interrupted = []
    outer, inner = pty.openpty()
    with waiting_peer()[0] as worker:
        words = ["capture", worker.address, "--logdir", str(tmp_path), "--duration", "60s"]
        with subprocess.Popen(
            [sys.executable, "-m", "peakline.__main__", *words],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=inner,
            env={**os.environ, "TERM": "xterm", "COLUMNS": "200"},
        ) as process:  # fmt: skip
            os.close(inner)
            shown = plain(shown_on(outer, interrupt))
            out, _ = process.communicate(timeout=HANG_S)
    assert (process.returncode, out) == (130, b"")
    last = shown.partition("peakline: interrupted; ")[2]
    assert last.startswith("nothing was stored")
    assert worker.address not in last
