"""Queries in processes of their own: the same answers, and an end whatever the database does."""

import io
import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.each_row import each_row
from tests.shared import shared
from tests.tables.fake import FakeReader
from tests.tables.sql_processes import (
    CTES,
    ENDLESS,
    LIMIT,
    UNIONS,
    Asking,
    ask,
    busy,
    is_there,
    kill_idle,
    last,
    numbers,
    ticks,
)
from tests.tables.test_query import QUERIES, TABLES, ProjectingReader
from tests.waiting import HANG_S, until

from peakline.deadline import Deadline, within
from peakline.errors import (
    CancelledError,
    CheckFailed,
    DeadlineError,
    InputError,
    RemoteError,
    UsageError,
)
from peakline.tables import Profile
from peakline.tables.rows import write_csv, write_json
from peakline.tables.sql_process import pool, process
from peakline.tables.sql_process.answer import Form
from peakline.tables.sql_process.pool import Question, SqlPool


@pytest.fixture
def profile():
    with Profile(ProjectingReader()) as opened:
        yield opened


class TestAnswers:
    @each_row("query", QUERIES)
    def test_are_those_of_this_process(self, sql, query):
        with Profile(ProjectingReader()) as here, Profile(ProjectingReader()) as there:
            right = here.sql(query)
            assert sql.table(there, Question(query, LIMIT, remote=True)).equals(right)
            assert there._reader.asked == here._reader.asked

    def test_to_the_worked_queries_are_those_of_this_process(self, sql, root):
        page = (root / "docs/sql.md").read_text(encoding="utf-8")
        worked = re.findall(r"```sql\n-- (\S+)\n(.*?)```", page, re.DOTALL)
        assert len(worked) > 8
        demo = root / "src/peakline/demo"
        for sample, query in worked:
            profile = shared(demo if sample == "demo" else sample)
            right = io.BytesIO()
            write_json(profile.sql(query), right)
            assert ask(sql, profile, query).content == right.getvalue()

    @each_row("query", ["from steps", "from steps where false", "select 1 a, 'x' a, null b, [1] c"])
    def test_have_every_format(self, sql, profile, query):
        table = profile.sql(query)
        for form, write in (("json", write_json), ("csv", write_csv)):
            right = io.BytesIO()
            write(table, right)
            assert ask(sql, profile, query, Form(form)).content == right.getvalue()
        parquet = ask(sql, profile, query, Form("parquet"))
        assert parquet.rows == table.num_rows
        if len({*table.column_names}) == table.num_columns:
            assert pq.read_table(io.BytesIO(parquet.content)).equals(table)

    def test_are_cut_where_the_caller_says(self, sql, profile):
        for most in (0, 1, 2047, 2048, 2049, 4999, 5000, 6000):
            form = Form("json", max_rows=most)
            answer = ask(sql, profile, "select range as n from range(5000)", form)
            assert answer.rows == 5000
            assert json.loads(answer.content) == [{"n": n} for n in range(min(most, 5000))]

    def test_have_large_integers_as_text(self, sql, profile):
        answer = ask(sql, profile, "select 1::bigint << 60 as n", Form("json", large_as_text=True))
        assert json.loads(answer.content) == [{"n": str(1 << 60)}]

    def test_of_many_groups_of_rows(self, sql, profile):
        query = "select range as n, 'x' || range as s from range(1100000)"
        parquet = pq.ParquetFile(
            io.BytesIO(ask(sql, profile, query, Form("parquet"), limit=1 << 30).content)
        )
        assert parquet.num_row_groups == 2
        assert parquet.read().equals(profile.sql(query))

    @each_row(
        ("query", "reason"),
        [
            ("selec 1", "Parser Error: syntax error"),
            ("select nope from steps", '"nope" not found'),
            ("describe nosuch", "Table with name nosuch does not exist! There is: events, steps"),
            ("select '\ud800'", "not valid Unicode at character 8"),
            ("", "one statement that reads"),
            ("select 1; select 2", "one statement that reads"),
            ("from nosuch", "Table with name nosuch does not exist! There is: events, steps, war"),
            ("from idle_gaps", "The view idle_gaps stands on lines, planes, which this profile"),
            ("select coutn(*) from steps", "no function coutn that a query may call; similar"),
            ("select error('a\nb')", "Invalid Input Error: a b"),
        ],
    )
    def test_say_in_one_line_what_is_wrong(self, sql, profile, query, reason):
        ask(sql, profile, "select 1")
        before = sql.pids
        with pytest.raises(CheckFailed, match=re.escape(reason)) as why:
            ask(sql, profile, query)
        assert "\n" not in str(why.value)
        # That needs no new process.
        assert sql.pids == before

    def test_of_a_profile_that_is_damaged_or_closed(self, sql):
        class Damaged(FakeReader):
            def read(self, *_args):
                raise InputError("fake.pb: is damaged")

        with Profile(Damaged(TABLES)) as profile:
            ask(sql, profile, "select 1")
            before = sql.pids
            with pytest.raises(InputError, match="is damaged"):
                ask(sql, profile, "from steps")
            assert json.loads(ask(sql, profile, "select 1 a").content) == [{"a": 1}]
            assert sql.pids == before
        with pytest.raises(UsageError, match="is closed"):
            ask(sql, profile, "select 1")

    def test_see_what_was_lost_while_their_tables_were_read(self, sql):
        query = "select count(*) n, (select sum(count) from warnings) lost from steps"
        losses = {"steps": ("truncated", "the rest", 12)}
        with Profile(FakeReader(TABLES, losses=losses)) as profile:
            for _ in range(2):
                assert json.loads(ask(sql, profile, query).content) == [{"n": 2, "lost": 12}]


class TestMemory:
    @each_row(
        "query",
        [
            "select length(replace(repeat('a', 4000), 'a', repeat('b', 100000)))",
            "select repeat('x', 2000000000)",
            "select printf('%2000000000d', 1)",
            "select format('{:{}}', 1, 2000000000)",
            "select list(range(100000000))",
            "select generate_series(0, -1000000000, -1)",
            "select list_resize([1], 1000000000)",
            "select string_agg(repeat('x', 1000)) from range(100000000)",
            "select list(range) from range(100000000)",
            "explain analyze select repeat('x', 2000000000)",
            "pivot (select repeat('x', 2000000000) as x) on x using count(*)",
            "select count(distinct i) from range(100000000) t(i)",
            "select " + "(" * 300_000 + "1" + ")" * 300_000,
            "select * from range(1000000000)",
            "select null from range(10000000000)",
            "select repeat('x', 1000) x from range(80000)",
            # The database that this is asked of answers nothing afterwards.
            "select reservoir_quantile(i, 0.5, 2000000000) from range(10) t(i)",
        ],
    )
    def test_ends_with_the_limit(self, sql, profile, query):
        ask(sql, profile, "select 1")
        mine = numbers("self", "status", "VmRSS")[0]
        reason = rf"(memory than its limit of|more than) {LIMIT} bytes|takes too much memory"
        with pytest.raises(CheckFailed, match=reason):
            ask(sql, profile, query)
        assert numbers("self", "status", "VmRSS")[0] - mine < LIMIT >> 10
        assert json.loads(ask(sql, profile, "select 1 a").content) == [{"a": 1}]

    def test_of_a_process_has_a_limit(self, sql, profile):
        ask(sql, profile, "from steps")
        pid = last(sql)
        (allowed,) = numbers(pid, "limits", "Max address space")
        (size,) = numbers(pid, "status", "VmSize")
        # What Python and the libraries have taken, the limit, and some slack.
        assert 0 < allowed - (size << 10) <= LIMIT + (320 << 20)

    def test_is_taken_back_after_a_large_query(self, sql, profile):
        query = "select count(*) from (select distinct i, i::varchar from range(2000000) t(i))"
        ask(sql, profile, "select 1")
        pid = last(sql)
        before = numbers(pid, "status", "RssAnon")[0]
        ask(sql, profile, query, limit=1 << 30)
        pid = last(sql)
        until(lambda: numbers(pid, "status", "RssAnon")[0] < before + (48 << 10))

    def test_for_a_form_counts_what_is_written(self, sql, profile):
        # Small as columns, large as text.
        query = f"select {{'{'x' * 500}': null}} as a from range(40000)"  # noqa: S608
        for form in ("json", "csv"):
            with pytest.raises(CheckFailed, match=r"answer has more than 16777216 bytes.*LIMIT"):
                ask(sql, profile, query, Form(form), limit=16 << 20)
        assert ask(sql, profile, query, Form("arrow"), limit=16 << 20).rows == 40_000

    def test_of_an_answer_may_have_a_limit_of_its_own(self, sql, profile):
        query = "select unnest(range(10000)) as a"
        for form in ("json", "csv"):
            with pytest.raises(CheckFailed, match=r"more than 20000 bytes; request fewer rows"):
                ask(sql, profile, query, Form(form, max_bytes=20_000))
            assert ask(sql, profile, query, Form(form, 9, max_bytes=20_000)).rows == 10_000

    @each_row(
        "query",
        [
            "pivot (from range(5000) t(i)) on i using count(*)",
            f"select {', '.join(['1'] * 5000)}",
            f"select {', '.join(['t.*'] * 2500)} from (select 1, 2) t",  # noqa: S608
        ],
    )
    def test_is_not_taken_by_very_many_columns(self, sql, profile, query):
        with pytest.raises(CheckFailed, match=r"^the answer has .*columns.* than 4096; pivot"):
            ask(sql, profile, query)
        assert len(profile.sql(query).columns) >= 5000

    def test_of_one_caller_is_no_other_callers(self, sql, profile):
        """Who asks what ends a database or its process, and who asks beside it."""
        fatal = "select reservoir_quantile(i, 0.5, 2000000000) from range(10) t(i)"
        query = "select count(*) n from range(3000) a, range(3000) b where a.range <= b.range"
        with ThreadPoolExecutor(4) as pool:
            ends = [pool.submit(ask, sql, profile, one) for one in [fatal, query] * 6]
        for end in ends[::2]:
            assert "takes more memory than its limit" in str(end.exception())
        assert {end.result().content for end in ends[1::2]} == {b'[\n{"n": 4501500}\n]\n'}


_FATAL = """
import resource, sys
import peakline
from peakline.errors import CheckFailed
with peakline.open(sys.argv[1]) as profile:
    print(profile.sql("select 1 a").to_pylist())
    resource.setrlimit(resource.RLIMIT_AS, (8 << 30, -1))
    try:
        profile.sql("select reservoir_quantile(i, 0.5, 2000000000) from range(10) t(i)")
    except CheckFailed as error:
        print(error)
    print(profile.sql("select 2 a").to_pylist())
"""


def test_a_database_that_failed_is_not_used_again(root):
    """Without a limit a query runs in the program itself."""
    if not sys.platform.startswith("linux"):
        pytest.skip("the system limits no addresses")
    session = root / "src" / "peakline" / "demo"
    said = subprocess.run(
        [sys.executable, "-c", _FATAL, session], capture_output=True, text=True, check=True
    )
    assert said.stdout.splitlines() == [
        "[{'a': 1}]",
        "the query takes more memory than there is for it; request less",
        "[{'a': 2}]",
    ]


@each_row(
    ("query", "reason"),
    [
        ("select timestamp '294247-01-01' a", "column a of the answer has a time"),
        ("select ['-infinity'::date] a", "column a of the answer has a time"),
        ("select avg(timestamp '20000-01-01') a from range(9)", "CAST it AS VARCHAR"),
        ("select timestamp_ns '2026-01-01 00:00:00.000000001' a", "CAST it AS VARCHAR"),
        ("select date_part(repeat('x', 1000000), date '2026-01-01')", "Error: extract specifier"),
        (f"select n{'o' * 3000}()", "there is no function noo"),
    ],
)
def test_what_is_refused_is_one_short_line(sql, profile, query, reason):
    for form in ("json", "csv"):
        with pytest.raises(CheckFailed, match=reason) as why:
            ask(sql, profile, query, Form(form))
        assert len(str(why.value)) <= 1000
        assert "\n" not in str(why.value)


class TestEnd:
    @pytest.mark.parametrize("query", [ENDLESS, CTES, UNIONS], ids=["runs", "is planned", "parsed"])
    def test_comes_with_the_deadline(self, sql, profile, query):
        asking, counted = Asking(sql, profile, query), sql.ended["deadline"]
        asking.deadline.end()
        assert isinstance(asking.ended(), DeadlineError)
        assert not is_there(asking.pid)
        assert sql.ended["deadline"] == counted + 1
        assert json.loads(ask(sql, profile, "select 1 a").content) == [{"a": 1}]

    def test_comes_when_the_caller_goes_away(self, sql, profile):
        asking, counted = Asking(sql, profile, UNIONS), sql.ended["cancelled"]
        asking.deadline.cancel()
        assert isinstance(asking.ended(), CancelledError)
        assert not is_there(asking.pid)
        assert sql.ended["cancelled"] == counted + 1

    def test_of_a_process_is_one_error(self, sql, profile):
        asking, counted = Asking(sql, profile, ENDLESS), sql.ended["lost"]
        os.kill(asking.pid, signal.SIGKILL)
        error = asking.ended()
        assert isinstance(error, RemoteError)
        assert str(error) == "the process of the query was ended by SIGKILL; try again"
        assert sql.ended["lost"] == counted + 1
        assert json.loads(ask(sql, profile, "select 1 a").content) == [{"a": 1}]

    def test_of_the_program_is_that_of_the_process(self):
        program = subprocess.Popen(
            [sys.executable, "-c", BUSY], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        program.stdin.write(CTES + "\n")
        program.stdin.flush()
        pid = int(program.stdout.readline())
        begun = ticks(pid)
        until(lambda: ticks(pid) > begun + 20)
        program.kill()
        program.wait(HANG_S)
        program.stdin.close()
        program.stdout.close()
        until(lambda: not is_there(pid))


BUSY = """
import sys
from tests.tables.fake import FakeReader
from peakline.tables import Profile
from peakline.tables.sql_process.pool import Question, SqlPool
sql = SqlPool()
with Profile(FakeReader({})) as profile:
    sql.rows(profile, Question("select 1", 1 << 30))
    print(*sql.pids, flush=True)
    sql.rows(profile, Question(input(), 1 << 30))
"""


class TestProcesses:
    def test_serve_others_while_one_is_stuck(self, sql, profile):
        stuck = Asking(sql, profile, ENDLESS)
        for _ in range(3):
            assert json.loads(ask(sql, profile, "select count(*) n from steps").content)
        assert busy(sql) == {stuck.pid}
        assert stuck.is_alive()
        stuck.deadline.cancel()
        stuck.ended()

    def test_are_as_many_as_are_allowed(self, profile):
        with_one = SqlPool(1)
        stuck = Asking(with_one, profile, ENDLESS)
        with within(Deadline(0.0)), pytest.raises(DeadlineError):
            ask(with_one, profile, "select 1")
        waiting = Deadline(HANG_S)
        threading.Timer(0.05, waiting.cancel).start()
        with within(waiting), pytest.raises(CancelledError):
            ask(with_one, profile, "select 1")
        assert with_one.pids == [stuck.pid]
        stuck.deadline.cancel()
        stuck.ended()
        with_one.close()

    def test_that_end_while_idle_are_replaced(self, sql, profile):
        kill_idle(sql, profile)
        assert json.loads(ask(sql, profile, "select 1 a").content) == [{"a": 1}]

    def test_that_end_at_the_last_moment_are_replaced(self, sql, profile, monkeypatch):
        kill_idle(sql, profile)
        monkeypatch.setattr(process.SqlProcess, "is_alive", lambda _: True)
        assert json.loads(ask(sql, profile, "select 1 a").content) == [{"a": 1}]

    def test_that_never_work_are_one_error(self, profile, monkeypatch):
        monkeypatch.setattr(process, "_MODULE", "peakline.nosuch")
        broken = SqlPool()
        with pytest.raises(RemoteError, match=r"ended with exit code 1; try again|before it began"):
            ask(broken, profile, "select 1")
        monkeypatch.setattr(sys, "executable", "/nosuch/python")
        with pytest.raises(
            RemoteError, match="no process for the query can be started: No such file"
        ):
            ask(broken, profile, "select 1")
        assert broken.pids == []

    def test_that_say_what_is_no_frame_are_one_error(self, sql, profile, monkeypatch):
        def needs(frame):
            monkeypatch.setattr(process, "receive", lambda _: ({"needs": frame}, []))
            with pytest.raises(RemoteError, match="needs what there is not"):
                ask(sql, profile, "select 1")

        needs({"nosuch": None})
        needs({"steps": ["nosuch"]})

    def test_end_when_they_have_nothing_to_do(self, profile, monkeypatch):
        monkeypatch.setattr(pool, "_IDLE_S", 0.0)
        idle = SqlPool(spare=1)
        stuck = Asking(idle, profile, ENDLESS)
        ask(idle, profile, "select 1")
        stuck.deadline.cancel()
        stuck.ended()
        ask(idle, profile, "select 1")
        until(lambda: len(idle.pids) == 1)
        idle.close()
        assert idle.pids == []

    def test_end_with_what_started_them(self, profile):
        started = SqlPool()
        ask(started, profile, "select 1")
        (pid,) = started.pids
        del started
        until(lambda: not is_there(pid))

    def test_are_not_started_after_the_end(self, profile):
        closed = SqlPool(spare=1)
        stuck = Asking(closed, profile, ENDLESS)
        closed.close()
        stuck.deadline.cancel()
        stuck.ended()
        assert closed.pids == []
        closed.start()
        assert len(closed.pids) == 0

    def test_know_nothing_of_the_program(self, profile, monkeypatch, tmp_path):
        monkeypatch.setenv("SECRET", "s3cr3t")
        own = SqlPool()
        with (tmp_path / "open").open("w") as file, socket.socket() as listening:
            os.set_inheritable(file.fileno(), True)  # noqa: FBT003 (os has no names)
            os.set_inheritable(listening.fileno(), True)  # noqa: FBT003 (as above)
            ask(own, profile, "select 1")
            (pid,) = own.pids
            place = Path("/proc", str(pid))
            held = [str(one.readlink()) for one in place.joinpath("fd").iterdir()]
        kinds = sorted(re.sub(r"[\d\[\]]", "", one) for one in held)
        assert kinds == ["/dev/null", "/dev/null", "pipe:", "socket:"]
        assert b"s3cr3t" not in place.joinpath("environ").read_bytes()
        assert place.joinpath("cwd").readlink() == Path("/")
        assert "/pandas/" not in place.joinpath("maps").read_text()
        assert numbers(pid, "status", "NoNewPrivs") == [1]
        assert numbers(pid, "limits", "Max core file size", "Max open files") == [0, 512]
        own.close()

    def test_take_no_more_of_the_processor_than_the_time_allows(self, sql, profile):
        """Also where the program that started them is stopped, and cannot end them."""
        with within(Deadline(30.0)):
            ask(sql, profile, "select 1")
        pid = last(sql)
        (allowed,) = numbers(pid, "limits", "Max cpu time")
        assert allowed <= (ticks(pid) / os.sysconf("SC_CLK_TCK")) + 30 * os.cpu_count() + 2


def test_a_local_query_with_a_limit_is_one_of_these():
    with Profile(ProjectingReader()) as profile:
        right = profile.sql("select finalize(sum(step_id) export_state) n from steps")
        result = profile.sql(
            "select finalize(sum(step_id) export_state) n from steps", memory_limit_bytes=LIMIT
        )
        assert isinstance(result, pa.Table)
        assert result.equals(right)
        with pytest.raises(CheckFailed, match="memory than its limit"):
            profile.sql("select repeat('x', 2000000000)", memory_limit_bytes=LIMIT)
