"""What is tried again, how often, and what is not."""

import threading
import time
from concurrent import futures
from contextlib import ExitStack

import grpc
import pytest
from tests.capture.peers import BUSY, answer_of, peer, profile_of, space
from tests.capture.requests import good, request_for, session_directory
from tests.waiting import HANG_S

from peakline.capture import capture
from peakline.errors import RemoteError


@pytest.mark.parametrize(
    ("code", "details", "attempts"),
    [
        (grpc.StatusCode.UNAVAILABLE, "starting", 3),
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
            context.abort(grpc.StatusCode.UNAVAILABLE, "not yet")
        assert recording.wait(HANG_S)
        return profile_of()

    def progress(_host, state, detail):
        states.append((state, detail))
        if state == "recording":
            recording.set()

    with peer(behave) as worker:
        started = time.monotonic()
        result = capture(request_for(worker.address), repository, progress=progress)
        seconds = time.monotonic() - started
    (outcome,) = result.outcomes
    assert (outcome.state, outcome.attempts) == ("stored", 3)
    words = [state for state, _ in states]
    assert words.count("retrying") == 2
    assert ("retrying", "cannot be reached: not yet") in states
    assert words[0] == "connecting"
    assert words[-1] == "stored"
    # The pause grows, and retries have the deadline that the first attempt had.
    assert seconds > 0.7
    assert worker.seconds_left[2] < worker.seconds_left[0] - 0.5


def test_a_refused_connection_is_tried_again(repository):
    """The job may just be starting: the port opens between two attempts."""
    with peer(good) as worker:
        port = worker.address
    opened = threading.Event()
    servers = ExitStack()

    def progress(_host, state, _detail):
        if state == "retrying" and not opened.is_set():
            opened.set()
            server = grpc.server(futures.ThreadPoolExecutor(1))
            handler = grpc.unary_unary_rpc_method_handler(lambda *_: profile_of())
            server.add_generic_rpc_handlers(
                [
                    grpc.method_handlers_generic_handler(
                        "tensorflow.ProfilerService", {"Profile": handler}
                    )
                ]
            )
            server.add_insecure_port(port)
            server.start()
            servers.callback(lambda: server.stop(None).wait(HANG_S))

    with servers:
        result = capture(request_for(port), repository, progress=progress)
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
