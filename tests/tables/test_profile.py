"""Profile: tables on demand, SQL that sees nothing else, warnings."""

import threading

import duckdb
import numpy as np
import pyarrow as pa
import pytest
from tests.each_row import each_row
from tests.tables.fake import FakeReader, columns_of

from peakline.errors import CheckFailed, StrictError, UsageError
from peakline.tables import Columns, Names, Profile
from peakline.tables.tables import check_columns

STEPS = columns_of(
    "steps",
    [
        {"step_id": 0, "name": "train 1", "start_ps": 10, "end_ps": 20},
        {"step_id": 1, "name": "train 2", "start_ps": 30, "end_ps": 45},
    ],
)
EVENTS = columns_of(
    "events",
    [
        {"event_id": 0, "line_id": 0, "name": "a", "start_ps": 5, "duration_ps": 1, "step_id": 1},
        {"event_id": 1, "line_id": 0, "name": "b", "start_ps": 6, "duration_ps": 2},
    ],
)
_FIGURES = ("time_ps", "allocation_id", "in_use_bytes", "free_bytes", "pool_bytes", "peak_bytes")
LOSS = {"events": ("truncated", "12 bytes lost at the end", 12)}


@pytest.fixture
def reader():
    return FakeReader({"steps": STEPS, "events": EVENTS}, losses=LOSS)


@pytest.fixture
def profile(reader):
    return Profile(reader)


def rows(table: pa.Table) -> list[tuple[object, ...]]:
    return [tuple(row.values()) for row in table.to_pylist()]


class TestTables:
    def test_what_it_says_about_itself(self, profile, reader):
        assert (profile.path, profile.format, profile.host) == ("fake.pb", "fake", "worker-0")
        assert profile.tables == ["events", "steps", "warnings"]
        assert (profile.duration_ps, profile.duration_ps) == (1234, 1234)
        assert reader.reads == {"duration_ps": 1}

    def test_a_table_is_read_when_asked_for_and_once(self, profile, reader):
        assert not reader.reads
        assert profile.columns("steps") is profile.columns("steps")
        assert profile.table("steps") is profile.table("steps")
        assert reader.reads == {"steps": 1}

    def test_arrow_has_the_rows_and_the_nulls(self, profile):
        assert profile.table("events").to_pylist() == EVENTS.to_pylist()
        assert profile.table("events")["step_id"].to_pylist() == [1, None]

    def test_columns_that_a_reader_never_fills_share_their_zeros(self):
        records = {"time_ps": np.arange(1000), "allocation_id": np.arange(1000)}
        columns = check_columns("allocator_events", Columns(records), _FIGURES)
        absent = [columns.array(name) for name in _FIGURES if name not in records]
        assert len(absent) > 3
        assert {(values.dtype.name, values.size) for values in absent} == {("int64", 1000)}
        assert all(np.shares_memory(absent[0], values) for values in absent)
        assert not any(columns.is_valid(name).any() for name in columns if name not in records)

    @each_row("name", ["buffers", "nonsense", "Steps"])
    def test_a_table_it_does_not_have_is_a_usage_error_that_names_those_it_has(self, profile, name):
        with pytest.raises(UsageError, match=rf"no table {name} .* events, steps, warnings"):
            profile.columns(name)

    def test_a_reader_that_breaks_the_table_definition_is_found_out(self):
        wrong = Columns({"step_id": np.zeros(1, np.int64), "name": Names.constant("x", 1)})
        with pytest.raises(TypeError, match="steps: no column start_ps"):
            Profile(FakeReader({"steps": wrong})).columns("steps")

    def test_many_threads_read_once(self, profile, reader):
        threads = [threading.Thread(target=profile.columns, args=("steps",)) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert reader.reads == {"steps": 1}


class TestWarnings:
    def test_they_come_with_the_reads(self, profile):
        assert profile.warnings == []
        profile.columns("events")
        assert profile.warnings == [("truncated", 12, "12 bytes lost at the end")]
        assert profile.warnings[0].kind == "truncated"
        assert profile.columns("warnings").to_pylist() == [
            {"kind": "truncated", "count": 12, "detail": "12 bytes lost at the end"}
        ]

    def test_the_helper_raises_only_when_there_are_some(self, profile):
        profile.strict()
        profile.columns("events")
        with pytest.raises(StrictError, match=r"fake.pb: truncated \(12\): 12 bytes lost"):
            profile.strict()

    def test_strict_refuses_the_read_that_loses_something_every_time(self, reader):
        profile = Profile(reader, strict=True)
        assert profile.columns("steps").rows == 2
        for _ in range(2):
            with pytest.raises(StrictError, match="truncated"):
                profile.columns("events")
        with pytest.raises(StrictError, match="truncated"):
            profile.sql("select * from events")

    def test_one_can_be_added(self, profile):
        profile.warn("odd", "first", 2)
        profile.warn("odd", "second")
        assert profile.warnings == [("odd", 3, "first")]

    def test_what_is_told_once_counts_in_the_profile_and_in_each_question(self, profile):
        for _ in range(2):
            profile.warn("guessed", "one", 3, once=True)
            profile.warn("guessed", "another", 4, once=True)
        assert profile.warnings == [("guessed", 7, "one")]
        for _ in range(2):
            with profile.question() as result:
                profile.warn("guessed", "one", 3, once=True)
                profile.warn("guessed", "one", 3, once=True)
                assert result()[1:] == [("guessed", 3, "one")]
        assert profile.warnings == [("guessed", 7, "one")]


class TestSql:
    def test_it_answers_and_reads_only_what_is_named(self, profile, reader):
        assert rows(profile.sql("select name, end_ps - start_ps from steps order by 2 desc")) == [
            ("train 2", 15),
            ("train 1", 10),
        ]
        assert reader.reads == {"steps": 1}

    def test_a_second_query_may_use_more_tables(self, profile, reader):
        profile.sql("select * from steps")
        joined = profile.sql(
            "select e.name, s.name step from events e join steps s using (step_id)"
        )
        assert rows(joined) == [("a", "train 2")]
        assert reader.reads == {"steps": 1, "events": 1}

    @each_row(
        "query",
        [
            "select count(*) from STEPS",
            'select count(*) from "steps"',
            "select count(*) from main.steps",
            "with x as (select * from steps) select count(*) from x",
            "select (select count(*) from steps)",
            "from steps select count(*)",
            "select count(*) from query('select * from steps')",
            "select count(*) from query_table('steps')",
            "select count(*) from (describe steps) where column_name in ('name', 'step_id')",
        ],
    )
    def test_however_the_table_is_named(self, profile, query):
        assert rows(profile.sql(query)) == [(2,)]

    @each_row(
        ("query", "first"),
        [
            ("describe steps", "step_id"),
            ("summarize steps", "step_id"),
            ("values (1)", 1),
            ("explain select * from steps", "physical_plan"),
        ],
    )
    def test_statements_that_read_are_accepted(self, profile, query, first):
        assert rows(profile.sql(query))[0][0] == first

    def test_a_column_with_the_name_of_a_table_reads_no_table(self, profile, reader):
        assert rows(profile.sql("select start_ps as events from steps")) == [(10,), (30,)]
        assert reader.reads == {"steps": 1}

    def test_warnings_are_a_table_and_include_those_of_the_same_query(self, profile):
        assert rows(profile.sql("select * from warnings")) == []
        query = "select kind, count from warnings, (select count(*) from events)"
        assert rows(profile.sql(query)) == [("truncated", 12)]

    def test_strings_and_nulls(self, profile):
        assert rows(profile.sql("select name from events where step_id is null")) == [("b",)]

    @each_row(
        ("query", "reason"),
        [
            ("select * from buffers", r"name buffers does not exist! There is: events, steps"),
            ("select nope from steps", r'"nope" not found'),
            ("selec 1", "syntax error"),
            ("select 'a'::int", "Could not convert"),
            ("", "one statement that reads"),
            ("select 1; select 2", "one statement that reads"),
            ("create table t as select 1", "one statement that reads"),
            ("drop view steps", "one statement that reads"),
            ("set threads = 1", "one statement that reads"),
            ("with a as (insert into steps values (1) returning 1) from a", "that reads"),
            ("with a as (copy (select 1) to 'x.csv') from a", "that reads"),
            ("explain analyze create table t as select 1", "one statement that reads"),
            ("/* a */ explain -- b\n drop view steps", "one statement that reads"),
            ("attach 'x.db'", "one statement that reads"),
            ("describe stepz", "does not exist! Did you mean steps"),
            ("show tables; drop view steps", "one statement that reads"),
            ("select '\ud800'", "not valid Unicode at character 8"),
            ("install httpfs", "one statement that reads"),
            ("load httpfs", "one statement that reads"),
            ("copy (select 1) to 'x.csv'", "disabled|one statement that reads"),
            ("export database 'x'", "disabled|one statement that reads"),
        ],
    )
    def test_a_wrong_or_refused_query_says_why_in_one_line(self, profile, query, reason):
        with pytest.raises(CheckFailed, match=reason) as caught:
            profile.sql(query)
        assert "\n" not in str(caught.value)

    @each_row(
        "source",
        [
            "'{path}'", "read_csv('{path}')", "read_text('{path}')", "read_blob('{path}')",
            "read_parquet('{path}')", "read_json('{path}')", "glob('{path}')",
            "'https://127.0.0.1:9/x.csv'", "read_csv('https://127.0.0.1:9/x.csv')",
        ],
    )  # fmt: skip
    def test_no_file_and_no_network(self, profile, tmp_path, source):
        path = tmp_path / "secret.csv"
        path.write_text("a,b\n1,2\n")
        with pytest.raises(CheckFailed):
            profile.sql("select * from " + source.format(path=path))  # noqa: S608 (the test itself)

    def test_no_python_variable(self, profile):
        assert pa.table({"a": [1]}).num_rows == 1
        with pytest.raises(CheckFailed, match="hidden does not exist"):
            profile.sql("select * from hidden")

    def test_nothing_is_written(self, profile, tmp_path, monkeypatch):
        monkeypatch.chdir(tmp_path)
        profile.sql("select count(*) from range(100000) a join range(100) b on a.range = b.range")
        assert list(tmp_path.iterdir()) == []

    @pytest.mark.skipif(
        duckdb.__version__.startswith("1."), reason="two statements before DuckDB 2"
    )
    def test_a_pivot_over_the_columns_it_finds(self, profile):
        pivot = profile.sql("pivot events on name using sum(duration_ps)")
        assert {"a", "b"} <= set(pivot.column_names)


class TestClose:
    def test_the_reader_is_closed_and_the_profile_says_so(self, reader):
        with Profile(reader) as profile:
            profile.sql("select * from steps")
        assert reader.closed
        profile.close()
        for use in (
            lambda: profile.columns("steps"),
            lambda: profile.table("steps"),
            lambda: profile.sql("select 1"),
            lambda: profile.duration_ps,
        ):
            with pytest.raises(UsageError, match=r"fake.pb: the profile is closed"):
                use()
