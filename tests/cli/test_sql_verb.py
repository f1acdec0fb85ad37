import csv
import io
import json

import pyarrow.parquet as pq
import pytest
from tests.analysis.records import alloc
from tests.each_row import each_row

from peakline.tables.sql_views import view, view_names

QUERY = "select op, sum(allocated_bytes) as bytes from allocator_events group by op order by bytes"


@pytest.fixture
def path(opened):
    return opened([alloc(1, 10, op="b"), alloc(2, 5, op="a,\n\x1b"), alloc(3, 1)])


def test_a_table_for_people(peakline, path):
    run = peakline("sql", path, QUERY)
    assert (run.code, run.err) == (0, "")
    lines = ["op        bytes", "              1", "a,\\n\\x1b      5", "b            10"]
    assert run.out.splitlines() == lines


def test_json(peakline, path):
    assert json.loads(peakline("sql", path, QUERY, "--format", "json").out) == [
        {"op": None, "bytes": 1},
        {"op": "a,\n\x1b", "bytes": 5},
        {"op": "b", "bytes": 10},
    ]
    assert peakline("sql", path, "select 1 where false", "--format", "json").out == "[]\n"


def test_json_of_values_that_json_lacks(peakline, path):
    query = "select 'nan'::double x, 1.5::decimal(3,1) d, [1, null] l, {'k': 2} s, '\\xFF'::blob b"
    run = peakline("sql", path, query, "--format", "json")
    assert json.loads(run.out) == [{"x": None, "d": 1.5, "l": [1, None], "s": {"k": 2}, "b": "ff"}]


def test_json_has_all_columns_of_one_name(peakline, path):
    run = peakline("sql", path, "select 1 as a, 2 as a", "--format", "json")
    assert json.loads(run.out) == [{"a": 1, "a_2": 2}]


def test_an_answer_has_the_memory_limit_too(peakline, path):
    run = peakline("sql", path, "select * from range(100000000)", "--memory-limit", "16MiB")
    assert (run.code, run.out, run.err.count("\n")) == (1, "", 1)
    assert "LIMIT" in run.err


def test_csv(peakline, path):
    run = peakline("sql", path, QUERY, "--format", "csv")
    rows = list(csv.reader(io.StringIO(run.out, newline="")))
    assert rows == [["op", "bytes"], ["", "1"], ["a,\n\x1b", "5"], ["b", "10"]]


def test_parquet(peakline, path, tmp_path):
    target = tmp_path / "answer.parquet"
    run = peakline("sql", path, QUERY, "--format", "parquet", "-o", target)
    assert (run.code, run.out) == (0, "")
    assert [int(size) for size in pq.read_table(target)["bytes"].to_pylist()] == [1, 5, 10]


def test_a_table_into_a_file(peakline, path, tmp_path):
    target = tmp_path / "answer.txt"
    assert peakline("sql", path, "select 1 as a", "-o", target).code == 0
    assert target.read_text() == "a\n1\n"


def test_a_long_table_is_cut_and_counted(peakline, path):
    run = peakline("sql", path, "select range as n from range(1005)")
    assert run.out.splitlines()[-1].strip() == "999"
    assert run.err == "peakline: 5 more rows; --format csv has them all\n"


@each_row(
    "query",
    ["select * from nowhere", "drop table allocator_events", "select * from '/etc/passwd'", ""],
)
def test_a_refused_query_is_one_line_and_exit_1(peakline, path, query):
    run = peakline("sql", path, query)
    assert (run.code, run.out, run.err.count("\n")) == (1, "", 1)


def test_strict(peakline, opened):
    path = opened([alloc(1, 1)], losses={"allocator_events": ("truncated", "half an event", 1)})
    run = peakline("sql", path, QUERY)
    assert (run.code, run.err) == (0, "peakline: warning: half an event [truncated]\n")
    run = peakline("sql", path, QUERY, "--strict")
    assert (run.code, run.out) == (3, "")


def test_a_real_profile(peakline, sessions):
    query = "select activity, count(*) n from allocator_events group by activity order by activity"
    run = peakline("sql", sessions / "tf2_cnn", query, "--format", "csv")
    assert run.out == "activity,n\nallocation,1986\ndeallocation,1984\n"


def test_the_list_of_views(peakline, path):
    run = peakline("sql", "--list", "--format", "csv")
    rows = list(csv.DictReader(io.StringIO(run.out)))
    assert (run.code, run.err) == (0, "")
    assert [row["view"] for row in rows] == sorted(view_names())
    assert next(row for row in rows if row["view"] == "idle_gaps") == {
        "view": "idle_gaps",
        "tables": "events, lines, planes",
        "answers": view("idle_gaps").doc,
    }
    of_file = peakline("sql", "--list", path, "--format", "json")
    there = {row["view"] for row in json.loads(of_file.out)}
    assert {"live_memory", "allocator_summary"} <= there < view_names()
    assert peakline("sql", "--list").out.splitlines()[0].split() == ["view", "tables", "answers"]


def test_a_view_is_named_as_a_table_is(peakline, path):
    run = peakline("sql", path, "select op, allocations from allocation_churn", "--format", "csv")
    assert run.out == 'op,allocations\nb,1\n"a,\n\x1b",1\n,1\n'


@each_row("arguments", [[], ["some.pb"], ["--list", "some.pb", "select 1"]])
def test_what_is_to_be_done_has_to_be_said(peakline, arguments):
    run = peakline("sql", *arguments)
    assert (run.code, run.out) == (2, "")
    assert run.err == "peakline: sql takes PATH and QUERY, or --list and perhaps PATH\n"
