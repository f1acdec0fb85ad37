"""What runs in threads: deadlines, clients that hang up, the queue; uploads and captures."""

from __future__ import annotations

import gzip
import json
import socket
import threading
import time

import httpx
import pytest
from tests.capture.peers import answer_of, peer, profile_of
from tests.service.conftest import SESSIONS
from tests.service.http_client import BINARY, problem, serving

from peakline.deadline import check_deadline, current_deadline
from peakline.errors import BusyError, DamagedError, DeadlineError, ExistsError, RemoteError

CNN = SESSIONS["tf2_cnn"]
HANG_S = 60
SLOW = "select count(*) from range(1000000) a, range(1000000) b where (a.range * b.range) % 7 = 3"


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


def wait_until(is_true):
    end = time.monotonic() + HANG_S
    while not is_true():
        assert time.monotonic() < end
        time.sleep(0.01)


# -- deadlines and clients that go away ----------------------------------------------------------


def test_a_slow_question_ends_at_its_time(sample_logdir, tmp_path):
    with serving(tmp_path, sample_logdir, request_timeout_s=1.0) as face:
        began = time.monotonic()
        answer = face.client.post(f"/api/sessions/{CNN}/sql", json={"query": SLOW})
        problem(answer, 504, "DEADLINE_EXCEEDED")
        assert time.monotonic() - began < HANG_S / 2
        assert face.analysis.gate.running == 0


@pytest.mark.parametrize("tool", [False, True])
def test_a_client_that_hangs_up_ends_its_question(sample_logdir, tmp_path, monkeypatch, tool):
    with serving(tmp_path, sample_logdir) as face:
        if tool:
            started = threading.Event()

            def slow(*_args, **_kwargs):
                started.set()
                while True:
                    check_deadline()
                    time.sleep(0.005)

            monkeypatch.setattr(face.analysis, "tool_data", slow)
            request = f"GET /api/sessions/{CNN}/tools/graph HTTP/1.1\r\nHost: localhost\r\n\r\n"
        else:
            body = f'{{"query": "{SLOW}"}}'
            request = (
                f"POST /api/sessions/{CNN}/sql HTTP/1.1\r\nHost: localhost\r\n"
                f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n{body}"
            )
        with socket.create_connection(("127.0.0.1", face.port)) as connection:
            connection.sendall(request.encode())
            if tool:
                assert started.wait(HANG_S)
            else:
                wait_until(lambda: face.analysis.gate.running == 1)
        wait_until(lambda: any(line["code"] == "499" for line in face.log_lines()))
        assert face.analysis.gate.running == 0
        assert face.client.get("/healthz").status_code == 200


def test_every_question_has_a_deadline(sample_logdir, tmp_path, monkeypatch):
    with serving(tmp_path, sample_logdir, request_timeout_s=50.0) as face:
        seen = []

        def look(*_args):
            seen.append(current_deadline().remaining())
            return []

        monkeypatch.setattr(face.analysis, "tables", look)
        assert face.client.get(f"/api/sessions/{CNN}/tables").json() == []
        assert 40 < seen[0] <= 50


def test_too_many_questions_are_told_to_come_back(sample_logdir, tmp_path):
    with serving(tmp_path, sample_logdir, max_concurrent=1, max_queued=1) as face:
        codes: list[int] = []

        def ask(query: str) -> None:
            with httpx.Client(base_url=face.url, timeout=HANG_S) as client:
                answer = client.post(f"/api/sessions/{CNN}/sql", json={"query": query})
            codes.append(answer.status_code)

        with face.analysis.gate.enter():
            waiting = threading.Thread(target=ask, args=("select 1",))
            waiting.start()
            wait_until(lambda: face.analysis.gate.waiting == 1)
            answer = face.client.post(f"/api/sessions/{CNN}/sql", json={"query": "select 1"})
            problem(answer, 429, "RESOURCE_EXHAUSTED")
            assert int(answer.headers["retry-after"]) >= 1
            assert face.client.get("/healthz").status_code == 200
        waiting.join(HANG_S)
        assert codes == [200]


@pytest.mark.parametrize(
    ("error", "status", "code"),
    [
        (DeadlineError("late"), 504, "DEADLINE_EXCEEDED"),
        (RemoteError("gone"), 503, "UNAVAILABLE"),
        (DamagedError("broken", 7), 422, "DATA_LOSS"),
        (BusyError("busy"), 429, "RESOURCE_EXHAUSTED"),
        (ExistsError("there"), 409, "ALREADY_EXISTS"),
    ],
)
def test_errors_have_their_status(sample_logdir, tmp_path, monkeypatch, error, status, code):
    def fail(*_args):
        raise error

    with serving(tmp_path, sample_logdir) as face:
        monkeypatch.setattr(face.analysis, "tables", fail)
        detail = problem(face.client.get(f"/api/sessions/{CNN}/tables"), status, code)
        assert detail == str(error)


# -- uploads -------------------------------------------------------------------------------------


def test_an_upload_becomes_a_session(logdir, tmp_path, profile):
    with serving(tmp_path, logdir) as face:
        answer = face.client.post(
            "/api/uploads",
            params={"session_id": "mine", "file_name": "C:\\logs\\worker-0.xplane.pb"},
            content=profile,
            headers=BINARY,
        )
        assert answer.status_code == 201
        assert answer.json() == {
            "session_id": "mine",
            "hosts": ["worker-0"],
            "tools": ["memory_profile", "trace_viewer"],
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
        assert answer.json() == {
            "session_id": "g",
            "hosts": ["upload"],
            "tools": ["graph", "op_stats"],
        }
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
        assert answer.json() == {"session_id": "one", "hosts": ["upload"], "tools": []}
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
            wait_until(lambda: face.analysis.uploads.gate.running == 1)
        wait_until(lambda: any(line["code"] == "499" for line in face.log_lines()))
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
def test_what_is_no_profile_is_not_kept(logdir, tmp_path, content, status, code):
    with serving(tmp_path, logdir) as face:
        answer = face.client.post("/api/uploads", content=content, headers=BINARY)
        problem(answer, status, code)
        assert not list((logdir / "plugins" / "profile").iterdir())


@pytest.mark.parametrize(
    "kind",
    ["", "text/plain", "multipart/form-data; boundary=x", "application/x-www-form-urlencoded"],
)
def test_forms_are_no_uploads(logdir, tmp_path, profile, kind):
    headers = {"Content-Type": kind} if kind else {}
    with serving(tmp_path, logdir) as face:
        answer = face.client.post("/api/uploads", content=profile, headers=headers)
        assert "octet-stream" in problem(answer, 415, "INVALID_ARGUMENT")
        packed = {**BINARY, "Content-Encoding": "gzip"}
        answer = face.client.post("/api/uploads", content=profile, headers=packed)
        problem(answer, 415, "INVALID_ARGUMENT")
        assert files_of(logdir) == []


def test_a_read_only_server_keeps_nothing(logdir, tmp_path, profile):
    with serving(tmp_path, logdir, read_only=True) as face:
        answer = face.client.post("/api/uploads", content=profile, headers=BINARY)
        problem(answer, 403, "PERMISSION_DENIED")
        capture = {"hosts": ["localhost"], "duration_ms": 10}
        problem(face.client.post("/api/captures", json=capture), 403, "PERMISSION_DENIED")
        assert files_of(logdir) == []


# -- captures ------------------------------------------------------------------------------------


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
def test_captures_that_are_none(logdir, tmp_path, body):
    with serving(tmp_path, logdir) as face:
        problem(face.client.post("/api/captures", json=body), 400, "INVALID_ARGUMENT")


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
