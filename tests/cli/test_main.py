"""The command line as a whole: exit codes, progress, errors."""

import ast
import os
import shlex
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pytest
from tests.each_row import each_row
from tests.terminal.ptys import on_a_terminal

import peakline as package
from peakline import errors
from peakline.cli.main import EXIT_CODES
from peakline.cli.progress import is_drawn, progress_text
from peakline.errors import PeaklineError
from peakline.progress import Progress

# A MemoryProfile, which is an answer and no profile: num_hosts: 1 memory_ids: "cpu"
ANSWER = b"\x10\x01\x1a\x03cpu"
PROGRAM = Path(sys.executable).with_name("peakline")


def test_version_and_help(peakline):
    assert peakline("--version").out == f"peakline {version('peakline')}\n"
    shown = peakline("--help")
    assert shown.code == 0
    for verb in ("memory", "tool", "sql", "demo"):
        assert f"\n  {verb}" in shown.out
        assert peakline(verb, "--help").code == 0


def test_no_verb_is_a_usage_error_with_the_help(peakline):
    run = peakline()
    assert (run.code, run.out) == (2, "")
    assert "Usage: peakline" in run.err


@each_row(
    ("words", "message"),
    [
        (["nonsense"], "No such command or file 'nonsense'; see peakline --help"),
        (["memory"], "Missing argument 'PATH...'; see peakline memory --help"),
        (["memory", "--bogus", "x"], "--bogus"),
        (["sql", "p", "select 1", "--format", "xml"], "xml"),
        (["tool", "memory_profile"], "tool takes NAME and PATH"),
        (["tool", "--list", "a", "b"], "tool --list takes PATH alone"),
    ],
)
def test_usage_errors_are_one_line_and_exit_2(peakline, words, message):
    run = peakline(*words)
    assert (run.code, run.out) == (2, "")
    assert run.err.startswith("peakline: ")
    assert message in run.err
    assert run.err.count("\n") == 1


@pytest.fixture
def bad_inputs(tmp_path):
    """Paths that cannot be read as a profile, by what is wrong with them."""
    (tmp_path / "empty").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "gone")
    files = {
        "nothing.pb": b"",
        "text.txt": b"These are words, line after line.\n" * 40,
        "zeros.pb": bytes(4096),
        "answer.pb": ANSWER,
        "not.xplane.pb.gz": b"\x1f\x8b\x08\x00broken",
        "session/vm.xplane.pb": b"",
    }
    for name, content in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(content)
    names = ["empty", "link", "missing", "text.txt/inside", *files]
    return {name: str(tmp_path / name) for name in [*names, "session"]}


INPUTS = [
    "empty", "link", "missing", "text.txt/inside", "nothing.pb", "text.txt", "zeros.pb",
    "answer.pb", "not.xplane.pb.gz", "session",
]  # fmt: skip


@each_row("verb", ["memory", "tool", "sql"])
@each_row("name", INPUTS)
def test_a_bad_input_is_one_line_and_exit_3(peakline, bad_inputs, verb, name):
    path = bad_inputs[name]
    words = {
        "memory": ["memory", path, "--json"],
        "tool": ["tool", "memory_profile", path],
        "sql": ["sql", path, "select * from allocator_events"],
    }[verb]
    run = peakline(*words)
    assert (run.code, run.out) == (3, "")
    assert run.err.startswith("peakline: ")
    assert path in run.err
    assert run.err.count("\n") == 1


def test_an_unexpected_error_is_one_line_and_exit_70(peakline, monkeypatch):
    def fail(*_words, **_options):
        message = "two\nlines"
        raise ValueError(message)

    monkeypatch.setattr("peakline.api.open", fail)
    monkeypatch.setattr("peakline.open", fail)
    run = peakline("memory", __file__)
    assert run.code == 70
    assert run.err == "peakline: unexpected ValueError: two\\nlines (--debug shows where)\n"
    run = peakline("memory", __file__, "--debug")
    assert run.code == 70
    assert "Traceback" in run.err
    assert run.err.endswith("(--debug shows where)\n")


def test_an_interrupt_is_quiet(peakline, monkeypatch):
    def interrupt(*_words, **_options):
        raise KeyboardInterrupt

    monkeypatch.setattr("peakline.open", interrupt)
    run = peakline("memory", __file__)
    assert (run.code, run.out, run.err) == (130, "", "")


@each_row("program", [[PROGRAM], [sys.executable, "-m", "peakline"]])
@each_row("module", ["peakline.text", "click"])
def test_an_interrupt_while_the_program_is_imported_is_quiet(tmp_path, program, module):
    (tmp_path / "sitecustomize.py").write_text(
        "import sys\n"
        "class Interrupt:\n"
        "    def find_spec(self, name, *_):\n"
        f"        if name == {module!r}:\n"
        "            raise KeyboardInterrupt\n"
        "sys.meta_path.insert(0, Interrupt())\n",
        encoding="utf-8",
    )
    run = subprocess.run(
        [*program, "memory"],
        capture_output=True,
        env=os.environ | {"PYTHONPATH": str(tmp_path)},
        check=False,
    )
    assert (run.returncode, run.stdout, run.stderr) == (130, b"", b"")


def test_debug_after_two_dashes_is_an_argument(peakline):
    assert "--debug: no such file" in peakline("memory", "--", "--debug").err


def test_the_installed_program(tmp_path):
    run = subprocess.run([PROGRAM, "memory", tmp_path], capture_output=True, text=True, check=False)
    assert (run.returncode, run.stdout) == (3, "")
    assert run.stderr.startswith(f"peakline: {tmp_path}: no sessions here")


def test_a_reader_that_stops_reading_ends_the_program_quietly(sessions):
    read, write = os.pipe()
    os.close(read)
    try:
        run = subprocess.run(
            [PROGRAM, "memory", sessions / "tf2_cnn", "--json"],
            stdout=write,
            stderr=subprocess.PIPE,
            check=False,
        )
    finally:
        os.close(write)
    assert (run.returncode, run.stderr) == (141, b"")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
def test_a_full_disk_is_said_once():
    with Path("/dev/full").open("wb") as full:
        run = subprocess.run(
            [PROGRAM, "--version"], stdout=full, stderr=subprocess.PIPE, text=True, check=False
        )
    assert run.returncode == 3
    assert run.stderr == ("peakline: standard output cannot be written: No space left on device\n")


def test_names_that_the_terminal_cannot_show_do_not_end_the_program(sessions):
    run = subprocess.run(
        [PROGRAM, "sql", sessions / "tf2_cnn", "select 'größe' as n", "--format", "csv"],
        capture_output=True,
        env=os.environ | {"PYTHONIOENCODING": "ascii"},
        check=False,
    )
    assert (run.returncode, run.stderr) == (0, b"")


LOADED = (
    "import sys; from peakline.__main__ import main; heavy, *words = sys.argv[1:];"
    "code = main(words); loaded = sorted(set(heavy.split()) & set(sys.modules));"
    "print(code, *loaded, file=sys.stderr)"
)


def loaded_by(words, heavy):
    """The exit code, and which of the modules ``heavy`` these words load."""
    run = subprocess.run(
        [sys.executable, "-c", LOADED, heavy, *words], capture_output=True, text=True, check=False
    )
    return run.stderr.splitlines()[-1]


@each_row(
    ("words", "code"),
    [
        ("--version", 0),
        ("--help", 0),  # tells of every verb, and imports the modules of all
        ("memory --help", 0),
        ("memory", 2),
        ("memory --nope", 2),
        ("ops x --top none", 2),
        ("nope", 2),
    ],
)
def test_a_question_about_no_profile_loads_nothing_heavy(words, code):
    heavy = "numpy msgspec rich typer google.protobuf pyarrow duckdb"
    assert loaded_by(words.split(), heavy) == f"{code}"


def test_the_version_is_told_without_the_parser():
    assert loaded_by(["--version"], "click") == "0"


@each_row(
    "words",
    [
        "memory {} --json",
        "trace {} --json",
        "trace {} --json --from 1ms --to 2ms",
        "tool memory_profile {}",
        "tool memory_profile {} --output {out}",
    ],
)
def test_start_up_loads_only_what_the_question_needs(sessions, tmp_path, words):
    places = {"out": tmp_path / "out"}
    words = [word.format(sessions / "tf2_cnn", **places) for word in words.split()]
    assert loaded_by(words, "duckdb pyarrow pandas rich") == "0"


def test_numpy_starts_no_threads_of_its_own(sessions):
    """The processor's time that they cost at every start is for nothing."""
    program = (
        "import sys, os; from peakline.__main__ import main; main(sys.argv[1:]);"
        "print(os.environ['OPENBLAS_NUM_THREADS'], 'numpy' in sys.modules, file=sys.stderr)"
    )
    words = ["memory", str(sessions / "tf2_cnn"), "--json"]
    run = subprocess.run(
        [sys.executable, "-c", program, *words], capture_output=True, text=True, check=False,
        env={k: v for k, v in os.environ.items() if k != "OPENBLAS_NUM_THREADS"},
    )  # fmt: skip
    assert run.stderr == "1 True\n"


def test_what_it_starts_imports_nothing_of_the_working_directory(tmp_path):
    """As Dask does, whose processes take `multiprocessing` from wherever it is first."""
    (tmp_path / "multiprocessing.py").write_text("print('taken')", "utf-8")
    script = tmp_path / "elsewhere/run.py"
    script.parent.mkdir()
    script.write_text(
        "import subprocess, sys\n"
        "from peakline.__main__ import main\n"
        "sys.argv[1:] = ['--version']\n"
        "main()\n"
        "subprocess.run([sys.executable, '-c', 'import multiprocessing.spawn'], check=True)\n",
        "utf-8",
    )
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONSAFEPATH"}
    run = subprocess.run(
        [sys.executable, script], cwd=tmp_path, env=environment, capture_output=True, text=True,
        check=False,
    )  # fmt: skip
    assert (run.returncode, "taken" in run.stdout) == (0, False), run.stderr


@each_row(("words", "code"), [("memory {} >&-", 0), ("check {} --max-peak 1 >&- 2>&-", 1)])
def test_without_standard_streams_the_exit_code_is_the_same(root, words, code):
    sample = root / "tests/data/programs/late_slot_healthy.xplane.pb.gz"
    line = f"exec {shlex.quote(str(PROGRAM))} {words.format(shlex.quote(str(sample)))}"
    run = subprocess.run(["/bin/sh", "-c", line], capture_output=True, text=True, check=False)
    assert (run.returncode, run.stdout) == (code, "")
    assert "unexpected" not in run.stderr


LIMITED = ["check", "{sample}", "--max-peak", "1"]


@pytest.fixture
def places(root, tmp_path):
    (tmp_path / "empty").mkdir()
    (tmp_path / "taken").touch()
    return {
        "sample": str(root / "tests/data/programs/late_slot_healthy.xplane.pb.gz"),
        "empty": str(tmp_path / "empty"),
        "taken": str(tmp_path / "taken"),
        "new": str(tmp_path / "new"),
    }


@each_row(
    ("code", "words"),
    [
        (0, "summary {sample}"),
        (0, "{sample} --json"),
        (1, "check {sample} --max-peak 1"),
        (1, "sql {sample} drop"),
        (1, "sql {sample} {taken}"),
        (2, "sumary {sample}"),
        (2, "memory"),
        (2, "memory {sample} --at soon"),
        (2, "memory {sample} --alocator x"),
        (2, "tool memory_profil {sample}"),
        (2, "tool memory_profile {sample} --format xml"),
        (2, "tool memory_profile {sample} -p memoryid=x"),
        (2, "tool memory_profile {sample} -o {taken}"),
        (2, "export {sample} --to prefetto -o {new}"),
        (2, "fit {sample} --limit much"),
        (2, "ops {sample} --sort slef"),
        (2, "graph {sample} --consumer x"),
        (2, "capture nowhere --logdir {new}"),
        (2, "serve {new}"),
        (2, "view"),
        (3, "summary {empty}"),
        (3, "memory {new}"),
        (3, "memory {sample} --allocator x"),
        (3, "memory {sample} --step x"),
        (2, "summary {sample} --host x"),
        (3, "graph {sample}/x"),
        (3, "report {empty} -o {new}"),
        (3, "sessions {new}"),
        (4, "capture localhost:1 --logdir {new} --attempts 1 --timeout 1s --duration 1ms"),
    ],
)
def test_a_case_of_each_code(peakline, places, code, words):
    run = peakline(*(word.format(**places) for word in words.split()))
    assert run.code == code, run.err
    assert code in EXIT_CODES
    if code:
        assert run.err.startswith("peakline: ")


def _errors(kind):
    for each in kind.__subclasses__():
        yield each
        yield from _errors(each)


def test_each_error_has_a_code_of_the_policy():
    assert {name for name in errors.__all__ if name != "PeaklineError"} <= {
        each.__name__ for each in _errors(PeaklineError)
    }
    assert {each.exit_code for each in (PeaklineError, *_errors(PeaklineError))} <= set(EXIT_CODES)


def test_no_verb_ends_the_program_by_itself():
    """But `capture`, whose outcome is printed already, and the program without a verb: it has
    printed its help, or a script of completion.
    """
    ends = {}
    for file in (Path(package.__file__).parent / "cli").glob("*.py"):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            called = node.func if isinstance(node, ast.Call) else None
            name = getattr(called, "attr", getattr(called, "id", ""))
            if name in {"exit", "_exit", "Exit", "SystemExit"}:
                ends.setdefault(file.stem, []).append(ast.unparse(node))
    assert ends == {
        "capture": ["click.exceptions.Exit(_FAILED)"],
        "main": ["context.exit()", "context.exit(2)"],
    }


def test_what_is_lost_under_strict(peakline, places):
    sample = Path(places["sample"]).read_bytes()
    cut = Path(places["new"])
    cut.write_bytes(sample[: len(sample) // 2])
    assert peakline("summary", cut, "--strict").code == 3


@each_row("answer", ["json", "text"])
def test_the_code_does_not_depend_on_the_form(peakline, places, answer):
    words = [word.format(**places) for word in LIMITED]
    assert peakline(*words, *(["--json"] if answer == "json" else [])).code == 1


ERASE = "\r\x1b[K"
DRAWN = """
import sys, threading
from peakline.cli import progress as drawer
drawer._FIRST_S = 0
text, shown = drawer.progress_text, threading.Event()
def counted(*words):
    if again: shown.set()
    again.append(1)
    return text(*words)
again = []
drawer.progress_text = counted
with drawer.drawn_progress() as progress:
    assert progress is not None
    progress.begin("reading " + "events" * 40, 100)
    progress.advance(50)
    shown.wait()
    print("answer")
    if "fail" in sys.argv: raise SystemExit(3)
"""


def visible(text):
    """What stays on the screen, line by line."""
    return [line.rpartition(ERASE)[2] for line in text.split("\n")]


@each_row(("word", "code"), [("done", 0), ("fail", 3)])
def test_the_line_is_drawn_and_gone_when_the_work_is_done(word, code):
    ended, got = on_a_terminal(["-c", DRAWN, word])
    assert ended == code
    assert f"{ERASE}reading events" in got
    assert visible(got) == ["answer", ""]
    assert max(map(len, [part for part in got.split(ERASE) if part.startswith("reading")])) < 80


@each_row("term", ["dumb", ""])
def test_a_terminal_that_cannot_move_its_cursor_gets_no_line(sessions, term):
    code, got = on_a_terminal(
        ["-m", "peakline", "summary", sessions / "tf2_cnn"], {"TERM": term, "NO_COLOR": "1"}
    )
    assert code == 0
    assert ERASE not in got


def test_a_verb_on_a_terminal_shows_what_it_shows_elsewhere(sessions):
    early = "import peakline.cli.progress as p, sys; p._FIRST_S = p._EVERY_S = 0.0001\n"
    early += "from peakline.__main__ import main; sys.exit(main(sys.argv[1:]))"
    words = ["summary", str(sessions / "tf2_cnn"), "--json"]
    code, got = on_a_terminal(["-c", early, *words])
    plain = subprocess.run(
        [sys.executable, "-m", "peakline", *words], capture_output=True, text=True, check=True
    )
    assert (code, plain.stderr) == (0, "")
    assert visible(got) == plain.stdout.split("\n")


def test_nothing_is_drawn_into_a_pipe(monkeypatch):
    monkeypatch.setenv("TERM", "xterm")
    read, write = os.pipe()
    os.close(read)
    with os.fdopen(write, "w") as pipe:
        assert not is_drawn(pipe)


@each_row(
    ("stage", "done", "total", "unit", "text"),
    [
        ("", 0, 0, "bytes", "working, 3 s"),
        ("reading events", 0, 100, "bytes", "reading events, 3 s"),
        ("reading events", 5 << 20, 10 << 20, "bytes", "reading events, 5.0 MiB of 10.0 MiB, 3 s"),
        ("reading events", 5 << 20, 1 << 20, "bytes", "reading events, 5.0 MiB, 3 s"),
        ("reading the hosts", 1, 2000, "hosts", "reading the hosts, 1 of 2,000 hosts, 3 s"),
    ],
)
def test_what_the_line_says(stage, done, total, unit, text):
    progress = Progress()
    progress.begin(stage, total, unit)
    progress.advance(done)
    assert progress_text(progress, 3.2) == text


def test_the_time_that_is_left():
    progress = Progress()
    progress.begin("reading", 1000)
    progress.began -= 100
    progress.advance(500)
    said = progress_text(progress, 130)
    assert said == ("reading, 500 B of 1000 B, 2 min 10 s, about 1 min 40 s left in this stage")
