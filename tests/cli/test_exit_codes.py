"""One policy of exit codes: a case of each, and no other way to end a verb."""

import ast
from pathlib import Path

import pytest
from tests.each_row import each_row

import peakline as package
from peakline import errors
from peakline.cli.main import EXIT_CODES
from peakline.errors import PeaklineError

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
