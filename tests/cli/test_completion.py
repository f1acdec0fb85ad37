"""Completion in shells: the scripts, and what they get to complete a word."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from tests.each_row import each_row
from tests.terminal.ptys import lines_after_tab

HEAVY = ("numpy", "pyarrow", "duckdb", "google.protobuf", "pydantic", "fsspec", "rich", "msgspec")
SHELLS = ["bash", "zsh", "fish"]


@pytest.fixture
def home(tmp_path):
    """A directory with files to complete."""
    for name in ("run.pb", "a b.pb"):
        (tmp_path / name).touch()
    session = tmp_path / "logs/plugins/profile/2026_11_20_16_57_05"
    session.mkdir(parents=True)
    for name in ("one", "other"):
        (session / f"{name}.xplane.pb").write_bytes(b"x")
    return tmp_path


@pytest.fixture
def environment():
    """The program is on the path."""
    place = Path(sys.executable).parent
    return {**os.environ, "PATH": f"{place}{os.pathsep}{os.environ['PATH']}"}


def _words(environment, *words, shell="bash"):
    """What the program answers the script of ``shell``, the last word being completed."""
    found = subprocess.run(
        [sys.executable, "-m", "peakline"],
        env=environment
        | {
            "_PEAKLINE_COMPLETE": f"{shell}_complete",
            "COMP_LINE": " ".join(["peakline", *words]),
            "COMP_WORD": words[-1],
        },
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert found.stderr == ""
    return [line for line in found.stdout.splitlines() if line]


@each_row(
    ("words", "answer"),
    [
        (["me"], ["plain,memory"]),
        (["tests/da"], ["file,tests/da"]),
        (["--comp"], ["plain,--completion"]),
        (["--completion", "z"], ["plain,zsh"]),
        (["memory", "runs/a"], ["file,runs/a"]),
        (["memory", "--alloc"], ["plain,--allocator"]),
        (["memory", "x", "--programs", "du"], ["file,du"]),
        (["diff", "one", "an"], ["file,an"]),
        (["ops", "--sort", "to"], ["plain,total"]),
        (["sql", "x", "q", "--format", "cs"], ["plain,csv"]),
        (["tool", "trace_v"], ["plain,trace_viewer", "plain,trace_viewer@"]),
        (["tool", "trace_viewer", "lo"], ["file,lo"]),
        (["tool", "--executor", "d"], ["plain,dask"]),
        (["export", "x", "--to", "p"], ["plain,parquet", "plain,perfetto", "plain,pprof"]),
        (["export", "x", "-o", "o"], ["file,o"]),
        (["serve", "lo"], ["dir,lo"]),
        (["serve", "--token-file", "t"], ["file,t"]),
        (["capture", "h:1", "--logdir", "lo"], ["dir,lo"]),
        (["memory", "x", "--at", "1"], []),
    ],
)
def test_a_word_is_completed(environment, words, answer):
    assert _words(environment, *words) == answer


def test_no_word_yet_lists_the_verbs_as_the_help_does(environment):
    from peakline.cli.main import app

    assert _words(environment, "") == [f"plain,{verb}" for verb in app.list_commands(None)]


def test_a_tab_loads_nothing_heavy():
    code = (
        "import os, sys\n"
        "os.environ |= dict(_PEAKLINE_COMPLETE='bash_complete')\n"
        "from peakline.__main__ import main\n"
        "for line in ('peakline ', 'peakline tool '):\n"
        "    os.environ['COMP_LINE'] = line\n"
        "    assert main([]) == 0\n"
        f"print([name for name in {HEAVY!r} if name in sys.modules])\n"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.splitlines()[-1] == "[]"
    assert "plain,overview_page" in run.stdout


TABS = {
    "peakline mem": "peakline memory ",
    "peakline ru": "peakline run.pb ",
    "peakline memory a": "peakline memory a\\ b.pb ",
    'peakline memory "a': 'peakline memory "a b.pb" ',
    "peakline sessions lo": "peakline sessions logs/",
    "peakline memory run.pb --al": "peakline memory run.pb --allocator ",
    "peakline ops --sort to": "peakline ops --sort total ",
    "peakline ops run.pb --sort=to": "peakline ops run.pb --sort=total ",
    "peakline memory --programs=ru": "peakline memory --programs=run.pb ",
    "peakline tool trace_viewer@ ru": "peakline tool trace_viewer@ run.pb ",
    "peakline tool trace_viewer x --format p": "peakline tool trace_viewer x --format pb ",
    'peakline sql x "from ops_at_p': 'peakline sql x "from ops_at_peak" ',
    "peakline sql x from\\ ops_at_p": "peakline sql x from\\ ops_at_peak ",
    "peakline memory logs --session 2": "peakline memory logs --session 2026_11_20_16_57_05 ",
    "peakline memory logs --host ot": "peakline memory logs --host other ",
    "true; peakline memory ~/ru": "true; peakline memory ~/run.pb ",
}
"""What is typed before a Tab, and the line behind it."""


@pytest.mark.parametrize("shell", SHELLS)
def test_a_tab_in_a_shell(environment, home, shell):
    if (program := shutil.which(shell)) is None:
        pytest.skip(f"{shell} is not installed here")
    found = lines_after_tab(shell, program, TABS, environment, home)
    assert dict(zip(TABS, found, strict=True)) == TABS


@each_row("shell", SHELLS)
def test_a_script_requests_the_words_of_its_shell(peakline, shell):
    run = peakline("--completion", shell)
    assert (run.code, run.err) == (0, "")
    assert f"{shell}_complete" in run.out
    assert {"bash": "complete -o", "zsh": "#compdef peakline", "fish": "complete --no-files"}[
        shell
    ] in run.out
    if (program := shutil.which(shell)) is not None:  # else it is not installed here
        subprocess.run([program, "-n"], input=run.out, text=True, check=True)


@each_row("shell", ["zsh", "fish"])
def test_zsh_and_fish_show_what_a_verb_does(environment, shell):
    assert "step" in " ".join(_words(environment, "steps", shell=shell))


def test_another_shell_is_a_usage_error(peakline):
    run = peakline("--completion", "csh")
    assert (run.code, run.out, run.err.count("\n")) == (2, "", 1)
    assert "'bash', 'zsh', 'fish'" in run.err
