"""A query is answered from the columns it needs, and exactly as if all had been read."""

import duckdb
import pytest
from tests.each_row import each_row
from tests.tables.fake import FakeReader, columns_of

from peakline.errors import CheckFailed
from peakline.tables import Profile
from peakline.tables.query import connect, needs_of, with_nulls
from peakline.tables.sql_guard import Guard
from peakline.tables.tables import TABLES as DEFINED

STEPS = columns_of(
    "steps",
    [
        {"step_id": 1, "name": "train 1", "start_ps": 0, "end_ps": 10},
        {"step_id": 2, "name": "train 2", "start_ps": 10, "end_ps": 25},
    ],
)
EVENTS = columns_of(
    "events",
    [
        {"event_id": 0, "line_id": 3, "name": "a", "start_ps": 5, "duration_ps": 7, "step_id": 1},
        {"event_id": 1, "line_id": 3, "name": "b", "start_ps": 8, "duration_ps": 1},
        {"event_id": 2, "line_id": 4, "name": "a", "start_ps": 9, "duration_ps": 2, "step_id": 2},
    ],
)
TABLES = {"steps": STEPS, "events": EVENTS}


class ProjectingReader(FakeReader):
    """Gives no column that was not asked for, and remembers what was."""

    def __init__(self):
        super().__init__(TABLES)
        self.asked = []

    def read(self, table, warnings, columns=None):
        whole = super().read(table, warnings)
        self.asked.append((table, None if columns is None else frozenset(columns)))
        if columns is None:
            return whole
        chosen = {name: whole[name] for name in whole if name in columns}
        valid = {name: mask for name, mask in whole.valid.items() if name in columns}
        return type(whole)(chosen, valid)


QUERIES = [
    "select name, count(*) n from events group by name order by name",
    "select count(*) from events",
    "select * from events order by event_id",
    "select * exclude (step_id) from events order by event_id",
    "select * replace (name || '!' as name) from events order by 1",
    "select e from events e order by e.event_id",
    "select columns('.*_ps') from events order by all",
    "select sum(duration_ps) filter (where step_id is null) from events",
    "select name from events where duration_ps > 1 order by start_ps desc",
    "select name from events order by start_ps limit 1",
    "select name from events where 1 = 0 and step_id > 3",
    "select e.name, s.name from events e join steps s using (step_id) order by 1, 2",
    "select * from events natural join (select step_id, end_ps from steps) order by event_id",
    "select name from events where step_id in (select step_id from steps where end_ps > 20)",
    "select (select max(end_ps) from steps) - start_ps from events order by event_id",
    "select a.name from events a, events b where a.start_ps < b.start_ps order by all",
    "with x as (select name, rank() over (order by start_ps) r from events) from x order by all",
    "select lag(start_ps) over (partition by line_id order by start_ps) from events order by all",
    "from events select max_by(name, duration_ps)",
    "select unnest([name, line_id::varchar]) from events order by all",
    "pivot events on name using sum(duration_ps) group by line_id order by line_id",
    "describe select event_id from events",
    "summarize steps",
    "select name, name from events union all select name, name from steps order by all",
    "select kind from warnings",
]


@each_row("query", QUERIES)
def test_the_answer_is_that_over_whole_tables(query):
    with duckdb.connect(":memory:") as plain:
        for name, columns in TABLES.items():
            plain.register(name, columns.arrow())
        plain.execute("create table warnings (kind varchar, count bigint, detail varchar)")
        expected = plain.sql(query).to_arrow_table()
    assert Profile(ProjectingReader()).sql(query).to_pylist() == expected.to_pylist()


@each_row(
    ("query", "asked"),
    [
        ("select name, count(*) from events group by 1", [("events", {"name"})]),
        ("select sum(duration_ps) from events", [("events", {"duration_ps"})]),
        ("select count(*) from events where step_id = 1", [("events", {"event_id", "step_id"})]),
        ("select name from steps where false", [("steps", {"step_id"})]),
        ("select 1", []),
        ("describe select event_id from events", [("events", {"event_id"})]),
    ],
)
def test_only_the_columns_that_the_query_needs_are_read(query, asked):
    reader = ProjectingReader()
    Profile(reader).sql(query)
    assert [(table, None if c is None else set(c)) for table, c in reader.asked] == asked


def test_a_column_that_the_format_never_fills_does_not_lose_the_rows():
    reader = ProjectingReader()
    whole = reader._tables["events"]
    reader._tables["events"] = type(whole)({n: whole[n] for n in whole if n != "category"})
    counted = Profile(reader).sql("select count(*) n, min(category) c from events").to_pylist()
    assert counted == [{"n": 3, "c": None}]


def test_a_name_counts_for_every_table_that_has_it():
    query = "select e.name from events e join steps s using (step_id)"
    with connect() as connection:
        needs = needs_of(connection, query, DEFINED, Guard(connection, remote=False))
    assert needs == {"events": {"name", "step_id"}, "steps": {"name", "step_id"}}


def test_a_later_question_reads_what_is_missing_and_keeps_what_there_is():
    reader = ProjectingReader()
    profile = Profile(reader)
    profile.sql("select name from events")
    profile.sql("select name from events where name = 'a'")
    profile.sql("select duration_ps from events")
    profile.columns("events")
    profile.sql("select step_id from events")
    assert reader.asked == [
        ("events", {"name"}),
        ("events", {"name", "duration_ps"}),
        ("events", None),
    ]


def test_columns_not_read_are_null_and_take_no_memory():
    many = columns_of("steps", [{"name": "x"}] * 70_000)
    part = type(many)({"name": many["name"]})
    table = with_nulls(DEFINED["steps"], part.arrow(), part.rows)
    assert table.column_names == [
        "step_id", "name", "start_ps", "end_ps", "found_by", "is_cut_off"
    ]  # fmt: skip
    assert table.num_rows == 70_000
    assert table["start_ps"].null_count == 70_000
    assert {piece.buffers()[1].address for piece in table["start_ps"].chunks} == {
        table["start_ps"].chunk(0).buffers()[1].address
    }


def test_a_query_may_be_given_less_memory():
    profile = Profile(ProjectingReader())
    hungry = "select count(distinct i) from range(20000000) t(i)"
    with pytest.raises(CheckFailed, match=r"(?i)memory"):
        profile.sql(hungry, memory_limit_bytes=20_000_000)
    assert profile.sql("select count(*) n from steps").to_pylist() == [{"n": 2}]
