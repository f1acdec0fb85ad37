"""What is tried again, how often, and what is not."""

import socket
import threading
from concurrent import futures
from types import SimpleNamespace

import grpc
import pytest
from tests.capture.peers import BUSY, answer_of, peer, profile_of, space
from tests.capture.requests import LONG_MS, good, request_for, session_directory
from tests.waiting import HANG_S

from peakline.capture import capture, client, host
from peakline.capture.stop import Stop
from peakline.errors import RemoteError

UNAVAILABLE = grpc.StatusCode.UNAVAILABLE


@pytest.mark.parametrize(
    ("code", "details", "attempts"),
    [
        (UNAVAILABLE, "starting", 3),
        (grpc.StatusCode.ALREADY_EXISTS, "A profiling session is already running.", 3),
        (grpc.StatusCode.UNKNOWN, "Stream removed", 3),
        (grpc.StatusCode.INTERNAL, BUSY, 3),
        (grpc.StatusCode.UNKNOWN, "something else", 1),
        (grpc.StatusCode.INTERNAL, "/logs; No such file or directory", 1),
        (grpc.StatusCode.UNIMPLEMENTED, "", 1),
        (grpc.StatusCode.PERMISSION_DENIED, "go away\nnow\x1b[31m", 1),
    ],
)
def test_what_is_tried_again(repository, code, details, attempts):
    with peer(lambda _, context, __: context.abort(code, details)) as worker:
        with pytest.raises(RemoteError) as raised:
            capture(request_for(worker.address), repository)
        assert len(worker.requests) == attempts
    assert str(raised.value).isprintable()
    assert not session_directory(repository).exists()


def test_unavailable_twice_then_success(repository):
    states = []
    recording = threading.Event()

    def behave(_, context, number):
        if number < 3:
            context.abort(UNAVAILABLE, "not yet")
        assert recording.wait(HANG_S)
        return profile_of()

    def progress(_host, state, detail):
        states.append((state, detail))
        if state == "recording":
            recording.set()

    with peer(behave) as worker:
        result = capture(request_for(worker.address), repository, progress=progress)
    (outcome,) = result.outcomes
    assert (outcome.state, outcome.attempts) == ("stored", 3)
    words = [state for state, _ in states]
    assert words.count("retrying") == 2
    assert ("retrying", "cannot be reached: not yet") in states
    assert words[0] == "connecting"
    assert words[-1] == "stored"


@pytest.fixture
def clock(monkeypatch):
    """The pauses between attempts: all that goes on the clock of the capture, and no real time."""
    pauses = []
    monkeypatch.setattr(host, "time", SimpleNamespace(monotonic=lambda: 1000 + sum(pauses)))
    monkeypatch.setattr(Stop, "wait", lambda _, seconds: pauses.append(seconds))
    monkeypatch.setattr(host, "_FIRST_PAUSE_S", 0.25)
    return pauses


def test_the_pauses_grow_and_take_of_the_time_of_the_first_attempt(repository, clock, monkeypatch):
    timeouts, call = [], client.profile

    def noting(*arguments, timeout_s, **more):
        timeouts.append(timeout_s)
        return call(*arguments, timeout_s=timeout_s, **more)

    monkeypatch.setattr(client, "profile", noting)
    with peer(lambda _, context, __: context.abort(UNAVAILABLE, "not yet")) as worker:
        with pytest.raises(RemoteError):
            capture(request_for(worker.address, attempts=9, timeout_ms=LONG_MS), repository)
        assert len(worker.requests) == 9
    assert clock == [0.25, 0.5, 1, 2, 4, 8, 8, 8]
    assert timeouts == [HANG_S - sum(clock[:attempt]) for attempt in range(9)]


def test_a_profiler_that_records_for_another_is_tried_when_that_may_have_ended(repository, clock):
    with peer(lambda _, context, __: context.abort(grpc.StatusCode.INTERNAL, BUSY)) as worker:
        request = request_for(worker.address, duration_ms=1500, timeout_ms=LONG_MS)
        with pytest.raises(RemoteError, match="another profiling session is active"):
            capture(request, repository)
        assert len(worker.requests) == 3
    assert clock == [1.5, 1.5]


def test_no_attempt_is_begun_that_has_no_time_to_record(repository, clock):
    with peer(lambda _, context, __: context.abort(UNAVAILABLE, "not yet")) as worker:
        request = request_for(
            worker.address, attempts=99, duration_ms=LONG_MS // 2, timeout_ms=LONG_MS
        )
        with pytest.raises(RemoteError, match="not yet"):
            capture(request, repository)
    # As long as there is the pause and half of the time after it.
    assert sum(clock) <= HANG_S / 2 < sum(clock) + 8


def test_a_refused_connection_is_tried_again(repository, monkeypatch):
    """The job may just be starting: the port opens between two attempts."""
    opened = threading.Event()

    def progress(_host, state, _detail):
        if state == "retrying":
            assert server.add_insecure_port(address)
            server.start()
            opened.set()

    monkeypatch.setattr(Stop, "wait", lambda *_: opened.wait(HANG_S))
    server = grpc.server(futures.ThreadPoolExecutor(1), options=[("grpc.so_reuseport", 1)])
    handler = grpc.unary_unary_rpc_method_handler(good)
    server.add_generic_rpc_handlers(
        [grpc.method_handlers_generic_handler("tensorflow.ProfilerService", {"Profile": handler})]
    )
    with socket.socket() as reserved:
        # Bound and not listening it keeps the port for us, and refuses whoever connects.
        reserved.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        reserved.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{reserved.getsockname()[1]}"
        result = capture(request_for(address), repository, progress=progress)
        server.stop(None).wait(HANG_S)
    assert result.outcomes[0].state == "stored"
    assert result.outcomes[0].attempts == 2


@pytest.mark.parametrize("empty", [{"empty_trace": True}, {"xspace": space(0)}])
def test_an_empty_trace_is_told_and_not_stored(repository, empty):
    with peer(lambda *_: answer_of(**empty)) as worker:
        result = capture(request_for(worker.address, attempts=2), repository)
        assert len(worker.requests) == 2
    assert result.empty_trace
    assert result.outcomes[0].state == "empty"
    assert not session_directory(repository).exists()
    # The same id may be used when there was nothing.
    with peer(good) as worker:
        assert capture(request_for(worker.address), repository).outcomes[0].state == "stored"


def test_empty_then_something(repository):
    with peer(lambda _, __, n: answer_of(empty_trace=True) if n == 1 else profile_of()) as worker:
        result = capture(request_for(worker.address), repository)
    assert (result.outcomes[0].state, result.outcomes[0].attempts) == ("stored", 2)
