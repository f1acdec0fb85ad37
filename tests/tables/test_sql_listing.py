"""`show tables` and `describe`, of a profile and in the processes of remote queries."""

import pytest
from tests.each_row import each_row
from tests.tables.fake import FakeReader

from peakline.errors import CheckFailed
from peakline.tables import Profile
from peakline.tables.sql_listing import plain_query
from peakline.tables.sql_views import view_names
from peakline.tables.tables import TABLES

EVENT = {"event_id": 0, "line_id": 0, "name": "op", "start_ps": 0, "duration_ps": 1}
STEP = {"step_id": 0, "name": "train", "start_ps": 0, "end_ps": 1}
THERE = {name: TABLES[name] for name in ("events", "lines", "planes", "steps", "warnings")}


@pytest.fixture
def profile():
    return Profile(FakeReader({"steps": [STEP], "events": [EVENT]}))


@each_row("query", ["show tables", "SHOW ALL TABLES;", " describe ; ", "desc tables", "show"])
def test_tables_and_views_are_listed_with_what_they_hold(profile, query):
    named = {row["name"]: (row["kind"], row["answers"]) for row in profile.sql(query).to_pylist()}
    assert named["steps"] == ("table", TABLES["steps"].doc)
    assert named["warnings"][0] == "table"
    assert {kind for kind, _ in named.values()} <= {"table", "view"}
    assert set(named) <= TABLES.keys() | view_names()


def test_views_alone(profile):
    assert [row["name"] for row in profile.sql("show views;").to_pylist()] == sorted(profile.views)


@each_row(
    "query",
    ["describe steps", "DESC Steps;", 'show "steps"', "show columns from main.steps",
     "Show Columns In steps ;", "describe table steps"],
)  # fmt: skip
def test_a_table_is_described_with_the_meaning_of_its_columns(profile, query):
    rows = profile.sql(query).to_pylist()
    wanted = [(one.name, one.type, " ".join(one.doc.split())) for one in TABLES["steps"].columns]
    assert [(r["column_name"], r["column_type"], r["meaning"]) for r in rows] == wanted


def test_a_view_is_described():
    text = plain_query("describe idle_gaps", THERE)
    assert "plane" in text
    assert text.startswith("select * from (values (")


@each_row("query", ["describe select 1 as a", "show steps, lines", "select 'show tables'"])
def test_other_statements_stay_as_they_are(query):
    assert plain_query(query, THERE) == query


def test_an_answers_columns_are_described(profile):
    rows = profile.sql("describe select 1 as a").to_pylist()
    assert [row["column_name"] for row in rows] == ["a"]


def test_an_unknown_table_names_what_is_near():
    with pytest.raises(CheckFailed, match=r"Did you mean events\? There is: events, li"):
        plain_query("describe evnets", THERE)


@each_row("limit", [None, 1 << 30])
def test_remote_queries_have_the_same_answer(profile, limit):
    result = profile.sql("show tables", memory_limit_bytes=limit)
    assert result["name"].to_pylist()[:2] == ["events", "steps"]


def test_of_many_tables_the_near_ones_are_enough():
    with pytest.raises(CheckFailed, match=r"Did you mean events\? SHOW TABLES lists all$"):
        plain_query("describe evnets", TABLES)
