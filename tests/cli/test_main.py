import os
import shlex
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pytest
from tests.each_row import each_row

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
        (["memory"], "Missing argument 'PATH'; see peakline memory --help"),
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
        [sys.executable, "-c", program, *words],
        capture_output=True,
        text=True,
        env={k: v for k, v in os.environ.items() if k != "OPENBLAS_NUM_THREADS"},
        check=False,
    )
    assert run.stderr == "1 True\n"


@each_row(("words", "code"), [("memory {} >&-", 0), ("check {} --max-peak 1 >&- 2>&-", 1)])
def test_without_standard_streams_the_exit_code_is_the_same(root, words, code):
    sample = root / "tests/data/programs/late_slot_healthy.xplane.pb.gz"
    line = f"exec {shlex.quote(str(PROGRAM))} {words.format(shlex.quote(str(sample)))}"
    run = subprocess.run(["/bin/sh", "-c", line], capture_output=True, text=True, check=False)
    assert (run.returncode, run.stdout) == (code, "")
    assert "unexpected" not in run.stderr
