"""Captures over HTTP: what they make, and what is told of them."""

import json

import pytest
from tests.each_row import each_row
from tests.service.http_client import problem


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
        "/api/captures",
        json={"hosts": ["localhost"], "duration_ms": 9, "session_id": "plain"},
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
