"""Uploads over HTTP: what is kept, and what leaves nothing."""

from __future__ import annotations

import gzip
import socket
from datetime import UTC, datetime, timedelta

import pytest
from tests.service.http_client import BINARY, problem, serving
from tests.tool_lists import XSPACE_TOOLS
from tests.waiting import HANG_S, until

from peakline.errors import BusyError


@pytest.fixture
def logdir(tmp_path):
    place = tmp_path / "logs"
    (place / "plugins" / "profile").mkdir(parents=True)
    return place


@pytest.fixture
def profile(sessions):
    (path,) = (sessions / "tf2_cnn").glob("**/*.xplane.pb.gz")
    return gzip.decompress(path.read_bytes())


def files_of(logdir):
    return sorted(str(path.relative_to(logdir)) for path in logdir.rglob("*") if path.is_file())


def test_an_upload_becomes_a_session(logdir, tmp_path, profile):
    with serving(tmp_path, logdir) as face:
        answer = face.client.post(
            "/api/uploads",
            params={"session_id": "mine", "file_name": "C:\\logs\\worker-0.xplane.pb"},
            content=profile,
            headers=BINARY,
        )
        assert answer.status_code == 201
        told = answer.json()
        written = datetime.fromisoformat(told.pop("modified"))
        assert abs(written - datetime.now(UTC)) < timedelta(seconds=HANG_S)
        assert told == {
            "session_id": "mine",
            "hosts": ["worker-0"],
            "tools": XSPACE_TOOLS,
            "bytes": len(profile),
        }
        assert answer.headers["location"] == "/api/sessions/mine"
        assert face.client.get(answer.headers["location"]).json() == answer.json()
        kept = logdir / "plugins" / "profile" / "mine" / "worker-0.xplane.pb"
        assert kept.read_bytes() == profile
        assert files_of(logdir) == ["plugins/profile/mine/worker-0.xplane.pb"]
        assert face.client.get("/api/sessions/mine/tools/memory_profile").status_code == 200
        numbers = face.client.get("/metrics").text
        assert f"peakline_upload_bytes_total {float(len(profile))}" in numbers


def test_an_upload_in_pieces_without_a_length(logdir, tmp_path, profile):
    def pieces():
        for start in range(0, len(profile), 10_000):
            yield profile[start : start + 10_000]

    with serving(tmp_path, logdir) as face:
        answer = face.client.post("/api/uploads", content=pieces(), headers=BINARY)
        assert answer.status_code == 201, answer.text
        session = answer.json()["session_id"]
        kept = logdir / "plugins" / "profile" / session / "upload.xplane.pb"
        assert kept.read_bytes() == profile


def test_other_formats_are_kept_under_their_own_suffix(logdir, tmp_path, root):
    graph = (root / "tests" / "data" / "graph_def" / "frozen.pb").read_bytes()
    with serving(tmp_path, logdir) as face:
        answer = face.client.post(
            "/api/uploads", params={"session_id": "g"}, content=graph, headers=BINARY
        )
        told = answer.json()
        assert (told["hosts"], told["tools"]) == (["upload"], ["graph", "op_stats"])
        assert told["bytes"] == len(graph)
        assert files_of(logdir) == ["plugins/profile/g/upload.profile"]


def test_a_stored_upload_is_told_even_when_nobody_has_time_to_look_at_it(
    logdir, tmp_path, profile, monkeypatch
):
    def busy(*_args):
        raise BusyError("busy")

    with serving(tmp_path, logdir) as face:
        monkeypatch.setattr(face.analysis, "tools", busy)
        url = "/api/uploads?session_id=one"
        answer = face.client.post(url, content=profile, headers=BINARY)
        assert answer.status_code == 201
        told = answer.json()
        assert (told["session_id"], told["hosts"], told["tools"]) == ("one", ["upload"], [])
        assert told["bytes"] == len(profile)
        assert answer.headers["peakline-notes"] == '["busy"]'


def test_a_session_that_is_there_stays(logdir, tmp_path, profile):
    with serving(tmp_path, logdir) as face:
        url = "/api/uploads?session_id=one"
        assert face.client.post(url, content=profile, headers=BINARY).status_code == 201
        answer = face.client.post(url + "&host=other", content=profile, headers=BINARY)
        problem(answer, 409, "ALREADY_EXISTS")
        assert files_of(logdir) == ["plugins/profile/one/upload.xplane.pb"]


@pytest.mark.parametrize("with_length", [True, False])
def test_an_upload_that_is_too_large_leaves_nothing(logdir, tmp_path, profile, with_length):
    sent = 0

    def pieces():
        nonlocal sent
        for start in range(0, len(profile), 10_000):
            sent += 10_000
            yield profile[start : start + 10_000]

    headers = {**BINARY, "Content-Length": str(len(profile))} if with_length else BINARY
    with serving(tmp_path, logdir, max_upload_bytes=100_000) as face:
        answer = face.client.post("/api/uploads", content=pieces(), headers=headers)
        assert "100000" in problem(answer, 413, "INVALID_ARGUMENT")
        assert files_of(logdir) == []
        assert not list((logdir / "plugins" / "profile").iterdir())
        assert 'peakline_refused_total{reason="size"} 1.0' in face.client.get("/metrics").text


def test_a_gzip_file_that_expands_too_far_is_too_large(logdir, tmp_path, profile):
    with serving(tmp_path, logdir, max_unpacked_bytes=len(profile) - 1) as face:
        packed = gzip.compress(profile)
        answer = face.client.post("/api/uploads", content=packed, headers=BINARY)
        assert "--max-unpacked" in problem(answer, 413, "INVALID_ARGUMENT")
        assert files_of(logdir) == []
        assert 'peakline_refused_total{reason="size"} 1.0' in face.client.get("/metrics").text


def test_an_upload_that_ends_early_leaves_nothing(logdir, tmp_path, profile):
    with serving(tmp_path, logdir) as face:
        head = (
            "POST /api/uploads?session_id=half HTTP/1.1\r\nHost: localhost\r\n"
            f"Content-Type: application/octet-stream\r\nContent-Length: {len(profile)}\r\n\r\n"
        )
        with socket.create_connection(("127.0.0.1", face.port)) as connection:
            connection.sendall(head.encode() + profile[:500_000])
            until(lambda: face.analysis.uploads.gate.running == 1)
        until(lambda: any(line["code"] == "499" for line in face.log_lines()))
        assert files_of(logdir) == []
        assert not list((logdir / "plugins" / "profile").iterdir())
        whole = face.client.post("/api/uploads?session_id=half", content=profile, headers=BINARY)
        assert whole.status_code == 201


def test_an_upload_that_drips_ends(logdir, tmp_path, profile):
    with serving(tmp_path, logdir, request_timeout_s=0.5) as face:
        head = (
            "POST /api/uploads HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
            f"Content-Type: application/octet-stream\r\nContent-Length: {len(profile)}\r\n\r\n"
        )
        status, answer = face.raw(head.encode() + profile[:1000])
        assert status == 504
        assert b"too slow" in answer
        assert files_of(logdir) == []


@pytest.mark.parametrize(
    ("content", "status", "code"),
    [
        (bytes(range(256)) * 50, 415, "INVALID_ARGUMENT"),
        (b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR", 415, "INVALID_ARGUMENT"),
        (b"junkjunk", 415, "INVALID_ARGUMENT"),
        (b"", 400, "INVALID_ARGUMENT"),
        (gzip.compress(b""), 400, "INVALID_ARGUMENT"),
        (b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\x03\xff\xff", 400, "INVALID_ARGUMENT"),
    ],
)
@pytest.mark.usefixtures("unchanged")
def test_what_is_no_profile_is_not_kept(shared_face, content, status, code):
    answer = shared_face.client.post("/api/uploads", content=content, headers=BINARY)
    problem(answer, status, code)


@pytest.mark.parametrize(
    "kind",
    ["", "text/plain", "multipart/form-data; boundary=x", "application/x-www-form-urlencoded"],
)
@pytest.mark.usefixtures("unchanged")
def test_forms_are_no_uploads(shared_face, profile, kind):
    headers = {"Content-Type": kind} if kind else {}
    answer = shared_face.client.post("/api/uploads", content=profile, headers=headers)
    assert "octet-stream" in problem(answer, 415, "INVALID_ARGUMENT")
    packed = {**BINARY, "Content-Encoding": "gzip"}
    answer = shared_face.client.post("/api/uploads", content=profile, headers=packed)
    problem(answer, 415, "INVALID_ARGUMENT")


def test_a_read_only_server_keeps_nothing(logdir, tmp_path, profile):
    with serving(tmp_path, logdir, read_only=True) as face:
        answer = face.client.post("/api/uploads", content=profile, headers=BINARY)
        problem(answer, 403, "PERMISSION_DENIED")
        capture = {"hosts": ["localhost"], "duration_ms": 10}
        problem(face.client.post("/api/captures", json=capture), 403, "PERMISSION_DENIED")
        assert files_of(logdir) == []
