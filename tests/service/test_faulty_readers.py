"""A reader that raises whatever it likes over one file, behind every face: that file is named, the
traceback is logged, and all else answers.
"""

import errno
import json
import os
import shutil
import threading
from contextlib import contextmanager
from dataclasses import dataclass

import grpc
import pytest
from tests.capture.peers import peer
from tests.capture.requests import good, request_for
from tests.each_row import each_row
from tests.formats.format_samples import BY_NAME
from tests.service.grpc_client import Client
from tests.service.http_client import BINARY, serving
from tests.service.server_here import server_here

import peakline
from peakline.__main__ import main
from peakline.capture import capture
from peakline.engine import Engine
from peakline.engine.executors import Threads
from peakline.engine.work import reply, request, understood
from peakline.errors import InputError, PeaklineError, UnforeseenError, faults_of
from peakline.formats.xplane.reader import XPlaneReader
from peakline.repository import Repository
from peakline.toolbox.registry import Tool

RAISED = (
    ValueError("no number"), OverflowError("too large"), MemoryError(), RecursionError("too deep"),
    KeyError("name"), AssertionError(), IndexError(1), OSError(5, "Input/output error"),
    UnicodeDecodeError("utf-8", b"\xff", 0, 1, "no start"), StopIteration(), Exception("bare"),
)  # fmt: skip
PLUGIN = "plugins/profile"
MARK = "broken"
"""What the file is called that nobody can read."""
PLACES = ("recognise", "open", "read", "supports")
CASES = [
    *((place, error) for place in PLACES for error in (KeyError("name"), MemoryError())),
    *(("open", error) for error in RAISED),
]
SAID = ("unexpected", "not enough memory", "cannot be read")
TOOL = "memory_profile"


@dataclass
class Fault:
    """Raises ``error`` where one of ``PLACES`` comes to a file that is called so."""

    monkeypatch: pytest.MonkeyPatch

    @contextmanager
    def at(self, place, error):
        def replaced(whole, path_of):
            def raising(*arguments, **named):
                if MARK in path_of(*arguments):
                    raise error
                return whole(*arguments, **named)

            return raising

        with self.monkeypatch.context() as patch:
            if place == "recognise":
                whole = replaced(peakline.formats._reader, lambda file: file.path)
                patch.setattr(peakline.formats, "_reader", whole)
            elif place == "open":
                whole = replaced(XPlaneReader.__init__, lambda _, file, *__: file.path)
                patch.setattr(XPlaneReader, "__init__", whole)
            elif place == "read":
                whole = replaced(XPlaneReader.read, lambda reader, *_: reader.path)
                patch.setattr(XPlaneReader, "read", whole)
            else:
                whole = replaced(Tool.supports, lambda _, profile: profile.path)
                patch.setattr(Tool, "supports", whole)
            yield


@pytest.fixture
def fault(monkeypatch):
    return Fault(monkeypatch)


@pytest.fixture(scope="module")
def profile():
    return BY_NAME["space.pb"].file


@pytest.fixture(scope="module")
def logs(tmp_path_factory, profile):
    """A log directory: ``good``, ``bad`` whose only file is broken, ``both`` with one of each."""
    place = tmp_path_factory.mktemp("faults") / "logs"
    for session, host in (("good", "a"), ("bad", MARK), ("both", "a"), ("both", MARK)):
        folder = place / PLUGIN / session
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"{host}.xplane.pb").write_bytes(profile)
    return place


@pytest.fixture(scope="module")
def face(logs):
    with serving(logs.parent, logs) as running:
        yield running


def forget(engine):
    """As after a start: nothing was read, and no answer is held."""
    engine.cache.clear()
    engine._index._known.clear()
    engine._answers._held.clear()


def said(text):
    return any(one in text for one in SAID)


@each_row("place, error", CASES)
def test_over_http_all_else_answers(fault, face, logs, caplog, place, error):
    caplog.clear()
    forget(face.engine)
    before = len(face.log_lines())
    with fault.at(place, error):
        listed = face.client.get("/api/sessions")
        assert listed.status_code == 200
        tools = {one["session_id"]: one["tools"] for one in listed.json()}
        assert TOOL in tools["good"]
        assert TOOL in tools["both"]
        if place != "read":
            assert tools["bad"] == []
            (note,) = json.loads(listed.headers["peakline-notes"])
            assert note.startswith("session bad: ")
            assert said(note)
            assert str(logs) not in note
        assert face.client.get("/api/sessions/good/tools/memory_profile").status_code == 200
        assert face.client.get("/api/sessions/bad").status_code == 200
        for path in ("sessions/good", "sessions/both", "xprof/runs"):
            assert face.client.get(f"/api/{path}").status_code in {200, 404}
        if place in {"recognise", "open", "read"}:
            together = face.client.get("/api/sessions/both/tools/memory_profile")
            assert together.status_code == 200
            (note,) = json.loads(together.headers["peakline-notes"])
            assert note.startswith(f"host {MARK}: ")
            alone = face.client.get("/api/sessions/bad/tools/memory_profile")
            memory = isinstance(error, MemoryError)
            assert alone.status_code == (400 if memory else 500)
            assert (MARK if memory else "internal error (") in alone.json()["detail"]
            if not memory:
                lines = face.log_lines()[before:]
                assert any("in raising" in one.get("traceback", "") for one in lines)
                assert "in raising" in caplog.text
    # Nothing of it is held against the file.
    whole = face.client.get("/api/sessions/bad/tools/memory_profile")
    assert whole.status_code == 200


@each_row("place, error", CASES)
def test_what_cannot_be_opened_is_not_uploaded(fault, face, logs, profile, place, error):
    forget(face.engine)
    with fault.at(place, error):
        answer = face.client.post(
            "/api/uploads",
            params={"session_id": "sent", "host": MARK},
            content=profile,
            headers=BINARY,
        )
        if place == "read" and answer.status_code == 201:
            # Nothing was read of it: to know its tools a look at it is enough.
            shutil.rmtree(logs / PLUGIN / "sent")
            return
        assert answer.status_code in {400, 500}
        assert face.client.get("/api/sessions").status_code == 200
    assert not (logs / PLUGIN / "sent").exists()
    assert [p.name for p in (logs / PLUGIN).iterdir() if p.name.startswith(".")] == []


@each_row("place", PLACES)
@each_row("error", [ValueError("x"), RecursionError()])
def test_over_grpc(fault, serve_logs, place, error):
    served, client = serve_logs
    forget(served.engine)
    with fault.at(place, error):
        listed = client.call("EnumSessions", repository_root="")
        tools = {one.session_id: list(one.available_tools) for one in listed.sessions}
        assert TOOL in tools["good"]
        assert place == "read" or "session bad: " in listed.error_message
        fields = {"tool_name": TOOL, "repository_root": ""}
        assert client.call("GetSessionToolData", session_id="good", **fields).output
        if place == "supports":
            return
        both = client.call("GetSessionToolData", session_id="both", **fields)
        assert f"host {MARK}: " in both.error_message
        with pytest.raises(grpc.RpcError) as raised:
            client.call("GetSessionToolData", session_id="bad", **fields)
        assert raised.value.code() is grpc.StatusCode.INTERNAL
        assert raised.value.details().startswith("internal error (")


@pytest.fixture(scope="module")
def serve_logs(logs):
    with server_here(logs) as server:
        client = Client(f"127.0.0.1:{server.grpc_port}")
        yield server, client
        client.close()


@each_row("place, error", CASES)
def test_on_the_command_line(fault, logs, capsys, place, error):
    bad, good = logs / PLUGIN / "bad" / f"{MARK}.xplane.pb", logs / PLUGIN / "good"
    with fault.at(place, error):
        assert main(["sessions", str(logs), "--json"]) == 0
        run = capsys.readouterr()
        assert {one["session_id"] for one in json.loads(run.out)} == {"good", "bad", "both"}
        assert place == "read" or said(run.err)
        assert "Traceback" not in run.err
        if place == "supports":
            return
        # Of several hosts, those that can be read.
        for verb in () if isinstance(error, OSError) else ("steps", "summary"):
            assert main([verb, str(logs / PLUGIN / "both"), "--json"]) == 0
            assert said(capsys.readouterr().err)
        # About the file alone, one line and our own fault.
        for words in (["memory", bad], ["tool", TOOL, bad], ["diff", good, bad]):
            assert main(list(map(str, words))) in {70, 3}
            run = capsys.readouterr()
            assert run.err.count("\n") == 1
            assert run.err.startswith("peakline: ")


def test_debug_shows_where(fault, logs, capsys):
    with fault.at("open", KeyError("name")):
        assert main(["sessions", str(logs), "--json", "--debug"]) == 0
    assert "Traceback" in capsys.readouterr().err
    assert main(["sessions", str(logs), "--json"]) == 0
    assert capsys.readouterr().err == ""


def test_a_folder_of_profiles_is_compared_without_it(fault, tmp_path, capsys, profile):
    for name in ("a", "b", MARK):
        (tmp_path / f"{name}.xplane.pb").write_bytes(profile)
    with fault.at("open", KeyError("name")):
        assert main(["diff", str(tmp_path), "--json"]) == 0
    assert f"{MARK}.xplane.pb: unexpected KeyError" in capsys.readouterr().err


class _There(Threads):
    """Asks as executors of other processes do: all that crosses is bytes."""

    def ask(self, task, _):
        return understood(reply(request(task)))


@each_row("executor", ["threads", _There()])
@each_row("error", RAISED)
def test_of_several_hosts(fault, logs, executor, error):
    session = Repository(str(logs)).session("both")
    with Engine(executor=executor) as engine, fault.at("open", error):
        answer = engine.tool(session, TOOL)
        (note,) = answer.notes
        assert note.startswith(f"host {MARK}: ")
        kind = InputError if isinstance(error, MemoryError) else UnforeseenError
        with pytest.raises(kind):
            engine.tool(Repository(str(logs)).session("bad"), TOOL)


def test_what_is_no_fault_of_a_file_passes():
    for error in (KeyboardInterrupt(), SystemExit(3)):
        with pytest.raises(type(error)), faults_of("x"):
            raise error
    with pytest.raises(PeaklineError) as raised, faults_of("x"):
        raise InputError("y")
    assert str(raised.value) == "y"


@each_row("error", RAISED)
def test_a_host_whose_answer_cannot_be_read(monkeypatch, tmp_path, error):
    def raising(answer):
        if len(seen := [*seen_by, answer]) > 1:
            raise error
        seen_by[:] = seen

    seen_by = []
    monkeypatch.setattr("peakline.capture.host.check_xspace", raising)
    repository = Repository(str(tmp_path / "logs"))
    (tmp_path / "logs").mkdir(exist_ok=True)
    with peer(good) as one, peer(good) as other:
        result = capture(request_for(one.address, other.address), repository)
    states = sorted(outcome.state for outcome in result.outcomes)
    assert states == ["failed", "stored"]
    (session,) = (tmp_path / "logs" / PLUGIN).iterdir()
    assert len(list(session.iterdir())) == 1
    shutil.rmtree(session)


def test_without_a_descriptor_left_it_is_a_matter_of_time(monkeypatch, face):
    """The same may succeed later: nothing is called unreadable, and no list is short."""
    opened, scanned = os.open, os.scandir
    full = OSError(errno.EMFILE, os.strerror(errno.EMFILE))
    names = ("/api/sessions", "/api/sessions/good/tools/memory_profile?host=a")
    for most in range(12):
        forget(face.engine)
        left = iter(range(most))

        def limited(call, left=left):
            def counted(*arguments, **named):
                if threading.current_thread().name != "MainThread" and next(left, None) is None:
                    raise full
                return call(*arguments, **named)

            return counted

        with monkeypatch.context() as patch:
            patch.setattr(os, "open", limited(opened))
            patch.setattr(os, "scandir", limited(scanned))
            answers = [face.client.get(name) for name in names]
        assert {answer.status_code for answer in answers} <= {200, 429}
        if answers[0].status_code == 200:
            assert len(answers[0].json()) == 3
            assert "peakline-notes" not in answers[0].headers
    assert [face.client.get(name).status_code for name in names] == [200, 200]
