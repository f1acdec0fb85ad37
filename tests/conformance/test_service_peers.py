"""TensorFlow's own capture client, unmodified, against our server and live jobs."""

import json
import subprocess
from contextlib import contextmanager

import httpx
import pytest

from peakline.service.run import Server
from peakline.service.settings import Settings
from tests.conformance.compare import compare_memory_profiles, describe
from tests.conformance.peer import PROGRAMS, peers_python
from tests.service.grpc_client import Client
from tests.waiting import HANG_S

pytestmark = pytest.mark.conformance


@pytest.fixture(scope="module")
def python():
    return peers_python()


@contextmanager
def job(python, kind):
    """A live program; yields the port of its profiler."""
    process = subprocess.Popen(
        [python, str(PROGRAMS / "capture_jobs.py"), kind],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    try:
        line = process.stdout.readline()
        assert line, f"the {kind} job did not start"
        yield int(line)
    finally:
        process.stdin.close()
        try:
            process.wait(HANG_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        process.stdout.close()


@pytest.fixture(scope="module")
def tensorflow_port(python):
    with job(python, "tensorflow") as port:
        yield port


@pytest.fixture(scope="module")
def jax_port(python):
    with job(python, "jax") as port:
        yield port


@contextmanager
def serving(logdir, **settings):
    """Our whole server, and a client of its gRPC face."""
    logdir.mkdir()
    chosen = Settings((str(logdir),), grpc_port=0, http_port=0, access_log="off", **settings)
    with Server(chosen) as server:
        client = Client(f"127.0.0.1:{server.grpc_port}")
        try:
            yield server, client
        finally:
            client.close()


def client_says(python, *words):
    """The text of the error that TensorFlow's client raises, None when it is content."""
    finished = subprocess.run(
        [python, str(PROGRAMS / "trace_client.py"), *map(str, words)],
        check=False,
        capture_output=True,
        text=True,
        timeout=HANG_S,
    )
    assert finished.returncode == 0, finished.stderr[-2000:]
    return json.loads(finished.stdout.splitlines()[-1])


def test_a_session_of_its_client_is_stored_listed_and_served(
    python, live_xprof, tensorflow_port, tmp_path
):
    logdir = tmp_path / "logs"
    with serving(logdir, profiler_port=tensorflow_port) as (server, client):
        address = f"localhost:{server.grpc_port}"
        # The service address is not used when there are workers: the first of them is asked.
        assert client_says(python, "trace", "unused:1", logdir, 1000, address, 1) is None
        (session,) = client.call(
            "EnumSessions", repository_root=f"{logdir}/plugins/profile"
        ).sessions
        assert {"memory_profile", "trace_viewer"} <= set(session.available_tools)
        answer = client.call(
            "GetSessionToolData", session_id=session.session_id, tool_name="memory_profile"
        )
    (stored,) = logdir.glob("plugins/profile/*/*")
    assert (stored.parent.name, stored.name) == (session.session_id, "localhost.xplane.pb")
    differences = compare_memory_profiles(live_xprof.ask("memory_profile", stored), answer.output)
    assert not differences, describe(differences)
    assert json.loads(answer.output)["memoryProfilePerAllocator"]


def test_two_hosts_in_one_session(python, tensorflow_port, jax_port, tmp_path):
    logdir = tmp_path / "logs"
    workers = {"localhost": f"127.0.0.1:{tensorflow_port}", "jax-host": f"127.0.0.1:{jax_port}"}
    with serving(logdir, workers=workers) as (server, client):
        hosts = f"localhost:{server.grpc_port},jax-host:8466"
        assert client_says(python, "trace", "unused:1", logdir, 500, hosts, 1) is None
        (session,) = client.call("EnumSessions").sessions
        fields = {"session_id": session.session_id, "tool_name": "memory_profile"}
        assert b'"numHosts":2' in client.call("GetSessionToolData", **fields).output
    names = sorted(path.name for path in logdir.glob("plugins/profile/*/*"))
    assert names == ["jax-host.xplane.pb", "localhost.xplane.pb"]


def test_a_capture_over_http_tells_how_the_jobs_go(tensorflow_port, jax_port, tmp_path):
    workers = {"tf": f"127.0.0.1:{tensorflow_port}", "jax": f"127.0.0.1:{jax_port}"}
    with (
        serving(tmp_path / "logs", workers=workers) as (server, _),
        httpx.Client(base_url=f"http://127.0.0.1:{server.http_port}", timeout=HANG_S) as client,
        client.stream(
            "POST",
            "/api/captures",
            json={"hosts": ["tf", "jax"], "duration_ms": 500, "session_id": "one"},
            headers={"Accept": "application/x-ndjson"},
        ) as answer,
    ):
        *progress, result = map(json.loads, answer.iter_lines())
    for host in workers:
        assert [event["state"] for event in progress if event["host"] == host] == [
            "connecting", "recording", "receiving", "stored",
        ]  # fmt: skip
    sizes = {path.name.split(".")[0]: path.stat().st_size for path in tmp_path.rglob("one/*")}
    assert {each["host"]: each["size"] for each in result["outcomes"]} == sizes


def test_its_client_is_told_what_went_wrong(python, tmp_path):
    """One profiler that is not there, and one that is not allowed."""
    logdir = tmp_path / "logs"
    with serving(logdir, profiler_port=1) as (server, _):
        address = f"localhost:{server.grpc_port}"
        text = client_says(python, "trace", "unused:1", logdir, 200, address, 2)
        assert text.startswith("UNAVAILABLE: ")
        assert "cannot be reached" in text
        text = client_says(python, "trace", "unused:1", logdir, 200, f"{address},10.0.0.1:8466", 1)
        assert text.startswith("PERMISSION_DENIED: captures from 10.0.0.1 are not allowed")
    assert not list(logdir.glob("**/*.pb"))


def test_its_monitor_reaches_the_job(python, tensorflow_port, tmp_path):
    """Only TPU profilers answer; what others say comes through."""
    workers = {"trainer": f"127.0.0.1:{tensorflow_port}"}
    with serving(tmp_path / "logs", workers=workers) as (server, _):
        text = client_says(python, "monitor", f"localhost:{server.grpc_port}")
    assert text.startswith("UNIMPLEMENTED: trainer: ")
