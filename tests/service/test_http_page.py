"""The page, and bodies over HTTP."""

import gzip
import posixpath
import re

import pytest
from tests.each_row import each_row
from tests.service.conftest import SESSIONS
from tests.service.http_client import problem, serving

from peakline.service.http import page_routes
from peakline.web import Editions, PageFile, page_files

WORD = "s3cret-t0ken"
PLAIN = {"Accept-Encoding": "identity"}
SCRIPT = "/assets/js/main.js"
FIRST = "/assets/js/first.js"
VENDORED = "/assets/vendor/dagre/dagre.js"


@pytest.fixture(scope="module")
def face(tmp_path_factory):
    place = tmp_path_factory.mktemp("page")
    (place / "logs").mkdir()
    with serving(place, place / "logs", token=WORD) as running:
        yield running


def ask(face, path, **headers):
    """Without a token: the page is open to everybody."""
    return face.client.get(path, headers=PLAIN | headers)


@each_row(("path", "file"), [one for one in page_files().items() if one[0] != "/"])
def test_every_file_is_answered_as_it_is(face, path, file):
    answer = ask(face, path)
    assert answer.status_code == 200
    assert answer.content == file.place.read_bytes()
    assert answer.headers["content-type"] == file.media_type
    assert "content-encoding" not in answer.headers


def test_the_headers_that_guard_the_page(face):
    headers = ask(face, "/").headers
    wanted = {
        "x-content-type-options": "nosniff",
        "referrer-policy": "no-referrer",
        "x-frame-options": "DENY",
        "cross-origin-opener-policy": "same-origin",
        "cross-origin-resource-policy": "same-origin",
        "cache-control": "no-cache",
        "vary": "Accept-Encoding",
    }
    assert {name: headers[name] for name in wanted} == wanted


def test_the_policy_is_exact(face):
    result = ask(face, "/").headers["content-security-policy"]
    assert {rule.split()[0]: rule.split()[1:] for rule in result.split("; ")} == {
        "default-src": ["'none'"],
        "script-src": ["'self'"],
        "worker-src": ["'self'"],
        "style-src": ["'self'"],
        "img-src": ["'self'", "data:", "blob:"],
        "connect-src": ["'self'"],
        "font-src": ["'self'"],
        "form-action": ["'none'"],
        "frame-ancestors": ["'none'"],
        "base-uri": ["'none'"],
        "require-trusted-types-for": ["'script'"],
        "trusted-types": ["peakline"],
    }


def test_a_file_is_packed_for_those_who_take_gzip(face):
    plain = ask(face, VENDORED)
    with face.client.stream("GET", VENDORED, headers={"Accept-Encoding": "gzip"}) as answer:
        packed = b"".join(answer.iter_raw())
    assert answer.headers["content-encoding"] == "gzip"
    assert len(packed) < 0.4 * len(plain.content)
    assert gzip.decompress(packed) == plain.content
    assert answer.headers["etag"] == plain.headers["etag"]


def test_what_gzip_makes_larger_is_sent_as_it_is(face, monkeypatch, tmp_path):
    (tmp_path / "small.css").write_text("a{}")
    small = PageFile("text/css", tmp_path / "small.css")
    monkeypatch.setattr(page_routes, "editions", Editions({"/assets/small.css": small}))
    answer = ask(face, "/assets/small.css", **{"Accept-Encoding": "gzip"})
    assert (answer.status_code, answer.content) == (200, b"a{}")
    assert "content-encoding" not in answer.headers


def test_who_has_a_file_is_told_so(face):
    tag = ask(face, SCRIPT).headers["etag"]
    again = ask(face, SCRIPT, **{"If-None-Match": tag})
    assert (again.status_code, again.content, again.headers["etag"]) == (304, b"", tag)
    assert ask(face, SCRIPT, **{"If-None-Match": ask(face, "/").headers["etag"]}).status_code == 200


def test_head_says_the_same_without_the_file(face):
    result = face.client.head(SCRIPT, headers=PLAIN)
    request = ask(face, SCRIPT)
    same = ("content-length", "etag", "content-type", "content-security-policy")
    assert result.content == b""
    assert {name: result.headers[name] for name in same} == {
        name: request.headers[name] for name in same
    }


@each_row(
    "path",
    [
        "/assets/", "/assets/nosuch.js", "/assets/index.html", "/assets/js", "/assets/js/",
        "/assets//js/main.js", "/assets/./js/main.js", "/assets/js/../js/main.js",
        "/assets/%2e%2e/__init__.py", "/assets/..%2f__init__.py", "/assets/../files.py",
        "/assets/..\\files.py", "/assets/js/main.js%00", "/assets//etc/passwd",
    ],
)  # fmt: skip
def test_no_request_names_a_path(face, path):
    request = (
        f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n"  # as it is written
    ).encode()
    status, answer = face.raw(request)
    assert status == (400 if path.endswith("%00") else 404)
    assert b"application/problem+json" in answer


def test_nobody_else_is_let_in_without_a_token(face):
    for path in ("/api/sessions", "/assets", "/assetsx", "/index.html", "/openapi.json"):
        problem(ask(face, path), 401, "UNAUTHENTICATED")


def test_the_page_is_there_under_its_own_names_only(face):
    problem(ask(face, "/", Host="evil.example"), 421, "INVALID_ARGUMENT")


def test_the_page_takes_nothing(face):
    answer = face.client.post("/", content=b"")
    assert problem(answer, 405, "UNIMPLEMENTED") == "POST is not for this path; allowed: GET, HEAD"


def plain_needs(path):
    """A module, and all that it imports at once."""
    files, result, waiting = page_files(), set(), {path}
    while waiting:
        at = waiting.pop()
        result.add(at)
        text = files[at].place.read_text(encoding="utf-8")
        named = re.findall(r'^(?:import |.*\} from |  from )[^"\n]*"(\.[^"]+)"', text, re.MULTILINE)
        waiting |= {posixpath.normpath(posixpath.join(at, "..", one)) for one in named} - result
    return result


def document(face):
    return ask(face, "/").text


def edition(face):
    """The part of the document's addresses that names its edition."""
    (result,) = set(re.findall(r'(?:src|href)="assets/(v-\w+)/', document(face)))
    return result


def test_the_document_names_the_modules_that_are_needed_first(face):
    result = re.findall(r'"modulepreload" href="assets/v-\w+(/[^"]+)"', document(face))
    assert len(set(result)) == len(result)
    assert {f"/assets{one}" for one in result} == plain_needs(FIRST)


def test_the_document_names_the_modules_of_the_page_and_of_each_view(face):
    result = dict(re.findall(r'<meta name="modules-of-(\w+)" content="([^"]+)">', document(face)))
    first, page = plain_needs(FIRST), plain_needs(SCRIPT)
    wanted = {"page": page - first}
    for path in page_files():
        if path.startswith("/assets/js/views/") and path.endswith("/index.js"):
            wanted[path.split("/")[4]] = plain_needs(path) - first - page
    assert len(wanted) > 8
    assert {
        view: {f"/assets/{one}" for one in names.split(" ")} for view, names in result.items()
    } == wanted


def test_one_stylesheet_holds_all_in_the_order_of_the_document(face):
    static = page_files()["/"].place
    names = re.findall(r'rel="stylesheet" href="([^"]+)"', static.read_text(encoding="utf-8"))
    assert len(names) > 8
    (address,) = re.findall(r'rel="stylesheet" href="([^"]+)"', document(face))
    answer = ask(face, f"/{address}")
    assert answer.headers["content-type"] == "text/css; charset=utf-8"
    sheets = [static.parent.joinpath(name.removeprefix("assets/")).read_text() for name in names]
    assert answer.text == "\n".join(sheets)


def test_what_the_document_names_is_there_and_is_kept(face):
    addresses = re.findall(r'(?:src|href)="(assets/[^"]+)"', document(face))
    assert len(addresses) > 5
    for address in addresses:
        answer = ask(face, f"/{address}")
        assert answer.status_code == 200
        assert answer.headers["cache-control"] == "public, max-age=31536000, immutable"


@each_row("name", ["v-0123456789abcdef/js/main.js", "v-/js/main.js", "js/main.js"])
def test_a_file_of_no_or_of_another_edition_is_the_one_of_now_and_is_not_kept(face, name):
    answer = ask(face, f"/assets/{name}")
    assert answer.content == page_files()[SCRIPT].place.read_bytes()
    assert answer.headers["cache-control"] == "no-cache"


def test_the_stylesheet_of_another_edition_is_answered_too(face):
    answer = ask(face, "/assets/v-0123456789abcdef/styles.css")
    assert (answer.status_code, answer.headers["cache-control"]) == (200, "no-cache")


def test_an_edition_names_no_path(face):
    part = edition(face)
    for name in (
        f"{part}/",
        f"{part}/nosuch.js",
        f"{part}/{part}/js/main.js",
        f"{part}//js/main.js",
    ):
        problem(ask(face, f"/assets/{name}"), 404, "NOT_FOUND")


def test_a_file_that_changed_makes_another_edition(tmp_path):
    place, page = tmp_path / "a.js", tmp_path / "index.html"
    place.write_text("1")
    page.write_text('<head><link rel="stylesheet" href="assets/a.css">\n<script src="assets/a.js">')
    (tmp_path / "a.css").write_text("a{}")
    editions = Editions(
        {
            "/": PageFile("text/html", page),
            "/assets/a.js": PageFile("text/javascript", place),
            "/assets/a.css": PageFile("text/css", tmp_path / "a.css"),
        }
    )
    first = editions.current()
    assert editions.current() is editions.known(first.name) is first
    place.write_text("22")
    assert editions.known(first.name) is first, "a page that has begun gets what it began with"
    second = editions.current()
    assert editions.known(second.name) is second
    assert editions.known(first.name) is None
    assert second.files["/assets/a.js"][1].plain == b"22"
    assert f'src="assets/v-{second.name}/a.js"'.encode() in second.files["/"][1].plain


SQL = f"/api/sessions/{SESSIONS['tf2_cnn']}/sql"
CAPTURES = "/api/captures"
JSON = {"Content-Type": "application/json"}
DEEP = "[" * 100_000


@each_row(
    ("path", "body", "detail"),
    [
        (SQL, "", "the body: input data was truncated"),
        (SQL, "{", "the body: input data was truncated"),
        (SQL, "[]", "the body: expected object, got array"),
        (SQL, "{}x", "body field 'query' is missing"),
        (SQL, DEEP, "the body: expected object, got array"),
        (SQL, '{"query":' + DEEP, "body field 'query': expected string, got array"),
        (SQL, '{"x":' + DEEP, "body field 'x' is none that this takes"),
        (SQL, '{"query": "q",}', "the body: JSON is malformed: trailing comma in object (byte 14)"),
        (SQL, '{"query": ""}', "body field 'query': expected string of length >= 1"),
        (SQL, '{"query": 5}', "body field 'query': expected string, got integer"),
        (
            SQL,
            '{"query": "q", "format": "CSV"}',
            "body field 'format' must be one of 'json', 'csv', 'parquet'",
        ),
        (
            SQL,
            '{"query": "q", "max_rows": "5"}',
            "body field 'max_rows': expected integer or null, got string",
        ),
        (SQL, '{"query": "q", "max_rows": -1}', "body field 'max_rows': expected integer >= 0"),
        (CAPTURES, '{"hosts": ["a"]}', "body field 'duration_ms' is missing"),
        (
            CAPTURES,
            '{"hosts": [], "duration_ms": 5}',
            "body field 'hosts': expected array of length >= 1",
        ),
        (
            CAPTURES,
            '{"hosts": ["a", 5], "duration_ms": 5}',
            "body field 'hosts[1]': expected string, got integer",
        ),
        (
            CAPTURES,
            '{"hosts": ["a"], "duration_ms": 1.5}',
            "body field 'duration_ms': expected integer, got number",
        ),
        (
            CAPTURES,
            '{"hosts": ["a"], "duration_ms": 5, "options": {"a": null}}',
            "body field 'options[...]': expected boolean or integer or string, got null",
        ),
    ],
)
def test_what_is_wrong_with_a_body(shared_face, path, body, detail):
    answer = shared_face.client.post(path, headers=JSON, content=body)
    assert problem(answer, 400, "INVALID_ARGUMENT") == detail


@each_row("body", [b'{"query": "\xff"}', b'{"query": "\\ud800"}', b"\xef\xbb\xbf{}", b"\xff"])
def test_a_body_that_is_no_text_is_refused(shared_face, body):
    answer = shared_face.client.post(SQL, headers=JSON, content=body)
    assert "body" in problem(answer, 400, "INVALID_ARGUMENT")


@each_row("duration", ['"5"', "5.0", "5"])
def test_a_duration_may_be_a_text(shared_face, duration):
    body = f'{{"hosts": ["nosuch.invalid"], "duration_ms": {duration}}}'
    answer = shared_face.client.post(CAPTURES, headers=JSON, content=body)
    assert "nosuch.invalid" in problem(answer, 403, "PERMISSION_DENIED")


@each_row(
    ("path", "detail"),
    [
        ("/api/sessions?limit=1001", "parameter limit must be at most 1000, not '1001'"),
        ("/api/sessions?tools=perhaps", "parameter tools must be true or false, not 'perhaps'"),
        ("/api/compare?first=a", "parameter second is missing"),
        (f"/api/sessions/{SESSIONS['tf2_cnn']}?hots=a", "no parameter 'hots'; there is: root"),
        ("/api/tools?limit=1", "no parameter 'limit'; there is: none"),
    ],
)
def test_what_is_wrong_with_a_parameter(shared_face, path, detail):
    assert problem(shared_face.client.get(path), 400, "INVALID_ARGUMENT") == detail
