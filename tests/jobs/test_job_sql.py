"""SQL over a job: what each rank says of itself, one rank after the other."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from tests.each_row import each_row
from tests.jobs.traces import put_job, trace
from tests.repository.places import put

import peakline
from peakline.engine import Engine
from peakline.errors import CheckFailed, InputError
from peakline.repository import resolve_hosts
from peakline.tables.query import connect
from peakline.tables.rank_conditions import ranks_needed
from peakline.tables.sql_process.answer import Form
from peakline.tables.sql_process.pool import Question

DATA = Path(__file__).parents[1] / "data" / "jobs"
PATHS = {
    "ddp_host": DATA / "ddp_host/faulty",
    "tf_workers": DATA / "tf_workers/faulty/plugins/profile/2026_11_29_22_56_17",
}


@pytest.fixture(scope="module")
def engine():
    """One that holds what it has read, so that 60 tables are read once."""
    with Engine() as engine:
        yield engine


def files_of(name):
    files = json.loads((DATA / name / "truth.json").read_text())["faulty"]["files"]
    return [(int(rank), str(DATA / name / files[rank])) for rank in sorted(files, key=int)]


@pytest.mark.parametrize(
    "name", ["ddp_host", pytest.param("tf_workers", marks=pytest.mark.nightly)]
)
def test_every_table_and_view_is_those_of_the_ranks_one_after_the_other(name, engine):
    profiles = [(rank, peakline.open(path)) for rank, path in files_of(name)]
    session = resolve_hosts(str(PATHS[name]))
    listed = engine.sql(session, "show tables").to_pylist()
    assert {one["name"] for one in listed} == {"ranks"}.union(
        *([*profile.tables, *profile.views] for _, profile in profiles)
    )
    kinds = {one["name"]: one["kind"] for one in listed}
    for table in sorted(kinds.keys() - {"ranks", "warnings"}):
        query = f'select * from "{table}"'  # noqa: S608 (a name of ours)
        by_hand = [
            {"rank": rank, **row}
            for rank, profile in profiles
            if table in {*profile.tables, *profile.views}
            for row in profile.sql(query).to_pylist()
        ]
        rows = engine.sql(session, query)
        assert rows.to_pylist() == by_hand, table
        assert (rows.column_names[0], rows.schema.field("rank").type) == ("rank", "int32")
    assert kinds["step_parts"] == "view"
    assert kinds["ranks"] == kinds["events"] == "table"


def test_a_query_over_several_tables_is_what_its_parts_are(engine):
    (_, one), (_, two) = ((rank, peakline.open(path)) for rank, path in files_of("ddp_host"))
    own = "select count(*) n, sum(e.duration_ps)::bigint ps from events e join lines using (line_id"
    query = f"{own}, rank) group by rank order by rank"
    by_hand = [profile.sql(f"{own})").to_pylist()[0] for profile in (one, two)]
    session = resolve_hosts(str(PATHS["ddp_host"]))
    for limit in (None, 256 << 20):
        assert engine.sql(session, query, memory_limit_bytes=limit).to_pylist() == by_hand
    query = "select rank from events where name = $name group by rank order by rank"
    rows = engine.sql(session, query, {"name": one.sql("from events")["name"][0].as_py()})
    assert rows["rank"].to_pylist() == [0, 1]


@pytest.fixture
def job(tmp_path):
    return put_job(tmp_path / "job")


def test_no_query_reaches_what_a_query_over_a_profile_does_not(engine, job):
    session = resolve_hosts(str(job))
    for limit in (None, 64 << 20):
        for query in (
            "from read_csv('/etc/passwd')", f"from '{job}/rank0.json'", "from duckdb_settings()",
            "create table t as from events", f"copy events to '{job}/stolen.csv'",
            "from events; from lines", "set memory_limit = '1TB'",
        ):  # fmt: skip
            with pytest.raises(CheckFailed):
                engine.sql(session, query, memory_limit_bytes=limit)
    assert not (job / "stolen.csv").exists()


def test_what_does_not_fit_into_the_memory_is_sorted_on_the_disk_and_answers_are_bounded(job):
    many = "select rank, range i, hash(range) h from events, range(600_000)"
    query = f"select sum(i)::bigint s from (from ({many}) order by h limit 500_000 offset 9)"  # noqa: S608
    with Engine() as engine:
        session = resolve_hosts(str(job))
        rows = engine.sql(session, query).to_pylist()
        assert engine.sql(session, query, memory_limit_bytes=24 << 20).to_pylist() == rows
        with pytest.raises(CheckFailed, match="takes more than 25165824 bytes"):
            engine.sql(session, many, memory_limit_bytes=24 << 20)


def read_for(session, query):
    """The hosts that a query reads, and its rows."""
    hosts = []
    with Engine() as engine:
        rows = engine.job_sql(session, query, progress=lambda host, *_: hosts.append(host))
    return sorted(hosts), rows.table.to_pylist()


def test_ranks_that_the_query_rules_out_are_not_read(tmp_path):
    for rank in range(3):
        put(tmp_path, f"rank{rank}.json", content=trace(rank))
    session = resolve_hosts(str(tmp_path))
    assert read_for(session, "select rank from events where rank = 2") == (["rank2"], [{"rank": 2}])
    assert read_for(session, "select rank from ranks where rank < 1") == (["rank0"], [{"rank": 0}])
    assert read_for(session, "from events where rank = 9") == ([], [])
    assert read_for(session, "select 1 one") == ([], [{"one": 1}])
    assert len(read_for(session, "select count(*) from events")[0]) == 3


def test_names_that_the_files_deny_rule_out_nothing(tmp_path):
    for rank, name in ((0, "rank2.json"), (1, "rank1.json"), (2, "rank0.json")):
        put(tmp_path, name, content=trace(rank, name=f"aten::r{rank}"))
    session = resolve_hosts(str(tmp_path))
    rows = read_for(session, "select rank, name from events where rank = 2")
    assert rows == (["rank0"], [{"rank": 2, "name": "aten::r2"}])


@each_row(
    "query, ranks",
    [
        ("from events where rank = 3", {3}),
        ("from events e where e.rank in (1, 2) and name = 'rank = 7'", {1, 2}),
        ("select 5 as rank from events where 2 <= rank and rank < 4 and name like '%'", {2, 3}),
        ("from events where rank between 2 and 3 or rank = 7", {2, 3, 7}),
        ("from events where not rank % 4 = 1 and rank > -1", {0, 2, 3, 4, 6, 7}),
        ("from events where rank = 1 union all from steps where rank = 2", {1, 2}),
        ("with e as (from events where rank = 1) select * from e where name = 'a'", {1}),
        ("select * from (from events where rank = 4) where rank = 5", {4}),
        ("from events where rank = 99", set()),
        ("from events where rank = 1 or name = 'a'", None),
        ("from events where rank = (select max(rank) from events)", None),
        ("from events where rank = 1 and step_id in (select step_id from steps)", None),
        ("from events where rank = line_id", None),
        ("from events where rank = ?", None),
        ("from events where random() < 0.5 and name = 'a'", None),
        ("from events where rank + random() > 3", None),
        ("from events e join steps s using (rank) where rank = 1", None),
        ("from events tablesample 3 rows where rank = 1", None),
        ("from events t(a, rank) where rank = 1", None),
        ("with steps as (from events) select * from steps where rank = 1", None),
        ("from events where lines.rank = 1", None),
        ("from query('from events where rank = 1') where rank = 1", None),
        ("pivot events on rank using count(*)", None),
        ("from events qualify row_number() over (order by rank) = 1", None),
    ],
)  # fmt: skip
def test_only_what_the_rank_alone_decides_rules_ranks_out(query, ranks):
    with connect() as connection:
        needed = ranks_needed(connection, query, {"events", "steps", "lines"}, range(8))
    assert needed == (set(range(8)) if ranks is None else ranks)


def test_hosts_that_say_no_rank_are_numbered_in_their_order(engine):
    session = resolve_hosts(str(PATHS["tf_workers"]))
    rows = engine.sql(session, "select rank, host, title, machine from ranks").to_pylist()
    assert [(one["rank"], one["host"]) for one in rows] == [
        (0, "localhost_47303"), (1, "localhost_59589")
    ]  # fmt: skip


def test_processes_read_the_same(engine):
    session = resolve_hosts(str(PATHS["ddp_host"]))
    query = "select rank, name, count(*) n from events group by all order by all"
    with Engine(executor="processes", workers=1) as other:
        assert other.sql(session, query).equals(engine.sql(session, query))


def test_a_job_of_which_nothing_can_be_read_says_why(tmp_path):
    for rank in range(2):
        put(tmp_path, f"rank{rank}.json", content=trace(rank))
    session = resolve_hosts(str(tmp_path))
    put(tmp_path, "rank0.json", "rank1.json", content=b"no trace")
    with Engine() as engine, pytest.raises(InputError, match=r"rank0\.json"):
        engine.sql(session, "from events")


def test_remote_callers_take_no_more_than_the_cache_and_see_no_places(job):
    session = resolve_hosts(str(job))
    question = Question("select rank, path, status from ranks", 64 << 20, Form("json"), remote=True)
    with Engine() as engine:
        rows = engine.remote_sql(session, question, public=lambda text: text.replace(str(job), ""))
    assert str(job) not in rows.content.decode()
    assert rows.rows == 3
    assert any(note.startswith("host rank1: ") for note in rows.notes)
    with Engine(cache_bytes=100) as engine, pytest.raises(CheckFailed, match="takes too much"):
        engine.remote_sql(session, replace(question, query="from events"))
