"""SQL and figures over HTTP."""

import csv
import io
import json

import pyarrow.parquet as pq
import pytest
from tests.each_row import each_row
from tests.service.conftest import SESSIONS
from tests.service.http_client import problem, serving
from tests.waiting import until

import peakline
from peakline.figures.named import FigureQuestion, figure_json, figure_names

SQL = f"/api/sessions/{SESSIONS['tf2_cnn']}/sql"
MIB = 1 << 20
LIMIT = 24 * MIB


@pytest.fixture(scope="module")
def face(sample_logdir, tmp_path_factory):
    folder = tmp_path_factory.mktemp("http")
    with serving(
        folder, sample_logdir, sql_memory_bytes=LIMIT, sql_answer_bytes=LIMIT // 8
    ) as running:
        yield running


@pytest.fixture
def ask(face):
    def post(query, **more):
        return face.client.post(SQL, json={"query": query, **more})

    return post


def test_rows_are_objects(ask):
    rows = ask("select activity, count(*) as n from allocator_events group by 1 order by 1").json()
    assert [row["activity"] for row in rows] == ["allocation", "deallocation"]
    assert all(isinstance(row["n"], int) for row in rows)


def test_the_first_rows_and_how_many_there_are(ask):
    query = "select unnest(range(5)) as n"
    assert ask(query).headers["peakline-rows"] == "5"
    answer = ask(query, max_rows=2)
    assert (answer.json(), answer.headers["peakline-rows"]) == ([{"n": 0}, {"n": 1}], "5")
    assert ask(query, max_rows=0).json() == []
    assert len(ask(query, max_rows=9).json()) == 5
    assert ask(query, max_rows=1, format="csv").text.splitlines() == ["n", "0"]


def test_parameters_are_values(ask):
    hostile = "x'; drop table events; --"
    query = "select ? as text, ? as number, ? as nothing"
    (row,) = ask(query, parameters=[hostile, 1 << 60, None]).json()
    assert row == {"text": hostile, "number": 1 << 60, "nothing": None}
    assert ask("select $n + 1 as n", parameters={"n": 4}).json() == [{"n": 5}]
    assert "not provided" in problem(ask("select ?", parameters=[]), 400, "FAILED_PRECONDITION")
    large = ask("select ?", parameters=[1 << 70])
    assert "more than 64 bits" in problem(large, 400, "INVALID_ARGUMENT")
    problem(ask("select ?", parameters=[{}]), 400, "INVALID_ARGUMENT")


def test_an_empty_answer_is_an_empty_array(ask):
    assert ask("select * from events where false").json() == []


def test_values_that_json_lacks(ask):
    (row,) = ask(
        "select 'nan'::double as nan, 'inf'::double as inf, null as nothing, true as yes,"
        " 12::decimal(9, 2) as whole, 1.5::decimal(9, 2) as half, 'ab'::blob as bytes,"
        " {'a': [1, null]} as nested, timestamp '2026-01-02 03:04:05' as time,"
        " '\u00e9\U0001f4a9' as text"
    ).json()
    assert row == {
        "nan": None, "inf": None, "nothing": None, "yes": True, "whole": 12, "half": 1.5,
        "bytes": "6162", "nested": {"a": [1, None]}, "time": "2026-01-02 03:04:05",
        "text": "\u00e9\U0001f4a9",
    }  # fmt: skip


def test_large_integers_are_exact_numbers_or_strings(ask):
    query = (
        "select 9007199254740991 as small, 9223372036854775807 as large, [-9007199254740993] as l"
    )
    (row,) = ask(query).json()
    assert row == {"small": 2**53 - 1, "large": 2**63 - 1, "l": [-(2**53) - 1]}
    (row,) = ask(query, large_integers="string").json()
    assert row == {"small": 2**53 - 1, "large": str(2**63 - 1), "l": [str(-(2**53) - 1)]}


def test_columns_of_one_name_are_all_there(ask):
    assert ask("select 1 as a, 2 as a, 3 as a_2").json() == [{"a": 1, "a_2": 2, "a_2_2": 3}]


def test_csv_for_a_spreadsheet_has_no_formulas(ask):
    query = "select '=1+1' as a, '-2' as b, -3 as c, 'x' as \"@d\""
    assert ask(query, format="csv").text == "a,b,c,@d\n=1+1,-2,-3,x\n"
    assert ask(query, format="csv", safe_csv=True).text == "a,b,c,'@d\n'=1+1,-2,-3,x\n"


def test_csv_and_parquet(ask):
    query = "select name, start_ps from events order by event_id limit 50"
    rows = ask(query).json()
    text = ask(query, format="csv")
    assert text.headers["content-type"] == "text/csv; charset=utf-8"
    assert [row["name"] for row in csv.DictReader(io.StringIO(text.text))] == [
        row["name"] for row in rows
    ]
    parquet = ask(query, format="parquet")
    assert parquet.headers["content-type"] == "application/vnd.apache.parquet"
    assert "content-encoding" not in parquet.headers
    assert pq.read_table(io.BytesIO(parquet.content)).to_pylist() == rows


@each_row(
    "query",
    [
        "drop table events", "select 1; select 2", "copy events to '/tmp/x.csv'",
        "select * from '/etc/passwd'", "select * from read_csv('/etc/passwd')",
        "attach '/tmp/x.db'", "install httpfs", "set memory_limit = '99GB'", "pragma database_list",
        "select getenv('HOME')", "nonsense", "select * from nosuch", "select 1 as a where a.b.c.d",
        "\x00", "select '\x00'", " ", "--",
    ],
)  # fmt: skip
def test_a_refused_query_is_told_why(ask, query):
    answer = ask(query)
    if answer.status_code == 200:
        assert query == "select '\x00'"
        return
    assert "root:" not in problem(answer, 400, answer.json()["code"])


@each_row(
    ("body", "status"),
    [
        (b"", 400),
        (b"{", 400),
        (b"[]", 400),
        (b"{}", 400),
        (b'{"query": ""}', 400),
        (b'{"query": 1}', 400),
        (b'{"query": "select 1", "path": "/etc"}', 400),
        (b'{"query": "select 1", "format": "table"}', 400),
        (b'{"query": "select 1", "max_rows": -1}', 400),
        (b'{"query": "select \'\\ud800\'"}', 400),
        (b'{"query": "\xff"}', 400),
        (b"[" * 100_000, 400),
        (b'{"query": "' + b"x" * MIB + b'"}', 413),
    ],
)
def test_bodies_that_are_none(face, body, status):
    answer = face.client.post(SQL, content=body, headers={"Content-Type": "application/json"})
    problem(answer, status, "INVALID_ARGUMENT")
    assert len(answer.json()["detail"]) < 500


@each_row(
    "kind",
    ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data", "", "text/json"],
)
def test_a_body_is_json_or_refused(face, kind):
    headers = {"Content-Type": kind} if kind else {}
    answer = face.client.post(SQL, content=b'{"query": "select 1"}', headers=headers)
    problem(answer, 415, "INVALID_ARGUMENT")


def test_a_charset_beside_the_type_is_fine(face):
    headers = {"Content-Type": "Application/JSON; charset=utf-8"}
    answer = face.client.post(SQL, content=b'{"query": "select 1 as a"}', headers=headers)
    assert answer.json() == [{"a": 1}]


def test_an_answer_has_a_limit(ask):
    for kind in ("json", "csv"):
        detail = problem(
            ask("select repeat('x', 1000) as x from range(30000)", format=kind),
            400,
            "FAILED_PRECONDITION",
        )
        assert str(LIMIT) in detail or "memory" in detail.lower()


def test_a_query_that_takes_too_much_memory_ends(ask):
    problem(ask("select list(range) from range(100000000)"), 400, "FAILED_PRECONDITION")


def test_the_server_is_no_subject(ask):
    for query in (
        "select value from duckdb_settings()",
        "select current_setting('secret_directory')",
        "select * from duckdb_extensions()",
        "select which_secret('a', 'b')",
        "select pg_sleep(1)",
    ):
        assert "is not allowed in a query" in problem(ask(query), 400, "FAILED_PRECONDITION")


CNN = SESSIONS["tf2_cnn"]
TWO = SESSIONS["tf2_multihost"]


def test_without_a_host_a_query_is_over_all_ranks(face):
    def post(query, **more):
        return face.client.post(f"/api/sessions/{TWO}/sql", json={"query": query, **more})

    count = "select count(*) n from events"
    hosts = face.client.get(f"/api/sessions/{TWO}").json()["hosts"]
    each = [post(count, host=host).json()[0]["n"] for host in hosts]
    rows = post("select rank, count(*) n from events group by rank order by rank").json()
    assert rows == [{"rank": rank, "n": n} for rank, n in enumerate(each)]
    ranks = post("select * from ranks").json()
    assert [(one["host"], one["status"]) for one in ranks] == [(host, "read") for host in hosts]
    assert not any("/" in text for one in ranks for text in map(str, one.values()))
    names = face.client.get(f"/api/sessions/{TWO}/tables").json()
    assert {"events", "ranks"} <= set(names)
    listed = [one["name"] for one in post("show tables").json() if one["kind"] == "table"]
    assert sorted(listed) == names
    for query, message in (
        ("from read_csv('/etc/passwd')", "is not allowed"),
        ("from evnts", "Did you mean events?"),
        ("select getenv('HOME') from events", "is not allowed"),
        ("from duckdb_settings()", "is not allowed"),
    ):
        answer = post(query)
        assert (answer.status_code, message in answer.json()["detail"]) == (400, True), query


def test_the_figures_are_listed_with_their_parameters(shared_face):
    listed = shared_face.client.get("/api/figures").json()
    assert [each["name"] for each in listed] == figure_names()
    (ops,) = [each for each in listed if each["name"] == "op_stats"]
    assert ops["doc"] == "The 20 ops with the most self time, on devices and on the host."
    assert ops["parameters"]["properties"]["side"]["enum"] == ["device", "host"]


@pytest.fixture
def profile(sample_logdir):
    with peakline.open(sample_logdir, session=CNN) as opened:
        yield opened


@each_row("theme", ["light", "dark"])
@each_row("name", figure_names())
def test_it_is_the_figure_of_the_profile(shared_face, profile, name, theme):
    answer = shared_face.client.get(f"/api/sessions/{CNN}/figures/{name}", params={"theme": theme})
    assert answer.status_code == 200, answer.text
    assert answer.headers["content-type"] == "application/json"
    assert answer.content == figure_json(profile, FigureQuestion(name, theme=theme))


def test_a_figure_is_validated_by_its_content(shared_face):
    path = f"/api/sessions/{CNN}/figures/op_stats"
    first = shared_face.client.get(path)
    again = shared_face.client.get(path, headers={"If-None-Match": first.headers["etag"]})
    assert (again.status_code, again.content) == (304, b"")
    other = shared_face.client.get(path, params={"theme": "dark"})
    assert other.headers["etag"] != first.headers["etag"]


def test_what_is_asked_of_it_chooses_the_host_and_the_side(shared_face):
    titles = {
        host: shared_face.client.get(
            f"/api/sessions/{TWO}/figures/step_breakdown", params={"host": host}
        ).json()["layout"]["title"]["subtitle"]["text"]
        for host in ("localhost_47507", "localhost_56665")
    }
    assert len(set(titles.values())) == 2
    path = f"/api/sessions/{CNN}/figures/op_stats"
    sides = {
        side: shared_face.client.get(path, params={"side": side}).json()
        for side in ("device", "host")
    }
    assert sides["device"] is None
    assert [trace["name"] for trace in sides["host"]["data"]] == ["host"]


def test_warnings_come_with_every_figure(shared_face):
    path = f"/api/sessions/{SESSIONS['jax_captured']}/figures"
    for name in ("peak_icicle", "memory_over_time", "peak_icicle"):
        answer = shared_face.client.get(f"{path}/{name}")
        assert answer.content == b"null"
        (warning,) = json.loads(answer.headers["peakline-warnings"])
        assert warning["kind"] == "no_memory_events"
    assert "peakline-warnings" not in shared_face.client.get(f"{path}/op_stats").headers


@each_row(
    ("path", "status", "code", "detail"),
    [
        (f"{CNN}/figures/pie", 404, "NOT_FOUND", "no figure 'pie'; there is: churn"),
        (f"{CNN}/figures/churn?theme=pink", 400, "INVALID_ARGUMENT", "theme"),
        (f"{CNN}/figures/churn?themes=dark", 400, "INVALID_ARGUMENT", "themes"),
        (f"{CNN}/figures/churn?side=host", 400, "INVALID_ARGUMENT", "churn takes no side"),
        (f"{CNN}/figures/churn?allocator=x", 404, "NOT_FOUND", "no allocator 'x'"),
        (f"{CNN}/figures/churn?host=x", 404, "NOT_FOUND", "x"),
        (f"{TWO}/figures/churn", 400, "INVALID_ARGUMENT", "a figure needs one host"),
        ("nosuch/figures/churn", 404, "NOT_FOUND", "nosuch"),
    ],
)
def test_what_cannot_be_drawn_is_a_problem(shared_face, path, status, code, detail):
    assert detail in problem(shared_face.client.get(f"/api/sessions/{path}"), status, code)


def test_a_figure_waits_at_the_gate_of_all_questions(shared_face, monkeypatch):
    gate = shared_face.analysis.gate
    monkeypatch.setattr(gate, "_queued", 0)
    monkeypatch.setattr(gate, "_concurrent", 1)
    until(lambda: gate.running == 0)
    with gate.enter():
        answer = shared_face.client.get(f"/api/sessions/{CNN}/figures/kernels")
    problem(answer, 429, "RESOURCE_EXHAUSTED")


def test_an_answer_has_its_own_limit(ask):
    query = "select repeat('x', 1000) as x from range(4000)"
    text = problem(ask(query), 400, "FAILED_PRECONDITION")
    assert f"more than {LIMIT // 8} bytes; request fewer rows (LIMIT)" in text
    assert len(ask(query, max_rows=10).json()) == 10
