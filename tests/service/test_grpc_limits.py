"""Too many calls, calls that take too long, calls that nobody waits for, and the server's end."""

import threading
from concurrent.futures import ThreadPoolExecutor

import grpc
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection_pb2, reflection_pb2_grpc
from tests.engine.held_tool import HeldTool
from tests.service.conftest import SESSIONS
from tests.service.grpc_client import Client
from tests.service.server_here import listens
from tests.service.test_grpc_analysis import failure
from tests.waiting import HANG_S, growing, until

import peakline
from peakline.deadline import Deadline
from peakline.service import grpc_answering

SLOW = {"session_id": SESSIONS["jax_captured"], "tool_name": "trace_viewer"}
QUICK = {"session_id": SESSIONS["tf2_cnn"], "tool_name": "memory_profile"}


@pytest.fixture
def held(monkeypatch):
    """The analysis of `SLOW` goes on until it is let go, or nobody waits for it."""
    tool = HeldTool(monkeypatch, SLOW["tool_name"])
    yield tool
    tool.let_go()


def start_slow(served, **options):
    """A call that works until it is let go, once it is at work."""
    gate = served.parts.analysis.gate
    before = gate.running
    call = served.client.start("GetSessionToolData", **SLOW, **options)
    until(lambda: gate.running > before)
    return call


@pytest.mark.usefixtures("held")
def test_beyond_the_queue_calls_are_refused_at_once(serve, sample_logdir):
    served = serve(sample_logdir, max_concurrent=1, max_queued=1)
    gate = served.parts.analysis.gate
    first = start_slow(served)
    second = served.client.start("GetSessionToolData", **SLOW)
    until(lambda: gate.waiting == 1)
    status, details = failure(served.client.call, "GetSessionToolData", **QUICK)
    assert (status, "try again later" in details) == ("RESOURCE_EXHAUSTED", True)
    # Whoever watches over the server still gets an answer.
    channel = served.client.channel
    check = health_pb2_grpc.HealthStub(channel).Check
    assert check(health_pb2.HealthCheckRequest(), timeout=HANG_S).status == 1
    ask = reflection_pb2_grpc.ServerReflectionStub(channel).ServerReflectionInfo
    assert list(
        ask(iter([reflection_pb2.ServerReflectionRequest(list_services="")]), timeout=HANG_S)
    )
    second.cancel()
    until(lambda: gate.waiting == 0)
    first.cancel()
    until(lambda: gate.running == 0)
    assert served.client.call("GetSessionToolData", **QUICK).output
    assert '_total{reason="busy"} 1.0' in served.parts.metrics.render().decode()


@pytest.mark.usefixtures("held")
def test_a_call_that_waited_is_answered(serve, sample_logdir):
    served = serve(sample_logdir, max_concurrent=1, max_queued=1)
    first = start_slow(served)
    second = served.client.start("GetSessionToolData", **QUICK)
    until(lambda: served.parts.analysis.gate.waiting == 1)
    first.cancel()
    assert second.result(HANG_S).output


def test_the_callers_deadline_ends_a_long_analysis(serve, sample_logdir, held):
    served = serve(sample_logdir)
    for timeout in growing():
        call = served.client.start("GetSessionToolData", **SLOW, timeout=timeout)
        assert call.exception(HANG_S).code() is grpc.StatusCode.DEADLINE_EXCEEDED
        until(lambda: served.parts.analysis.gate.running == 0)
        if held.held:
            break
    until(served.parts.log_lines)
    assert served.parts.log_lines()[-1]["code"] in ("DEADLINE_EXCEEDED", "CANCELLED")


def test_the_servers_own_limit_ends_it_too(serve, sample_logdir, held):
    for limit in growing():
        served = serve(sample_logdir, request_timeout_s=limit)
        status, details = failure(served.client.call, "GetSessionToolData", **SLOW)
        assert (status, "time for this answer is over" in details) == ("DEADLINE_EXCEEDED", True)
        if held.held:
            break


class HeldAtLook(Deadline):
    """Holds the work under it at the ``look``-th look, until it is over."""

    def __init__(self, look):
        super().__init__(HANG_S)
        self.look, self.held = look, threading.Event()

    def check(self):
        self.look -= 1
        if self.look == 0:
            self.held.set()
            until(self.is_over)
        super().check()


@pytest.mark.parametrize("tool", ["trace_viewer", "memory_profile"])
def test_a_cancelled_call_frees_its_place_and_leaves_the_profile_whole(
    serve, sample_logdir, monkeypatch, tool
):
    """Wherever it is when it is cancelled: opening, decoding, making the answer."""
    question = {"session_id": SESSIONS["tf2_cnn"], "tool_name": tool}
    with peakline.open(sample_logdir, session=question["session_id"]) as profile:
        right = profile.tool(tool).content
    served = serve(sample_logdir, max_concurrent=1, max_queued=0)
    answered = []
    for look in (3, 12, 30, 60, 120, 10_000):
        deadline = HeldAtLook(look)
        monkeypatch.setattr(grpc_answering, "Deadline", lambda _, at_look=deadline: at_look)
        call = served.client.start("GetSessionToolData", **question)
        until(lambda: deadline.held.is_set() or call.done())  # noqa: B023 (waited for here)
        answered.append(call.done())
        call.cancel()
        until(lambda: served.parts.analysis.gate.running == 0)
        if answered[-1]:
            break
    assert 3 <= len(answered) < 6
    assert call.result().output == right


def test_a_call_whose_time_is_over_in_the_queue_is_not_begun(serve, sample_logdir, held):
    served = serve(sample_logdir, max_concurrent=1, max_queued=4)
    gate = served.parts.analysis.gate
    first = start_slow(served)
    until(lambda: held.held)
    for timeout in growing():
        call = served.client.start("GetSessionToolData", timeout=timeout, **SLOW)
        until(lambda: gate.waiting == 1 or call.done())  # noqa: B023 (waited for here)
        has_waited = gate.waiting == 1
        assert call.exception(HANG_S).code() is grpc.StatusCode.DEADLINE_EXCEEDED
        until(lambda: gate.waiting == 0)
        if has_waited:
            break
    assert gate.running == 1
    assert len(held.held) == 1
    first.cancel()


@pytest.mark.parametrize("clients", [12, pytest.param(48, marks=pytest.mark.soak)])
def test_many_clients_get_the_right_answers(serve, sample_logdir, clients):
    served = serve(sample_logdir)
    questions = [
        (SESSIONS["tf2_cnn"], "vm", "memory_profile"),
        (SESSIONS["tf2_cnn"], "vm", "trace_viewer"),
        (SESSIONS["jax_captured"], "localhost_9912", "trace_viewer"),
        (SESSIONS["tf2_multihost"], "localhost_47507", "memory_profile"),
        (SESSIONS["tf2_multihost"], "localhost_56665", "memory_profile"),
    ]
    expected = []
    for session, host, tool in questions:
        with peakline.open(sample_logdir, session=session, host=host) as profile:
            expected.append(profile.tool(tool).content)
    together = threading.Barrier(clients)

    def ask(number):
        client = Client(served.address)
        try:
            together.wait(HANG_S)
            for step in range(len(questions)):
                which = (number + step) % len(questions)
                session, host, tool = questions[which]
                answer = client.call(
                    "GetSessionToolData", session_id=session, host_name=host, tool_name=tool
                )
                assert answer.output == expected[which]
        finally:
            client.close()

    with ThreadPoolExecutor(clients) as pool:
        list(pool.map(ask, range(clients)))
    stats = served.parts.engine.cache.stats()
    assert stats.misses == 4  # each file was opened once


def test_a_server_that_ends_lets_calls_finish(serve, sample_logdir, held):
    served = serve(sample_logdir)
    call = start_slow(served)
    ending = threading.Thread(target=served.server.stop, args=(HANG_S,))
    ending.start()
    try:
        # Not by a call: gRPC lets one that comes at this very moment wait until the grace is over.
        until(lambda: not listens(served.server.port))
        assert not call.done()
        held.let_go()
        assert call.result(HANG_S).output
    finally:
        ending.join(HANG_S)
    assert not ending.is_alive()
    assert failure(served.client.call, "EnumSessions", timeout=HANG_S)[0] == "UNAVAILABLE"


@pytest.mark.usefixtures("held")
def test_without_grace_they_are_ended(serve, sample_logdir):
    served = serve(sample_logdir)
    call = start_slow(served)
    served.server.stop(0)
    with pytest.raises(grpc.RpcError):
        call.result(HANG_S)
    until(lambda: served.parts.analysis.gate.running == 0)
