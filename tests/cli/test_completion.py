"""Completion in shells: the scripts, and what they get to complete a word."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from tests.each_row import each_row

HEAVY = ("numpy", "pyarrow", "duckdb", "google.protobuf", "pydantic", "fsspec", "rich", "msgspec")
IN_BASH = """
eval "$(peakline --completion bash)"
complete -p peakline
compopt() { echo compopt "$@"; }
COMP_WORDS=("$@") COMP_CWORD=$(($# - 1))
_peakline_completion peakline "${COMP_WORDS[COMP_CWORD]}" ""
printf '%s\\n' "${COMPREPLY[@]}"
"""
SHELLS = ["bash", "zsh", "fish"]


@pytest.fixture
def environment():
    """The program is on the path."""
    place = Path(sys.executable).parent
    return {**os.environ, "PATH": f"{place}{os.pathsep}{os.environ['PATH']}"}


def _words(environment, *words, shell="bash"):
    """What the program answers the script of ``shell``, the last word being completed."""
    last = words[-1] if shell == "fish" else str(len(words))
    found = subprocess.run(
        [sys.executable, "-m", "peakline"],
        env=environment
        | {
            "_PEAKLINE_COMPLETE": f"{shell}_complete",
            "COMP_WORDS": " ".join(["peakline", *words]),
            "COMP_CWORD": last,
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
        "os.environ |= dict(_PEAKLINE_COMPLETE='bash_complete', COMP_CWORD='1')\n"
        "from peakline.__main__ import main\n"
        "for line in ('peakline ', 'peakline tool '):\n"
        "    os.environ['COMP_WORDS'] = line\n"
        "    os.environ['COMP_CWORD'] = str(line.count(' '))\n"
        "    assert main([]) == 0\n"
        f"print([name for name in {HEAVY!r} if name in sys.modules])\n"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.splitlines()[-1] == "[]"
    assert "plain,overview_page" in run.stdout


@each_row(
    ("words", "shown"),
    [
        (["mem"], ["memory"]),
        (["tool", "memory_pr"], ["memory_profile"]),
        (["memory", "runs/"], ["compopt -o default", ""]),
        (["sessions", "x"], ["compopt -o dirnames", ""]),
    ],
)
def test_bash_completes(environment, words, shown):
    bash = shutil.which("bash")
    assert bash is not None
    done = subprocess.run(
        [bash, "--norc", "-c", IN_BASH, "bash", "peakline", *words],
        env=environment, capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert done.stderr == ""
    assert done.stdout.splitlines() == [
        "complete -o nosort -F _peakline_completion peakline",
        *shown,
    ]


@each_row("shell", SHELLS)
def test_a_script_requests_the_words_of_its_shell(peakline, shell):
    run = peakline("--completion", shell)
    assert (run.code, run.err) == (0, "")
    assert f"_PEAKLINE_COMPLETE={shell}_complete" in run.out
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
