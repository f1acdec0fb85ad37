"""Work that requests share, and large answers."""

import socket
import threading
import time
from contextlib import ExitStack, closing

import httpx
import pytest
from tests.each_row import each_row
from tests.service.bad_peers import big
from tests.service.conftest import SESSIONS
from tests.service.grpc_client import Client
from tests.service.http_client import problem, serving
from tests.service.process_numbers import costs_of, files_under, tell
from tests.service.server_process import running_server
from tests.waiting import HANG_S, growing, until

from peakline.deadline import check_deadline, current_deadline
from peakline.errors import BusyError, DamagedError, DeadlineError, ExistsError, RemoteError

CNN = SESSIONS["tf2_cnn"]
SLOW = "select count(*) from range(1000000) a, range(1000000) b where (a.range * b.range) % 7 = 3"


def test_a_slow_question_ends_at_its_time(sample_logdir, tmp_path):
    for limit in growing():
        with serving(tmp_path, sample_logdir, request_timeout_s=limit) as face:
            begun = noting_queries(face)
            answer = face.client.post(f"/api/sessions/{CNN}/sql", json={"query": SLOW})
            problem(answer, 504, "DEADLINE_EXCEEDED")
            # It would go on for hours.
            until(lambda: face.analysis.gate.running == 0)
        if begun:
            break


def noting_queries(face):
    """What the database is asked from now on."""
    begun, ask = [], face.engine.remote_sql

    def sql(session, question, **more):
        begun.append(question)
        return ask(session, question, **more)

    face.engine.remote_sql = sql
    return begun


@pytest.mark.parametrize("tool", [False, True])
def test_a_client_that_hangs_up_ends_its_question(shared_face, monkeypatch, tool):
    face = shared_face
    if tool:
        started = threading.Event()

        def slow(*_args, **_kwargs):
            started.set()
            while True:
                check_deadline()
                time.sleep(0.005)

        monkeypatch.setattr(face.analysis, "tool_data", slow)
        request = f"GET /api/sessions/{CNN}/tools/graph HTTP/1.1\r\nHost: localhost\r\n"
        body = ""
    else:
        body = f'{{"query": "{SLOW}"}}'
        request = (
            f"POST /api/sessions/{CNN}/sql HTTP/1.1\r\nHost: localhost\r\n"
            f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n"
        )
    with socket.create_connection(("127.0.0.1", face.port)) as connection:
        connection.sendall(f"{request}X-Request-Id: hangs-up-{tool}\r\n\r\n{body}".encode())
        if tool:
            assert started.wait(HANG_S)
        else:
            until(lambda: face.analysis.gate.running == 1)

    def codes():
        return [line["code"] for line in face.log_lines() if f"-{tool}" in line["request_id"]]

    until(codes)
    assert codes() == ["499"]
    until(lambda: face.analysis.gate.running == 0)
    assert face.client.get("/healthz").status_code == 200


def test_every_question_has_a_deadline(sample_logdir, tmp_path, monkeypatch):
    with serving(tmp_path, sample_logdir, request_timeout_s=1000.0) as face:
        seen = []

        def look(*_args):
            seen.append(current_deadline().remaining())
            return []

        monkeypatch.setattr(face.analysis, "tables", look)
        assert face.client.get(f"/api/sessions/{CNN}/tables").json() == []
        assert 1000 - HANG_S < seen[0] <= 1000


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
            until(lambda: face.analysis.gate.waiting == 1)
            answer = face.client.post(f"/api/sessions/{CNN}/sql", json={"query": "select 1"})
            problem(answer, 429, "RESOURCE_EXHAUSTED")
            assert int(answer.headers["retry-after"]) >= 1
            assert face.client.get("/healthz").status_code == 200
        waiting.join(HANG_S)
        assert codes == [200]


@each_row(
    ("error", "status", "code"),
    [
        (DeadlineError("late"), 504, "DEADLINE_EXCEEDED"),
        (RemoteError("gone"), 503, "UNAVAILABLE"),
        (DamagedError("broken", 7), 422, "DATA_LOSS"),
        (BusyError("busy"), 429, "RESOURCE_EXHAUSTED"),
        (ExistsError("there"), 409, "ALREADY_EXISTS"),
    ],
)
def test_errors_have_their_status(shared_face, monkeypatch, error, status, code):
    def fail(*_args):
        raise error

    monkeypatch.setattr(shared_face.analysis, "tables", fail)
    detail = problem(shared_face.client.get(f"/api/sessions/{CNN}/tables"), status, code)
    assert detail == str(error)


MB = 10**6
MOST = 48 * MB
"""What a host may take while its answer comes: its blocks, the places of its planes, a thread."""


@pytest.mark.parametrize(
    ("hosts", "size"),
    [(1, 40 * MB), pytest.param(1, 300 * MB, marks=pytest.mark.soak),
     pytest.param(4, 300 * MB, marks=pytest.mark.soak)],
)  # fmt: skip
def test_an_answer_goes_to_the_disk_as_it_comes(empty, hosts, size):
    with ExitStack() as stack:
        names = {"small": stack.enter_context(big(MB))}
        names |= {f"w{number}": stack.enter_context(big(size)) for number in range(hosts)}
        workers = [word for one in names.items() for word in ("--worker", "=".join(one))]
        server = stack.enter_context(running_server(empty, "--access-log", "off", *workers))
        client = stack.enter_context(closing(Client(f"127.0.0.1:{server.grpc_port}")))
        request = {"duration_ms": 1}
        client.call("NewSession", session_id="small", hosts=["small"], request=request)
        before = costs_of(server).peak
        large = [name for name in names if name != "small"]
        client.call("NewSession", session_id="large", hosts=large, request=request)
        grown = costs_of(server).peak - before
        tell(f"{hosts} x {size / MB:.0f} MB: peak {grown / MB:.0f} MB above {before / MB:.0f} MB")
        assert grown < MOST * hosts
        assert server.end() == 0
    stored = [empty / name for name in files_under(empty) if "large" in name]
    assert [size < file.stat().st_size < size + 1000 for file in stored] == [True] * hosts
    for file in stored:
        file.unlink()
