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


def test_what_the_front_end_reads_first(get):
    assert get("version").text == "2.24.2"
    shown = get("config").json()
    assert shown == {
        "hideCaptureProfileButton": False,
        "srcPathPrefix": "",
        "enableTabNameLabel": False,
    }


def test_the_programs_of_a_run_with_the_largest_first(get):
    names = get("module_list", run=NESTED, tag="graph_viewer", graph_type="xla").text.split(",")
    assert len(names) == len(set(names)) > 1
    largest = get("data", run=NESTED, tag="memory_viewer").json()
    named = get("data", run=NESTED, tag="memory_viewer", module_name=names[0]).json()
    assert largest == named
    assert names[0].startswith(largest["moduleName"])
    peaks = [
        get("data", run=NESTED, tag="memory_viewer", module_name=name).json() for name in names
    ]
    assert (
        max(one["totalBufferAllocationMib"] for one in peaks)
        == peaks[0]["totalBufferAllocationMib"]
    )
    assert get("module_list", run="nosuch").text == ""
    assert get("module_list", run=CNN).text == ""


def plain_csv(table):
    """As XProf writes it: every cell quoted, a line per row."""

    def line(cells):
        texts = ("" if cell is None else str(cell) for cell in cells)
        return ",".join('"' + text.replace('"', '""') + '"' for text in texts) + "\n"

    labels = [column["label"] for column in table["cols"]]
    rows = [[cell and cell.get("v") for cell in row["c"]] for row in table["rows"]]
    return "".join(map(line, [labels, *rows]))


@each_row("tag", ["framework_op_stats", "overview_page", "input_pipeline_analyzer"])
def test_a_table_for_a_spreadsheet(get, tag):
    table = get("data", run=CNN, tag=tag, host="vm").json()
    expected = plain_csv(table[0] if isinstance(table, list) else table)
    assert expected.count("\n") > 1 or tag != "framework_op_stats"
    answer = get("data_csv", run=CNN, tag=tag, host="vm", tqx="out:csv;")
    assert answer.text == expected
    assert answer.headers["content-type"].startswith("text/csv")
    assert f'filename="{tag}_{CNN}_vm.csv"' in answer.headers["content-disposition"]
    assert get("data", run=CNN, tag=tag, host="vm", tqx="out:csv;").text == expected
    # What was written as CSV leaves the tool's own answer as it is.
    assert get("data", run=CNN, tag=tag, host="vm").json() == table


def test_what_has_no_table_is_no_csv(get):
    for route, more in (("data_csv", {}), ("data", {"tqx": "out:csv"})):
        problem(get(route, run=CNN, tag="memory_profile", **more), 400, "INVALID_ARGUMENT")
        problem(get(route, run="nosuch", tag="overview_page", **more), 404, "NOT_FOUND")


def test_the_front_end_captures(capturing):
    client, before = capturing.face.client, capturing.sessions
    get = f"{PREFIX}/capture_profile"
    answer = client.get(get, params={"service_addr": "a", "duration": "10", "num_retry": "0"})
    assert answer.json() == {"result": "Capture profile successfully. Please refresh."}
    assert len(capturing.sessions) == len(before) + 1
    assert client.get(get, params={"service_addr": "b", "duration": "10"}).status_code == 503
    for parameters, status, text in (
        ({"service_addr": ""}, 400, "no hosts"),
        ({"service_addr": "nobody.example"}, 403, "not allowed"),
        ({"service_addr": "localhost:1"}, 400, "--profiler-port 1"),
        ({"service_addr": "a", "session_path": "/"}, 403, "session_path"),
    ):
        answer = client.get(get, params=parameters)
        assert answer.status_code == status
        assert text in answer.json()["error"]
    problem(client.get(get, params={"service_addr": "a", "duration": "x"}), 400, "INVALID_ARGUMENT")
    assert len(capturing.sessions) == len(before) + 1


@each_row(
    ("headers", "status"),
    [
        ({"Origin": "https://evil.example"}, 403),
        ({"Sec-Fetch-Site": "cross-site"}, 403),
        ({"Sec-Fetch-Site": "same-site"}, 403),
        # Without TLS an image of another site's page says no more than who made the browser.
        ({"User-Agent": "Mozilla/5.0 (X11; Linux x86_64)"}, 403),
        ({"User-Agent": "Mozilla/5.0 (X11; Linux x86_64)", "Sec-Fetch-Site": "same-origin"}, 400),
        ({"User-Agent": "curl/8.5"}, 400),
    ],
)
def test_no_page_of_another_site_captures(shared_face, headers, status):
    capture = shared_face.client.get(f"{PREFIX}/capture_profile", headers=headers)
    assert capture.status_code == status
    # Nor does another spelling of the path.
    other = shared_face.client.get(f"{PREFIX}/capture_profile/", headers=headers)
    assert other.status_code == (403 if status == 403 else 404)
    assert shared_face.client.get(f"{PREFIX}/runs", headers=headers).status_code == 200
