"""A profile whose every name is an attack, through every verb and face: nothing obeys a name."""

import json
import os
import pty
import re
import subprocess
import sys
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from itertools import cycle
from xml.etree import ElementTree as ET

import pytest
from tests.each_row import each_row
from tests.guard import runners
from tests.guard.attacks import ATTACKS, attacked, attacks, every, rich

import peakline
from peakline import safe_text
from peakline.__main__ import main
from peakline.engine import Engine
from peakline.errors import InputError
from peakline.export import target_names
from peakline.safe_text import RUNNERS
from peakline.service.access_log import STDERR, AccessLog
from peakline.tools import find_tool

_LIMITS = (
    "--max-peak 1 --max-growth-per-step 0 --max-fragmentation 0 --max-program-peak 1 --max-limit 1 "
    "--max-step-time 1ps --max-p95-step-time 1ps --max-input-wait 0 --max-compile 0 --max-idle 0"
).split()
_CHOSEN = {"leak.xplane.pb", "run.pb", "program.pb", "snapshot4.pickle"}
_CHECKED = {"jax.xplane.pb", "leak.xplane.pb", "run.pb", "snapshot4.pickle"}
_TEXT = {
    "table", "csv", "json", "html", "dot", "text", "markdown", "chrome-trace", "speedscope",
}  # fmt: skip
"""Formats and targets that are text."""
_BEGINS = {f"begin_{place}": attack for place, attack in enumerate(ATTACKS)}


@dataclass(frozen=True)
class Printed:
    code: int
    out: str
    err: str


@pytest.fixture
def run(capsysbinary, monkeypatch):
    """Run a verb as a job, by default of GitHub's."""

    def run(*words, environment=None):
        for name in RUNNERS:
            monkeypatch.delenv(name, raising=False)
        known = runners.ENVIRONMENTS["github"] if environment is None else environment
        for name, value in known.items():
            monkeypatch.setenv(name, value)
        capsysbinary.readouterr()
        code = main([str(word) for word in words])
        out, err = (one.decode("utf-8", "surrogateescape") for one in capsysbinary.readouterr())
        return Printed(code, out, err)

    return run


def assert_harmless(printed, words, *, is_text=True):
    assert printed.code != 70, (words, printed.err)
    assert not runners.commands(printed.err), words
    assert not runners.controls(printed.err), words
    if is_text:
        assert not runners.commands(printed.out), words
        assert not runners.controls(printed.out.replace("\t", " ")), words
    else:
        content = printed.out.encode("utf-8", "surrogateescape")
        assert not runners.commands_in_bytes(content), words


def _verbs(path):
    for verb in ("summary", "memory", "steps", "ops", "programs", "fit", "trace", "graph"):
        yield verb, path
        yield verb, path, "--json"
    yield "graph", path, "--check"
    yield "ops", path, "--kernels"
    yield "ops", path, "--by", "shape"
    yield "diff", path, path
    yield "--debug", "memory", path, "--allocator", ATTACKS[0]
    yield "steps", path, "--strict"
    yield "tool", "--list", path
    yield "sql", path, "from nothing"
    yield "sql", path, f"select '{ATTACKS[0]}' || {ATTACKS[3]}"


def _documents(path, *, few):
    with peakline.open(path) as profile:
        tools = [find_tool(name) for name in profile.tools()]
        tables = [*profile.tables]
    forms = cycle(("table", "csv", "json", "parquet"))
    for tool in tools[::3] if few else tools:
        for form in tool.formats[-1:] if few else tool.formats:
            yield "tool", tool.name, path, "--format", form
    for table in tables[::6] if few else tables:
        for form in [next(forms)] if few else ("table", "csv", "json", "parquet"):
            yield "sql", path, f"from {table} limit 40", "--format", form
    for target in target_names():
        yield "export", path, "-o", "-", "--to", target
    yield "report", "-o", "-", path, "--title", "html"


def _attack_all(make, run, folder, *, few):
    attack = make()
    path = folder / attack.name
    path.write_bytes(attack.content)
    for words in _verbs(path):
        assert_harmless(run(*words), words)
    for words in _documents(path, few=few):
        assert_harmless(run(*words), words, is_text=words[-1] in _TEXT)


@pytest.mark.parametrize("name", sorted(_CHOSEN))
def test_no_verb_prints_a_command(name, run, tmp_path):
    _attack_all(dict(every())[name], run, tmp_path, few=True)


@pytest.mark.nightly
@pytest.mark.parametrize("name", [name for name, _ in every()])
def test_no_verb_prints_a_command_whatever_the_format(name, run, tmp_path):
    """Of a file of every format: every verb, table, tool and export, in every form."""
    _attack_all(dict(every())[name], run, tmp_path, few=False)


@pytest.mark.nightly
@pytest.mark.parametrize("name", sorted(_CHOSEN))
@pytest.mark.parametrize("where", sorted(runners.ENVIRONMENTS))
def test_no_verb_prints_a_command_wherever_it_runs(name, where, run, tmp_path):
    run = partial(run, environment=runners.ENVIRONMENTS[where])
    _attack_all(dict(every())[name], run, tmp_path, few=True)


@each_row(("where", "environment"), sorted(runners.ENVIRONMENTS.items()))
def test_every_runner_is_known(where, environment, run, tmp_path):
    """The same file is an attack outside of them, and none inside."""
    path = tmp_path / "steps.pb"
    path.write_bytes(next(one for one in attacks() if one.name == "steps.pb").content)
    assert runners.commands(run("summary", path, environment={}).out)
    assert not runners.commands(run("summary", path, environment=environment).out), where
    on, off = (dict.fromkeys(environment, value) for value in ("1", "false"))
    assert not runners.commands(run("summary", path, environment=on).out)
    assert runners.commands(run("summary", path, environment=off).out)


def test_json_means_the_same(run, tmp_path):
    path = tmp_path / "leak.xplane.pb"
    path.write_bytes(rich(path.name).content)
    changed = []
    for words in (["memory"], ["trace"], ["summary"], ["tool", "memory_profile"]):
        more = [] if words[0] == "tool" else ["--json"]
        inside, outside = (run(*words, path, *more, environment=e) for e in (None, {}))
        changed.append(inside.out != outside.out)
        assert json.loads(inside.out) == json.loads(outside.out)
    assert sum(changed) > 1


@pytest.mark.parametrize("name", sorted(_CHECKED))
def test_a_check_commands_only_what_it_means(name, run, tmp_path):
    """Of the outcome only GitHub's own annotations are commands, one for each limit that failed;
    its files are what they say.
    """
    path, summary, junit, sarif, quality = (
        tmp_path / one for one in (name, "s.md", "j.xml", "s.sarif", "q.json")
    )
    path.write_bytes(dict(every())[name]().content)
    files = ("--summary", summary, "--junit", junit, "--sarif", sarif)
    for environment in ({}, runners.ENVIRONMENTS["github"]):
        printed = run(
            "check", path, *_LIMITS, *files, "--annotations", "github", environment=environment
        )
        assert printed.code == 1
        lines = printed.out.splitlines(keepends=True)
        own = [line for line in lines if line.startswith(("::error ", "::notice "))]
        results = json.loads(sarif.read_text())["runs"][0]["results"]
        assert sum(line.startswith("::error ") for line in own) == len(results) > 0
        assert_harmless(
            Printed(1, "".join(line for line in lines if line not in own), printed.err), own
        )
        for line in own:
            assert not runners.controls(line)
            assert not runners.commands(f"x{line}")
    printed = run(
        "check", path, *_LIMITS, "--annotations", "gitlab", "--annotations-file", quality,
        environment={},
    )  # fmt: skip
    assert not runners.commands(printed.out + printed.err)
    assert runners.obeyed_in_markdown(summary.read_text()) == []
    cases = ET.fromstring(junit.read_text()).findall(".//failure")  # noqa: S314 (made here)
    assert len(cases) == len(results)
    for result in results:
        text = result["message"]["text"]
        assert not runners.controls(text)
        assert runners.links_in_sarif(text) == []
    for entry in json.loads(quality.read_text()):
        assert not runners.controls(entry["description"])


def test_markdown_of_a_difference_is_only_shown(run, tmp_path):
    before, after = tmp_path / "before.xplane.pb", tmp_path / "after.xplane.pb"
    before.write_bytes(rich("leak.xplane.pb").content)
    after.write_bytes(rich("input.xplane.pb").content)
    printed = run("diff", before, after, "--markdown", environment={})
    assert len(printed.out) > 1000
    assert runners.obeyed_in_markdown(printed.out) == []
    assert_harmless(run("diff", before, after, "--markdown"), "diff")


def test_names_of_files_and_sessions_are_names_too(run, tmp_path):
    """Hosts, sessions and paths are as foreign as what is in a file."""
    content = rich("leak.xplane.pb").content
    for place, attack in enumerate(ATTACKS):
        session = attack.replace("/", "_")
        folder = tmp_path / "logs" / "plugins" / "profile" / f"{session} {place}"
        folder.mkdir(parents=True)
        (folder / f"{session}.xplane.pb").write_bytes(content)
    assert_harmless(run("sessions", tmp_path / "logs"), "sessions")
    assert_harmless(run("sessions", tmp_path / "logs", "--json"), "sessions")
    assert_harmless(run("summary", tmp_path / "logs"), "summary")
    for place, attack in enumerate(ATTACKS):
        session = f"{attack.replace('/', '_')} {place}"
        assert_harmless(run("ops", tmp_path / "logs", "--session", session), session)
    one, two = (sorted((tmp_path / "logs" / "plugins" / "profile").iterdir())[n] for n in (0, 1))
    assert_harmless(run("diff", one, two), "diff")
    markdown = run("diff", one, two, "--markdown", environment={})
    assert runners.obeyed_in_markdown(markdown.out) == []


def test_a_traceback_is_shown_and_not_obeyed(run, tmp_path, monkeypatch):
    """Of a session that is left out, and of the verb itself."""

    def broken(*_):
        raise ValueError("\n".join(ATTACKS))

    folder = tmp_path / "plugins" / "profile" / "one"
    folder.mkdir(parents=True)
    (folder / "a.xplane.pb").write_bytes(rich("leak.xplane.pb").content)
    monkeypatch.setattr(Engine, "tools", broken)
    printed = run("--debug", "sessions", tmp_path)
    assert "Traceback" in printed.err
    assert "left out" in printed.err
    assert_harmless(printed, "sessions")
    monkeypatch.setattr(peakline, "open", broken)
    monkeypatch.setattr("peakline.cli.options.peakline.open", broken)
    printed = run("--debug", "memory", folder / "a.xplane.pb")
    assert "Traceback" in printed.err
    assert printed.code == 70
    assert runners.commands(printed.err) == runners.controls(printed.err) == []


@each_row(("name", "attack"), sorted(_BEGINS.items()))
def test_words_of_a_command_line_are_names_too(name, attack, run, tmp_path):
    """A script may have them from anywhere: what is wrong with one is said, and not obeyed."""
    words = [
        ("summary", attack), (attack,), ("memory", f"/nowhere/{attack}"), ("sessions", attack),
        ("--debug", "ops", attack), ("tool", attack, "x"), ("sql", "x", attack),
        ("summary", "x", f"--{attack}"), ("graph", tmp_path / name),
        ("check", "x", "--max-peak", attack), ("check", "x", "--annotations", attack),
        ("export", "x", "--to", attack, "-o", "y"), ("tool", "memory_profile", "x", "-p", attack),
        ("summary", f"https://{attack}"),
    ]  # fmt: skip
    (tmp_path / name).write_text(attack)
    for each in words:
        printed = run(*each)
        assert printed.code
        assert_harmless(printed, each)


def test_a_real_log_of_both_streams(tmp_path):
    """A process whose streams are the pipes of a runner, with everything that it starts."""
    path = tmp_path / "leak.xplane.pb"
    path.write_bytes(rich(path.name).content)
    environment = {**os.environ, **runners.ENVIRONMENTS["azure"], "PYTHONIOENCODING": "utf-8"}
    for words in (["memory"], ["tool", "op_stats", "--format", "text"], ["trace", "--limit", "50"]):
        result = subprocess.run(
            [sys.executable, "-m", "peakline", *words, path],
            env=environment, capture_output=True, check=False, stdin=subprocess.DEVNULL,
        )  # fmt: skip
        assert result.stdout, result.stderr
        assert runners.commands((result.stdout + result.stderr).decode()) == []


def test_a_file_is_as_it_is_and_a_log_is_guarded(tmp_path):
    """What is redirected into a file is the answer to the byte; a log is for people."""
    path, target = tmp_path / "leak.xplane.pb", tmp_path / "out.csv"
    path.write_bytes(rich(path.name).content)
    command = [
        sys.executable, "-m", "peakline", "sql", path,
        "select distinct name from events order by name", "--format", "csv",
    ]  # fmt: skip
    environment = {**os.environ, **runners.ENVIRONMENTS["github"]}
    with target.open("wb") as file:
        subprocess.run(command, env=environment, stdout=file, check=True)
    log = subprocess.run(command, env=environment, capture_output=True, check=True)
    subprocess.run([*command, "-o", tmp_path / "named.csv"], env=environment, check=True)
    assert target.read_bytes() == (tmp_path / "named.csv").read_bytes()
    assert runners.commands(target.read_text())
    assert runners.commands(log.stdout.decode()) == []
    assert b"were written as escapes" in log.stderr


def test_a_terminal_of_a_job_is_a_log_too(tmp_path):
    """Buildkite's agent gives a job a terminal, on which progress and colors are drawn."""
    path = tmp_path / "leak.xplane.pb"
    path.write_bytes(rich(path.name).content)
    names = ["sql", path, "select distinct name from events", "--format", "csv"]
    for words in (["memory", path], names, ["check", path, *_LIMITS, "--no-config"]):
        ours, theirs = pty.openpty()
        with subprocess.Popen(
            [sys.executable, "-m", "peakline", *words],
            env={**os.environ, "BUILDKITE": "true", "TERM": "xterm"},
            stdin=subprocess.DEVNULL, stdout=theirs, stderr=theirs,
        ):  # fmt: skip
            os.close(theirs)
            with os.fdopen(ours, "rb", buffering=0) as screen:
                printed = b"".join(_until_closed(screen)).decode()
        assert len(printed) > 200
        assert runners.commands(re.sub(r"\x1b\[[0-9;]*m|\r\x1b\[K|\r(?=\n)", "", printed)) == []


def _until_closed(screen):
    with suppress(OSError):  # Linux' way to say that nobody has the other end
        while data := screen.read(1 << 16):
            yield data


def test_the_access_log_is_a_log_too(capsys, monkeypatch):
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    log = AccessLog(STDERR)
    for attack in ATTACKS:
        log.write("http", attack, attack, "200", 0.1, session=attack, tool=attack, host=attack)
        log.event(attack, message=attack)
    printed = capsys.readouterr().err
    assert runners.commands(printed) == []
    lines = [json.loads(line) for line in printed.splitlines()]
    assert [line["session"] for line in lines[::2]] == list(ATTACKS)


def test_csv_for_a_spreadsheet_computes_nothing(run, tmp_path):
    path = tmp_path / "leak.xplane.pb"
    path.write_bytes(rich(path.name).content)
    query = "select name, -1 as n, -0.5 as x from events order by name"
    plain = run("sql", path, query, "--format", "csv", environment={})
    safe = run("sql", path, query, "--format", "csv", "--safe-csv", environment={})
    assert runners.formulas(plain.out)
    assert runners.formulas(safe.out) == []
    assert safe.out.replace("'", "") == plain.out.replace("'", "")
    for name in ("framework_op_stats", "step_breakdown", "op_time"):
        tool = ("tool", name, path, "--format", "csv", "--safe-csv")
        assert runners.formulas(run(*tool, environment={}).out) == []
    refused = run("tool", "memory_profile", path, "--safe-csv")
    assert (refused.code, "--format csv" in refused.err) == (2, True)
    assert run("tool", "--list", path, "--safe-csv").code == 2


def test_what_is_drawn_neither_runs_nor_loads_anything(run, tmp_path):
    path, page = tmp_path / "leak.xplane.pb", tmp_path / "report.html"
    path.write_bytes(rich(path.name).content)
    assert run("report", path, "-o", page).code == 0
    assert runners.obeyed_in_html(page.read_text()) == []
    with peakline.open(path) as profile:
        for value in (profile, profile.memory(), profile.steps(), profile.findings()):
            assert runners.obeyed_in_html(value._repr_html_()) == []
            assert not runners.controls(repr(value))


def test_what_a_library_says_into_a_log_is_no_command(monkeypatch):
    """Errors and short forms are printed by somebody else."""
    for name in RUNNERS:
        monkeypatch.delenv(name, raising=False)
    error = InputError("##[debug]x: cannot be read")
    assert str(error) == "##[debug]x: cannot be read"
    monkeypatch.setenv("CI", "true")
    assert runners.commands(str(error)) == []
    assert "##" in str(error)


def test_what_the_pytest_plugin_says_into_a_log_is_no_command(tmp_path):
    mark = f"@pytest.mark.limit_device_memory('1MB', framework={ATTACKS[0]!r})"
    (tmp_path / "test_it.py").write_text(f"import pytest\n{mark}\ndef test_it(): pass\n")
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    result = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "peakline.pytest.plugin", "-p", "no:cacheprovider"],
        cwd=tmp_path, env={**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "CI": "true"},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert "no framework" in result.stdout
    assert runners.commands(result.stdout + result.stderr) == []


@each_row("text", [attacked(str(n)) for n in range(40)] + list(ATTACKS))
def test_a_command_in_pieces_is_broken_too(text, capsys):
    """However a line is cut into writes, and whatever stood in it before; nothing is left out."""
    for size in (1, 2, 3, 7):
        for before in ("", " ", "\t\u200b", "x"):
            with safe_text.guarded_streams(always=True):
                sys.stdout.write(f"\n{before}")
                for start in range(0, len(text), size):
                    sys.stdout.write(text[start : start + size])
            printed = capsys.readouterr().out
            # What moves the cursor no verb prints: names have it as an escape.
            assert [one for one in runners.commands(printed) if "\x1b" not in one] == []
            spelled = re.sub(r"\\u([0-9a-f]{4})", lambda match: chr(int(match[1], 16)), printed)
            assert spelled == f"\n{before}{text}"


def test_plain_names_are_left_alone():
    for text in ("a::b", "x ## y", "## heading", "std::vector[0]", "#[x]", "a -- b", "--- ", "#"):
        assert safe_text.broken(f"x{text}") == f"x{text}"
