"""NewSession, Monitor and Terminate against profilers on ports of their own."""

import threading
import time

import grpc
import pytest
from tests.each_row import each_row
from tests.service.conftest import SESSIONS
from tests.service.test_grpc_analysis import failure
from tests.service.worker import worker
from tests.waiting import HANG_S, growing, until

from peakline.schema import ProfileResponse


@pytest.fixture(scope="module")
def recorded(sessions):
    """What a profiler answers with: a real XSpace of a running TensorFlow program."""
    path = sessions / "tf2_multihost/plugins/profile" / SESSIONS["tf2_multihost"]
    return (path / "localhost_47507.xplane.pb").read_bytes()


@pytest.fixture
def serving_job(serve, empty, recorded):
    """A server, and the only profiler that it may reach."""
    with worker(recorded) as job:
        yield serve(empty, profiler_port=job.port), job


def files_under(logdir):
    return sorted(str(path.relative_to(logdir)) for path in logdir.glob("**/*") if path.is_file())


def from_tensorflow(logdir, session_id, hosts, duration_ms=20):
    """The request of TensorFlow's capture client: everything is said twice, hosts with ports."""
    return {
        "repository_root": f"{logdir}/plugins/profile",
        "session_id": session_id,
        "hosts": hosts,
        "request": {
            "duration_ms": duration_ms,
            "max_events": 1_000_000,
            "tools": ["trace_viewer", "memory_profile", "xplane.pb"],
            "opts": {
                "version": 1, "host_tracer_level": 2, "device_tracer_level": 1,
                "enable_hlo_proto": True, "include_dataset_ops": True,
                "start_timestamp_ns": time.time_ns(), "duration_ms": duration_ms,
                "repository_path": str(logdir),
                "advanced_configuration": {"tpu_trace_mode": {"string_value": "TRACE_ONLY_HOST"}},
            },
            "repository_root": f"{logdir}/plugins/profile",
            "session_id": session_id,
            "host_name": hosts[0].rpartition(":")[0],
        },
    }  # fmt: skip


def test_what_tensorflow_sends_is_captured_stored_and_served(serve, empty, recorded):
    with worker(recorded) as job:
        served = serve(empty, profiler_port=job.port)
        answer = served.client.call(
            "NewSession", **from_tensorflow(empty, "one", [f"localhost:{served.server.port}"])
        )
    assert (answer.empty_trace, answer.error_message) == (False, "")
    assert files_under(empty) == ["plugins/profile/one/localhost.xplane.pb"]
    stored = empty / "plugins/profile/one/localhost.xplane.pb"
    assert ProfileResponse(xspace={}).xspace.FromString(stored.read_bytes()).ByteSize() == len(
        recorded
    )
    (request,) = job.requests
    assert request.emit_xspace
    assert request.opts.advanced_configuration["tpu_trace_mode"].string_value == "TRACE_ONLY_HOST"
    assert (request.opts.duration_ms, request.opts.host_tracer_level) == (20, 2)
    data = served.client.call("GetSessionToolData", session_id="one", tool_name="memory_profile")
    assert data.output_format == "json"
    (listed,) = served.client.call("EnumSessions").sessions
    assert (listed.session_id, "memory_profile" in listed.available_tools) == ("one", True)


def test_what_stands_only_inside_the_request_counts(serve, empty, recorded):
    with worker(recorded) as job:
        served = serve(empty, profiler_port=job.port)
        fields = from_tensorflow(empty, "inner", ["localhost:1"])
        served.client.call("NewSession", request=fields["request"])
    assert files_under(empty) == ["plugins/profile/inner/localhost.xplane.pb"]


def test_the_outer_duration_counts_where_the_options_have_none(serve, empty, recorded):
    with worker(recorded) as job:
        served = serve(empty, profiler_port=job.port)
        served.client.call("NewSession", hosts=["localhost"], request={"duration_ms": 30})
    (request,) = job.requests
    assert request.opts.duration_ms == 30
    assert len(files_under(empty)) == 1


def test_hosts_are_called_by_the_names_of_the_options(serve, empty, recorded):
    with worker(recorded) as first, worker(recorded) as second:
        served = serve(empty, workers={"a": first.address, "b": second.address})
        fields = from_tensorflow(empty, "named", ["a:1", "b:1"])
        fields["request"]["opts"]["override_hostname"] = "left,right"
        served.client.call("NewSession", **fields)
    assert files_under(empty) == [
        "plugins/profile/named/left.xplane.pb",
        "plugins/profile/named/right.xplane.pb",
    ]
    # The joined text would be one odd host to a profiler that saves by itself.
    assert first.requests[0].opts.override_hostname == "left"


def test_a_host_that_is_named_twice_is_captured_once(serve, empty, recorded):
    with worker(recorded) as job:
        serve(empty, profiler_port=job.port).client.call(
            "NewSession", **from_tensorflow(empty, "twice", ["localhost:1", "localhost:2"])
        )
    assert len(job.requests) == 1


def test_one_failing_host_does_not_lose_the_other(serve, empty, recorded):
    def fail(_, context):
        context.abort(grpc.StatusCode.INTERNAL, "no tracer here")

    with worker(recorded) as good, worker(None, fail) as bad:
        served = serve(empty, workers={"good": good.address, "bad": bad.address})
        answer = served.client.call("NewSession", **from_tensorflow(empty, "s", ["good", "bad"]))
    assert not answer.empty_trace
    assert answer.error_message.startswith("1 of 2 hosts: bad: ")
    assert "no tracer here" in answer.error_message
    assert files_under(empty) == ["plugins/profile/s/good.xplane.pb"]


def test_the_server_s_own_address_among_the_hosts_is_left_out(serve, empty, recorded):
    with worker(recorded) as job:
        served = serve(empty, profiler_port=job.port)
        own = f"profile-server:{served.server.port}"
        sent = from_tensorflow(empty, "one", [own, "localhost:8466"])
        answer = served.client.call("NewSession", **sent)
        assert answer.error_message == f"{own} is this server and was not profiled"
        assert files_under(empty) == ["plugins/profile/one/localhost.xplane.pb"]
        for hosts in ([own], ["profile-server:1", "localhost"], ["profile-server", "localhost"]):
            sent = from_tensorflow(empty, "two", hosts)
            status, _ = failure(served.client.call, "NewSession", **sent)
            assert status == "PERMISSION_DENIED"
        assert len(job.requests) == 1


def test_when_every_host_fails_the_status_says_why(serve, empty, unused_port):
    served = serve(empty, profiler_port=unused_port)
    fields = from_tensorflow(empty, "s", ["localhost:1"])
    status, details = failure(served.client.call, "NewSession", **fields)
    assert status == "UNAVAILABLE"
    assert "localhost" in details
    assert list(empty.glob("**/*.pb")) == []
    assert served.client.call("EnumSessions").sessions == []


def test_empty_traces_are_told_and_not_stored(serve, empty):
    with worker(None) as job:
        served = serve(empty, profiler_port=job.port)
        answer = served.client.call("NewSession", **from_tensorflow(empty, "s", ["localhost:1"]))
    assert answer.empty_trace
    assert answer.error_message == "no host recorded anything"
    assert files_under(empty) == []


def test_empty_here_and_failed_there_is_a_failure(serve, empty, unused_port):
    with worker(None) as job:
        workers = {"a": job.address, "b": f"127.0.0.1:{unused_port}"}
        served = serve(empty, workers=workers)
        fields = from_tensorflow(empty, "s", ["a", "b"])
        status, details = failure(served.client.call, "NewSession", **fields)
    assert status == "UNAVAILABLE"
    assert "2 of 2 hosts: a: " in details


def test_an_existing_session_is_refused(serve, logdir, recorded):
    session = SESSIONS["tf2_cnn"]
    before = files_under(logdir)
    with worker(recorded) as job:
        served = serve(logdir, profiler_port=job.port)
        fields = from_tensorflow(logdir, session, ["localhost:1"])
        status, details = failure(served.client.call, "NewSession", **fields)
    assert (status, session in details) == ("ALREADY_EXISTS", True)
    assert job.requests == []
    assert files_under(logdir) == before


def test_a_session_that_is_being_captured_is_refused(serve, empty, recorded):
    with worker(recorded) as job:
        client = serve(empty, profiler_port=job.port).client
        running = client.start(
            "NewSession", **from_tensorflow(empty, "s", ["localhost"], duration_ms=60_000)
        )
        assert job.recording.wait(HANG_S)
        fields = from_tensorflow(empty, "s", ["localhost"])
        assert failure(client.call, "NewSession", **fields)[0] == "ALREADY_EXISTS"
        client.call("Terminate", session_id="s")
        assert not running.result(HANG_S).empty_trace


@each_row(
    ("change", "status"),
    [
        ({"hosts": []}, "INVALID_ARGUMENT"),
        ({"hosts": ["other.example:1"]}, "PERMISSION_DENIED"),
        ({"hosts": ["169.254.169.254"]}, "PERMISSION_DENIED"),
        ({"hosts": ["localhost"] * 2000}, "INVALID_ARGUMENT"),
        ({"request": {}}, "INVALID_ARGUMENT"),
        ({"request": {"duration_ms": 3_600_000}}, "INVALID_ARGUMENT"),
        ({"request": {"duration_ms": 2**63}}, "INVALID_ARGUMENT"),
        ({"request": {"duration_ms": 1, "opts": {"override_hostname": "a,b"}}}, "INVALID_ARGUMENT"),
        (
            {"request": {"duration_ms": 1, "opts": {"start_timestamp_ns": 2**63}}},
            "INVALID_ARGUMENT",
        ),
    ],
)
def test_captures_that_are_not_made(serving_job, empty, change, status):
    served, job = serving_job
    fields = {"hosts": ["localhost"], "session_id": "s", "request": {"duration_ms": 1}} | change
    assert failure(served.client.call, "NewSession", **fields)[0] == status
    assert job.requests == []
    assert list(empty.iterdir()) == []


def test_a_read_only_server_captures_nothing(serve, empty, recorded):
    with worker(recorded) as job:
        served = serve(empty, profiler_port=job.port, read_only=True)
        fields = from_tensorflow(empty, "s", ["localhost"])
        assert failure(served.client.call, "NewSession", **fields)[0] == "PERMISSION_DENIED"
    assert job.requests == []


def test_a_caller_that_leaves_frees_the_profiler(serve, empty, recorded):
    with worker(recorded) as job:
        served = serve(empty, profiler_port=job.port)
        running = served.client.start(
            "NewSession", **from_tensorflow(empty, "s", ["localhost"], duration_ms=60_000)
        )
        assert job.recording.wait(HANG_S)
        running.cancel()
        assert job.ended.wait(HANG_S)
        gate = served.parts.analysis.captures.gate
        until(lambda: gate.running == 0)
    assert list(empty.glob("**/*.pb")) == []


def test_a_capture_ends_at_the_servers_limit(serve, empty):
    begun = threading.Event()

    def hang(_, context):
        begun.set()
        gone = threading.Event()
        context.add_callback(gone.set)
        gone.wait(HANG_S)
        return ProfileResponse()

    with worker(None, hang) as job:
        for limit in growing():
            served = serve(empty, profiler_port=job.port, max_capture_s=limit)
            fields = from_tensorflow(empty, "s", ["localhost"])
            status, _ = failure(served.client.call, "NewSession", **fields)
            assert status in ("DEADLINE_EXCEEDED", "UNAVAILABLE")
            assert files_under(empty) == []
            if begun.is_set():
                break


def test_captures_leave_room_for_questions(serve, logdir, recorded):
    with worker(recorded) as job:
        served = serve(logdir, profiler_port=job.port, max_concurrent=1, max_queued=0)
        running = [
            served.client.start(
                "NewSession", **from_tensorflow(logdir, f"s{number}", ["localhost"], 60_000)
            )
            for number in range(20)
        ]
        captures = served.parts.analysis.captures.gate
        until(lambda: sum(call.done() for call in running) == 4)
        assert {call.code().name for call in running if call.done()} == {"RESOURCE_EXHAUSTED"}
        assert (captures.running, captures.waiting) == (8, 8)
        answer = served.client.call(
            "GetSessionToolData", session_id=SESSIONS["tf2_cnn"], tool_name="memory_profile"
        )
        assert answer.output
        for call in running:
            call.cancel()


def test_one_hosts_monitoring_is_passed_on_as_it_is(serve, empty):
    with worker(None) as job:
        client = serve(empty, workers={"a": job.address}).client
        answer = client.call("Monitor", duration_ms=10, monitoring_level=2, timestamp=True)
    assert answer.data == f"busy on {job.port}\nidle: 0%\n"
    (request,) = job.monitored
    assert (request.duration_ms, request.monitoring_level, request.timestamp) == (10, 2, True)


def test_monitoring_several_hosts_puts_their_names_before_the_lines(serve, empty, unused_port):
    with worker(None) as first, worker(None) as second:
        workers = {"a": first.address, "b": second.address, "dead": f"127.0.0.1:{unused_port}"}
        client = serve(empty, workers=workers).client
        answer = client.call("Monitor", duration_ms=10)
        chosen = client.call("Monitor", duration_ms=10, metadata=(("peakline-host", "b , a"),))
    lines = answer.data.splitlines()
    assert lines[:4] == [
        f"a: busy on {first.port}", "a: idle: 0%", f"b: busy on {second.port}", "b: idle: 0%",
    ]  # fmt: skip
    assert lines[4].startswith("dead: cannot be reached")
    assert chosen.data.splitlines()[0] == f"b: busy on {second.port}"


def test_a_profilers_own_status_is_passed_on(serve, empty, unused_port):
    with worker(None, monitors=False) as job:
        client = serve(empty, profiler_port=job.port).client
        metadata = (("peakline-host", "localhost"),)
        status, details = failure(client.call, "Monitor", duration_ms=10, metadata=metadata)
    assert (status, details.startswith("localhost: ")) == ("UNIMPLEMENTED", True)
    client = serve(empty, profiler_port=unused_port).client
    status, details = failure(client.call, "Monitor", duration_ms=10, metadata=metadata)
    assert (status, details.startswith("localhost: ")) == ("UNAVAILABLE", True)


def test_what_no_profiler_can_do_is_said_once(serve, empty, unused_port):
    with worker(None, monitors=False) as first, worker(None, monitors=False) as second:
        able = {"a": first.address, "b": second.address}
        both = failure(serve(empty, workers=able).client.call, "Monitor", duration_ms=10)
        mixed = {**able, "dead": f"127.0.0.1:{unused_port}"}
        some = failure(serve(empty, workers=mixed).client.call, "Monitor", duration_ms=10)
    assert (both[0], "a: " in both[1], "b: " in both[1]) == ("UNIMPLEMENTED", True, True)
    assert some[0] == "UNAVAILABLE"


@each_row(
    ("metadata", "status"),
    [((), "INVALID_ARGUMENT"), ((("peakline-host", "10.0.0.1"),), "PERMISSION_DENIED")],
)
@each_row("method", ["Monitor", "Terminate"])
def test_monitor_and_terminate_reach_allowed_hosts_only(serving_job, method, metadata, status):
    client = serving_job[0].client
    fields = {"duration_ms": 1} if method == "Monitor" else {"session_id": "s"}
    assert failure(client.call, method, metadata=metadata, **fields)[0] == status


def test_terminate_ends_the_capture_of_that_session_on_its_hosts(serve, empty, recorded):
    with worker(recorded) as first, worker(recorded) as second, worker(recorded) as other:
        workers = {"a": first.address, "b": second.address, "c": other.address}
        client = serve(empty, workers=workers).client
        running = client.start("NewSession", **from_tensorflow(empty, "s", ["a", "b"], 60_000))
        assert first.recording.wait(HANG_S)
        assert second.recording.wait(HANG_S)
        client.call("Terminate", session_id="s")
        assert not running.result(HANG_S).empty_trace
        assert (first.terminated, second.terminated, other.terminated) == (["s"], ["s"], [])
        client.call("Terminate", session_id="elsewhere")
        assert other.terminated == ["elsewhere"]
    assert len(files_under(empty)) == 2


@each_row(
    "method", ["Profile", "StartContinuousProfiling", "StopContinuousProfiling", "GetSnapshot"]
)
def test_the_server_has_no_profiler_itself(serving_job, method):
    status, details = failure(serving_job[0].client.call, method)
    assert (status, "NewSession" in details) == ("UNIMPLEMENTED", True)
