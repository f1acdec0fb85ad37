"""XProf's read endpoints: the real server and ours on the same log directory."""

import gzip
import shutil
import socket
import subprocess
import time
from pathlib import Path

import httpx
import pytest

from tests.conformance.compare import compare_memory_profiles, describe
from tests.conformance.peer import peers_python
from tests.service.http_client import serving

pytestmark = pytest.mark.conformance

PREFIX = "/data/plugin/profile"
START_S = 120
NESTED = {
    "tf2_cnn": "train",
    "tf2_two_devices": "eval/second",
    "jax_captured": "",
    "tf2_multihost": "",
    "jax_cpu": "",
}
"""Samples, and the log directory inside the served one that each is put into."""

RUNS = (
    "2026_11_20_17_33_46", "2026_11_20_17_20_28", "train/2026_11_20_16_57_05", "nosuch",
    "train/nosuch", "2026_11_20_16_57_05",
)  # fmt: skip


@pytest.fixture(scope="module")
def logdir(sessions, tmp_path_factory):
    """Sessions directly in it and in log directories inside it, plain as XProf reads them."""
    place = tmp_path_factory.mktemp("logs")
    for sample, below in NESTED.items():
        for path in (sessions / sample).glob("**/*.xplane.pb*"):
            name, content = path.relative_to(sessions / sample), path.read_bytes()
            target = place / below / name.parent / name.name.removesuffix(".gz")
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(gzip.decompress(content) if path.suffix == ".gz" else content)
    (place / "plugins" / "profile" / "empty").mkdir()
    return place


@pytest.fixture(scope="module")
def copy(logdir, tmp_path_factory):
    """What the real server works on: it writes beside what it reads."""
    place = tmp_path_factory.mktemp("xprof") / "logs"
    shutil.copytree(logdir, place)
    return place


@pytest.fixture(scope="module")
def xprof(copy, tmp_path_factory):
    """A client of the real server."""
    folder = tmp_path_factory.mktemp("output")
    program = Path(peers_python()).parent / "xprof"
    ports = []
    for _ in range(2):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            ports.append(free.getsockname()[1])
    with (folder / "output").open("wb") as output:
        process = subprocess.Popen(
            [program, "--logdir", copy, "--port", str(ports[0]), "--grpc_port", str(ports[1])],
            stdout=output,
            stderr=output,
        )
    try:
        with httpx.Client(base_url=f"http://127.0.0.1:{ports[0]}", timeout=60) as client:
            end = time.monotonic() + START_S
            while True:
                try:
                    client.get(f"{PREFIX}/version")
                    break
                except httpx.TransportError:
                    assert process.poll() is None, (folder / "output").read_text()
                    assert time.monotonic() < end
                    time.sleep(0.1)
            yield client
    finally:
        process.kill()
        process.wait()


@pytest.fixture(scope="module")
def ours(logdir, tmp_path_factory):
    with serving(tmp_path_factory.mktemp("ours"), logdir) as face:
        yield face.client


@pytest.fixture(scope="module")
def both(xprof, ours):
    def ask(route, **parameters):
        return tuple(client.get(f"{PREFIX}/{route}", params=parameters) for client in (xprof, ours))

    return ask


def test_runs(both):
    theirs, ours = both("runs")
    expected = [run for run in theirs.json() if run != "empty"]  # which holds no profile
    assert len(expected) == len(NESTED)
    assert ours.json() == expected
    assert "train/2026_11_20_16_57_05" in ours.json()


@pytest.mark.parametrize("run", RUNS)
def test_tools_that_both_have_in_their_order(both, run):
    theirs, ours = both("run_tools", run=run)
    shared = [tool for tool in theirs.json() if tool in ours.json()]
    assert [tool for tool in ours.json() if tool in shared] == shared
    if theirs.json():
        assert {"overview_page", "trace_viewer@", "framework_op_stats"} <= set(shared)
    # It lists a memory profile for every run, and never the pod viewer.
    own = {
        "address_map", "check", "collectives", "critical_path", "fit", "graph", "graph_scopes",
        "headline", "job", "job_memory", "job_steps", "live_memory", "memory_between",
        "memory_findings", "memory_lifetimes", "memory_polygons", "memory_stack", "op_stats",
        "op_time", "pod_viewer", "program_memory", "step_breakdown", "step_difference",
        "step_envelope", "step_heat", "step_series", "summary", "time_findings", "timeline",
    }  # fmt: skip
    assert set(ours.json()) - set(shared) <= own


@pytest.mark.parametrize("run", RUNS)
def test_hosts(both, run):
    theirs, ours = both("hosts", run=run, tag="memory_profile")
    assert ours.json() == theirs.json()


@pytest.mark.parametrize(
    ("run", "host"),
    [
        ("2026_11_20_17_33_46", "localhost_47507"),
        ("2026_11_20_17_33_46", "localhost_56665"),
        ("train/2026_11_20_16_57_05", "vm"),
        ("train/2026_11_20_16_57_05", ""),
        ("2026_11_20_17_20_28", "vm"),
    ],
)
@pytest.mark.parametrize("tool", ["memory_profile", "trace_viewer"])
def test_data(both, run, host, tool):
    parameters = {"run": run, "tag": tool, **({"host": host} if host else {})}
    theirs, ours = both("data", **parameters)
    assert ours.status_code == theirs.status_code == 200
    assert ours.headers["content-type"] == theirs.headers["content-type"]
    assert ours.headers["content-encoding"] == theirs.headers["content-encoding"] == "gzip"
    if tool == "memory_profile":
        differences = compare_memory_profiles(theirs.json(), ours.json())
        assert not differences, describe(differences)
    else:
        # test_trace_viewer_peers.py compares the events.
        assert ours.json().keys() == theirs.json().keys()
        assert ours.json()["traceEvents"]


@pytest.mark.parametrize(
    "parameters",
    [
        {"run": "nosuch", "tag": "memory_profile", "host": "vm"},
        {"run": "2026_11_20_17_20_28", "tag": "nosuch", "host": "vm"},
        {"run": "2026_11_20_17_20_28", "tag": "memory_profile", "host": "nosuch"},
    ],
)
def test_what_is_not_there_has_the_same_status(both, parameters):
    theirs, ours = both("data", **parameters)
    assert ours.status_code == theirs.status_code == 404


@pytest.mark.parametrize("route", ["runs", "hosts?run=2026_11_20_17_20_28&tag=memory_profile"])
@pytest.mark.parametrize("accepted", ["gzip", "identity", "br"])
def test_heads_and_encodings(xprof, ours, route, accepted):
    for method in ("GET", "HEAD"):
        theirs, own = (
            client.request(method, f"{PREFIX}/{route}", headers={"Accept-Encoding": accepted})
            for client in (xprof, ours)
        )
        for name in ("content-type", "content-encoding"):
            assert own.headers[name] == theirs.headers[name]
        if method == "HEAD":
            assert own.content == theirs.content == b""
        else:
            assert set(map(str, own.json())) <= set(map(str, theirs.json()))


def test_what_xprof_leaves_behind_is_no_host(both, copy, tmp_path):
    """A directory that the real server has worked in is served as before."""
    run, host = "2026_11_20_17_33_46", "localhost_56665"
    theirs, _ = both("data", run=run, tag="trace_viewer@", host=host)
    assert theirs.status_code == 200
    left = {path.name for path in (copy / "plugins" / "profile" / run).iterdir()}
    assert any(name.endswith(".SSTABLE") for name in left)
    with serving(tmp_path, copy) as face:
        again = face.client.get(f"{PREFIX}/hosts", params={"run": run})
        assert again.json() == both("hosts", run=run, tag="memory_profile")[0].json()
