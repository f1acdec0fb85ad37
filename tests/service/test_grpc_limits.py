"""Too many calls, calls that take too long, calls that nobody waits for, and the server's end."""

import threading
import time
from concurrent.futures import ThreadPoolExecutor

import grpc
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection_pb2, reflection_pb2_grpc
from tests.service.conftest import SESSIONS
from tests.service.grpc_client import Client
from tests.service.test_grpc_analysis import failure
from tests.waiting import HANG_S, until

import peakline

SLOW = {"session_id": "large", "tool_name": "trace_viewer"}
QUICK = {"session_id": "small", "tool_name": "memory_profile"}


def start_slow(served, **options):
    """A call that works for half a minute, once it is at work."""
    gate = served.parts.analysis.gate
    before = gate.running
    call = served.client.start("GetSessionToolData", **SLOW, **options)
    until(lambda: gate.running > before)
    return call


def test_beyond_the_queue_calls_are_refused_at_once(serve, large_logdir):
    served = serve(large_logdir, max_concurrent=1, max_queued=1)
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


def test_a_call_that_waited_is_answered(serve, large_logdir):
    served = serve(large_logdir, max_concurrent=1, max_queued=1)
    first = start_slow(served)
    second = served.client.start("GetSessionToolData", **QUICK)
    until(lambda: served.parts.analysis.gate.waiting == 1)
    first.cancel()
    assert second.result(HANG_S).output


def test_the_callers_deadline_ends_a_long_analysis(serve, large_logdir):
    served = serve(large_logdir)
    # What is imported and opened once shall not use up the time of the call below.
    served.client.call("GetSessionToolData", **QUICK)
    call = start_slow(served, timeout=2)
    with pytest.raises(grpc.RpcError) as caught:
        call.result(HANG_S)
    assert caught.value.code() is grpc.StatusCode.DEADLINE_EXCEEDED
    began = time.monotonic()
    until(lambda: served.parts.analysis.gate.running == 0)
    # The whole would go on for half a minute.
    assert time.monotonic() - began < 20
    until(lambda: len(served.parts.log_lines()) == 2)
    line = served.parts.log_lines()[1]
    assert line["code"] in ("DEADLINE_EXCEEDED", "CANCELLED")


def test_the_servers_own_limit_ends_it_too(serve, large_logdir):
    served = serve(large_logdir, request_timeout_s=0.5)
    status, details = failure(served.client.call, "GetSessionToolData", **SLOW)
    assert (status, "time for this answer is over" in details) == ("DEADLINE_EXCEEDED", True)


def test_a_cancelled_call_frees_its_place_and_leaves_the_profile_whole(serve, large_logdir):
    served = serve(large_logdir, max_concurrent=1, max_queued=0)
    for _ in range(3):
        call = start_slow(served)
        time.sleep(0.3)
        call.cancel()
        until(lambda: served.parts.analysis.gate.running == 0)
    answer = served.client.call(
        "GetSessionToolData", session_id="large", tool_name="memory_profile", timeout=HANG_S
    )
    with peakline.open(large_logdir, session="large") as profile:
        assert answer.output == profile.tool("memory_profile").content


def test_a_call_whose_time_is_over_in_the_queue_is_not_begun(serve, large_logdir):
    served = serve(large_logdir, max_concurrent=1, max_queued=4)
    gate = served.parts.analysis.gate
    first = start_slow(served)
    assert failure(served.client.call, "GetSessionToolData", timeout=0.5, **QUICK)[0] == (
        "DEADLINE_EXCEEDED"
    )
    until(lambda: gate.waiting == 0)
    assert gate.running == 1
    first.cancel()


def test_many_clients_get_the_right_answers(serve, sample_logdir):
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

    def ask(number):
        client = Client(served.address)
        try:
            for step in range(len(questions)):
                which = (number + step) % len(questions)
                session, host, tool = questions[which]
                answer = client.call(
                    "GetSessionToolData", session_id=session, host_name=host, tool_name=tool
                )
                assert answer.output == expected[which]
        finally:
            client.close()

    with ThreadPoolExecutor(48) as pool:
        list(pool.map(ask, range(48)))
    stats = served.parts.engine.cache.stats()
    assert stats.misses == 4  # each file was opened once


def test_a_server_that_ends_lets_calls_finish(serve, large_logdir):
    served = serve(large_logdir)
    question = {"session_id": "large", "tool_name": "memory_profile"}
    call = served.client.start("GetSessionToolData", **question)
    until(lambda: served.parts.analysis.gate.running == 1)
    ending = threading.Thread(target=served.server.stop, args=(HANG_S,))
    ending.start()
    try:
        assert call.result(HANG_S).output
    finally:
        ending.join(HANG_S)
    assert not ending.is_alive()
    assert failure(served.client.call, "EnumSessions", timeout=HANG_S)[0] == "UNAVAILABLE"


def test_without_grace_they_are_ended(serve, large_logdir):
    served = serve(large_logdir)
    call = start_slow(served)
    served.server.stop(0)
    with pytest.raises(grpc.RpcError):
        call.result(HANG_S)
    until(lambda: served.parts.analysis.gate.running == 0)
