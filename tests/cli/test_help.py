"""Help and completion."""

import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path

import click
import pytest
from tests.capture.peers import answer_of, peer, sample_profile
from tests.each_row import each_row
from tests.terminal.ptys import lines_after_tab
from tests.waiting import HANG_S

from peakline.cli.main import EXAMPLES, EXIT_CODES, GROUPS, app

VERBS = app.list_commands(None)
WIDTHS = [60, 80, 100, 120, 200]
SAMPLES = {
    "logs/plugins/profile/first/worker-0.xplane.pb.gz": "programs/late_slot_healthy.xplane.pb.gz",
    "logs/plugins/profile/second/worker-0.xplane.pb.gz": "programs/late_slot.xplane.pb.gz",
    "run.xplane.pb": "programs/late_slot.xplane.pb.gz",
    "before.xplane.pb": "programs/late_slot_healthy.xplane.pb.gz",
    "after.xplane.pb": "programs/late_slot.xplane.pb.gz",
    "snapshot.pickle": "fit/torch/varying_batches/snapshot_start.pickle.gz",
    "trace.json": "chrome_trace/noleak.pt.trace.json.gz",
    "traces/rank0.json.gz": "jobs/ddp_host/faulty/trace_rank_0.json.gz",
    "traces/rank1.json.gz": "jobs/ddp_host/faulty/trace_rank_1.json.gz",
    "graph.pb": "graph_def/frozen.pb",
    "dump": "xla_dump",
    "monday": "jobs/ddp_host/healthy",
    "tuesday": "jobs/ddp_host/faulty",
}
"""What the names in the examples are here."""


@pytest.fixture(scope="module")
def made(root, tmp_path_factory):
    folder = tmp_path_factory.mktemp("samples")
    for name, sample in SAMPLES.items():
        source, target = root / "tests/data" / sample, folder / name
        target.parent.mkdir(parents=True, exist_ok=True)
        (shutil.copytree if source.is_dir() else shutil.copy)(source, target)
    return folder


def examples_of(verb):
    return list(EXAMPLES) if verb is None else app.get_command(None, verb).examples


def commands(lines):
    """The command lines of examples; one goes on in the lines that are indented."""
    result = []
    for line in lines:
        if line.startswith("peakline "):
            result.append(line)
        elif line.startswith(" "):
            result[-1] = f"{result[-1]}\n{line}"
        else:
            assert line.startswith("# "), line
    return [shlex.split(one.replace("\\\n", " "))[1:] for one in result]


@each_row("width", WIDTHS)
def test_each_verb_is_in_a_group_with_its_whole_line(peakline, monkeypatch, width):
    monkeypatch.setenv("COLUMNS", str(width))
    shown = peakline("--help").out
    assert max(map(len, shown.splitlines())) <= width
    assert "..." not in shown.partition("Answers:")[2]
    joined = " ".join(shown.split())
    for title, verbs in GROUPS.items():
        assert f"\n{title}:\n" in shown
        for name in verbs:
            about = app.get_command(None, name).help.strip().partition("\n\n")[0]
            assert f"{name} {' '.join(about.split())}" in joined


def test_the_groups_are_all_verbs_once():
    names = [name for verbs in GROUPS.values() for name in verbs]
    assert sorted(names) == sorted(set(names)) == sorted(VERBS)


@each_row("verb", VERBS)
def test_each_verb_has_two_to_four_examples_that_fit(peakline, verb):
    lines = examples_of(verb)
    assert 2 <= len(commands(lines)) <= 4
    assert all(words[0] == verb for words in commands(lines))
    assert max(map(len, lines)) <= 66
    shown = peakline(verb, "--help").out
    assert "\nExamples:\n" + "\n".join(f"  {line}" for line in lines) in shown


FOREGROUND = {"serve": r"Ctrl-C ends it", "view": r"Ctrl-C ends it"}
MAY_SAY_NO = {"check", "graph"}


@each_row("verb", [None, *(name for name in VERBS if name not in {*FOREGROUND, "capture"})])
def test_each_example_runs(peakline, made, tmp_path, monkeypatch, verb):
    shutil.copytree(made, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    for words in commands(examples_of(verb)):
        run = peakline(*words)
        assert run.code in ({0, 1} if verb in MAY_SAY_NO else {0}), (words, run.err)
        assert "unexpected" not in run.err
        written = [words[k + 1] for k, word in enumerate(words) if word == "-o"]
        assert run.out or all(Path(name).exists() for name in written), words
        for name in written:
            if not name.startswith("report"):
                target = Path(name)
                shutil.rmtree(target) if target.is_dir() else target.unlink()


def test_the_examples_of_capture_run(peakline, sessions, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    content = answer_of(sample_profile(sessions))
    for words in commands(examples_of("capture")):
        with ExitStack() as stack:
            places = [k for k, word in enumerate(words) if word.startswith("localhost:")]
            for k in places:
                words[k] = stack.enter_context(peer(lambda *_: content)).address
            run = peakline(*words)
            assert run.code == 0, run.err
    assert len(list(tmp_path.glob("captured/plugins/profile/*"))) == 2


@pytest.mark.nightly
@each_row("verb", FOREGROUND)
def test_the_examples_of_what_stays_run(made, verb):
    free = {"serve": ["--http-port", "0", "--grpc-port", "0"], "view": ["--port", "0"]}
    for words in commands(examples_of(verb)):
        more = [*free[verb], *(["--no-browser"] if verb == "view" else [])]
        run = subprocess.Popen(
            [sys.executable, "-m", "peakline", *words, *more],
            cwd=made,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        try:
            assert any(re.search(FOREGROUND[verb], line) for line in run.stdout), words
            run.send_signal(signal.SIGINT)
            assert run.wait(HANG_S) in {0, 130}
        finally:
            run.kill()
            run.stdout.close()
            run.wait()


def test_the_exit_codes_are_in_the_help(peakline):
    shown = " ".join(peakline("--help").out.partition("Exit codes:")[2].split())
    for code, meaning in EXIT_CODES.items():
        assert f"{code} {meaning}" in shown


def test_every_parameter_of_every_verb_has_a_help():
    for verb in VERBS:
        command = app.get_command(None, verb)
        assert all(one.help for one in command.params if isinstance(one, click.Option)), verb


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
def completed(peakline, monkeypatch):
    """What the program answers the script of a shell, the last word being completed."""

    def run(*words, shell="bash"):
        monkeypatch.setenv("_PEAKLINE_COMPLETE", f"{shell}_complete")
        monkeypatch.setenv("COMP_LINE", " ".join(["peakline", *words]))
        monkeypatch.setenv("COMP_WORD", words[-1])
        result = peakline()
        assert (result.code, result.err) == (0, "")
        return [line for line in result.out.splitlines() if line]

    return run


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
def test_a_word_is_completed(completed, words, answer):
    assert completed(*words) == answer


def test_the_ranks_and_hosts_of_a_job_are_completed(completed, tmp_path):
    for rank in (0, 1, 10):
        (tmp_path / f"rank{rank}.json").write_bytes(b'{"traceEvents": []}')
    assert completed("memory", str(tmp_path), "--rank", "1") == ["plain,1", "plain,10"]
    assert completed("memory", str(tmp_path), "--host", "rank0") == ["plain,rank0"]


def test_no_word_yet_lists_the_verbs_as_the_help_does(completed):
    assert completed("") == [f"plain,{verb}" for verb in app.list_commands(None)]


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


@pytest.mark.parametrize(
    "shell",
    ["bash", *(pytest.param(one, marks=pytest.mark.nightly) for one in SHELLS if one != "bash")],
)
def test_a_tab_in_a_shell(home, shell):
    if (program := shutil.which(shell)) is None:
        pytest.skip(f"{shell} is not installed here")
    places = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment = {**os.environ, "PATH": places}
    result = lines_after_tab(shell, program, TABS, environment, home)
    assert dict(zip(TABS, result, strict=True)) == TABS


ORDERS = [
    "p$(touch owned)", "q`touch owned`", "r';touch owned;'", 's";touch owned;"', "u;touch owned",
    "v|touch owned", "w<(touch owned)", "x $HOME 'a\"b",
]  # fmt: skip
"""Names of sessions that would run something where a shell took them for its own words."""
_PRINTING = {"fish": "function peakline; printf '%s\\n' $argv[-1]; end\n"}


@pytest.mark.parametrize(
    "shell",
    ["bash", *(pytest.param(one, marks=pytest.mark.nightly) for one in SHELLS if one != "bash")],
)
def test_a_name_that_a_tab_writes_gives_no_orders(home, shell):
    """The shell reads the line as that name, whatever quote was open."""
    if (program := shutil.which(shell)) is None:
        pytest.skip(f"{shell} is not installed here")
    for name in ORDERS:
        folder = home / "logs/plugins/profile" / name
        folder.mkdir()
        (folder / "one.xplane.pb").write_bytes(b"x")
    places = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment = {**os.environ, "PATH": places}
    typed = {
        f"peakline memory logs --session {quote}{name[0]}": name
        for name in ORDERS
        for quote in ("", '"', "'")
    }
    lines = lines_after_tab(shell, program, typed, environment, home)
    printing = _PRINTING.get(
        shell, "peakline() { for last; do :; done; printf '%s\\n' \"$last\"; }\n"
    )
    run = subprocess.run(
        [program, "-c", printing + "\n".join(lines)], cwd=home, capture_output=True, check=True
    )
    assert run.stdout.decode().splitlines() == list(typed.values()), (lines, run.stderr)
    assert not (home / "owned").exists()


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
def test_zsh_and_fish_show_what_a_verb_does(completed, shell):
    assert "step" in " ".join(completed("steps", shell=shell))


def test_another_shell_is_a_usage_error(peakline):
    run = peakline("--completion", "csh")
    assert (run.code, run.out, run.err.count("\n")) == (2, "", 1)
    assert "'bash', 'zsh', 'fish'" in run.err
