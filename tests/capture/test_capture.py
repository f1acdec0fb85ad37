import threading
import time
from concurrent import futures
from contextlib import ExitStack
from pathlib import Path

import grpc
import pytest
from tests.capture.peers import BUSY, answer_of, peer, profile_of, sample_profile, space

import peakline
from peakline.capture import (
    CaptureRequest,
    Target,
    WorkerLocks,
    capture,
    capture_deadline_s,
    default_options,
    profile_options,
)
from peakline.deadline import Deadline, within
from peakline.errors import (
    CancelledError,
    DeadlineError,
    ExistsError,
    RemoteError,
    UsageError,
)
from peakline.repository import Repository
from peakline.schema import XSpace

ID = "s1"
NOWHERE = "127.0.0.1:1"


def request_for(*addresses, names=None, **changes):
    names = names or addresses
    fields = {"duration_ms": 10, "options": default_options(), "session_id": ID} | changes
    return CaptureRequest(targets=tuple(map(Target, names, addresses)), **fields)


@pytest.fixture
def repository(tmp_path):
    return Repository(tmp_path / "logs")


def files_of(repository):
    root = Path(repository.logdir)
    return sorted(str(path.relative_to(root)) for path in root.rglob("*") if path.is_file())


def session_directory(repository):
    return Path(repository.logdir) / "plugins" / "profile" / ID


def good(*_):
    return profile_of()


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


def test_the_request_is_what_upstreams_client_sends(repository):
    options = profile_options({"host_tracer_level": "3", "tpu_mode": "x"})
    with peer(good) as worker:
        request = request_for(
            worker.address, names=["trainer-0"], options=options, duration_ms=1500, delay_ms=2000
        )
        before = time.time_ns()
        capture(request, repository)
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
    assert 0 <= sent.opts.start_timestamp_ns - before - 2 * 10**9 < 10**9
    assert sent.opts.host_tracer_level == 3
    assert sent.opts.advanced_configuration["tpu_mode"].string_value == "x"
    assert not request.options.duration_ms  # the caller's own message is left alone
    assert 55 < worker.seconds_left[0] <= 62


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
        together.wait(20)
        return profile_of()

    with ExitStack() as stack:
        workers = [stack.enter_context(peer(behave)) for _ in range(6)]
        result = capture(request_for(*(worker.address for worker in workers)), repository)
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
    def behave(_, context, number):
        if number < 3:
            context.abort(grpc.StatusCode.UNAVAILABLE, "not yet")
        return profile_of()

    states = []
    with peer(behave) as worker:
        started = time.monotonic()
        result = capture(
            request_for(worker.address),
            repository,
            progress=lambda _, state, detail: states.append((state, detail)),
        )
        seconds = time.monotonic() - started
    (outcome,) = result.outcomes
    assert (outcome.state, outcome.attempts) == ("stored", 3)
    words = [state for state, _ in states]
    assert words.count("retrying") == 2
    assert ("retrying", "cannot be reached: not yet") in states
    assert words[0] == "connecting"
    assert "recording" in words
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
            servers.callback(lambda: server.stop(None).wait(10))

    with servers:
        result = capture(request_for(port), repository, progress=progress)
    assert result.outcomes[0].state == "stored"
    assert result.outcomes[0].attempts == 2


def test_a_hang_ends_with_the_timeout(repository):
    ended = threading.Event()

    def behave(_, context, __):
        context.add_callback(ended.set)
        ended.wait(30)
        return b""

    with peer(behave) as hung, peer(good) as worker:
        result = capture(
            request_for(hung.address, worker.address, timeout_ms=700, names=["h", "w"]), repository
        )
        assert ended.wait(10)
    assert [outcome.state for outcome in result.outcomes] == ["failed", "stored"]
    assert "no answer within" in result.outcomes[0].error


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


def save_as_old(request, name=None, content=None):
    """What a server from before emit_xspace does."""
    directory = Path(request.repository_root) / request.session_id
    directory.mkdir(parents=True, exist_ok=True)
    file = directory / f"{(name or request.host_name).replace(':', '_')}.xplane.pb"
    file.write_bytes(space().SerializeToString() if content is None else content)


def test_an_old_server_that_saves_on_a_shared_disk(repository):
    def behave(request, *_):
        save_as_old(request)
        return b""

    with peer(behave) as worker:
        result = capture(request_for(worker.address, names=["old:1"]), repository)
    (outcome,) = result.outcomes
    assert (outcome.state, outcome.error) == ("saved_by_host", "")
    assert outcome.size == space().ByteSize()
    assert files_of(repository) == [f"plugins/profile/{ID}/old_1.xplane.pb"]


def test_an_old_server_with_a_disk_of_its_own(repository):
    with peer(lambda *_: b"") as worker:
        with pytest.raises(RemoteError, match="the host stored its profile on its own disk"):
            capture(request_for(worker.address), repository)
        assert len(worker.requests) == 1
    assert not session_directory(repository).exists()


def test_an_old_server_that_saved_an_empty_file(repository):
    # Profiles above 2 GiB end like this.
    def behave(request, *_):
        save_as_old(request, content=b"")
        return b""

    with (
        peer(behave) as worker,
        pytest.raises(RemoteError, match="the host stored an empty file"),
    ):
        capture(request_for(worker.address), repository)


def test_an_old_server_saves_even_an_empty_trace(repository):
    def behave(request, *_):
        save_as_old(request, content=space(0).SerializeToString())
        return answer_of(empty_trace=True)

    with peer(behave) as worker:
        result = capture(request_for(worker.address, attempts=1), repository)
    assert result.empty_trace
    assert not session_directory(repository).exists()


TOOL_FILES = [
    {"name": "trace", "data": b"1"},
    {"name": "../../../../escaped", "data": b"2"},
    {"name": "/etc/passwd", "data": b"3"},
    {"name": "..", "data": b"4"},
    {"name": "", "data": b"5"},
    {"name": "b\\c\x00\n\x1b", "data": b"6"},
    {"name": "other.xplane.pb", "data": b"7"},
    {"name": "x_tf_stats_helper_result", "data": b"8"},
    {"name": "trace", "data": b"9"},
    {"name": "é" * 150, "data": b"10"},
]


def test_files_of_old_tools_are_written_beside(repository, tmp_path):
    with peer(lambda *_: answer_of(space(), tool_data=TOOL_FILES)) as worker:
        result = capture(request_for(worker.address, names=["w:1"]), repository)
    written = {name.rpartition("/")[2] for name in files_of(repository)}
    assert {"w_1.xplane.pb", "w_1.trace", "w_1._.._.._.._escaped", "w_1._etc_passwd"} <= written
    assert "w_1.b_c___" in written
    assert not any(name.endswith(("helper_result", "other.xplane.pb")) for name in written)
    assert all(name.startswith("w_1.") for name in written)
    assert {path.parent for path in tmp_path.rglob("*") if path.is_file()} == {
        session_directory(repository)
    }
    assert (session_directory(repository) / "w_1.trace").read_bytes() == b"1"
    assert [file.host for file in repository.session(ID).hosts()] == ["w_1"]
    (outcome,) = result.outcomes
    assert outcome.state == "stored"
    # What could not be kept is told: the name of a profile, and the second trace.
    assert "other.xplane.pb" in outcome.error
    assert outcome.error.count("was not kept") >= 2
    assert outcome.error.isprintable()


def test_tool_files_alone_are_no_profile_and_leave_nothing(repository):
    with (
        peer(lambda *_: answer_of(tool_data=[{"name": "trace", "data": b"1"}])) as worker,
        pytest.raises(RemoteError, match="its own disk and sent only trace"),
    ):
        capture(request_for(worker.address, names=["w"]), repository)
    assert files_of(repository) == []
    with repository.create_session(ID):
        pass  # the id is free again


def test_tool_files_of_a_host_that_failed_stay_beside_another_s_profile(repository):
    def old(*_):
        return answer_of(tool_data=[{"name": "trace", "data": b"1"}])

    with peer(old) as first, peer(good) as second:
        capture(request_for(first.address, second.address, names=["a", "b"]), repository)
    place = f"plugins/profile/{ID}"
    assert files_of(repository) == [f"{place}/a.trace", f"{place}/b.xplane.pb"]


def test_a_disk_that_cannot_be_written_fails_the_host(repository):
    def behave(*_):
        session_directory(repository).rmdir()
        return profile_of()

    with peer(behave) as worker, pytest.raises(RemoteError, match="cannot be stored"):
        capture(request_for(worker.address), repository)


def waiting_peer():
    """A profiler that records until it is told to stop, and says when it was."""
    begun, ended = threading.Event(), threading.Event()

    def behave(_, context, __):
        context.add_callback(ended.set)
        begun.set()
        ended.wait(30)
        return b""

    return peer(behave), begun, ended


def test_cancelling_frees_the_profiler(repository):
    server, begun, ended = waiting_peer()
    deadline = Deadline()

    def cancel():
        begun.wait(20)
        deadline.cancel()

    with server as worker, within(deadline):
        thread = threading.Thread(target=cancel)
        thread.start()
        with pytest.raises(CancelledError):
            capture(request_for(worker.address), repository)
        thread.join()
        assert ended.wait(10)
    assert not session_directory(repository).exists()


def test_the_callers_deadline_ends_the_calls(repository):
    server, _, ended = waiting_peer()
    with server as worker, within(Deadline(0.5)):
        with pytest.raises(DeadlineError):
            capture(request_for(worker.address), repository)
        assert ended.wait(10)
    assert not session_directory(repository).exists()


def test_what_is_there_by_the_callers_deadline_is_kept(repository):
    server, _, ended = waiting_peer()
    with server as slow, peer(good) as worker, within(Deadline(1.5)):
        result = capture(request_for(slow.address, worker.address, names=["s", "w"]), repository)
        assert ended.wait(10)
    assert [outcome.state for outcome in result.outcomes] == ["failed", "stored"]


def test_a_keyboard_interrupt_while_waiting(repository):
    server, begun, ended = waiting_peer()

    def interrupt(_host, state, _detail):
        if state == "recording":
            begun.wait(20)
            raise KeyboardInterrupt

    with server as worker:
        with pytest.raises(KeyboardInterrupt):
            capture(request_for(worker.address), repository, progress=interrupt)
        assert ended.wait(10)
    assert not session_directory(repository).exists()
    assert not [t for t in threading.enumerate() if t.name.startswith("capture ")]


def test_captures_of_one_profiler_wait_for_each_other(tmp_path):
    running = threading.Lock()
    states = []

    def behave(_, context, __):
        if not running.acquire(blocking=False):
            context.abort(grpc.StatusCode.INTERNAL, BUSY)
        with ExitStack() as stack:
            stack.callback(running.release)
            time.sleep(0.3)
        return profile_of()

    with peer(behave) as worker:

        def run(number):
            capture(
                request_for(worker.address, session_id=f"s{number}", attempts=1),
                Repository(tmp_path),
                progress=lambda _, state, __: states.append(state),
            )

        threads = [threading.Thread(target=run, args=(number,)) for number in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(30)
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


def test_a_stored_profile_is_an_xspace(repository):
    halves = answer_of(space(1)) + answer_of(space(2))
    with peer(lambda *_: halves) as worker:
        capture(request_for(worker.address, names=["w"]), repository)
    stored = XSpace.FromString((session_directory(repository) / "w.xplane.pb").read_bytes())
    assert sum(len(line.events) for plane in stored.planes for line in plane.lines) == 3
