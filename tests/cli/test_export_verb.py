import errno
import gzip
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from tests.each_row import each_row
from tests.export.written import DATA, written_file
from tests.waiting import HANG_S

import peakline as library
from peakline.__main__ import main
from peakline.cli.export import export
from peakline.errors import InputError
from peakline.export import parquet, target_names


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
    places = {
        "PATH": session,
        "GRAPH": DATA / "graph_def" / "frozen.pb",
        "OUT": tmp_path / "out",
    }
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
