"""What the HTTP server refuses: hosts, origins and connections beyond its limits."""

import asyncio
import json
import resource
import socket
import ssl
from contextlib import ExitStack
from urllib.parse import quote

import httpx
import pytest
from tests.each_row import each_row
from tests.service.certificates import Authority
from tests.service.conftest import SESSIONS
from tests.service.http_client import BINARY, problem, serving
from tests.service.process_numbers import costs_of, metric
from tests.service.server_process import running_server
from tests.waiting import HANG_S, growing, until

from peakline.errors import BusyError
from peakline.service import deliveries
from peakline.service.http import page_routes
from peakline.service.http_server import GuardedProtocol
from peakline.service.prometheus import PrometheusMetrics
from peakline.web import Editions, PageFile, files

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
    request = {"Access-Control-Request-Method": "POST"}
    friend = face.client.options("/api/captures", headers={"Origin": FRIEND, **request})
    assert friend.status_code == 204
    assert friend.headers["access-control-allow-origin"] == FRIEND
    assert "POST" in friend.headers["access-control-allow-methods"]
    assert "Authorization" in friend.headers["access-control-allow-headers"]
    evil = face.client.options("/api/captures", headers={"Origin": "https://e.example", **request})
    problem(evil, 403, "PERMISSION_DENIED")
    assert "access-control-allow-origin" not in evil.headers


@each_row("path", ["/api/sessions", "/metrics", "/openapi.json", "/nosuch"])
@each_row(
    "shown", [None, WORD, "Bearer", "Bearer wrong", f"Bearer {WORD[:-1]}", "Basic czNjcmV0", "\xff"]
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


def test_a_token_in_the_place_of_a_name_is_not_logged(guarded):
    paths = (f"/{WORD}", f"/api/sessions/{WORD}", f"/api/sessions/{CNN}/tools/{WORD}")
    names = (f"/api/sessions/{CNN}/tools/op_stats?host={WORD}", f"/api/sessions?root={WORD}")
    for path in (*paths, *names):
        answer = guarded.client.get(path, headers={"Authorization": f"Bearer {WORD}"})
        assert answer.status_code in {403, 404}, path
    text = guarded.log_path.read_text()
    assert "(a token)" in text
    assert WORD[:7] not in text


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


CHUNKED = b"Transfer-Encoding: chunked\r\n"
NEXT = b"GET /api/tools HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
POST = b"POST /api/captures HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"


@each_row(
    "head",
    [
        POST + b"Content-Length: 4\r\n" + CHUNKED,
        POST + CHUNKED + b"X: y\r\ncontent-length:4\r\n",
        POST + CHUNKED + b"Content-Length : 4\r\n",
        POST + b"X: y\n" + CHUNKED,
        POST + b"X: y\n\r\n" + CHUNKED,
        POST + b"Transfer-Encoding:\r\n chunked\r\n",
        POST + b"Transfer-Encoding:\r\n\tchunked\r\n",
        POST.replace(b"\r\n", b"\n"),
        b"GET /healthz HTTP/1.1\r\nHost:\r\n localhost\r\n",
        b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n" + POST + b"X: y\n" + CHUNKED,
    ],
)
def test_a_head_that_a_proxy_may_read_otherwise_ends_the_connection(face, head):
    """Behind it stands a request that must not be answered, whole and in pieces."""
    content = head + b"\r\n0\r\n\r\n" + NEXT
    for step in (len(content), 7):
        with socket.create_connection(("127.0.0.1", face.port), HANG_S) as connection:
            for at in range(0, len(content), step):
                try:
                    connection.sendall(content[at : at + step])
                except OSError:  # it has been closed
                    break
            statuses = [one[:3] for one in rest(connection).split(b"HTTP/1.1 ")[1:]]
        assert statuses == [b"200"] * head.count(b"/healthz HTTP/1.1\r\nHost: l") + [b"400"]


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
            (chosen,) = made.iterdir()
            assert chosen.name.startswith(document["hosts"][0] + ".")
            chosen.unlink()
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


HEALTH = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n"
HALF_HEADS = (b"", b"GET /api/ses", HEALTH, HEALTH + b"X-Slow: a\r\nX-Slower: ")
UPLOAD = (
    b"POST /api/uploads HTTP/1.1\r\nHost: localhost\r\n"
    b"Content-Type: application/octet-stream\r\nContent-Length: 1000000\r\n\r\nabc"
)
LARGE = b"GET /assets/large.js HTTP/1.1\r\nHost: localhost\r\n\r\n"
"""Of a file that the fixture ``large`` adds to the page: more than systems take unread."""
LARGE_BYTES = 5 << 20
FOREIGN = "127.0.0.2"
"""A further address of this machine, where the system has one."""


@pytest.fixture
def connect():
    """``connect(port, content, source)``: a connection, open until the end of the test; the
    system takes ``takes`` bytes for it that nobody has read.
    """
    with ExitStack() as stack:

        def make(port, content=b"", source="", takes=0):
            one = stack.enter_context(socket.socket())
            one.settimeout(HANG_S)
            if takes:
                one.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, takes)
            if source:
                one.bind((source, 0))
            one.connect(("127.0.0.1", port))
            one.sendall(content)
            return one

        yield make


@pytest.fixture
def start(tmp_path, sample_logdir):
    """``start(**settings)``: a server until the end of the test; by default it waits for long."""
    patient = {"head_timeout_s": HANG_S, "idle_timeout_s": HANG_S}
    with ExitStack() as stack:
        yield lambda **settings: stack.enter_context(
            serving(tmp_path, sample_logdir, **patient | settings)
        )


@pytest.fixture
def large(monkeypatch, tmp_path):
    """A large file of the page, at ``/assets/large.js``."""
    place = tmp_path / "large.js"
    place.write_bytes(b"// " + b"a" * (LARGE_BYTES - 3))
    files = {"/assets/large.js": PageFile("text/javascript", place)}
    monkeypatch.setattr(page_routes, "editions", Editions(files))


def counted(face: object, name: str) -> float:
    """One sample of the metrics, without a request for them."""
    return float(face.metrics.render().decode().partition(f"{name} ")[2].partition("\n")[0])


def closed(face: object, reason: str) -> float:
    """How many connections were closed for that."""
    return counted(face, f'peakline_connections_closed_total{{reason="{reason}"}}')


def rest(connection: socket.socket) -> bytes:
    """What comes until the server closes."""
    content = b""
    try:
        while piece := connection.recv(1 << 16):
            content += piece
    except ConnectionResetError:
        pass
    return content


def test_silent_connections_from_one_address_shut_nobody_out(start, connect):
    face = start(max_connections=64, max_connections_per_peer=32)
    held = [connect(face.port, HALF_HEADS[number % 4]) for number in range(200)]
    for _ in range(3):
        with httpx.Client(base_url=face.url, timeout=HANG_S) as client:
            assert client.get("/healthz").status_code == 200
            assert len(client.get("/api/sessions").json()) == 4
    until(lambda: closed(face, "full") >= 200 - 32, "the oldest are closed")
    # The oldest gave way, not those who came last.
    assert rest(held[0]) == rest(held[100]) == b""
    held[-1].settimeout(0)
    with pytest.raises(BlockingIOError):
        held[-1].recv(1)


def test_the_end_of_an_answer_does_not_wait_for_the_other_side(start, connect, monkeypatch):
    result, made = [], GuardedProtocol.connection_made

    def recording(protocol, transport):
        one = transport.get_extra_info("socket")
        result.append(one.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY))
        made(protocol, transport)

    monkeypatch.setattr(GuardedProtocol, "connection_made", recording)
    one = connect(start().port, HEALTH + b"\r\n")
    assert one.recv(12) == b"HTTP/1.1 200"
    assert all(result)
    assert result


def test_one_address_takes_no_place_of_another(start, connect):
    face = start(max_connections=8, max_connections_per_peer=4)
    try:
        other = connect(face.port, HEALTH, FOREIGN)
    except OSError:
        pytest.skip(f"this machine is not {FOREIGN} as well")
    for _ in range(50):
        connect(face.port)
    until(lambda: closed(face, "full") >= 46)
    other.sendall(b"Connection: close\r\n\r\n")
    assert rest(other).startswith(b"HTTP/1.1 200 ")


@pytest.mark.parametrize("content", HALF_HEADS)
def test_a_head_that_does_not_come_ends_the_connection(start, connect, content):
    face = start(head_timeout_s=0.1)
    answer = rest(connect(face.port, content))
    assert answer[:13] == (b"HTTP/1.1 408 " if content else b"")
    assert answer.endswith(b'"code": "DEADLINE_EXCEEDED"}' if content else b"")
    assert closed(face, "head") == 1


def test_a_head_that_trickles_ends_the_connection(start, connect):
    connection = connect(start(head_timeout_s=0.3).port, HEALTH + b"X-Slow: ")
    connection.settimeout(0.02)

    def ended() -> bool:
        try:
            connection.sendall(b"a")
            return connection.recv(1 << 16)[:13] == b"HTTP/1.1 408 "
        except TimeoutError:
            return False

    until(ended)


def test_a_second_request_has_a_time_of_its_own(start, connect):
    for limit in growing():
        face = start(head_timeout_s=limit)
        connection = connect(face.port, HEALTH + b"\r\n")
        first = connection.recv(1 << 16)
        if not first.startswith(b"HTTP/1.1 200 "):
            continue  # the machine took too long for the first one
        connection.sendall(b"GET /again")
        assert b"HTTP/1.1 408 " in rest(connection)
        assert closed(face, "head") == 1
        break


def test_a_connection_that_is_not_used_is_closed(start, connect):
    connection = connect(start(idle_timeout_s=0.1).port, HEALTH + b"\r\n")
    assert rest(connection).endswith(b'{"status": "ok"}')


def test_a_body_that_does_not_come_ends_the_request(start, connect):
    face = start(idle_timeout_s=0.1)
    assert rest(connect(face.port, UPLOAD)) == b""
    until(lambda: [line["code"] for line in face.log_lines()] == ["499"])
    assert closed(face, "body") == 1


def test_a_body_that_trickles_ends_the_request(start, connect):
    face = start(idle_timeout_s=0.3)
    connection = connect(face.port, UPLOAD)

    def ended() -> bool:
        try:
            connection.sendall(b"a")
        except OSError:
            return True
        return False

    until(ended, pause_s=0.02)
    assert closed(face, "body") == 1


def test_a_body_that_nobody_reads_has_the_time_of_a_head(start, connect):
    for limit in growing():
        face = start(head_timeout_s=limit, token="a-token-of-27-characters.-_")  # noqa: S106
        answer = rest(connect(face.port, UPLOAD))
        assert closed(face, "head") == 1
        if answer.startswith(b"HTTP/1.1 401 "):
            break


@pytest.mark.usefixtures("large")
def test_an_answer_that_nobody_reads_ends_the_connection(start, connect):
    face = start(idle_timeout_s=0.2)
    connection = connect(face.port, LARGE, takes=4096)
    until(lambda: closed(face, "reading") == 1)
    assert 0 < len(rest(connection)) < LARGE_BYTES


@pytest.mark.usefixtures("large")
def test_answers_that_nobody_reads_give_way_to_others(start, connect, monkeypatch):
    # Bytes that several wait for count once.
    monkeypatch.setattr(files.PageFile, "content", lambda file: files.Content(_read(file)))
    monkeypatch.setattr(deliveries, "_LEAST_BYTES", 3 * LARGE_BYTES)
    face = start(cache_bytes=0)
    held = [connect(face.port, LARGE, takes=4096) for _ in range(10)]
    until(lambda: closed(face, "full") == 7, "no more than three are in memory")
    # What is read arrives, whoever else reads nothing.
    whole = face.client.get("/assets/large.js", headers={"Accept-Encoding": "identity"})
    assert len(whole.content) == LARGE_BYTES
    assert 0 < len(rest(held[0])) < LARGE_BYTES


def _read(file):
    return file.place.read_bytes()


def test_beyond_all_places_callers_get_to_know_it_and_health_is_answered(start, connect):
    face = start(max_connections=4, max_connections_per_peer=4, max_concurrent=1)
    with face.analysis.gate.enter():
        # One in four is never one address's; each of these is worked for, and gives no way.
        for _ in range(3):
            connect(face.port, b"GET /api/tools HTTP/1.1\r\nHost: localhost\r\n\r\n")
        until(lambda: face.analysis.gate.waiting == 3)
        with httpx.Client(base_url=face.url, timeout=HANG_S) as client:
            answer = client.get("/api/sessions")
            problem(answer, 503, "UNAVAILABLE")
            assert int(answer.headers["retry-after"]) >= 1
            assert client.get("/healthz").json() == {"status": "ok"}
        # Silent ones cannot keep others from getting to know it.
        for _ in range(100):
            connect(face.port, HEALTH)
        assert httpx.get(f"{face.url}/healthz", timeout=HANG_S).status_code == 200
    until(lambda: face.analysis.gate.running == 0)
    assert httpx.get(f"{face.url}/api/tools", timeout=HANG_S).status_code == 200


def test_a_client_that_is_gone_has_its_place_until_its_request_has_ended(
    start, connect, monkeypatch
):
    face = start(max_connections=8, max_connections_per_peer=6)
    request, go_on = [], []

    async def held(_work):
        request.append(asyncio.get_running_loop())
        event = asyncio.Event()
        go_on.append(event)
        await event.wait()
        raise BusyError("not now")

    monkeypatch.setattr(face.app.state.context.work, "read", held)
    for number in range(40):
        connect(face.port, b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n").close()
        if number < 6:
            until(lambda: len(go_on) == number + 1)  # noqa: B023 (waited for here)
    until(lambda: counted(face, 'peakline_refused_total{reason="connections"}') == 34)
    until(lambda: counted(face, 'peakline_in_flight{face="http"}') == 6)
    assert len(go_on) == 6
    for event in go_on:
        request[0].call_soon_threadsafe(event.set)
    until(lambda: counted(face, 'peakline_in_flight{face="http"}') == 0)
    assert face.client.get("/api/sessions").status_code == 200


def test_handshakes_that_never_end_count_and_end(start, connect, tmp_path):
    authority = Authority(tmp_path, "authority")
    own = authority.issue("server")
    secured = {"tls_cert": str(own.certificate_path), "tls_key": str(own.key_path)}
    context = ssl.create_default_context(cafile=authority.path)
    face = start(max_connections=16, max_connections_per_peer=8, **secured)
    held = [connect(face.port) for _ in range(50)]
    url = f"https://localhost:{face.port}/healthz"
    assert httpx.get(url, verify=context, timeout=HANG_S).status_code == 200
    assert closed(face, "full") >= 42
    assert rest(held[0]) == b""
    assert rest(connect(start(head_timeout_s=0.1, **secured).port)) == b""


@pytest.mark.skipif(not hasattr(resource, "prlimit"), reason="no limit of another process")
def test_where_no_descriptor_is_left_the_silent_give_way(sample_logdir, connect):
    with running_server(sample_logdir, "--access-log", "off", warms_up=False) as server:
        url = f"http://127.0.0.1:{server.http_port}"
        assert len(httpx.get(f"{url}/api/sessions", timeout=HANG_S).json()) == 4
        most = costs_of(server).descriptors + 30
        resource.prlimit(server.process.pid, resource.RLIMIT_NOFILE, (most, most))
        for number in range(60):
            connect(server.http_port, HALF_HEADS[number % 4])
        for _ in range(3):
            assert httpx.get(f"{url}/healthz", timeout=HANG_S).status_code == 200
            assert len(httpx.get(f"{url}/api/sessions", timeout=HANG_S).json()) == 4
        assert metric(server, 'peakline_connections_closed_total{reason="full"}') >= 16
        assert server.end() == 0


@pytest.mark.parametrize(
    ("target", "headers", "status"),
    [
        ("/api/sessions?root=" + "a/" * 20_000, {}, 414),
        ("/api/sessions", {"X-Long": "a" * 20_000}, 431),
    ],
)
def test_a_long_head_is_refused_at_once(start, target, headers, status):
    answer = start().client.get(target, headers=headers)
    if answer.status_code == 400:  # it came in several pieces
        assert "headers in ASCII" in problem(answer, 400, "INVALID_ARGUMENT")
    else:
        assert "may have 16384" in problem(answer, status, "INVALID_ARGUMENT")


def test_reasons_are_counted_under_their_names_only():
    metrics = PrometheusMetrics()
    metrics.hung_up("boredom")
    assert b'peakline_connections_closed_total{reason="other"} 1.0' in metrics.render()
