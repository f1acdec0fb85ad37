"""Captures that are stopped, tried again and stored."""

import signal
import socket
import sys
import threading
import time
from concurrent import futures
from contextlib import ExitStack
from pathlib import Path
from types import SimpleNamespace

import grpc
import pytest
from tests.capture.peers import (
    BUSY,
    answer_of,
    peer,
    profile_of,
    sample_profile,
    space,
    waiting_peer,
)
from tests.capture.requests import (
    ID,
    LONG_MS,
    NOWHERE,
    files_of,
    good,
    request_for,
    session_directory,
)
from tests.waiting import HANG_S, EndedDeadline, growing, until

import peakline
from peakline.capture import (
    CaptureRequest,
    Target,
    WorkerLocks,
    capture,
    capture_deadline_s,
    client,
    default_options,
    host,
    profile_options,
    terminate,
)
from peakline.capture.call import Call
from peakline.capture.stop import Stop
from peakline.deadline import Deadline, within
from peakline.errors import CancelledError, DeadlineError, ExistsError, RemoteError, UsageError
from peakline.repository import Repository
from peakline.schema import XSpace


def test_a_hang_ends_with_the_timeout(repository):
    server, _, ended = waiting_peer()
    with server as hung:
        for seconds in growing():
            with pytest.raises(RemoteError, match="no answer within"):
                capture(request_for(hung.address, timeout_ms=round(1000 * seconds)), repository)
            if hung.requests:
                break
        assert ended.wait(HANG_S)
    assert not session_directory(repository).exists()


def test_cancelling_frees_the_profiler(repository):
    server, begun, ended = waiting_peer()
    deadline = Deadline()

    def cancel():
        begun.wait(HANG_S)
        deadline.cancel()

    with server as worker, within(deadline):
        thread = threading.Thread(target=cancel)
        thread.start()
        with pytest.raises(CancelledError):
            capture(request_for(worker.address), repository)
        thread.join()
        assert ended.wait(HANG_S)
    assert not session_directory(repository).exists()


def test_the_callers_deadline_ends_the_calls(repository):
    server, begun, ended = waiting_peer()
    deadline = EndedDeadline()

    def end():
        begun.wait(HANG_S)
        deadline.end()

    thread = threading.Thread(target=end)
    thread.start()
    with server as worker, within(deadline):
        with pytest.raises(DeadlineError):
            capture(request_for(worker.address), repository)
        assert ended.wait(HANG_S)
    thread.join()
    assert not session_directory(repository).exists()


def test_what_is_there_by_the_callers_deadline_is_kept(repository):
    server, begun, ended = waiting_peer()
    deadline = EndedDeadline()

    def progress(_host, state, _detail):
        if state == "stored":
            assert begun.wait(HANG_S)
            deadline.end()

    with server as slow, peer(good) as worker, within(deadline):
        request = request_for(slow.address, worker.address, names=["s", "w"])
        result = capture(request, repository, progress=progress)
        assert ended.wait(HANG_S)
    assert [outcome.state for outcome in result.outcomes] == ["failed", "stored"]
    assert "no answer within" in result.outcomes[0].error


def test_a_keyboard_interrupt_while_waiting(repository):
    server, begun, ended = waiting_peer()

    def interrupt(_host, state, _detail):
        if state == "recording":
            begun.wait(HANG_S)
            raise KeyboardInterrupt

    with server as worker:
        with pytest.raises(KeyboardInterrupt):
            capture(request_for(worker.address), repository, progress=interrupt)
        assert ended.wait(HANG_S)
    assert not session_directory(repository).exists()
    assert not [t for t in threading.enumerate() if t.name.startswith("capture ")]


def test_a_keyboard_interrupt_that_wakes_nobody(repository):
    """The system may give the signal to any thread: it does not end the wait of the main thread."""
    server, begun, ended = waiting_peer()

    def interrupt():
        begun.wait(HANG_S)
        main = threading.main_thread().ident
        until(lambda: sys._current_frames()[main].f_code.co_name == "wait_for", "it waits again")
        signal.pthread_kill(threading.get_ident(), signal.SIGINT)

    with server as worker:
        thread = threading.Thread(target=interrupt)
        thread.start()
        with pytest.raises(KeyboardInterrupt):
            capture(request_for(worker.address, timeout_ms=LONG_MS), repository)
        thread.join()
        assert ended.wait(HANG_S)
    assert not session_directory(repository).exists()


def test_captures_of_one_profiler_wait_for_each_other(tmp_path):
    running = threading.Lock()
    states = []

    def behave(_, context, number):
        if not running.acquire(blocking=False):
            context.abort(grpc.StatusCode.INTERNAL, BUSY)
        if number == 1:
            until(lambda: states.count("waiting") == 2, "the others wait")
        running.release()
        return profile_of()

    with peer(behave) as worker:

        def run(number):
            capture(
                request_for(
                    worker.address, session_id=f"s{number}", attempts=1, timeout_ms=LONG_MS
                ),
                Repository(tmp_path),
                progress=lambda _, state, __: states.append(state),
            )

        threads = [threading.Thread(target=run, args=(number,)) for number in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(HANG_S)
    assert len(Repository(tmp_path).sessions()) == 3
    assert states.count("stored") == 3


def test_locks_time_out_and_are_freed():
    locks = WorkerLocks()
    with (
        locks.hold("a:1", 1),
        pytest.raises(RemoteError, match="still running"),
        locks.hold("A:1", 0.1),
    ):
        pass
    assert not locks.is_held("a:1")
    with locks.hold("a:1", 1), locks.hold("a:2", 1):
        assert locks.is_held("a:1")


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


@pytest.mark.parametrize(
    "hidden",
    [
        "169.254.169.254",
        "fe80::1%eth0",
        "::ffff:169.254.169.254",
        "fd00:ec2::254",
        "100.100.100.200",
    ],
)
def test_a_name_that_moves_leads_to_no_metadata(repository, monkeypatch, hidden):
    answers, reached = ["127.0.0.1", hidden], []

    def look_up(host, port, **_):
        assert host == "trainer.example"
        family = socket.AF_INET6 if ":" in answers[0] else socket.AF_INET
        return [(family, socket.SOCK_STREAM, 0, "", (answers.pop(0), int(port)))]

    def connect(call, connection, place):
        reached.append(place[0])
        return _connect(call, connection, place) if place[0] == "127.0.0.1" else "reached"

    _connect = Call._connect
    monkeypatch.setattr(Call, "_connect", connect)
    monkeypatch.setattr(socket, "getaddrinfo", look_up)
    with peer(lambda _, context, __: context.abort(UNAVAILABLE, "")) as worker:
        port = worker.address.rpartition(":")[2]
        with pytest.raises(RemoteError, match="link-local or metadata"):
            capture(request_for(f"trainer.example:{port}"), repository)
    # Each attempt looks the name up once, and the second one connects nowhere.
    assert (answers, reached) == ([], ["127.0.0.1"])


def test_an_address_that_is_written_is_reached(monkeypatch):
    reached = []
    monkeypatch.setattr(Call, "_connect", lambda *of: reached.append(of[2][0]) or "it is not there")
    for address in ("169.254.169.254", "[fe80::1]"):
        with pytest.raises(RemoteError, match="it is not there"):
            terminate(f"{address}:1", "s")
    assert reached == ["169.254.169.254", "fe80::1"]


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


def test_the_bytes_are_stored_as_they_came(repository, sessions):
    content = answer_of(sample_profile(sessions))
    with peer(lambda *_: content) as worker:
        result = capture(request_for(worker.address), repository)
    name = worker.address.replace(":", "_")
    assert files_of(repository) == [f"plugins/profile/{ID}/{name}.xplane.pb"]
    stored = (session_directory(repository) / f"{name}.xplane.pb").read_bytes()
    assert content.endswith(stored)
    (outcome,) = result.outcomes
    assert (outcome.state, outcome.size, outcome.error, outcome.attempts) == (
        "stored",
        len(stored),
        "",
        1,
    )
    assert not result.empty_trace
    with peakline.open(repository.logdir) as profile:
        assert profile.table("events").num_rows


def test_a_stored_profile_is_an_xspace(repository):
    halves = answer_of(space(1)) + answer_of(space(2))
    with peer(lambda *_: halves) as worker:
        capture(request_for(worker.address, names=["w"]), repository)
    stored = XSpace.FromString((session_directory(repository) / "w.xplane.pb").read_bytes())
    assert sum(len(line.events) for plane in stored.planes for line in plane.lines) == 3


def test_the_request_is_what_upstreams_client_sends(repository):
    options = profile_options({"host_tracer_level": "3", "tpu_mode": "x"})
    with peer(good) as worker:
        request = request_for(
            worker.address, names=["trainer-0"], options=options, duration_ms=1500, delay_ms=2000
        )
        began, before = time.monotonic(), time.time_ns()
        capture(request, repository)
        seconds, after = time.monotonic() - began, time.time_ns()
    (sent,) = worker.requests
    assert sent.emit_xspace
    assert sent.duration_ms == sent.opts.duration_ms == 1500
    assert sent.max_events == 1_000_000
    assert list(sent.tools)[-1] == "xplane.pb"
    assert len(sent.tools) == 10
    assert sent.session_id == ID
    assert sent.host_name == sent.opts.override_hostname == "trainer-0"
    assert sent.repository_root == f"{repository.logdir}/plugins/profile"
    assert sent.opts.repository_path == repository.logdir
    assert before <= sent.opts.start_timestamp_ns - 2 * 10**9 <= after
    assert sent.opts.host_tracer_level == 3
    assert sent.opts.advanced_configuration["tpu_mode"].string_value == "x"
    assert not request.options.duration_ms  # the caller's own message is left alone
    # gRPC rounds the time that is left up to a tenth of a second, in its header.
    assert 62 - seconds < worker.seconds_left[0] < 62.2


def test_no_delay_starts_at_once(repository):
    with peer(good) as worker:
        capture(request_for(worker.address), repository)
    (sent,) = worker.requests
    assert sent.opts.start_timestamp_ns == 0
    assert sent.host_name == worker.address
    assert sent.opts.override_hostname == ""


@pytest.mark.parametrize(
    ("duration", "delay", "seconds"), [(1000, 0, 60), (40_000, 0, 80), (1000, 5000, 65)]
)
def test_deadline(duration, delay, seconds):
    assert capture_deadline_s(duration, delay) == seconds


def test_many_hosts_record_at_the_same_time(repository):
    together = threading.Barrier(6)

    def behave(*_):
        together.wait(HANG_S)
        return profile_of()

    with ExitStack() as stack:
        workers = [stack.enter_context(peer(behave)) for _ in range(6)]
        result = capture(
            request_for(*(worker.address for worker in workers), timeout_ms=LONG_MS), repository
        )
    assert [outcome.state for outcome in result.outcomes] == ["stored"] * 6
    assert [outcome.address for outcome in result.outcomes] == [w.address for w in workers]
    assert len(files_of(repository)) == 6


def test_one_host_that_fails_does_not_cost_the_others(repository):
    with peer(good) as worker, peer(lambda *_: b"<html>") as broken:
        result = capture(
            request_for(worker.address, broken.address, NOWHERE, names=["a", "b", "c"], attempts=1),
            repository,
        )
    assert [outcome.state for outcome in result.outcomes] == ["stored", "failed", "failed"]
    assert "no ProfileResponse" in result.outcomes[1].error
    assert "cannot be reached" in result.outcomes[2].error
    assert files_of(repository) == [f"plugins/profile/{ID}/a.xplane.pb"]


def test_all_hosts_failing_tells_each_ones_reason(repository):
    with peer(lambda *_: b"\xff" * 9) as broken, pytest.raises(RemoteError) as raised:
        capture(request_for(NOWHERE, broken.address, attempts=1), repository)
    message = str(raised.value)
    assert f"{NOWHERE}: cannot be reached" in message
    assert f"{broken.address}: its answer is damaged" in message
    assert "\n" not in message
    assert not session_directory(repository).exists()


def test_one_empty_host_beside_a_full_one(repository):
    with peer(good) as full, peer(lambda *_: answer_of(empty_trace=True)) as idle:
        result = capture(
            request_for(full.address, idle.address, names=["full", "idle"], attempts=1), repository
        )
    assert [outcome.state for outcome in result.outcomes] == ["stored", "empty"]
    assert not result.empty_trace
    assert files_of(repository) == [f"plugins/profile/{ID}/full.xplane.pb"]


def test_a_session_that_exists_is_refused_before_anybody_is_asked(repository):
    with peer(good) as worker:
        capture(request_for(worker.address), repository)
        before = files_of(repository)
        with pytest.raises(ExistsError):
            capture(request_for(worker.address), repository)
        assert len(worker.requests) == 1
    assert files_of(repository) == before


@pytest.mark.parametrize(
    "changes",
    [
        {"session_id": "../up"},
        {"session_id": "a/b"},
        {"session_id": ""},
        {"duration_ms": 0},
        {"attempts": 0},
        {"delay_ms": -1},
        {"timeout_ms": 0},
        {"targets": ()},
        {"targets": (Target("a:1", "h:1"), Target("a_1", "h:2"))},
        {"targets": (Target("a", "h:1"), Target("b", "H:1"))},
    ],
)
def test_requests_that_cannot_work(repository, changes):
    fields = {"targets": (Target("a", NOWHERE),), "duration_ms": 1, "session_id": ID}
    with pytest.raises(UsageError):
        capture(CaptureRequest(**{"options": default_options()} | fields | changes), repository)
    assert not Path(repository.logdir).exists()


def test_bad_host_names_store_nothing(repository, tmp_path):
    with peer(good) as worker, pytest.raises(RemoteError, match="host"):
        capture(request_for(worker.address, names=["../../evil"]), repository)
    assert not list(tmp_path.rglob("*evil*"))


def test_a_disk_that_cannot_be_written_fails_the_host(repository):
    def behave(*_):
        session_directory(repository).rmdir()
        return profile_of()

    with peer(behave) as worker, pytest.raises(RemoteError, match="cannot be stored"):
        capture(request_for(worker.address), repository)
