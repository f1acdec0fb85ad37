"""``peakline export`` and ``peakline sql``."""

import csv
import errno
import gzip
import io
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from tests.each_row import each_row
from tests.export.timelines import RankEvents
from tests.export.written import DATA, written_file
from tests.jobs.simulated import SCENARIOS
from tests.memory.records import alloc
from tests.waiting import HANG_S

import peakline as library
from peakline.__main__ import main
from peakline.cli.export import export
from peakline.errors import InputError
from peakline.export import parquet, target_names
from peakline.tables.sql_views import view, view_names


@pytest.fixture
def session(sessions):
    return sessions / "tf2_cnn"


@each_row("target", [name for name in target_names() if name != "parquet"])
def test_the_file_is_what_the_library_writes(peakline, session, tmp_path, target):
    out = tmp_path / target
    run = peakline("export", session, "--to", target, "-o", out)
    assert (run.code, run.out, run.err) == (0, "", "")
    assert out.read_bytes() == written_file(session, target)


def test_a_name_that_ends_in_gz_is_compressed_once(peakline, session, tmp_path):
    trace, heap = tmp_path / "t.json.gz", tmp_path / "h.pb.gz"
    assert peakline("export", session, "--to", "chrome-trace", "-o", trace, "--no-args").code == 0
    assert peakline("export", session, "--to", "pprof", "-o", heap).code == 0
    assert gzip.decompress(trace.read_bytes()) == written_file(session, "chrome-trace", args=False)
    with library.open(str(trace)) as again, library.open(str(heap)) as peak:
        assert (again.format, peak.format) == ("chrome_trace", "pprof")


def test_ranks_of_a_job_are_one_trace(peakline, tmp_path):
    truth = SCENARIOS["skewed_clocks"](16, 2, seed=1).write(tmp_path)
    out = tmp_path / "out.pftrace.gz"
    words = ["export", tmp_path, "--executor", "threads", "--force", "-o", out, "--to"]
    run = peakline(*words, "perfetto", "--ranks", "1,8-9")
    assert (run.code, run.out) == (0, "")
    (root,) = truth.root.ranks
    assert run.err == (
        f"peakline: 18 waits without an arrow: who was waited for, most often rank {root}, is not "
        "among these ranks\n"
    )
    trace = RankEvents(gzip.decompress(out.read_bytes()))
    assert list(trace.order) == ["rank 1 (node000)", "rank 8 (node001)", "rank 9 (node001)"]
    run = peakline(*words, "perfetto", "--ranks", "16")
    assert run.code == 2
    assert "--ranks 16: 1 of these have no profile; there are: 0-15" in run.err
    run = peakline(*words, "chrome-trace")
    assert run.code == 2
    assert "choose one with --rank or --host (--to perfetto writes several): " in run.err
    run = peakline(*words, "perfetto", "--rank", "3", "--ranks", "1")
    assert "--ranks, or one with --rank or --host, not both" in run.err
    run = peakline("export", DATA / "sessions" / "tf2_cnn", *words[2:], "perfetto", "--ranks", "1")
    assert "--ranks is for a job, and --to perfetto" in run.err
    (file,) = tmp_path.glob("rank8.*")
    file.unlink()
    run = peakline(*words, "perfetto", "--ranks", f"9,{root}")
    assert run.err.startswith("peakline: no profile of rank 8: who waited for it has an arrow from")
    (file,) = tmp_path.glob("rank3.*")
    before = file.read_bytes()
    run = peakline(*words, "perfetto", "--ranks", "1", "-o", file)
    assert (run.code, run.err) == (
        2, f"peakline: {file}: is the profile itself; choose another name\n"
    )  # fmt: skip
    assert file.read_bytes() == before


def test_standard_output(capfdbinary, session):
    assert main(["export", str(session), "--to", "speedscope", "-o", "-"]) == 0
    assert json.loads(capfdbinary.readouterr().out)["exporter"] == "peakline"


def test_parquet_is_a_folder(peakline, session, tmp_path):
    out = tmp_path / "new" / "tables"
    run = peakline("export", session, "--to", "parquet", "-o", out)
    assert (run.code, run.out) == (0, "")
    with library.open(str(session)) as profile:
        assert {path.stem for path in out.iterdir()} == set(profile.tables)
        rows = profile.columns("buffers").rows
    assert pq.read_table(out / "buffers.parquet").num_rows == rows
    (out / "mine.txt").write_text("kept")
    (out / "buffers.parquet").write_text("old")
    run = peakline("export", session, "--to", "parquet", "-o", out)
    assert run.code == 2
    assert "is not empty; use --force to replace files in it" in run.err
    assert (out / "buffers.parquet").read_text() == "old"
    assert peakline("export", session, "--to", "parquet", "-o", out, "--force").code == 0
    assert pq.read_table(out / "buffers.parquet").num_rows == rows
    assert (out / "mine.txt").read_text() == "kept"


def test_a_file_is_replaced_only_with_force(peakline, session, tmp_path):
    out = tmp_path / "out.json"
    out.write_text("old")
    words = ["export", session, "--to", "speedscope", "-o", out]
    run = peakline(*words)
    assert (run.code, out.read_text()) == (2, "old")
    assert "exists; use --force to replace it" in run.err
    assert peakline(*words, "--force").code == 0
    assert json.loads(out.read_text())["profiles"]


def test_list(peakline, session):
    every = peakline("export", "--list")
    assert every.code == 0
    assert [line.split()[0] for line in every.out.splitlines()] == target_names()
    assert peakline("export", "--list", session).out == every.out
    heap = peakline("export", DATA / "pprof" / "device_memory.pprof.pb.gz", "--list")
    assert [line.split()[0] for line in heap.out.splitlines()] == ["parquet", "pprof", "speedscope"]


@each_row(
    ("words", "code", "message"),
    [
        ([], 2, "export takes PATH, --to TARGET and -o OUT"),
        (["PATH", "-o", "x"], 2, "export needs --to TARGET"),
        (["PATH", "--to", "pprof"], 2, "export needs -o OUT"),
        (["PATH", "--to", "pdf", "-o", "x"], 2, "no target 'pdf'; there is: chrome-trace, parquet"),
        (["PATH", "--to", "parquet", "-o", "-"], 2, "parquet is a folder of files"),
        (["PATH", "--to", "pprof", "-o", "OUT", "--allocator", "x"], 3, "no allocator 'x'"),
        (["GRAPH", "--to", "perfetto", "-o", "OUT"], 3, "nothing to write as perfetto"),
    ],
)
def test_what_is_refused(peakline, session, tmp_path, words, code, message):
    places = {"PATH": session, "GRAPH": DATA / "graph_def" / "frozen.pb", "OUT": tmp_path / "out"}
    run = peakline("export", *(places.get(word, word) for word in words))
    assert (run.code, run.out) == (code, "")
    assert message in run.err
    assert run.err.count("\n") == 1
    assert not (tmp_path / "out").exists()


def run_verb(*words):
    """Run the verb without `main`, which makes an exit code of what is raised."""
    with export.make_context("export", [str(word) for word in words]) as context:
        export.invoke(context)


class TestAFolderIsWhole:
    def fails(self, monkeypatch, error):
        """The third table cannot be written."""
        real, seen = parquet._write, []

        def write(stream, name, columns):
            seen.append(name)
            if len(seen) == 3:
                raise error
            real(stream, name, columns)

        monkeypatch.setattr(parquet, "_write", write)

    @pytest.mark.parametrize("error", [InputError("no more"), KeyboardInterrupt(), SystemExit(143)])
    def test_one_that_fails_leaves_nothing(self, session, tmp_path, monkeypatch, error):
        self.fails(monkeypatch, error)
        with pytest.raises(type(error)):
            run_verb(session, "--to", "parquet", "-o", tmp_path / "out")
        assert list(tmp_path.iterdir()) == []

    def test_one_that_is_there_stays_as_it_was(self, session, tmp_path, monkeypatch):
        (tmp_path / "buffers.parquet").write_text("old")
        self.fails(monkeypatch, InputError("no more"))
        with pytest.raises(InputError):
            run_verb(session, "--to", "parquet", "-o", tmp_path, "--force")
        (only,) = tmp_path.iterdir()
        assert only.read_text() == "old"

    def test_a_table_of_an_earlier_export_does_not_stay(self, peakline, session, tmp_path):
        words = ["export", session, "--to", "parquet", "-o", tmp_path]
        assert peakline(*words).code == 0
        assert (tmp_path / "event_stats.parquet").exists()
        assert peakline(*words, "--no-args", "--force").code == 0
        assert not (tmp_path / "event_stats.parquet").exists()
        assert (tmp_path / "events.parquet").exists()

    def test_the_process_is_asked_to_end(self, session, tmp_path):
        program = (
            "import os, signal, sys\n"
            "from peakline.__main__ import main\n"
            "from peakline.export import parquet\n"
            "real = parquet._write\n"
            "def write(stream, name, columns):\n"
            "    real(stream, name, columns)\n"
            "    if name == 'events':\n"
            "        os.kill(os.getpid(), signal.SIGTERM)\n"
            "parquet._write = write\n"
            "sys.argv[1:] = ['export', sys.argv[1], '--to', 'parquet', '-o', sys.argv[2]]\n"
            "main()\n"
        )
        words = [sys.executable, "-c", program, str(session), str(tmp_path / "out")]
        done = subprocess.run(words, check=False, capture_output=True, text=True, timeout=HANG_S)
        assert (done.returncode, done.stdout, done.stderr) == (143, "", "")
        assert list(tmp_path.iterdir()) == []

    def test_only_regular_files_are_replaced(self, peakline, session, tmp_path):
        (tmp_path / "out").mkdir()
        (tmp_path / "out/steps.parquet").symlink_to("elsewhere")
        (tmp_path / "out/events.parquet").write_bytes(b"old")
        run = peakline("export", session, "--to", "parquet", "-o", tmp_path / "out", "--force")
        link = tmp_path / "out/steps.parquet"
        assert run.err == f"peakline: {link}: is no regular file, and is not replaced\n"
        assert run.code == 2
        assert sorted(p.name for p in (tmp_path / "out").iterdir()) == [
            "events.parquet",
            "steps.parquet",
        ]
        assert (tmp_path / "out/events.parquet").read_bytes() == b"old"

    def test_a_full_disk_leaves_nothing_and_names_the_folder(
        self, peakline, session, tmp_path, monkeypatch
    ):
        def fail(*_words, **_options):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

        monkeypatch.setattr(os, "fsync", fail)
        run = peakline("export", session, "--to", "parquet", "-o", tmp_path / "out")
        assert run.code == 3
        assert re.fullmatch(
            rf"peakline: {tmp_path}/out/\w+\.parquet: cannot be written: No space left on device\n",
            run.err,
        )
        assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="the system has no full device")
@pytest.mark.parametrize(
    "words",
    [
        ("export", "--to", "chrome-trace"),
        ("report",),
        ("sql", "select * from steps"),
        ("tool", "memory_profile"),
    ],
    ids=lambda words: words[0],
)
@pytest.mark.parametrize("force", [(), ("--force",)], ids=["", "force"])
def test_a_full_disk_is_exit_3_of_every_verb(peakline, session, words, force):
    verb, *rest = words
    places = [*rest, session] if verb == "tool" else [session, *rest]
    run = peakline(verb, *places, "-o", "/dev/full", *force)
    assert (run.code, run.err) == (
        3,
        "peakline: /dev/full: cannot be written: No space left on device\n",
    )


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
