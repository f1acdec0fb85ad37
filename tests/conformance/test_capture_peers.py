"""Live jobs of JAX and TensorFlow, captured by us."""

import json
import signal
import subprocess
import sys
import threading
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

import peakline
from peakline.capture import (
    CaptureRequest,
    Target,
    WorkerError,
    capture,
    default_options,
    monitor,
    profile_options,
    terminate,
)
from peakline.deadline import Deadline, within
from peakline.errors import CancelledError
from peakline.repository import Repository
from peakline.schema import XSpace
from tests.conformance.peer import PROGRAMS, peers_python
from tests.waiting import HANG_S, until

pytestmark = pytest.mark.conformance

LONG_MS = 150_000
"""No test waits for the end of such a recording."""
ATTEMPTS = 50


RECORDING = {}
"""An event for the address of each job: set while its profiler records."""


@contextmanager
def job(kind):
    process = subprocess.Popen(
        [peers_python(), str(PROGRAMS / "capture_jobs.py"), kind],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    line = process.stdout.readline()
    assert line, f"the {kind} job did not start"
    address = f"127.0.0.1:{int(line)}"
    recording = RECORDING[address] = threading.Event()

    def listen():
        for state in process.stdout:
            (recording.set if state == "recording\n" else recording.clear)()

    listening = threading.Thread(target=listen)
    listening.start()
    try:
        yield address
    finally:
        process.stdin.close()
        try:
            process.wait(HANG_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        listening.join()
        process.stdout.close()


@pytest.fixture(scope="module")
def running_jobs():
    with ExitStack() as stack:
        jobs = {}

        def address_of(kind):
            if kind not in jobs:
                jobs[kind] = stack.enter_context(job(kind))
            wait_for_idleness(jobs[kind])
            return jobs[kind]

        yield address_of


@pytest.fixture
def jax_job(running_jobs):
    return running_jobs("jax")


@pytest.fixture
def tensorflow_job(running_jobs):
    return running_jobs("tensorflow")


@pytest.fixture
def repository(tmp_path):
    return Repository(tmp_path / "logs")


def request_for(*addresses, session_id="s", duration_ms=300, **changes):
    fields = {"options": default_options()} | changes
    targets = tuple(Target(address, address) for address in addresses)
    return CaptureRequest(targets, session_id, duration_ms, **fields)


def peakline_command(*words, **changes):
    return subprocess.run(
        [sys.executable, "-m", "peakline.__main__", *map(str, words)],
        check=False, capture_output=True, text=True, timeout=HANG_S, **changes,
    )  # fmt: skip


def wait_for_recording(address):
    assert RECORDING[address].wait(HANG_S), "the profiler never records"


def wait_for_idleness(address):
    until(lambda: not RECORDING[address].is_set(), "the profiler ends a recording")


def test_both_at_once_then_memory(jax_job, tensorflow_job, repository):
    states = []
    result = capture(
        request_for(jax_job, tensorflow_job, duration_ms=1000),
        repository,
        progress=lambda host, state, _: states.append((host, state)),
    )
    assert [outcome.state for outcome in result.outcomes] == ["stored", "stored"]
    for address in (jax_job, tensorflow_job):
        answer = [state for host, state in states if host == address]
        # A short answer is there before anybody can tell that it comes.
        assert [state for state in answer if state != "receiving"] == [
            "connecting",
            "recording",
            "stored",
        ]
    session = repository.session("s")
    for outcome in result.outcomes:
        file = session.host(outcome.host)
        content = Path(file.path).read_bytes()
        assert len(content) == outcome.size
        assert "/host:CPU" in [plane.name for plane in XSpace.FromString(content).planes]
        with peakline.open(file.path) as profile:
            assert profile.table("events").num_rows > 100
            # However slow the job is: it recorded for a second.
            assert profile.duration_ps > 0.1e12
            assert not profile.warnings
    with peakline.open(session.host(tensorflow_job).path) as profile:
        names = set(profile.table("events").column("name").to_pylist())
        assert any("MatMul" in (name or "") for name in names)
        assert profile.table("allocator_events").num_rows


def test_the_command_line_ends_with_the_summary(jax_job, tensorflow_job, tmp_path):
    words = ("capture", jax_job, tensorflow_job, "--logdir", tmp_path / "l", "--duration", "500ms")
    shown = peakline_command(*words, "--session-id", "a", "--option", "host_tracer_level=3")
    assert (shown.returncode, shown.stderr) == (0, "")
    assert shown.stdout.splitlines()[0] == str(tmp_path / "l" / "plugins" / "profile" / "a")
    host = tensorflow_job.replace(":", "_")
    summary = peakline_command("summary", tmp_path / "l" / "plugins" / "profile" / "a")
    assert f"  {host} " in summary.stdout
    assert shown.stdout.endswith(summary.stdout)

    result = peakline_command(*words, "--session-id", "b", "--json")
    assert (result.returncode, result.stderr) == (0, "")
    document = json.loads(result.stdout)
    assert document["session_id"] == "b"
    assert [entry["state"] for entry in document["hosts"]] == ["stored", "stored"]
    memory = peakline_command("memory", tmp_path / "l", "--session", "b", "--host", host, "--json")
    assert document["hosts"][1]["memory"] == json.loads(memory.stdout)


def test_a_second_capture_meets_a_profiler_that_records(tensorflow_job, repository):
    """Another process records: it is tried again, until that one has ended."""
    other = subprocess.Popen(
        [sys.executable, "-m", "peakline.__main__", "capture", tensorflow_job, "--logdir",
         repository.logdir, "--session-id", "other", "--duration", f"{LONG_MS}ms",
         "--attempts", str(ATTEMPTS)],
        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    states = []

    def end_the_other(_host, state, _detail):
        if state == "retrying" and state not in states:
            terminate(tensorflow_job, "other")
        states.append(state)

    try:
        wait_for_recording(tensorflow_job)
        result = capture(
            request_for(tensorflow_job, session_id="mine", duration_ms=100, attempts=ATTEMPTS),
            repository,
            progress=end_the_other,
        )
        assert result.outcomes[0].state == "stored"
        assert "retrying" in states
        assert other.wait(HANG_S) == 0
    finally:
        if other.poll() is None:
            other.kill()
        other.communicate()
    assert {session.session_id for session in repository.sessions()} == {"other", "mine"}


@pytest.mark.parametrize("kind", ["jax_job", "tensorflow_job"])
def test_cancelling_frees_the_profiler(kind, request, repository):
    address = request.getfixturevalue(kind)
    deadline = Deadline()

    def cancel():
        wait_for_recording(address)
        deadline.cancel()

    other = threading.Thread(target=cancel)
    with within(deadline):
        other.start()
        with pytest.raises(CancelledError):
            capture(request_for(address, duration_ms=LONG_MS, attempts=ATTEMPTS), repository)
        other.join()
    assert not list(Path(repository.logdir).rglob("s"))
    # The same id, at once.
    result = capture(request_for(address, attempts=ATTEMPTS), repository)
    assert result.outcomes[0].state == "stored"


def test_ctrl_c_and_kill_leave_nothing_half(jax_job, repository):
    words = [sys.executable, "-m", "peakline.__main__", "capture", jax_job, "--logdir",
             repository.logdir, "--session-id", "s", "--attempts", str(ATTEMPTS),
             "--duration"]  # fmt: skip
    for number, code in ((signal.SIGINT, 130), (signal.SIGKILL, -signal.SIGKILL)):
        process = subprocess.Popen(
            [*words, f"{LONG_MS}ms"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        wait_for_recording(jax_job)
        process.send_signal(number)
        out, err = process.communicate(timeout=HANG_S)
        assert process.returncode == code, err
        assert out == ""
        assert err == ("peakline: interrupted; nothing was stored\n" if code == 130 else "")
        assert not [path for path in Path(repository.logdir).rglob("*") if path.is_file()]
        wait_for_idleness(jax_job)
    again = peakline_command(*words[3:], "300ms")
    assert again.returncode == 0, again.stderr
    assert repository.session("s").hosts()


def test_terminate_ends_a_session_with_what_it_has(tensorflow_job, repository):
    def end():
        wait_for_recording(tensorflow_job)
        terminate(tensorflow_job, "s")

    other = threading.Thread(target=end)
    other.start()
    result = capture(
        request_for(tensorflow_job, duration_ms=LONG_MS, attempts=ATTEMPTS), repository
    )
    other.join()
    assert result.outcomes[0].state == "stored"
    with peakline.open(repository.logdir, session="s") as profile:
        assert profile.duration_ps < LONG_MS * 10**9 / 2


def test_monitoring_is_only_for_tpus(jax_job):
    with pytest.raises(WorkerError) as raised:
        monitor(jax_job, 100)
    assert raised.value.code == "UNIMPLEMENTED"


def test_options_reach_the_profiler(tensorflow_job, repository):
    quiet = profile_options({"host_tracer_level": "0", "device_tracer_level": "0"})
    result = capture(
        request_for(tensorflow_job, options=quiet, attempts=1, duration_ms=100), repository
    )
    assert result.empty_trace
    python = profile_options({"python_tracer_level": "1"})
    capture(request_for(tensorflow_job, options=python, session_id="p"), repository)
    with peakline.open(repository.logdir, session="p") as profile:
        events = profile.table("events").column("name").to_pylist()
    assert any("capture_jobs.py" in (name or "") for name in events)
