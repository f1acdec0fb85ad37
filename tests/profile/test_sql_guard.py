"""What a query may not call, and what it may not take."""

import threading

import pytest
from tests.each_row import each_row
from tests.profile.fake import FakeReader
from tests.waiting import EndedDeadline

from peakline.deadline import check_deadline, within
from peakline.errors import CheckFailed, DeadlineError
from peakline.tables import Profile, sql_memory
from peakline.tables.sql_memory import resident_bytes

LIMIT = 64 << 20


@pytest.fixture
def profile():
    names = [{"step_id": i, "name": f"train {i}"} for i in range(3000)]
    with Profile(FakeReader({"steps": names})) as opened:
        yield opened


@each_row(
    "query",
    [
        "select value from duckdb_settings() where name = 'allowed_paths'",
        'select value from "DuckDB_Settings"()',
        "select current_setting('secret_directory')",
        "select * from duckdb_extensions()",
        "select which_secret('a', 'b')",
        "select * from which_secret('a', 'b')",
        "select pg_sleep(1)",
        "select sleep_ms(1)",
        "select 1 where exists (select * from pg_settings)",
        "select pg_postmaster_start_time()",
        "select list_transform([1], lambda x: getenv('HOME'))",
        "with a as (select 'x' y) select y.getenv() from a",
        "select * from pragma_database_list",
        "select * from query('select * from duckdb_settings()')",
        "select * from query('select * from duckdb_' || 'settings()')",
        "select * from query_table('duckdb_constraints')",
        "select * from read_csv('x')",
        "explain analyze select pg_sleep(1)",
        "pivot duckdb_settings() on name using first(value)",
        "select 1 union all select count(*) from duckdb_memory()",
    ],
)
def test_the_machine_is_no_subject(profile, query):
    for limit in (None, LIMIT):
        with pytest.raises(CheckFailed, match=r"is not allowed in a query|needs a constant") as why:
            profile.sql(query, memory_limit_bytes=limit)
        assert "\n" not in str(why.value)


def test_names_in_texts_are_no_calls(profile):
    query = "select count(*) n from steps where name in ('duckdb_settings()', 'getenv')"
    assert profile.sql(query).to_pylist() == [{"n": 0}]
    terms = " + ".join(["1"] * 600)
    assert profile.sql(f"select {terms} as n").to_pylist() == [{"n": 600}]


@each_row(
    "query",
    [
        "select repeat('x', 2000000000)",
        "select repeat(repeat('x', 4000), 4000)",
        "select 'x'.repeat(2000000000)",
        "select system.main.repeat('x', 2000000000)",
        "select length(repeat(name, 1000000 + step_id::int)) from steps",
        "select repeat([name], 100000000) from steps",
        "select lpad('x', 2000000000, 'y')",
        "select rpad('x', 2000000000, 'y')",
        "select bitstring('1', 2000000000)",
        "select list(range(100000000))",
        "select range(5, 100000000)",
        "select range(0, 1000000000, 2)",
        "select generate_series(0, -1000000000, -1)",
        "select range(timestamp '1900-01-01', timestamp '2100-01-01', interval 1 second)",
        "select list_resize([1], 1000000000)",
        "select list_resize(['a'], 1000, repeat('x', 4000))",
        "select list_transform(range(2000), lambda x: range(2000))",
        "select [repeat('x', 1000) for y in range(1000)]",
        "select printf('%2000000000d', 1)",
        "select printf('%*d', 2000000000, 1)",
        "select format('{:{}}', 1, 2000000000)",
        "select format('{:2000000000}', 1)",
        "explain analyze select repeat('x', 2000000000)",
        "explain analyze select format('{:2000000000}', 1)",
        "select levenshtein(repeat('x', 2000), repeat('y', 2000))",
        "select jaro_winkler_similarity(repeat(name, 2000), repeat(name, 2000)) from steps",
    ],
)
def test_no_call_makes_a_large_cell(profile, query):
    before = resident_bytes()
    with pytest.raises(
        CheckFailed, match=r"one cell|not allowed|plain name|constant format|pairs of"
    ):
        profile.sql(query, memory_limit_bytes=LIMIT)
    assert resident_bytes() - before < LIMIT


def test_a_plan_may_be_asked_for_in_its_formats(profile):
    for limit in (None, LIMIT):
        plan = profile.sql("explain (format json) from steps", memory_limit_bytes=limit)
        assert plan.num_rows == 1


def test_small_cells_are_as_ever(profile):
    query = (
        "select repeat('ab', 2) a, repeat([1], 2) b, repeat('x'::blob, 2) c, lpad('a', 3, '.') d,"
        " range(3) e, range(1, 3) f, generate_series(4, 0, -2) g, list_resize([1], 2, 0) h,"
        " len(range(date '2026-01-01', date '2026-01-04', interval 1 day)) i, rpad('a', 2, '.') j,"
        " printf('%5.1f', 2.5) k, bitstring('1', 3)::varchar l, repeat(null, 2) m,"
        " levenshtein('ab', 'b') n"
    )
    unlimited = profile.sql(query)
    assert profile.sql(query, memory_limit_bytes=LIMIT).equals(unlimited)
    assert unlimited.to_pylist()[0]["g"] == [4, 2, 0]


@each_row(
    "query",
    ["select * from range(1000000000)", "select null from range(1000000000)"],
)
def test_an_answer_is_counted_as_it_comes(profile, query):
    profile.sql("select 1", memory_limit_bytes=LIMIT)
    before = resident_bytes()
    with pytest.raises(CheckFailed, match=f"(more than|its limit of) {LIMIT // 16} bytes"):
        profile.sql(query, memory_limit_bytes=LIMIT // 16)
    if "null" not in query:
        # The database runs ahead with nulls, which it takes for nothing, until the watcher sees it.
        assert resident_bytes() - before < LIMIT
    table = profile.sql("select step_id from steps order by 1", memory_limit_bytes=LIMIT)
    assert table["step_id"].to_pylist() == list(range(3000))


def test_a_process_that_grows_interrupts_the_query(profile, monkeypatch):
    """Whatever the database does not count itself."""
    sizes = iter([0])
    monkeypatch.setattr(sql_memory, "resident_bytes", lambda: next(sizes, 1 << 40))
    # It takes next to nothing, so that nobody but the watcher can end it.
    endless = "select sum(range) from range(1000000000000000)"
    with pytest.raises(CheckFailed, match=f"memory than its limit of {LIMIT} bytes"):
        profile.sql(endless, memory_limit_bytes=LIMIT)
    monkeypatch.undo()
    assert profile.sql("select 1 a", memory_limit_bytes=LIMIT).to_pylist() == [{"a": 1}]


def test_a_deadline_ends_an_answer_that_streams(profile, monkeypatch):
    threads, batches = set(threading.enumerate()), 0
    deadline = EndedDeadline()

    def look():
        nonlocal batches
        batches += 1
        if batches == 3:
            deadline.end()
        check_deadline()

    monkeypatch.setattr(sql_memory, "check_deadline", look)
    query = "select null from range(1000000000000)"
    with within(deadline), pytest.raises(DeadlineError):
        profile.sql(query, memory_limit_bytes=1 << 40)
    assert batches == 3
    assert not {one.name for one in set(threading.enumerate()) - threads} & {
        "deadline", "sql-memory",
    }  # fmt: skip
