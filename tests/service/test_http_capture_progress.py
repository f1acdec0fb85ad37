"""Captures over HTTP that tell how they go, one JSON document a line."""

from __future__ import annotations

import json
import socket
import threading
from contextlib import contextmanager

import pytest
from tests.capture.peers import answer_of, peer, profile_of
from tests.service.http_client import problem, serving
from tests.waiting import HANG_S, until

LINES = {"Accept": "application/x-ndjson"}


@pytest.fixture
def logdir(tmp_path):
    place = tmp_path / "logs"
    (place / "plugins" / "profile").mkdir(parents=True)
    return place


@contextmanager
def told(face, body, headers=LINES):
    """The lines of a capture as they come, each parsed."""
    with face.client.stream("POST", "/api/captures", json=body, headers=headers) as answer:
        assert answer.status_code == 200, answer.read()
        assert answer.headers["content-type"] == "application/x-ndjson"
        yield (json.loads(line) for line in answer.iter_lines())


def states(events):
    """The states of each host in order."""
    found = {}
    for event in events:
        found.setdefault(event["host"], []).append(event["state"])
    return found


def held_peer():
    """A profiler that answers when ``go`` is set; ``ended`` is set when its call is over."""
    go, ended = threading.Event(), threading.Event()

    def behave(_, context, __):
        context.add_callback(ended.set)
        while not (go.is_set() or ended.is_set()):
            go.wait(0.02)
        return profile_of()

    return peer(behave), go, ended


def test_a_host_is_told_of_while_it_records(logdir, tmp_path):
    server, go, _ = held_peer()
    with server as job, serving(tmp_path, logdir, workers={"a": job.address}) as face:
        body = {"hosts": ["a"], "duration_ms": 10, "session_id": "one"}
        with told(face, body) as lines:
            seen = [next(lines), next(lines)]
            go.set()
            *rest, result = lines
        assert seen == [
            {"event": "progress", "host": "a", "state": "connecting", "detail": ""},
            {"event": "progress", "host": "a", "state": "recording", "detail": ""},
        ]
        assert states(rest) == {"a": ["receiving", "stored"]}
        outcome = result["outcomes"][0]
        assert result == {
            "event": "result",
            "session_id": "one",
            "empty_trace": False,
            "outcomes": [outcome],
            "notes": [],
        }
        assert outcome == {
            "host": "a", "address": job.address, "state": "stored", "error": "", "attempts": 1,
            "size": (logdir / "plugins/profile/one/a.xplane.pb").stat().st_size,
        }  # fmt: skip
        until(face.log_lines)
        (line,) = face.log_lines()
        assert (line["code"], line["session"], line["host"]) == ("200", "one", "a")


def test_the_result_is_the_document_of_the_plain_answer(logdir, tmp_path):
    with (
        peer(lambda *_: profile_of()) as good,
        peer(lambda *_: answer_of(empty_trace=True)) as empty,
        serving(tmp_path, logdir, workers={"a": good.address, "b": empty.address}) as face,
    ):
        body = {"hosts": ["a", "b"], "duration_ms": 10, "options": {"nosuch": 1}}
        plain = face.client.post("/api/captures", json={**body, "session_id": "plain"})
        with told(face, {**body, "session_id": "told"}) as lines:
            *progress, result = lines
        assert {host: own[-1] for host, own in states(progress).items()} == {
            "a": "stored",
            "b": "empty",
        }
        assert result.pop("event") == "result"
        assert result.pop("notes") == json.loads(plain.headers["peakline-notes"])
        assert result == {**plain.json(), "session_id": "told"}


def test_a_capture_of_nothing_makes_no_session(logdir, tmp_path):
    with (
        peer(lambda *_: answer_of(empty_trace=True)) as empty,
        serving(tmp_path, logdir, workers={"b": empty.address}) as face,
    ):
        with told(face, {"hosts": ["b"], "duration_ms": 10}) as lines:
            *_, result = lines
        assert (result["event"], result["empty_trace"]) == ("result", True)
        assert not list((logdir / "plugins" / "profile").iterdir())


def test_what_fails_after_the_begin_is_the_last_line(logdir, tmp_path):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # bound and not listening: nobody answers
        port = taken.getsockname()[1]
        with serving(tmp_path, logdir, profiler_port=port) as face:
            with told(face, {"hosts": ["localhost"], "duration_ms": 10}) as lines:
                *progress, last = lines
            assert states(progress)["localhost"][0] == "connecting"
            assert states(progress)["localhost"][-1] == "failed"
            assert last == {
                "event": "error",
                "status": 503,
                "code": "UNAVAILABLE",
                "detail": last["detail"],
            }
            assert last["detail"].startswith(f"localhost:{port}: cannot be reached")
            assert not list((logdir / "plugins" / "profile").iterdir())


@pytest.mark.parametrize(
    ("body", "status", "code"),
    [
        ({"hosts": ["localhost"]}, 400, "INVALID_ARGUMENT"),
        ({"hosts": ["localhost"], "duration_ms": 10_000_000}, 400, "INVALID_ARGUMENT"),
        ({"hosts": ["elsewhere"], "duration_ms": 10}, 403, "PERMISSION_DENIED"),
        ({"hosts": ["a"], "duration_ms": 10, "session_id": "taken"}, 409, "ALREADY_EXISTS"),
    ],
)
def test_what_is_refused_at_once_keeps_its_status(logdir, tmp_path, body, status, code):
    with (
        peer(lambda *_: profile_of()) as job,
        serving(tmp_path, logdir, workers={"a": job.address}) as face,
    ):
        taken = logdir / "plugins" / "profile" / "taken"
        taken.mkdir()
        (taken / "b.xplane.pb").write_bytes(b"")
        answer = face.client.post("/api/captures", json=body, headers=LINES)
        problem(answer, status, code)
        assert not job.requests


def test_a_busy_server_refuses_with_its_status(logdir, tmp_path, monkeypatch):
    with (
        peer(lambda *_: profile_of()) as job,
        serving(tmp_path, logdir, workers={"a": job.address}) as face,
    ):
        gate = face.analysis.captures.gate
        monkeypatch.setattr(gate, "_queued", 0)
        monkeypatch.setattr(gate, "_running", 8)
        answer = face.client.post(
            "/api/captures", json={"hosts": ["a"], "duration_ms": 10}, headers=LINES
        )
        problem(answer, 429, "RESOURCE_EXHAUSTED")
        assert "retry-after" in answer.headers


def test_a_caller_who_goes_away_ends_the_capture(logdir, tmp_path):
    server, _, ended = held_peer()
    with server as job, serving(tmp_path, logdir, workers={"a": job.address}) as face:
        with told(face, {"hosts": ["a"], "duration_ms": 60_000, "session_id": "one"}) as lines:
            assert next(lines)["state"] == "connecting"
            assert next(lines)["state"] == "recording"
        assert ended.wait(HANG_S)
        until(lambda: face.analysis.captures.gate.running == 0)
        until(lambda: not list((logdir / "plugins" / "profile").iterdir()))
        assert face.client.get("/healthz").status_code == 200


def test_our_own_fault_is_told_by_its_id_and_logged(logdir, tmp_path, monkeypatch):
    with (
        peer(lambda *_: profile_of()) as job,
        serving(tmp_path, logdir, workers={"a": job.address}) as face,
    ):

        def fail(*_args, progress, **_more):
            progress("a", "connecting", "")
            raise ValueError("a secret")

        monkeypatch.setattr(face.analysis, "new_session", fail)
        body = {"hosts": ["a"], "duration_ms": 10}
        with told(face, body, {**LINES, "X-Request-Id": "mine"}) as lines:
            _, last = lines
        assert last == {
            "event": "error", "status": 500, "code": "INTERNAL", "detail": "internal error (mine)",
        }  # fmt: skip
        until(lambda: "a secret" in face.log_path.read_text())


@pytest.mark.parametrize(
    ("accept", "is_told"),
    [
        ("application/x-ndjson", True),
        ("text/html, APPLICATION/X-NDJSON; q=0.5", True),
        ("application/x-ndjson;q=0", False),
        ("application/x-ndjson; q=0.00, */*", False),
        ("*/*", False),
        ("application/json", False),
    ],
)
def test_lines_come_to_whom_asks_for_them(logdir, tmp_path, accept, is_told):
    with (
        peer(lambda *_: profile_of()) as job,
        serving(tmp_path, logdir, workers={"a": job.address}) as face,
    ):
        answer = face.client.post(
            "/api/captures", json={"hosts": ["a"], "duration_ms": 10}, headers={"Accept": accept}
        )
        assert answer.status_code == (200 if is_told else 201)
        assert len(answer.text.splitlines()) == (5 if is_told else 1)
