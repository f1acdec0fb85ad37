"""Captures over HTTP, and their progress."""

import json
import threading
from contextlib import contextmanager

import pytest
from tests.capture.peers import profile_of
from tests.each_row import each_row
from tests.service.http_client import problem
from tests.waiting import HANG_S, until


@each_row(
    "body",
    [
        {},
        {"hosts": [], "duration_ms": 10},
        {"hosts": ["localhost"]},
        {"hosts": ["localhost"], "duration_ms": 0},
        {"hosts": ["localhost"], "duration_ms": 2**63},
        {"hosts": ["localhost"], "duration_ms": 10, "option": {}},
        {"hosts": ["localhost"], "duration_ms": 10, "options": {"host_tracer_level": "x"}},
        {"hosts": ["localhost"], "duration_ms": 10, "options": {"host_tracer_level": 2**70}},
        {"hosts": ["localhost"], "duration_ms": 10, "options": {"host_tracer_levl": 1}},
        {"hosts": ["localhost"], "duration_ms": 10, "options": {"a": None}},
        {"hosts": ["localhost"], "duration_ms": 10_000_000},
    ],
)
@pytest.mark.usefixtures("unchanged")
def test_captures_that_are_none(shared_face, body):
    problem(shared_face.client.post("/api/captures", json=body), 400, "INVALID_ARGUMENT")


def test_a_capture_of_nobody_is_a_problem_and_no_session(capturing):
    before = capturing.sessions
    answer = capturing.face.client.post(
        "/api/captures", json={"hosts": ["nobody"], "duration_ms": 10, "session_id": "none"}
    )
    problem(answer, 503, "UNAVAILABLE")
    assert "retry-after" in answer.headers
    assert capturing.sessions == before


def test_a_capture_becomes_a_session_and_tells_of_every_host(capturing):
    client = capturing.face.client
    answer = client.post(
        "/api/captures",
        json={
            "hosts": ["a", "b"],
            "duration_ms": 10,
            "session_id": "one",
            "options": {"python_tracer_level": 1, "enable_hlo_proto": False},
        },
    )
    assert answer.status_code == 201, answer.text
    assert answer.headers["location"] == "/api/sessions/one"
    document = answer.json()
    assert (document["session_id"], document["empty_trace"]) == ("one", False)
    states = {each["host"]: each["state"] for each in document["outcomes"]}
    assert states == {"a": "stored", "b": "empty"}
    assert client.get("/api/sessions/one").json()["hosts"] == ["a"]
    again = {"hosts": ["a"], "duration_ms": 10, "session_id": "one"}
    problem(client.post("/api/captures", json=again), 409, "ALREADY_EXISTS")


def test_an_option_that_is_no_field_and_two_names_of_one_profiler_are_told(capturing):
    post = capturing.face.client.post
    answer = post(
        "/api/captures",
        json={
            "hosts": ["localhost:1", "localhost:2"],
            "duration_ms": 10,
            "session_id": "noted",
            "options": {
                "nosuch\u4e2d": 1,
                "host_tracer_level": 2,
                "advanced_configuration.meant": 1,
            },
        },
    )
    assert answer.status_code == 201, answer.text
    unknown, merged = json.loads(answer.headers["peakline-notes"])
    assert unknown.startswith("option 'nosuch\\u4e2d' is no field of ProfileOptions")
    assert merged.startswith("2 hosts were named and 1 profiled: ")
    plain = post(
        "/api/captures", json={"hosts": ["localhost"], "duration_ms": 9, "session_id": "plain"}
    )
    assert plain.status_code == 201
    assert "peakline-notes" not in plain.headers
    misspelt = {"hosts": ["localhost"], "duration_ms": 9, "options": {"host_tracer_levl": 1}}
    detail = problem(post("/api/captures", json=misspelt), 400, "INVALID_ARGUMENT")
    assert "'host_tracer_level' is meant" in detail


def test_a_capture_of_nothing_is_told_and_makes_no_session(capturing):
    before = capturing.sessions
    answer = capturing.face.client.post("/api/captures", json={"hosts": ["b"], "duration_ms": 10})
    assert answer.status_code == 200, answer.text
    assert answer.json()["empty_trace"] is True
    assert "location" not in answer.headers
    assert capturing.sessions == before


LINES = {"Accept": "application/x-ndjson"}


@contextmanager
def told(face, body, headers=LINES):
    """The lines of a capture as they come, each parsed."""
    with face.client.stream("POST", "/api/captures", json=body, headers=headers) as answer:
        assert answer.status_code == 200, answer.read()
        assert answer.headers["content-type"] == "application/x-ndjson"
        yield (json.loads(line) for line in answer.iter_lines())


def states(events):
    """The states of each host in order."""
    result = {}
    for event in events:
        result.setdefault(event["host"], []).append(event["state"])
    return result


class Held:
    """A profiler that answers when ``go`` is set; ``ended`` is set when its call is over."""

    def __init__(self):
        self.go, self.ended = threading.Event(), threading.Event()

    def __call__(self, _request, context, _number):
        def over():
            self.ended.set()
            self.go.set()

        context.add_callback(over)
        self.go.wait(HANG_S)
        return profile_of()


@pytest.fixture
def held(capturing):
    capturing.behave = held = Held()
    yield held
    held.go.set()


def test_a_host_is_told_of_while_it_records(capturing, held):
    body = {"hosts": ["a"], "duration_ms": 10, "session_id": "held"}
    with told(capturing.face, body, {**LINES, "X-Request-Id": "this-one"}) as lines:
        seen = [next(lines), next(lines)]
        held.go.set()
        *rest, result = lines
    assert seen == [
        {"event": "progress", "host": "a", "state": "connecting", "detail": ""},
        {"event": "progress", "host": "a", "state": "recording", "detail": ""},
    ]
    assert states(rest) == {"a": ["receiving", "stored"]}
    outcome = result["outcomes"][0]
    assert result == {
        "event": "result",
        "session_id": "held",
        "empty_trace": False,
        "outcomes": [outcome],
        "notes": [],
    }
    assert outcome == {
        "host": "a", "address": capturing.job.address, "state": "stored", "error": "",
        "attempts": 1, "size": (capturing.profiles / "held/a.xplane.pb").stat().st_size,
    }  # fmt: skip

    def logged():
        return [line for line in capturing.face.log_lines() if line["request_id"] == "this-one"]

    until(logged)
    (line,) = logged()
    assert (line["code"], line["session"], line["host"]) == ("200", "held", "a")


def test_the_result_is_the_document_of_the_plain_answer(capturing):
    body = {"hosts": ["a", "b"], "duration_ms": 10, "options": {"nosuch": 1}}
    plain = capturing.face.client.post("/api/captures", json={**body, "session_id": "plainly"})
    with told(capturing.face, {**body, "session_id": "told"}) as lines:
        *progress, result = lines
    assert {host: own[-1] for host, own in states(progress).items()} == {
        "a": "stored",
        "b": "empty",
    }
    assert result.pop("event") == "result"
    assert result.pop("notes") == json.loads(plain.headers["peakline-notes"])
    assert result == {**plain.json(), "session_id": "told"}


def test_a_capture_of_nothing_makes_no_session(capturing):
    before = capturing.sessions
    with told(capturing.face, {"hosts": ["b"], "duration_ms": 10}) as lines:
        *_, result = lines
    assert (result["event"], result["empty_trace"]) == ("result", True)
    assert capturing.sessions == before


def test_what_fails_after_the_begin_is_the_last_line(capturing):
    before = capturing.sessions
    with told(capturing.face, {"hosts": ["nobody"], "duration_ms": 10}) as lines:
        *progress, last = lines
    assert states(progress)["nobody"][0] == "connecting"
    assert states(progress)["nobody"][-1] == "failed"
    assert last == {
        "event": "error",
        "status": 503,
        "code": "UNAVAILABLE",
        "detail": last["detail"],
    }
    assert last["detail"].startswith(f"{capturing.nobody}: cannot be reached")
    assert capturing.sessions == before


@each_row(
    ("body", "status", "code"),
    [
        ({"hosts": ["localhost"]}, 400, "INVALID_ARGUMENT"),
        ({"hosts": ["localhost"], "duration_ms": 10_000_000}, 400, "INVALID_ARGUMENT"),
        ({"hosts": ["elsewhere"], "duration_ms": 10}, 403, "PERMISSION_DENIED"),
        ({"hosts": ["a"], "duration_ms": 10, "session_id": "taken"}, 409, "ALREADY_EXISTS"),
    ],
)
def test_what_is_refused_at_once_keeps_its_status(capturing, body, status, code):
    taken = capturing.profiles / "taken"
    taken.mkdir(exist_ok=True)
    (taken / "b.xplane.pb").write_bytes(b"")
    problem(capturing.face.client.post("/api/captures", json=body, headers=LINES), status, code)
    assert not capturing.job.requests


def test_a_busy_server_refuses_with_its_status(capturing, monkeypatch):
    gate = capturing.face.analysis.captures.gate
    until(lambda: gate.running == 0)
    monkeypatch.setattr(gate, "_queued", 0)
    monkeypatch.setattr(gate, "_running", 8)
    answer = capturing.face.client.post(
        "/api/captures", json={"hosts": ["a"], "duration_ms": 10}, headers=LINES
    )
    problem(answer, 429, "RESOURCE_EXHAUSTED")
    assert "retry-after" in answer.headers


def test_a_caller_who_goes_away_ends_the_capture(capturing, held):
    body = {"hosts": ["a"], "duration_ms": 60_000, "session_id": "left"}
    with told(capturing.face, body) as lines:
        assert next(lines)["state"] == "connecting"
        assert next(lines)["state"] == "recording"
        assert "left" in capturing.sessions
    assert held.ended.wait(HANG_S)
    until(lambda: capturing.face.analysis.captures.gate.running == 0)
    assert "left" not in capturing.sessions
    assert capturing.face.client.get("/healthz").status_code == 200


def test_our_own_fault_is_told_by_its_id_and_logged(capturing, monkeypatch):
    def fail(*_args, progress, **_more):
        progress("a", "connecting", "")
        raise ValueError("a secret")

    monkeypatch.setattr(capturing.face.analysis.captures, "new_session", fail)
    body = {"hosts": ["a"], "duration_ms": 10}
    with told(capturing.face, body, {**LINES, "X-Request-Id": "mine"}) as lines:
        _, last = lines
    assert last == {
        "event": "error", "status": 500, "code": "INTERNAL", "detail": "internal error (mine)",
    }  # fmt: skip
    until(lambda: "a secret" in capturing.face.log_path.read_text())


@each_row(
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
def test_lines_come_to_whom_asks_for_them(capturing, accept, is_told):
    body = {"hosts": ["a"], "duration_ms": 10, "session_id": f"asked-{len(capturing.sessions)}"}
    answer = capturing.face.client.post("/api/captures", json=body, headers={"Accept": accept})
    assert answer.status_code == (200 if is_told else 201)
    # One for each stage of the host, and the result.
    assert len(answer.text.splitlines()) == (5 if is_told else 1)
