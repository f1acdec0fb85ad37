"""What SQL may read: guarded functions, shared frames."""

import json
import os
import socket
from pathlib import Path

import duckdb
import pytest
from tests.each_row import each_row
from tests.tables.fake import FakeReader, columns_of
from tests.tables.sql_processes import ask, last, numbers
from tests.tables.test_query import ProjectingReader

from peakline.errors import CheckFailed
from peakline.tables import TABLES, Profile
from peakline.tables.query import connect
from peakline.tables.sql_guard import ALLOWED, LOCAL, REFUSED, SYSTEM_VIEWS, Guard
from peakline.tables.sql_process import frames
from peakline.tables.sql_process.pool import SqlPool
from peakline.tables.sql_views import view_names

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
        'select value from "DuckDB_Settings"()', "select current_setting('secret_directory')",
        "select * from duckdb_extensions()", "select which_secret('a', 'b')",
        "select * from which_secret('a', 'b')", "select pg_sleep(1)", "select sleep_ms(1)",
        "select 1 where exists (select * from pg_settings)", "select pg_postmaster_start_time()",
        "select list_transform([1], lambda x: getenv('HOME'))",
        "with a as (select 'x' y) select y.getenv() from a", "select * from pragma_database_list",
        "select * from query('select * from duckdb_settings()')",
        "select * from query('select * from duckdb_' || 'settings()')",
        "select * from query_table('duckdb_constraints')", "select * from read_csv('x')",
        "explain analyze select pg_sleep(1)", "pivot duckdb_settings() on name using first(value)",
        "select 1 union all select count(*) from duckdb_memory()",
    ],
)  # fmt: skip
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


def test_a_plan_may_be_asked_for_in_its_formats(profile):
    for limit in (None, LIMIT):
        plan = profile.sql("explain (format json) from steps", memory_limit_bytes=limit)
        assert plan.num_rows == 1
        analyzed = "/* of */ Explain Analyze -- all\n select name as version from steps"
        assert profile.sql(analyzed, memory_limit_bytes=limit).num_rows == 1


def test_every_function_of_the_database_is_allowed_or_refused_for_a_reason():
    """A new release of DuckDB fails here, and is refused to remote callers until then."""
    with duckdb.connect(":memory:") as database:
        functions = "select function_name from duckdb_functions() where function_type <> 'pragma'"
        installed = {name.lower() for (name,) in database.execute(functions).fetchall()}
        views = "select view_name from duckdb_views() where schema_name <> 'information_schema'"
        assert {name for (name,) in database.execute(views).fetchall()} <= SYSTEM_VIEWS
    assert installed - ALLOWED - LOCAL - REFUSED.keys() == set()
    assert not ALLOWED & (LOCAL | REFUSED.keys())
    assert all(reason[-1].isalpha() for reason in REFUSED.values())
    # What only a future or another build of DuckDB has is no reason to fail.
    assert len(ALLOWED - installed) < 20
    # No table of ours is taken for one of the database's own.
    assert not SYSTEM_VIEWS & (TABLES.keys() | view_names())


@pytest.fixture(scope="module")
def remote():
    """What a remote caller's query gets to hear; empty where it is allowed."""
    with connect() as database:
        guard = Guard(database, remote=True)

        def check(query):
            try:
                guard.check(database, query, ["steps", "warnings"])
            except CheckFailed as error:
                return str(error)
            return ""

        yield check


_NO_FILE = "Table with name x.csv does not exist!"


@each_row(
    ("query", "reason"),
    [
        ("select coutn(*) from steps", "no function coutn that a query may call; similar: count"),
        ("select 1 order by zzzzzzz(1)", "no function zzzzzzz that a query may call"),
        ("select finalize(combine(a, a)) from steps", "no function finalize that"),
        ("select x.repeat(2).nosuch() from steps", "no function nosuch that"),
        ("select sum(1) over (partition by nosuch(1)) from steps", "no function nosuch"),
        ("select nosuch(1) over () from steps", "no function nosuch"),
        ("from nosuch(1)", "no function nosuch"),
        ("select [nosuch(x) for x in [1]]", "no function nosuch"),
        ("select 1 where exists (from steps having nosuch())", "no function nosuch"),
        ("from query('select nosuch(1)')", "no function nosuch"),
        ("explain select nosuch(1)", "no function nosuch"),
        ("explain (analyze, format json) select nosuch(1)", "no function nosuch"),
        ("select json_serialize_plan('select 1')", "it runs or plans a query that nothing has"),
        ("from add_grammar_extension('x')", "it changes the database or its settings"),
        ("pivot (select finalize(x) from steps) on name using count(*)", "finalize is not allowed"),
        ("pivot pg_settings on name using count(*)", "pg_settings is not allowed"),
        ("from nosuch", "Table with name nosuch does not exist! There is: steps, warnings"),
        ("from query_table('nosuch')", "Table with name nosuch does not exist!"),
        ("from 'x.csv'", "Table with name x.csv does not exist!"),
        ("from slow_steps", "The view slow_steps stands on "),
        ("from information_schema.tables", "information_schema.tables is not allowed"),
        ("from system.information_schema.tables", "information_schema.tables is not allowed"),
        ("from pg_catalog.pg_class", "pg_class is not allowed"),
        ("summarize duckdb_logs", "duckdb_logs is not allowed"),
        # A name that is made elsewhere in the query does not open what has the same name.
        ("select (with duckdb_tables as (select 1) from duckdb_tables), * from duckdb_tables",
         "duckdb_tables is not allowed"),
        ("select (with \"x.csv\" as (select 1) from 'x.csv') from 'x.csv'", _NO_FILE),
        ("select 1 from 'x.csv', (with \"x.csv\" as (select 1) from \"x.csv\")", _NO_FILE),
        ("from 'x.csv' where exists (with \"X.CSV\" as (select 1) from \"x.csv\")", _NO_FILE),
        ("(with \"x.csv\" as (select 1) from 'x.csv') union all from 'x.csv'", _NO_FILE),
        ("with a as (with \"x.csv\" as (select 1) from 'x.csv') from a, 'x.csv'", _NO_FILE),
        ("with a as (from 'x.csv'), \"x.csv\" as (select 1) from a", _NO_FILE),
        ("with \"x.csv\" as (from 'x.csv') from 'x.csv'", _NO_FILE),
        ("with recursive \"x.csv\" as (from 'x.csv') from 'x.csv'", _NO_FILE),
        ("with recursive \"x.csv\" as (from 'x.csv' union from 'x.csv') from 'x.csv'", _NO_FILE),
        ('with "x.csv" as (select 1) from main."x.csv"', _NO_FILE),
        ("from steps, lateral (with \"x.csv\" as (select 1) from 'x.csv'), 'x.csv'", _NO_FILE),
        ("from query('with \"x.csv\" as (select 1) from \"x.csv\"'), 'x.csv'", _NO_FILE),
        ("(with a as (select 1) from a) union all from query_table('a')", "Table with name a does"),
        ("with a as (select 1) from recurring.steps", "recurring.steps is not allowed"),
    ],
)  # fmt: skip
def test_a_remote_caller_may_use_only_what_is_known(remote, query, reason):
    assert reason in remote(query)


@each_row(
    "query",
    [
        "from steps", "from Steps s join warnings w on true", "from main.steps",
        "with a as (from steps), B as (from a) select count(*) from b, A",
        "with recursive t as (select 1 n union all select n + 1 from t where n < 3) from t",
        "from query('from steps')", "from query_table('steps')", "from range(3) t(i)",
        "with a as (from steps) (from a union all (with b as (from a) from b, a)) order by all",
        "with steps as (from steps), a as (from steps) select (select count(*) from a) from steps",
        "with a as (select 1 n) from query('from a'), query_table('a'), lateral (select a.n)",
        ("with recursive t(n) using key (n) as (select 1 union select n + 1 from recurring.t)"
         " from t"),
        ("with recursive t as (select 1 n union all (with u as (from t) select n + 1 from u))"
         " from t"),
        "pivot steps on name using count(*)", "from (values (1)) v(version) select version",
        "select a.b, x[1], x[1:2], -x, x || 'a', x like 'a', x between 1 and 2, x is null, 5!",
        "select case when true then 1 end, cast(1 as varchar), 'a' collate de, interval 1 day",
        "select name glob 'a*', name ~ 'a', name ilike 'a', name not similar to 'a' from steps",
        "select extract(year from date '2026-01-01'), position('a' in 'b'), current_date",
        "select coalesce(1, 2), nullif(1, 2), ifnull(1, 2), if(true, 1, 2), try(1), {'a': 1}.a",
        "select percentile_cont(0.5) within group (order by step_id) from steps",
        "select 1 is distinct from 2, 1 = any (select 1), exists (from steps)",
        "from steps select grouping(name) group by rollup (name)",
        "select unnest([1]), list_transform([1], lambda x: x + 1), map {'a': 1}, row(1), (1, 2)",
        "describe steps", "summarize steps", "explain from steps", "values (1)", "table steps",
        "unpivot steps on step_id, start_ps", "select columns(*) from steps", "(from steps)",
        "select '{}'::json->>'a', j->'b' from (select '{}'::json as j)",
        "from steps tablesample 10%", "from steps a asof join steps b on a.step_id >= b.step_id",
    ],
)  # fmt: skip
def test_a_remote_caller_may_use_all_of_sql(remote, query):
    assert remote(query) == ""


def test_a_local_caller_may_use_what_is_not_known_to_harm(profile):
    result = profile.sql("select finalize(sum(step_id) export_state) as n from steps")
    assert result.to_pylist() == [{"n": sum(range(3000))}]


def test_nothing_of_a_query_is_left(profile):
    """A table or macro of one caller would be another's."""
    for limit in (None, LIMIT):
        profile.sql("select setseed(0.5)", memory_limit_bytes=limit)
        profile.sql("pivot steps on name = '' using count(*)", memory_limit_bytes=limit)
        for query in (
            "explain analyze create macro sum(a) as 0",
            "explain analyze create or replace temp macro sum(a) as 0",
            "explain analyze set variable x = 1",
        ):
            with pytest.raises(CheckFailed, match="that reads"):
                profile.sql(query, memory_limit_bytes=limit)
        total = profile.sql("select sum(step_id) as n from steps", memory_limit_bytes=limit)
        assert total.to_pylist() == [{"n": sum(range(3000))}]


@pytest.fixture
def profile_of_sql_shared():
    with Profile(ProjectingReader()) as opened:
        yield opened


class TestShared:
    def test_columns_are_written_once(self, profile_of_sql_shared):
        sql = SqlPool()
        ask(sql, profile_of_sql_shared, "select name from events")
        first = sql.shared.numbers()
        assert len(first) == 1
        size = sql.shared.nbytes
        ask(sql, profile_of_sql_shared, "select count(*) from events where name = 'a'")
        assert (sql.shared.numbers(), sql.shared.nbytes) == (first, size)
        ask(sql, profile_of_sql_shared, "select name, duration_ps from events")
        assert first < sql.shared.numbers()
        assert len(sql.shared.numbers()) == 2
        sql.close()
        # For another process, too.
        (row,) = json.loads(
            ask(sql, profile_of_sql_shared, "select sum(duration_ps) n from events").content
        )
        assert row == {"n": 10}
        assert len(sql.shared.numbers()) == 2
        sql.close()

    def test_columns_go_with_their_profile(self, sql):
        before = sql.shared.numbers()
        with Profile(ProjectingReader()) as profile:
            ask(sql, profile, "from events, steps")
            assert len(sql.shared.numbers() - before) == 2
        assert sql.shared.numbers() <= before

    def test_columns_make_room(self, profile_of_sql_shared):
        sql = SqlPool(shared_bytes=0)
        query = "select count(*) n, sum(e.duration_ps) d from events e, steps s"
        for _ in range(2):
            assert json.loads(ask(sql, profile_of_sql_shared, query).content) == [{"n": 6, "d": 20}]
            assert sql.shared.numbers() == frozenset()
        sql.shared.resize(1 << 30)
        ask(sql, profile_of_sql_shared, "from steps")
        ask(sql, profile_of_sql_shared, "from events")
        ask(sql, profile_of_sql_shared, "select max(end_ps) from steps")
        used_last = ask(sql, profile_of_sql_shared, "select max(end_ps) n from steps").content
        sql.shared.resize(sql.shared.nbytes - 1)
        assert len(sql.shared.numbers()) == 1
        ((name, columns),) = [
            (name, columns)
            for name, columns in profile_of_sql_shared.made_once(sql.shared, None).tables.items()
            if columns
        ]
        assert (name, "end_ps" in columns) == ("steps", True)
        assert (
            ask(sql, profile_of_sql_shared, "select max(end_ps) n from steps").content == used_last
        )
        sql.close()

    def test_what_is_given_up_takes_no_memory(self, profile_of_sql_shared):
        sql = SqlPool()
        ask(sql, profile_of_sql_shared, "from events")
        (piece,) = {*profile_of_sql_shared.made_once(sql.shared, None).tables["events"].values()}
        seen = os.dup(piece.descriptor)
        assert os.fstat(seen).st_size == piece.size
        del piece
        profile_of_sql_shared.close()
        assert os.fstat(seen).st_size == 0
        os.close(seen)
        sql.close()

    def test_many_profiles_one_process(self, sql):
        """Each sees its own tables."""
        ask(sql, Profile(ProjectingReader()), "select 1")
        for many in (3, 1, 2):
            rows = [{"step_id": n, "name": f"train {n}"} for n in range(many)]
            with Profile(FakeReader({"steps": rows})) as profile:
                assert json.loads(ask(sql, profile, "select count(*) n from steps").content) == [
                    {"n": many}
                ]
                with pytest.raises(CheckFailed, match="events does not exist"):
                    ask(sql, profile, "from events", remote=False)

    def test_a_large_table_is_not_copied_for_a_query(self, sql):
        rows = columns_of("steps", [{"step_id": 1}])
        many = type(rows)(
            {
                name: rows[name].take([0] * 2_000_000)
                if hasattr(rows[name], "take")
                else rows[name]
                for name in rows
            },
            {},
        )
        assert many.rows == 2_000_000
        with Profile(FakeReader({"steps": many})) as profile:
            query = "select sum(step_id) n from steps"
            assert json.loads(ask(sql, profile, query).content) == [{"n": 2_000_000}]
            pid = last(sql)
            written = numbers("self", "io", "wchar")[0]
            taken = numbers(pid, "status", "RssAnon")[0]
            for _ in range(3):
                ask(sql, profile, query)
            assert numbers("self", "io", "wchar")[0] - written < 1 << 20
            assert numbers(pid, "status", "RssAnon")[0] - taken < 8 << 10


class TestFiles:
    @pytest.mark.parametrize("in_memory", [True, False])
    def test_have_no_name_and_their_content(self, monkeypatch, in_memory):
        if not in_memory:
            monkeypatch.delattr(os, "memfd_create")
        descriptor = frames.nameless_file("peakline-test")
        assert frames.content(descriptor) == b""
        assert frames.mapped(descriptor).size == 0
        os.write(descriptor, b"abc")
        assert frames.content(descriptor) == b"abc"
        assert frames.mapped(descriptor).to_pybytes() == b"abc"
        assert not Path(f"/proc/self/fd/{descriptor}").readlink().exists()
        os.close(descriptor)


class TestFrames:
    def test_bring_documents_and_open_files(self):
        one, other = socket.socketpair()
        with one, other, Path(__file__).open("rb") as file:
            frames.send(one, {"a": ["\ud800", 1]}, [file.fileno()])
            frame, (descriptor,) = frames.receive(other)
            assert frame == {"a": ["\ud800", 1]}
            assert os.fstat(descriptor) == os.fstat(file.fileno())
            os.close(descriptor)

    @each_row(
        "said",
        [
            b"", b"\1", b"\1\0\0\0\0\0\0\0", b"\xff" * 8, b"\xff" * 9, b"\1" + b"\0" * 7 + b"[",
            b"\2" + b"\0" * 7 + b"[]", b"\1" + b"\0" * 7 + b"1", b"\2" + b"\0" * 7 + b"\xff\xff",
        ],
    )  # fmt: skip
    def test_that_are_none_are_the_end(self, said):
        one, other = socket.socketpair()
        with one, other:
            one.sendall(said)
            one.close()
            with pytest.raises(frames.EndOfFramesError):
                frames.receive(other)
