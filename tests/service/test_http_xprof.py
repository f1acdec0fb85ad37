"""XProf's read endpoints; tests/conformance compares them with the real server."""

import gzip
import json
import shutil
import urllib.request

import pytest
from tests.each_row import each_row
from tests.service.conftest import SESSIONS
from tests.service.http_client import problem, serving
from tests.tool_lists import MEMORY_TOOLS, PROGRAM_TOOLS, XSPACE_TOOLS

CNN, TWO = SESSIONS["tf2_cnn"], SESSIONS["tf2_multihost"]
NESTED = f"train/{SESSIONS['jax_captured']}"
PREFIX = "/data/plugin/profile"


@pytest.fixture(scope="module")
def face(sample_logdir, tmp_path_factory):
    place = tmp_path_factory.mktemp("http")
    logdir = place / "logs"
    shutil.copytree(sample_logdir, logdir)
    inner = logdir / "train" / "plugins" / "profile"
    inner.mkdir(parents=True)
    moved = SESSIONS["jax_captured"]
    (logdir / "plugins" / "profile" / moved).rename(inner / moved)
    with serving(place, logdir) as running:
        yield running


@pytest.fixture(scope="module")
def get(face):
    def ask(route, **parameters):
        return face.client.get(f"{PREFIX}/{route}", params=parameters)

    return ask


def test_runs_are_names_in_falling_order(get):
    expected = [NESTED, *(SESSIONS[name] for name in SESSIONS if name != "jax_captured")]
    assert get("runs").json() == sorted(expected, reverse=True)


def test_tools_and_hosts_of_a_run(get):
    order = [
        "overview_page", "trace_viewer@", "graph_viewer", "op_profile", "input_pipeline_analyzer",
        "memory_profile", "memory_viewer", "roofline_model", "pod_viewer", "framework_op_stats",
        "hlo_stats",
    ]  # fmt: skip
    for run, tools in (
        (CNN, XSPACE_TOOLS),
        (NESTED, {*XSPACE_TOOLS, *PROGRAM_TOOLS} - {*MEMORY_TOOLS}),
    ):
        first = [tool for tool in order if tool in tools]
        rest = sorted({*tools} - {*first, "trace_viewer"})
        assert get("run_tools", run=run).json() == [*first, *rest]
    hosts = [{"hostname": "localhost_47507"}, {"hostname": "localhost_56665"}]
    assert get("hosts", run=TWO, tag="memory_profile").json() == hosts
    assert get("hosts", run=TWO).json() == hosts
    assert get("hosts", run=TWO, tag="trace_viewer@").json() == hosts
    for run in (TWO, "nosuch"):
        problem(get("hosts", run=run, tag='"]\n'), 400, "INVALID_ARGUMENT")


def test_a_run_that_is_not_there_has_nothing(get):
    for run in ("nosuch", "train/nosuch", "nosuch/nosuch"):
        assert get("run_tools", run=run).json() == []
        assert get("hosts", run=run, tag="memory_profile").json() == []
        problem(get("data", run=run, tag="memory_profile"), 404, "NOT_FOUND")


def test_data_are_those_of_the_other_route(face, get):
    own = face.client.get(f"/api/sessions/{CNN}/tools/memory_profile")
    for parameters in (
        {"host": "vm"},
        {},
        {"hosts": "vm"},
        {"host": "ALL_HOSTS"},
        {"host": "vm", "tqx": "out:json;", "use_saved_result": "false", "full_dma": "true"},
    ):
        answer = get("data", run=CNN, tag="memory_profile", **parameters)
        assert answer.content == own.content
        assert answer.headers["etag"] == own.headers["etag"]
    problem(get("data", run=CNN, tag="nosuch"), 404, "NOT_FOUND")
    problem(get("data", run=CNN, tag="memory_profile", host="nosuch"), 404, "NOT_FOUND")
    problem(
        get("data", run=TWO, tag="memory_profile", hosts="localhost_47507,nosuch"),
        400,
        "INVALID_ARGUMENT",
    )


def test_both_trace_viewers_are_there(get):
    whole = get("data", run=CNN, tag="trace_viewer", host="vm").json()
    part = get(
        "data", run=CNN, tag="trace_viewer@", host="vm", start_time_ms="20", end_time_ms="40",
        resolution="100", full_dma="false",
    ).json()  # fmt: skip
    assert 10 < part["returnedEventsSize"] < 1000 < len(whole["traceEvents"])
    packed = get("data", run=CNN, tag="trace_viewer@", host="vm", format="pb")
    assert packed.headers["content-type"] == "application/octet-stream"


def test_a_script_that_unpacks_by_hand_works(face):
    for route in ("runs", f"data?run={CNN}&tag=memory_profile"):
        with urllib.request.urlopen(f"{face.url}{PREFIX}/{route}") as answer:  # noqa: S310
            assert answer.headers["Content-Encoding"] == "gzip"
            json.loads(gzip.decompress(answer.read()))


def test_head_has_the_headers(face):
    head = face.client.head(f"{PREFIX}/runs")
    assert (head.status_code, head.content) == (200, b"")
    assert head.headers["content-encoding"] == "gzip"


@each_row("name", ["session_path", "run_path"])
def test_no_directory_can_be_named(get, sample_logdir, name):
    for route in ("runs", "run_tools", "hosts", "data"):
        answer = get(route, run=CNN, tag="graph", **{name: str(sample_logdir)})
        problem(answer, 403, "PERMISSION_DENIED")


def test_a_parameter_given_twice_counts_once(face):
    answer = face.client.get(f"{PREFIX}/hosts?run={CNN}&tag=a&tag=b&unknown=1&unknown=2")
    assert answer.json() == [{"hostname": "vm"}]
