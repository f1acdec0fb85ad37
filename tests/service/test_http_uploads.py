"""Uploads over HTTP: what is kept, and what leaves nothing."""

import gzip
import re
import socket
from datetime import UTC, datetime, timedelta

import pytest
from tests.each_row import each_row
from tests.service.http_client import BINARY, problem, serving
from tests.tool_lists import XSPACE_TOOLS
from tests.waiting import HANG_S, until

from peakline.errors import BusyError


@pytest.fixture(scope="module")
def logdir(tmp_path_factory):
    place = tmp_path_factory.mktemp("uploads") / "logs"
    (place / "plugins" / "profile").mkdir(parents=True)
    return place


@pytest.fixture(scope="module")
def face(logdir):
    with serving(logdir.parent, logdir) as running:
        yield running


@pytest.fixture(scope="module")
def strict(tmp_path_factory, profile):
    """A server that takes little, and its log directory."""
    place = tmp_path_factory.mktemp("strict")
    (place / "logs").mkdir()
    limits = {"max_upload_bytes": 400_000, "max_unpacked_bytes": len(profile) - 1}
    with serving(place, place / "logs", **limits) as running:
        yield running, place / "logs"


@pytest.fixture(scope="module")
def profile(sessions):
    (path,) = (sessions / "tf2_cnn").glob("**/*.xplane.pb.gz")
    return gzip.decompress(path.read_bytes())


def files_of(logdir, session=""):
    place = logdir / "plugins" / "profile" / session
    return sorted(str(path.relative_to(place)) for path in place.rglob("*") if path.is_file())


def test_an_upload_becomes_a_session(face, logdir, profile):
    answer = face.client.post(
        "/api/uploads",
        params={"session_id": "mine", "file_name": "C:\\logs\\worker-0.xplane.pb"},
        content=profile,
        headers=BINARY,
    )
    assert answer.status_code == 201
    result = answer.json()
    written = datetime.fromisoformat(result.pop("modified"))
    assert abs(written - datetime.now(UTC)) < timedelta(seconds=HANG_S)
    assert result == {
        "session_id": "mine",
        "hosts": ["worker-0"],
        "tools": XSPACE_TOOLS,
        "bytes": len(profile),
    }
    assert answer.headers["location"] == "/api/sessions/mine"
    assert face.client.get(answer.headers["location"]).json() == answer.json()
    assert (logdir / "plugins" / "profile" / "mine" / "worker-0.xplane.pb").read_bytes() == profile
    assert files_of(logdir, "mine") == ["worker-0.xplane.pb"]
    assert face.client.get("/api/sessions/mine/tools/memory_profile").status_code == 200


def uploaded_bytes(face):
    numbers = face.client.get("/metrics").text
    return float(re.search(r"(?m)^peakline_upload_bytes_total (.+)$", numbers)[1])


def test_an_upload_in_pieces_without_a_length(face, logdir, profile):
    def pieces():
        for start in range(0, len(profile), 10_000):
            yield profile[start : start + 10_000]

    before = uploaded_bytes(face)
    answer = face.client.post("/api/uploads", content=pieces(), headers=BINARY)
    assert answer.status_code == 201, answer.text
    session = answer.json()["session_id"]
    assert (logdir / "plugins" / "profile" / session / "upload.xplane.pb").read_bytes() == profile
    assert uploaded_bytes(face) == before + len(profile)


def test_other_formats_are_kept_under_their_own_suffix(face, logdir, root):
    graph = (root / "tests" / "data" / "graph_def" / "frozen.pb").read_bytes()
    answer = face.client.post(
        "/api/uploads", params={"session_id": "g"}, content=graph, headers=BINARY
    )
    result = answer.json()
    assert result["hosts"] == ["upload"]
    assert result["tools"] == ["graph", "graph_scopes", "headline", "op_stats"]
    assert result["bytes"] == len(graph)
    assert files_of(logdir, "g") == ["upload.profile"]


def test_a_stored_upload_is_told_even_when_nobody_has_time_to_look_at_it(
    face, profile, monkeypatch
):
    def busy(*_args):
        raise BusyError("busy")

    monkeypatch.setattr(face.analysis, "tools", busy)
    answer = face.client.post("/api/uploads?session_id=busy", content=profile, headers=BINARY)
    assert answer.status_code == 201
    result = answer.json()
    assert (result["session_id"], result["hosts"], result["tools"]) == ("busy", ["upload"], [])
    assert result["bytes"] == len(profile)
    assert answer.headers["peakline-notes"] == '["busy"]'


def test_a_session_that_is_there_stays(face, logdir, profile):
    url = "/api/uploads?session_id=one"
    assert face.client.post(url, content=profile, headers=BINARY).status_code == 201
    answer = face.client.post(url + "&host=other", content=profile, headers=BINARY)
    problem(answer, 409, "ALREADY_EXISTS")
    assert files_of(logdir, "one") == ["upload.xplane.pb"]


def refused_for_size(face):
    numbers = face.client.get("/metrics").text
    result = re.search(r'(?m)^peakline_refused_total\{reason="size"\} (.+)$', numbers)
    return float(result[1]) if result else 0


@each_row("with_length", [True, False])
def test_an_upload_that_is_too_large_leaves_nothing(strict, profile, with_length):
    face, logdir = strict
    before = refused_for_size(face)

    def pieces():
        for start in range(0, len(profile), 10_000):
            yield profile[start : start + 10_000]

    headers = {**BINARY, "Content-Length": str(len(profile))} if with_length else BINARY
    answer = face.client.post("/api/uploads", content=pieces(), headers=headers)
    assert "400000" in problem(answer, 413, "INVALID_ARGUMENT")
    assert list(logdir.rglob("*")) in ([], [logdir / "plugins", logdir / "plugins" / "profile"])
    assert refused_for_size(face) == before + 1


def test_a_gzip_file_that_expands_too_far_is_too_large(strict, profile):
    face, logdir = strict
    before = refused_for_size(face)
    packed = gzip.compress(profile)
    assert len(packed) < 400_000
    answer = face.client.post("/api/uploads", content=packed, headers=BINARY)
    assert "--max-unpacked" in problem(answer, 413, "INVALID_ARGUMENT")
    assert files_of(logdir) == []
    assert refused_for_size(face) == before + 1


def test_an_upload_that_ends_early_leaves_nothing(face, logdir, profile):
    head = (
        "POST /api/uploads?session_id=half HTTP/1.1\r\nHost: localhost\r\n"
        "X-Request-Id: ends-early\r\nContent-Type: application/octet-stream\r\n"
        f"Content-Length: {len(profile)}\r\n\r\n"
    )
    with socket.create_connection(("127.0.0.1", face.port)) as connection:
        connection.sendall(head.encode() + profile[:500_000])
        until(lambda: face.analysis.uploads.gate.running == 1)

    def codes():
        return [line["code"] for line in face.log_lines() if line["request_id"] == "ends-early"]

    until(codes)
    assert codes() == ["499"]
    assert not (logdir / "plugins" / "profile" / "half").exists()
    whole = face.client.post("/api/uploads?session_id=half", content=profile, headers=BINARY)
    assert whole.status_code == 201


def test_an_upload_that_drips_ends(tmp_path, profile):
    (tmp_path / "logs").mkdir()
    with serving(tmp_path, tmp_path / "logs", request_timeout_s=0.1) as face:
        head = (
            "POST /api/uploads HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
            f"Content-Type: application/octet-stream\r\nContent-Length: {len(profile)}\r\n\r\n"
        )
        status, answer = face.raw(head.encode() + profile[:1000])
        assert status == 504
        assert b"too slow" in answer
        assert files_of(tmp_path / "logs") == []


@each_row(
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
    problem(shared_face.client.post("/api/uploads", content=content, headers=BINARY), status, code)


@each_row(
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


def test_a_read_only_server_keeps_nothing(tmp_path, profile):
    (tmp_path / "logs").mkdir()
    with serving(tmp_path, tmp_path / "logs", read_only=True) as face:
        answer = face.client.post("/api/uploads", content=profile, headers=BINARY)
        problem(answer, 403, "PERMISSION_DENIED")
        capture = {"hosts": ["localhost"], "duration_ms": 10}
        problem(face.client.post("/api/captures", json=capture), 403, "PERMISSION_DENIED")
        assert list((tmp_path / "logs").iterdir()) == []
