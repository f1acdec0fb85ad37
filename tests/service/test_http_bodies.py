"""What a JSON body may be, and the line that says what is wrong with one."""

from tests.each_row import each_row
from tests.service.conftest import SESSIONS
from tests.service.http_client import problem

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
