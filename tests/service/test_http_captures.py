"""Captures over HTTP: what they make, and what is told of them."""

from __future__ import annotations

import json
import socket

import pytest
from tests.capture.peers import answer_of, peer, profile_of
from tests.service.http_client import problem, serving


@pytest.fixture
def logdir(tmp_path):
    place = tmp_path / "logs"
    (place / "plugins" / "profile").mkdir(parents=True)
    return place


@pytest.mark.parametrize(
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


def test_a_capture_of_nobody_is_a_problem_and_no_session(logdir, tmp_path):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # bound and not listening: nobody answers
        with serving(tmp_path, logdir, profiler_port=taken.getsockname()[1]) as face:
            answer = face.client.post(
                "/api/captures",
                json={"hosts": ["localhost"], "duration_ms": 10, "session_id": "one"},
            )
            problem(answer, 503, "UNAVAILABLE")
            assert "retry-after" in answer.headers
            assert not list((logdir / "plugins" / "profile").iterdir())


def test_a_capture_becomes_a_session_and_tells_of_every_host(logdir, tmp_path):
    with (
        peer(lambda *_: profile_of()) as good,
        peer(lambda *_: answer_of(empty_trace=True)) as empty,
    ):
        workers = {"a": good.address, "b": empty.address}
        with serving(tmp_path, logdir, workers=workers) as face:
            answer = face.client.post(
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
            assert face.client.get("/api/sessions/one").json()["hosts"] == ["a"]
            again = {"hosts": ["a"], "duration_ms": 10, "session_id": "one"}
            problem(face.client.post("/api/captures", json=again), 409, "ALREADY_EXISTS")


def test_an_option_that_is_no_field_and_two_names_of_one_profiler_are_told(logdir, tmp_path):
    with peer(lambda *_: profile_of()) as good:
        port = int(good.address.rpartition(":")[2])
        with serving(tmp_path, logdir, profiler_port=port) as face:
            answer = face.client.post(
                "/api/captures",
                json={
                    "hosts": ["localhost:1", "localhost:2"],
                    "duration_ms": 10,
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
            plain = face.client.post(
                "/api/captures", json={"hosts": ["localhost"], "duration_ms": 9}
            )
            assert "peakline-notes" not in plain.headers
            misspelt = {
                "hosts": ["localhost"],
                "duration_ms": 9,
                "options": {"host_tracer_levl": 1},
            }
            detail = problem(
                face.client.post("/api/captures", json=misspelt), 400, "INVALID_ARGUMENT"
            )
            assert "'host_tracer_level' is meant" in detail


def test_a_capture_of_nothing_is_told_and_makes_no_session(logdir, tmp_path):
    with (
        peer(lambda *_: answer_of(empty_trace=True)) as empty,
        serving(tmp_path, logdir, workers={"b": empty.address}) as face,
    ):
        answer = face.client.post("/api/captures", json={"hosts": ["b"], "duration_ms": 10})
        assert answer.status_code == 200, answer.text
        assert answer.json()["empty_trace"] is True
        assert "location" not in answer.headers
        assert not list((logdir / "plugins" / "profile").iterdir())
