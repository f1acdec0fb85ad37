"""Every view of the package: its header, and a tiny profile with a query and the expected table.

A case is a file ``NAME.txt`` of parts with a heading in brackets: tables as CSV (an empty field is
null, a column that is left out is too), or ``[file NAME]`` with the text of a real profile; then
``[query]`` and ``[expected]``, the answer as CSV.
"""

import csv
import io
import json
import re
from pathlib import Path

import pytest
from tests.each_row import each_row
from tests.shared import shared
from tests.tables.fake import FakeReader, columns_of

import peakline
from peakline.errors import CheckFailed
from peakline.tables import TABLES, Profile
from peakline.tables.derived import DERIVED
from peakline.tables.query import connect
from peakline.tables.rows import write_csv
from peakline.tables.sql_guard import Guard
from peakline.tables.sql_views import missing_table, view, view_names, views_over
from peakline.tables.tables import empty_columns

HERE = Path(__file__).parent
NAMES = sorted(view_names())
TYPES = {
    "BIGINT": "int64",
    "INTEGER": "int32",
    "DOUBLE": "float64",
    "VARCHAR": "string",
    "BOOLEAN": "bool",
}
READ = {"int64": int, "int32": int, "uint64": int, "float64": float, "string": str}


def parts_of(name):
    text = (HERE / f"{name}.txt").read_text(encoding="utf-8")
    result = re.split(r"^\[(.+)\]\n", text, flags=re.MULTILINE)
    assert result[0] == ""
    return {
        title: body.rstrip("\n") + "\n"
        for title, body in zip(result[1::2], result[2::2], strict=True)
    }


def value(text, kind):
    if text == "":
        return None
    return text == "true" if kind == "bool" else READ[kind](text)


def table_of(name, text):
    rows = csv.DictReader(io.StringIO(text))
    kinds = {column.name: column.type for column in TABLES[name].columns}
    return columns_of(name, [{key: value(row[key], kinds[key]) for key in row} for row in rows])


def opened(parts, folder):
    for title, body in parts.items():
        if title.startswith("file "):
            path = folder / title.removeprefix("file ")
            path.write_text(body, encoding="utf-8")
            return peakline.open(path)
    tables = {name: table_of(name, body) for name, body in parts.items() if name in TABLES}
    return Profile(FakeReader(tables), derived=DERIVED)


def nodes(tree):
    if isinstance(tree, dict):
        yield tree
        tree = list(tree.values())
    if isinstance(tree, list):
        for item in tree:
            yield from nodes(item)


def test_each_view_has_a_case():
    assert {path.stem for path in HERE.glob("*.txt")} == set(NAMES)
    assert len(NAMES) >= 20


def test_answers(tmp_path):
    wrong = {}
    for name in NAMES:
        parts = parts_of(name)
        with opened(parts, tmp_path) as profile:
            assert name in profile.views, name
            assert name in parts["query"]
            answer = profile.sql(parts["query"])
        stream = io.BytesIO()
        write_csv(answer, stream)
        text = stream.getvalue().decode().replace("\r\n", "\n")
        if text != parts["expected"]:
            wrong[name] = text
    assert wrong == {}


@each_row("name", NAMES)
def test_a_file_documents_the_columns_it_returns(name):
    result = view(name)
    with connect(None) as database:
        for table in result.needs:
            database.register(table, empty_columns(table).arrow())
        database.execute(result.statement)
        said = database.sql(f"describe {name}").fetchall()
    assert [(row[0], TYPES[row[1]]) for row in said] == [(c.name, c.type) for c in result.columns]
    assert all(column.doc for column in result.columns)
    assert result.doc.endswith((".", "!", "?"))
    assert result.units.endswith(".")


@pytest.fixture(scope="module")
def guarded():
    with connect(1 << 30) as database:
        yield database, Guard(database, remote=True)


@each_row("name", NAMES)
def test_a_file_names_the_tables_it_stands_on(guarded, name):
    result, (database, guard) = view(name), guarded
    guard.check(database, result.query, TABLES)
    text = database.execute("select json_serialize_sql(?::varchar)", [result.query]).fetchone()
    tree = json.loads(text[0])
    assert not tree["error"]
    made = {
        entry["key"] for node in nodes(tree) for entry in node.get("cte_map", {}).get("map", [])
    }
    named = {node["table_name"] for node in nodes(tree) if node.get("type") == "BASE_TABLE"}
    assert named - made == result.needs
    assert result.needs <= TABLES.keys()


@each_row("name", NAMES)
def test_columns_that_are_not_documented_as_nullable_are_never_null(name):
    parts = parts_of(name)
    if re.fullmatch(rf"(from|select \* from) {name}\s*", parts["query"]):
        rows = list(csv.DictReader(io.StringIO(parts["expected"])))
        for column in view(name).columns:
            if not column.nullable and column.type != "string":
                assert all(row[column.name] for row in rows), column.name


def test_names_are_no_tables_and_no_columns():
    columns = {column.name for table in TABLES.values() for column in table.columns}
    assert not view_names() & (TABLES.keys() | columns)


def test_a_view_is_there_where_its_tables_are():
    assert [result.name for result in views_over(["thread_time"])] == ["thread_utilisation"]
    assert [
        result.name for result in views_over(["events", "lines"], ["longest_waits", "nope"])
    ] == ["longest_waits"]
    assert missing_table("Idle_Gaps", ["events", "lines", "planes"]) == ""
    assert missing_table("events", ["events"]) == ""
    assert (
        missing_table("Nope", ["b", "a"]) == "Table with name Nope does not exist! There is: a, b"
    )


class Watched(FakeReader):
    """Remembers which columns of which table were read."""

    def __init__(self, tables):
        super().__init__(tables)
        self.wanted = {}

    def read(self, table, warnings, columns=None):
        self.wanted[table] = columns
        return super().read(table, warnings, columns)


BUFFERS = columns_of("buffers", [{"buffer_id": 0, "allocator": "gpu", "allocated_bytes": 8}])


def test_only_what_a_view_needs_is_read():
    reader = Watched({"buffers": BUFFERS, "stacks": empty_columns("stacks")})
    with Profile(reader) as profile:
        answer = profile.sql("select allocator, live_bytes from live_memory")
        assert answer.to_pylist() == [{"allocator": "gpu", "live_bytes": 8}]
        needed = {"allocator", "allocated_bytes", "requested_bytes", "start_ps", "end_ps"}
        assert reader.wanted.keys() == {"buffers"}
        assert reader.wanted["buffers"] - {"count"} == needed


@each_row(
    "query, rows",
    [
        ("from LIVE_MEMORY", 1),
        ("select * from live_memory join buffers using (allocator)", 1),
        ("with x as (from live_memory) select * from x where live_bytes > 8", 0),
        ("with live_memory as (select 1 as a) from live_memory", 1),
        ("describe live_memory", 5),
        ("summarize live_memory", 5),
        ("explain select * from live_memory", 1),
        ("pivot live_memory on allocator using sum(live_bytes)", 1),
        ("from query('from live_memory')", 1),
        ("select (select max(live_bytes) from live_memory) as most, op from buffers", 1),
    ],
)
def test_a_view_stands_wherever_a_table_may(query, rows):
    with Profile(FakeReader({"buffers": BUFFERS})) as profile:
        assert profile.sql(query).num_rows == rows


def test_a_view_follows_what_is_read_later():
    with Profile(FakeReader({"buffers": BUFFERS})) as profile:
        assert profile.sql("select live_bytes from live_memory").num_rows == 1
        profile.release("buffers")
        assert profile.sql("from live_memory").num_rows == 1
        assert profile.sql("from live_memory", memory_limit_bytes=1 << 28).num_rows == 1


def test_what_a_profile_lacks_is_said():
    with Profile(FakeReader({"buffers": BUFFERS})) as profile:
        assert "live_memory" in profile.views
        assert "idle_gaps" not in profile.views
        with pytest.raises(CheckFailed) as raised:
            profile.sql("select * from idle_gaps g join lines using (line_id)")
    assert str(raised.value).startswith(
        "The view idle_gaps stands on events, lines, planes, which this profile lacks. There is: "
    )


@each_row(
    "query",
    [
        "create view mine as select 1",
        "drop view live_memory",
        "insert into live_memory values (1)",
        "select * from live_memory; drop view live_memory",
        "select * from live_memory, duckdb_views()",
        "select getenv(allocator) from live_memory",
    ],
)
def test_the_guard_holds(query):
    with Profile(FakeReader({"buffers": BUFFERS})) as profile:
        profile.sql("from live_memory")
        with pytest.raises(CheckFailed):
            profile.sql(query)
        assert profile.sql("from live_memory").num_rows == 1


ARROW = {
    "int64": "int64", "int32": "int32", "float64": "double", "string": "string", "bool": "bool",
}  # fmt: skip


@each_row(
    "sample",
    ["sessions/tf2_cnn", "chrome_trace/noleak.pt.trace.json.gz", "run_metadata/tf1_cnn_2.pb.gz"],
)
def test_every_view_of_a_sample_has_the_documented_columns(sample):
    profile = shared(sample)
    assert len(profile.views) >= 20
    for name in profile.views:
        answer = profile.sql(f"from {name}")
        declared = [(column.name, ARROW[column.type]) for column in view(name).columns]
        assert [(field.name, str(field.type)) for field in answer.schema] == declared, name
        for column in view(name).columns:
            if not column.nullable:
                assert answer[column.name].null_count == 0, (name, column.name)
