"""Who may ask: the Host header, pages of other sites, the token; and tricks with names."""

import json
from urllib.parse import quote

import pytest
from tests.each_row import each_row
from tests.service.conftest import SESSIONS
from tests.service.http_client import BINARY, problem, serving

CNN = SESSIONS["tf2_cnn"]
FRIEND = "https://friend.example"
WORD = "s3cret-t0ken"
CHANGES = ["/api/captures", "/api/uploads", f"/api/sessions/{CNN}/sql", "/nosuch"]


@pytest.fixture(scope="module")
def face(sample_logdir, tmp_path_factory):
    folder = tmp_path_factory.mktemp("http")
    with serving(
        folder, sample_logdir, allowed_origins=(FRIEND,), allowed_hosts=("peaks.example",)
    ) as running:
        yield running


@pytest.fixture(scope="module")
def guarded(sample_logdir, tmp_path_factory):
    with serving(tmp_path_factory.mktemp("http"), sample_logdir, token=WORD) as running:
        yield running


def stays_untouched(logdir):
    return sorted(path.name for path in (logdir / "plugins" / "profile").iterdir()) == sorted(
        SESSIONS.values()
    )


@each_row("host", ["localhost", "127.0.0.1:99", "[::1]:8080", "peaks.example:1"])
def test_names_of_the_server_are_answered(face, host):
    assert face.client.get("/api/tools", headers={"Host": host}).status_code == 200


@each_row(
    "host",
    ["evil.example", "localhost.evil.example", "127.0.0.1.evil.example", "peaks.example.evil", "",
     "localhost@evil.example", "10.0.0.1", "2130706433", "127.1", "localhost:port"],
)  # fmt: skip
@each_row("path", ["/api/sessions", "/healthz", "/nosuch"])
def test_a_name_that_was_pointed_here_is_refused(face, host, path):
    problem(face.client.get(path, headers={"Host": host}), 421, "INVALID_ARGUMENT")


def test_two_hosts_or_none_are_refused(face):
    two = b"GET /api/tools HTTP/1.1\r\nHost: localhost\r\nHost: e.io\r\nConnection: close\r\n\r\n"
    assert face.raw(two)[0] in {400, 421}
    assert face.raw(b"GET /api/tools HTTP/1.0\r\n\r\n")[0] == 421


@each_row("path", CHANGES)
@each_row(
    "headers",
    [
        {"Origin": "https://evil.example"},
        {"Origin": "null"},
        {"Origin": "http://localhost:1"},
        {"Origin": "http://127.0.0.1"},
        {"Origin": "https://friend.example.evil"},
        {"Origin": "file://"},
        {"Origin": ""},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
        {"Origin": "https://evil.example", "Sec-Fetch-Site": "same-origin"},
    ],
)
def test_pages_of_other_sites_change_nothing(face, sample_logdir, path, headers):
    for kind in ("text/plain", "application/json", "application/x-www-form-urlencoded"):
        answer = face.client.post(
            path,
            content=b'{"hosts": ["localhost"], "duration_ms": 1}',
            headers={"Content-Type": kind, **headers},
        )
        problem(answer, 403, "PERMISSION_DENIED")
        assert "access-control-allow-origin" not in answer.headers
    assert stays_untouched(sample_logdir)


def test_two_origins_are_refused(face):
    answer = face.raw(
        b"POST /api/captures HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n"
        b"Origin: https://friend.example\r\nOrigin: null\r\nConnection: close\r\n\r\n"
    )
    assert answer[0] == 403


@each_row("method", ["PUT", "PATCH", "DELETE", "TRACE", "FOO"])
def test_other_methods_are_changes_too(face, method):
    answer = face.client.request(method, "/nosuch", headers={"Origin": "https://evil.example"})
    problem(answer, 403, "PERMISSION_DENIED")


def test_the_host_is_looked_at_before_the_origin_and_that_before_the_token(guarded):
    post = guarded.client.post
    both = {"Host": "evil.example", "Origin": "https://evil.example"}
    problem(post("/api/captures", headers=both), 421, "INVALID_ARGUMENT")
    problem(
        post("/api/captures", headers={"Origin": "https://evil.example"}), 403, "PERMISSION_DENIED"
    )
    problem(post("/api/captures"), 401, "UNAUTHENTICATED")


def test_own_pages_and_allowed_ones_may_ask(face):
    sql = f"/api/sessions/{CNN}/sql"
    for headers in (
        {},
        {"Origin": face.url},
        {"Origin": face.url, "Sec-Fetch-Site": "same-origin"},
        {"Sec-Fetch-Site": "none"},
        {"Origin": FRIEND, "Sec-Fetch-Site": "cross-site"},
    ):
        answer = face.client.post(sql, json={"query": "select 1 as one"}, headers=headers)
        assert answer.json() == [{"one": 1}]
        origin = headers.get("Origin")
        assert answer.headers.get("access-control-allow-origin") == origin


def test_reading_pages_get_no_permission_unless_allowed(face):
    evil = face.client.get("/api/sessions", headers={"Origin": "https://evil.example"})
    assert "access-control-allow-origin" not in evil.headers
    friend = face.client.get("/api/sessions", headers={"Origin": FRIEND})
    assert friend.headers["access-control-allow-origin"] == FRIEND
    assert "Origin" in friend.headers["vary"]
    assert "Peakline-Warnings" in friend.headers["access-control-expose-headers"]
    assert "access-control-allow-credentials" not in friend.headers


def test_preflights_are_answered_for_allowed_origins(face):
    asked = {"Access-Control-Request-Method": "POST"}
    friend = face.client.options("/api/captures", headers={"Origin": FRIEND, **asked})
    assert friend.status_code == 204
    assert friend.headers["access-control-allow-origin"] == FRIEND
    assert "POST" in friend.headers["access-control-allow-methods"]
    assert "Authorization" in friend.headers["access-control-allow-headers"]
    evil = face.client.options("/api/captures", headers={"Origin": "https://e.example", **asked})
    problem(evil, 403, "PERMISSION_DENIED")
    assert "access-control-allow-origin" not in evil.headers


@each_row("path", ["/api/sessions", "/metrics", "/openapi.json", "/nosuch"])
@each_row(
    "shown",
    [None, WORD, "Bearer", "Bearer wrong", f"Bearer {WORD[:-1]}", "Basic czNjcmV0", "\xff"],
)
def test_without_the_token_there_is_nothing(guarded, path, shown):
    headers = {} if shown is None else {"Authorization": shown.encode("latin-1")}
    answer = guarded.client.get(path, headers=headers)
    problem(answer, 401, "UNAUTHENTICATED")
    assert answer.headers["www-authenticate"].startswith("Bearer")


def test_with_the_token_there_is_everything_and_the_log_has_not_got_it(guarded):
    shown = {"Authorization": "Bearer s3cret-t0ken"}
    assert guarded.client.get("/api/sessions", headers=shown).status_code == 200
    assert guarded.client.get("/healthz").status_code == 200
    assert WORD not in guarded.log_path.read_text()


def test_two_tokens_are_none(guarded):
    good, bad = (("Authorization", f"Bearer {word}") for word in (WORD, "wrong"))
    for shown in ([good, bad], [bad, good], [good, good]):
        problem(guarded.client.get("/api/sessions", headers=shown), 401, "UNAUTHENTICATED")


def test_a_token_in_the_place_of_a_request_id_is_not_logged(guarded):
    for path in ("/healthz", "/api/sessions"):
        answer = guarded.client.get(path, headers={"X-Request-Id": WORD})
        assert answer.headers["x-request-id"] != WORD
    assert WORD not in guarded.log_path.read_text()


@each_row(
    "request_line_and_headers",
    [
        b"GET /api/tools HTTP/1.1\r\n\r\n",
        b"GET /api/tools HTTP/1.1\r\nHost: localhost\r\nHost: e.io\r\n\r\n",
        b"GET /api/\xc3\xa9 HTTP/1.1\r\nHost: localhost\r\n\r\n",
        b"junk\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: localhost\r\nX: " + b"x" * 100_000,
    ],
)
def test_what_is_no_request_is_a_problem_too(face, request_line_and_headers):
    status, answer = face.raw(request_line_and_headers)
    head, _, body = answer.partition(b"\r\n\r\n")
    assert status == 400
    assert b"content-type: application/problem+json" in head.lower()
    document = json.loads(body)
    assert (document["status"], document["code"]) == (400, "INVALID_ARGUMENT")
    assert face.client.get("/healthz").status_code == 200


def test_refusals_are_counted_and_logged(guarded):
    guarded.client.get("/api/sessions")
    guarded.client.get("/api/sessions", headers={"Host": "evil.example"})
    numbers = guarded.client.get("/metrics", headers={"Authorization": "Bearer s3cret-t0ken"}).text
    assert 'peakline_refused_total{reason="token"}' in numbers
    assert 'reason="host"} 0.0' not in numbers
    assert {"401", "421"} <= {line["code"] for line in guarded.log_lines()}


TRICKS = [
    "..", ".", "../../../etc/passwd", "..\\..\\secret", "%2e%2e%2f", "..%2fsecret",
    "%252e%252e%252fsecret", "..%c0%af", "%00", "a\x00b", "/etc/passwd", "file:///etc/passwd",
    "~root", "a/b", "a\\b", "a\nb", "\x1b[31m", "\u2025/\u2025", "\uff0e\uff0e\uff0fsecret",
    "\u202e", "a" * 5000, "\U0001f4a9" * 60, ".hidden", "secret", "linked", "outside",
]  # fmt: skip
NAMED = [
    "/api/sessions/{}",
    "/api/sessions/{}/tables",
    "/api/sessions/{}/tools/memory_profile",
    f"/api/sessions/{CNN}/tools/{{}}",
    f"/api/sessions/{CNN}/tools/memory_profile?host={{}}",
    f"/api/sessions/{CNN}/tools/memory_profile?memory_id={{}}",
    f"/api/sessions/{CNN}/tools/memory_profile?format={{}}",
    f"/api/sessions/{CNN}/tables?host={{}}",
    "/api/sessions?root={}",
    "/data/plugin/profile/runs?root={}",
    "/data/plugin/profile/runs?session_path={}",
    "/data/plugin/profile/run_tools?run={}",
    "/data/plugin/profile/hosts?run={}",
    "/data/plugin/profile/data?run={}&tag=memory_profile",
    "/data/plugin/profile/data?tag=memory_profile&host=vm&run=train/{}",
    f"/data/plugin/profile/data?run={CNN}&tag={{}}",
    f"/data/plugin/profile/data?run={CNN}&tag=memory_profile&host={{}}",
    f"/data/plugin/profile/data?run={CNN}&tag=memory_profile&hosts=vm,{{}}",
]


@pytest.fixture(scope="module")
def trapped(sample_logdir, tmp_path_factory):
    """A server whose log directory has links that lead out, beside a session with a secret."""
    import shutil

    place = tmp_path_factory.mktemp("trapped")
    logdir, outside = place / "logs", place / "secret"
    shutil.copytree(sample_logdir, logdir)
    sessions = logdir / "plugins" / "profile"
    outside.mkdir()
    shutil.copy(next((sessions / CNN).iterdir()), outside / "secrethost.xplane.pb.gz")
    (sessions / "linked").symlink_to(outside)
    (sessions / CNN / "outside.xplane.pb.gz").symlink_to(outside / "secrethost.xplane.pb.gz")
    with serving(place, logdir) as running:
        yield running


@each_row("path", NAMED)
def test_no_name_leads_out(trapped, path):
    for trick in TRICKS:
        for spelled in {quote(trick, safe=""), quote(trick, safe="%")}:
            # Not through the client, which would tidy the path up.
            target = path.format(spelled)
            status, answer = trapped.raw(
                f"GET {target} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
                "Accept-Encoding: identity\r\n\r\n".encode()
            )
            empty = path.startswith(
                ("/data/plugin/profile/run_tools", "/data/plugin/profile/hosts")
            )
            assert status in {400, 403, 404} or (empty and status == 200), (target, answer)
            if status == 200:
                assert answer.partition(b"\r\n\r\n")[2][:2] == b"\x1f\x8b"
                assert b"Content-Length: 22" in answer.title(), (target, answer)
            assert b"secrethost" not in answer
            assert b"root:" not in answer
            assert str(trapped.log_path.parent).encode() not in answer


def test_links_that_lead_out_are_not_listed(trapped):
    assert "linked" not in trapped.client.get("/api/sessions").text
    assert "outside" not in trapped.client.get(f"/api/sessions/{CNN}").text
    assert "linked" not in trapped.client.get("/data/plugin/profile/runs").text


@each_row("trick", [trick for trick in TRICKS if trick not in {"secret", "outside"}])
def test_no_upload_leads_out(trapped, trick):
    before = sorted(path for path in trapped.log_path.parent.rglob("*"))
    for name in ("session_id", "host", "root"):
        parameters = {"session_id": "new", name: trick}
        answer = trapped.client.post(
            "/api/uploads", params=parameters, content=b"\x0a\x00", headers=BINARY
        )
        if answer.status_code == 201:  # an odd name, and none that leads anywhere
            document = answer.json()
            made = trapped.log_path.parent / "logs" / "plugins" / "profile" / document["session_id"]
            (kept,) = made.iterdir()
            assert kept.name.startswith(document["hosts"][0] + ".")
            kept.unlink()
            made.rmdir()
        else:
            assert answer.status_code in {400, 403, 409}, (name, answer.text)
            assert str(trapped.log_path.parent) not in answer.text
    assert before == sorted(path for path in trapped.log_path.parent.rglob("*"))


def test_captures_go_only_to_allowed_hosts(trapped):
    for host in (
        "evil.example",
        "10.0.0.1:8466",
        "127.0.0.1/../x",
        "a b",
        "",
        "\x00",
        "::ffff:1.2.3.4",
    ):
        answer = trapped.client.post(
            "/api/captures", json={"hosts": [host], "duration_ms": 10, "session_id": "new"}
        )
        assert answer.status_code in {400, 403}, (host, answer.text)
    for name in ("..", "a/b", ".x", "\\", "a\x00"):
        answer = trapped.client.post(
            "/api/captures", json={"hosts": ["localhost"], "duration_ms": 10, "session_id": name}
        )
        problem(answer, 400, "INVALID_ARGUMENT")
