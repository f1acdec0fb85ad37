"""The help: every verb by its whole line in a group, with examples that run as they stand."""

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
    "graph.pb": "graph_def/frozen.pb",
    "dump": "xla_dump",
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
    found = []
    for line in lines:
        if line.startswith("peakline "):
            found.append(line)
        elif line.startswith(" "):
            found[-1] = f"{found[-1]}\n{line}"
        else:
            assert line.startswith("# "), line
    return [shlex.split(one.replace("\\\n", " "))[1:] for one in found]


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
