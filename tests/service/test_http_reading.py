"""Sessions, tools, tables and their headers over HTTP, from a real server."""

import gzip
import json
import shutil
from datetime import datetime

import httpx
import pytest
from tests.each_row import each_row
from tests.service.conftest import SESSIONS
from tests.service.http_client import problem, serving
from tests.tool_lists import XSPACE_TOOLS
from tests.waiting import HANG_S

import peakline
from peakline.service.http import answers
from peakline.tools import tool_names

CNN = SESSIONS["tf2_cnn"]
TWO_HOSTS = SESSIONS["tf2_multihost"]


@pytest.fixture
def face(shared_face):
    return shared_face


@pytest.fixture
def get(face):
    return face.client.get


def memory(face, **headers):
    return face.client.get(f"/api/sessions/{CNN}/tools/memory_profile", headers=headers)


def test_health_is_open_and_says_ok(get):
    assert get("/healthz").json() == {"status": "ok"}


def test_metrics_are_prometheus_text(get):
    get("/healthz")
    answer = get("/metrics")
    assert answer.headers["content-type"].startswith("text/plain; version=0.0.4")
    assert 'peakline_requests_total{code="200",face="http",method="GET /healthz"}' in answer.text


def test_the_tools_tell_their_parameters(get):
    tools = {tool["name"]: tool for tool in get("/api/tools").json()}
    assert sorted(tools) == tool_names()
    assert tools["memory_profile"]["formats"] == ["json", "proto"]
    assert tools["memory_profile"]["parameters"]["properties"]["max_snapshots"]["default"] == 1000


def test_sessions_are_listed_newest_first_with_hosts_and_tools(get, sample_logdir):
    sessions = get("/api/sessions").json()
    assert [each["session_id"] for each in sessions] == sorted(SESSIONS.values(), reverse=True)
    by_id = {each["session_id"]: each for each in sessions}
    assert by_id[TWO_HOSTS]["hosts"] == ["localhost_47507", "localhost_56665"]
    assert by_id[CNN]["tools"] == XSPACE_TOOLS
    files = [path.stat() for path in (sample_logdir / "plugins/profile" / TWO_HOSTS).iterdir()]
    assert by_id[TWO_HOSTS]["bytes"] == sum(file.st_size for file in files)
    newest = datetime.fromisoformat(by_id[TWO_HOSTS]["modified"]).timestamp()
    assert newest == int(max(file.st_mtime for file in files))
    assert get(f"/api/sessions/{CNN}").json() == by_id[CNN]


def test_a_session_that_goes_while_it_is_listed_is_left_out(tmp_path, sample_logdir, monkeypatch):
    logdir = tmp_path / "logs"
    shutil.copytree(sample_logdir, logdir)
    with serving(tmp_path, logdir) as own:
        listing = own.analysis.listing

        def losing(root, request):
            result = listing(root, request)
            shutil.rmtree(logdir / "plugins" / "profile" / CNN)
            return result

        monkeypatch.setattr(own.analysis, "listing", losing)
        answer = [session["session_id"] for session in own.client.get("/api/sessions").json()]
        assert answer == sorted({*SESSIONS.values()} - {CNN}, reverse=True)


def test_a_root_may_be_named_in_both_ways(get, sample_logdir):
    expected = get("/api/sessions").json()
    for root in (sample_logdir, sample_logdir / "plugins" / "profile"):
        assert get("/api/sessions", params={"root": str(root)}).json() == expected


def test_tables_of_one_host_or_all(get):
    assert "allocator_events" in get(f"/api/sessions/{CNN}/tables").json()
    named = get(f"/api/sessions/{TWO_HOSTS}/tables", params={"host": "localhost_47507"})
    assert "events" in named.json()
    # A query without a host is over all of them, which are a table too.
    every = get(f"/api/sessions/{TWO_HOSTS}/tables").json()
    assert set(every) - set(named.json()) == {"ranks"}


def test_tool_data_are_exactly_the_bytes_of_the_tool(face, sample_logdir):
    with peakline.open(sample_logdir, session=CNN) as profile:
        for kind, media_type in (("json", "application/json"), ("proto", "application/x-protobuf")):
            expected = profile.tool("memory_profile", format=kind, max_snapshots=7).content
            answer = face.client.get(
                f"/api/sessions/{CNN}/tools/memory_profile",
                params={"format": kind, "max_snapshots": "7"},
            )
            assert answer.content == expected
            assert answer.headers["content-type"] == media_type


@each_row("tool", ["job", "collectives"])
def test_a_session_has_the_tools_about_all_its_hosts(get, sample_logdir, tool):
    assert tool in get(f"/api/sessions/{TWO_HOSTS}").json()["tools"]
    session = peakline.Repository(sample_logdir).session(TWO_HOSTS)
    answer = get(f"/api/sessions/{TWO_HOSTS}/tools/{tool}")
    assert answer.content == session.tool(tool).content


def test_text_formats_have_their_types(tmp_path, root):
    profile = root / "tests" / "data" / "graph_def" / "frozen.pb"
    logdir = tmp_path / "logs" / "plugins" / "profile" / "one"
    logdir.mkdir(parents=True)
    (logdir / "host.profile").write_bytes(profile.read_bytes())
    with serving(tmp_path, tmp_path / "logs") as own:
        for kind, media_type in (
            ("text", "text/plain; charset=utf-8"),
            ("dot", "text/vnd.graphviz; charset=utf-8"),
        ):
            answer = own.client.get("/api/sessions/one/tools/graph", params={"format": kind})
            assert answer.status_code == 200, answer.text
            assert answer.headers["content-type"] == media_type


def test_unknown_parameters_are_noted(get):
    answer = get(f"/api/sessions/{CNN}/tools/memory_profile", params={"nösuch": "1"})
    (note,) = json.loads(answer.headers["peakline-notes"])
    assert "su" in note
    assert "ignored" in note
    assert answer.headers["peakline-notes"].isascii()


def test_warnings_come_in_a_header(get):
    answer = get(f"/api/sessions/{SESSIONS['jax_captured']}/tools/memory_profile")
    assert json.loads(answer.headers["peakline-warnings"])[0].keys() == {"kind", "count", "detail"}


def test_answers_are_packed_only_for_those_who_accept_it(face):
    plain = memory(face, **{"Accept-Encoding": "identity"})
    packed = memory(face, **{"Accept-Encoding": "gzip"})
    assert "content-encoding" not in plain.headers
    assert packed.headers["content-encoding"] == "gzip"
    assert packed.headers["vary"] == "Accept-Encoding"
    assert int(packed.headers["content-length"]) < len(plain.content) / 3
    assert packed.content == plain.content
    assert "content-encoding" not in memory(face, **{"Accept-Encoding": "gzip;q=0, *"}).headers
    assert "content-encoding" not in memory(face, **{"Accept-Encoding": "br"}).headers


def test_an_answer_that_is_held_is_packed_once(face, monkeypatch):
    path = f"/api/sessions/{CNN}/tools/trace_viewer"
    first = face.client.get(path, headers={"Accept-Encoding": "gzip"})
    monkeypatch.setattr(answers, "gzipped", None)
    again = face.client.get(path, headers={"Accept-Encoding": "gzip"})
    assert again.headers["content-encoding"] == "gzip"
    assert again.content == first.content


def test_columns_are_not_packed_for_callers_on_this_machine(get):
    lanes = f"/api/sessions/{CNN}/tools/timeline?view=lanes"
    packed = get(lanes, headers={"Accept-Encoding": "gzip"})
    plain = get(f"{lanes}&format=bin", headers={"Accept-Encoding": "gzip"})
    assert packed.headers["content-encoding"] == "gzip"
    assert "content-encoding" not in plain.headers
    assert plain.content.startswith(b"PEAKTIME")


def test_who_has_the_content_gets_304(face):
    first = memory(face)
    tag = first.headers["etag"]
    assert first.headers["cache-control"] == "private, no-cache"
    for given in (tag, tag.removeprefix("W/"), f'"other", {tag}', "*"):
        again = memory(face, **{"If-None-Match": given})
        assert (again.status_code, again.content) == (304, b"")
        assert again.headers["etag"] == tag
    assert memory(face, **{"If-None-Match": '"other"'}).status_code == 200


def test_the_tag_follows_the_content(face):
    tags = {
        face.client.get(
            f"/api/sessions/{CNN}/tools/memory_profile", params={"max_snapshots": number}
        ).headers["etag"]
        for number in (1, 2)
    }
    assert len(tags) == 2


@each_row(
    "path", ["/healthz", "/api/sessions", f"/api/sessions/{CNN}/tools/memory_profile", "/nosuch"]
)
def test_head_is_get_without_the_body(face, path):
    got, head = face.client.get(path), face.client.head(path)
    assert head.content == b""
    assert head.status_code == got.status_code
    varying = {"date", "x-request-id"}
    assert {k: v for k, v in head.headers.items() if k not in varying} == {
        k: v for k, v in got.headers.items() if k not in varying
    }


def test_every_answer_has_the_security_headers(face):
    for answer in (face.client.get("/healthz"), face.client.get("/nosuch"), memory(face)):
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["referrer-policy"] == "no-referrer"
        assert answer.headers["content-security-policy"].startswith("default-src 'none'")
        assert "access-control-allow-origin" not in answer.headers
    assert face.client.get("/api/sessions").headers["cache-control"] == "no-store"


def test_a_request_has_an_id_in_the_answer_and_in_the_log(face):
    own = face.client.get(f"/api/sessions/{CNN}", headers={"X-Request-Id": "mine-1"})
    assert own.headers["x-request-id"] == "mine-1"
    other = face.client.get("/healthz", headers={"X-Request-Id": 'no"id\\'})
    assert other.headers["x-request-id"].isalnum()
    (line,) = [line for line in face.log_lines() if line.get("request_id") == "mine-1"]
    assert line["method"] == "GET /api/sessions/{session_id}"
    assert (line["face"], line["code"], line["session"]) == ("http", "200", CNN)
    assert line["bytes"] == int(own.headers["content-length"])


@each_row(
    ("path", "status", "code", "word"),
    [
        ("/docs", 404, "NOT_FOUND", "openapi.json"),
        ("/api/sessions/", 404, "NOT_FOUND", "openapi.json"),
        ("/api/sessions/nosuch", 404, "NOT_FOUND", "nosuch"),
        (f"/api/sessions/{CNN}/tools/nosuch", 404, "NOT_FOUND", "memory_profile"),
        (f"/api/sessions/{CNN}/tools/memory_profile?host=b", 404, "NOT_FOUND", "vm"),
        (f"/api/sessions/{CNN}/tools/memory_profile?memory_id=b", 404, "NOT_FOUND", "'b'"),
        (f"/api/sessions/{CNN}/tools/memory_profile?format=x", 400, "INVALID_ARGUMENT", "proto"),
        (f"/api/sessions/{CNN}/tools/memory_profile?version=x", 400, "INVALID_ARGUMENT", "version"),
        (f"/api/sessions/{CNN}/tools/graph?host=vm&host=vm", 400, "INVALID_ARGUMENT", "twice"),
        ("/api/sessions?rot=1", 400, "INVALID_ARGUMENT", "'rot'"),
        ("/api/sessions?root=a&root=b", 400, "INVALID_ARGUMENT", "twice"),
        ("/api/sessions?root=/etc", 403, "PERMISSION_DENIED", "/etc"),
        ("/api/sessions?root=%ff", 400, "INVALID_ARGUMENT", "UTF-8"),
        ("/api/sessions?root=a%00", 400, "INVALID_ARGUMENT", "UTF-8"),
        ("/data/plugin/profile/data?run=x", 400, "INVALID_ARGUMENT", "tag is missing"),
    ],
)
def test_what_is_wrong_is_told_in_a_problem_document(get, path, status, code, word):
    assert word in problem(get(path), status, code)


def test_a_method_that_is_not_there_says_which_are(face):
    answer = face.client.delete(f"/api/sessions/{CNN}")
    assert "DELETE" in problem(answer, 405, "UNIMPLEMENTED")
    assert answer.headers["allow"] == "GET, HEAD"


def test_a_fault_of_ours_tells_an_id_and_logs_the_rest(face, monkeypatch):
    def broken(*_args, **_kwargs):
        raise RuntimeError("secret /path/of/ours")

    monkeypatch.setattr(face.analysis, "listing", broken)
    answer = face.client.get("/api/sessions")
    detail = problem(answer, 500, "INTERNAL")
    request_id = answer.headers["x-request-id"]
    assert detail == f"internal error ({request_id})"
    (line,) = [
        line
        for line in face.log_lines()
        if line.get("request_id") == request_id and "traceback" in line
    ]
    assert "secret /path/of/ours" in line["traceback"]


def test_a_damaged_profile_is_told_without_the_servers_paths(tmp_path):
    folder = tmp_path / "logs" / "plugins" / "profile" / "one"
    folder.mkdir(parents=True)
    (folder / "host.xplane.pb.gz").write_bytes(gzip.compress(b"\x0a\xff\xff\xff\x7f" * 9)[:-9])
    with serving(tmp_path, tmp_path / "logs") as face:
        answer = face.client.get("/api/sessions/one/tools/memory_profile")
        assert answer.status_code in {400, 422}
        assert str(tmp_path) not in answer.text
        (listed,) = face.client.get("/api/sessions").json()
        assert (listed["session_id"], listed["hosts"], listed["tools"]) == ("one", ["host"], [])


def test_several_roots_need_a_name(tmp_path, sample_logdir):
    other = tmp_path / "other"
    other.mkdir()
    with serving(tmp_path, sample_logdir, other) as face:
        assert "2" in problem(face.client.get("/api/sessions"), 400, "INVALID_ARGUMENT")
        assert face.client.get("/api/sessions", params={"root": str(other)}).json() == []


def test_requests_at_once_all_get_their_answer(face):
    async def ask() -> list[httpx.Response]:
        import asyncio

        limits = httpx.Limits(max_connections=40)
        async with httpx.AsyncClient(base_url=face.url, limits=limits, timeout=HANG_S) as client:
            paths = [f"/api/sessions/{CNN}/tools/memory_profile", "/api/sessions"] * 30
            return await asyncio.gather(*(client.get(path) for path in paths))

    import asyncio

    answers = asyncio.run(ask())
    assert {answer.status_code for answer in answers} == {200}
    assert len({answer.content for answer in answers}) == 2


@each_row("path", ["server", "tools", "tables", "figures"])
def test_lists_that_take_no_parameter_refuse_one(face, path):
    assert face.client.get(f"/api/{path}").status_code == 200
    answer = face.client.get(f"/api/{path}", params={"roots": "x"})
    assert "roots" in problem(answer, 400, "INVALID_ARGUMENT")
