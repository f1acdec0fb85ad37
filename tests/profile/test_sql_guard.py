"""What a query may not do, for local and for remote callers."""

import duckdb
import pytest
from tests.each_row import each_row
from tests.profile.fake import FakeReader

from peakline.errors import CheckFailed
from peakline.tables import TABLES, Profile
from peakline.tables.query import connect
from peakline.tables.sql_functions import ALLOWED, LOCAL, REFUSED, SYSTEM_VIEWS
from peakline.tables.sql_guard import Guard
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
    found = profile.sql("select finalize(sum(step_id) export_state) as n from steps")
    assert found.to_pylist() == [{"n": sum(range(3000))}]


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
