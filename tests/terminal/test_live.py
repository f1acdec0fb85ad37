"""Live lines, notes and warnings."""

import ast
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.each_row import each_row
from tests.terminal.ptys import on_a_terminal
from tests.terminal.screens import Screen

import peakline
from peakline.__main__ import main
from peakline.capture import CaptureRequest, Target, profile_options
from peakline.render.terminal.capture import bar, clock, live_lines, show_progress
from peakline.render.terminal.layout import width_of
from peakline.render.terminal.output import counted_text, print_left_out, print_warnings
from peakline.tables import ProfileWarning
from peakline.tables.warning_kinds import KINDS


def test_lines_are_drawn_over_one_another(monkeypatch):
    monkeypatch.setenv("COLUMNS", "30")
    screen, drawn = Screen(), ["a" * 90, "b"]
    with live_lines(lambda _: drawn, screen) as redraw:
        drawn[1] = "c"
        redraw()
    text = screen.getvalue()
    # Wider lines would be wrapped, and not be drawn over.
    assert max(len(line) for line in text.splitlines() if "a" in line) <= 29 + len(
        "\x1b[2A\r\x1b[J"
    )
    assert text.startswith("\x1b[?25l")
    assert text.endswith(f"{'a' * 29}\nc\n\x1b[?25h")
    assert "\x1b[2A\r\x1b[J" in text


def test_a_bar_and_a_clock():
    assert [bar(share, 4) for share in (-1, 0, 0.5, 1, 2)] == [
        "╌╌╌╌", "╌╌╌╌", "━━╌╌", "━━━━", "━━━━",
    ]  # fmt: skip
    assert [clock(seconds) for seconds in (0, 61.9, 3600)] == ["0:00:00", "0:01:01", "1:00:00"]


def test_every_host_of_a_capture_has_a_line(monkeypatch):
    screen = Screen()
    monkeypatch.setattr("sys.stderr", screen)
    monkeypatch.setenv("COLUMNS", "70")
    targets = tuple(Target(f"worker{n}", f"worker{n}:9012") for n in range(2))
    request = CaptureRequest(targets, "s", 10, profile_options({}))
    with show_progress(request) as report:
        report("worker0", "recording", "")
        report("worker0", "stored", "/logs/one\x1b[2J")
        report("worker1", "failed", "x" * 200)
    one, other = screen.getvalue().splitlines()[-3:-1]
    assert one.endswith("  stored: /logs/one\\x1b[2J")
    assert "━" * 20 in one
    assert other.endswith("x…")
    assert len(other) <= 70


LONG = "no_folder/" * 9 + "run.xplane.pb"


@each_row(
    "words",
    [
        ["memory", "{sample}", "--step", "trian 3"],
        ["trace", "{sample}", "--line", "nothing of this name"],
        ["memory", "{sample}", "--alocator", "x"],
        ["ops", "{sample}", "--sort", "slef"],
    ],
)
@each_row("width", [60, 80, None])
def test_an_error_on_a_terminal_is_wrapped_between_words(monkeypatch, sessions, words, width):
    out, err = Screen(terminal=False), Screen(terminal=width is not None)
    monkeypatch.setattr("sys.stdout", out)
    monkeypatch.setattr("sys.stderr", err)
    monkeypatch.setenv("COLUMNS", str(width or 30))
    # On a busy machine the progress of the work would be shown before it.
    monkeypatch.setattr("peakline.cli.progress._FIRST_S", 3600)
    assert main([word.format(sample=sessions / "tf2_cnn") for word in words]) in {2, 3}
    first, *others = err.getvalue().splitlines()
    assert first.startswith("peakline: ")
    assert all(line.startswith("  ") for line in others)
    if width is None:
        assert not others
    else:
        assert max(map(width_of, (first, *others))) <= width
        assert "…" not in err.getvalue()


def test_a_path_is_not_cut(monkeypatch):
    err = Screen()
    monkeypatch.setattr("sys.stderr", err)
    monkeypatch.setenv("COLUMNS", "60")
    monkeypatch.setenv("NO_COLOR", "1")
    assert main(["memory", LONG]) == 3
    assert err.getvalue() == f"peakline: {LONG}:\n  no such file or directory\n"


def test_the_terminal_of_errors_is_measured_where_the_answer_goes_into_a_pipe():
    code = "import sys; from peakline.render.terminal.layout import terminal_width as width;"
    code += "sys.stderr.write(str(width(sys.stderr)))"
    assert on_a_terminal(["-c", code], columns=47, stdout=subprocess.DEVNULL) == (0, "47")


SOURCE = Path(peakline.__file__).parent
_CALLS = {"add", "add_once", "warn", "Notice"}
_A_CALL = re.compile(rf"\b({'|'.join(_CALLS)})\(")


def said(capsys, *warnings, **settings):
    print_warnings([ProfileWarning(*one) for one in warnings], **settings)
    out, err = capsys.readouterr()
    assert not out
    return err.splitlines()


@each_row(
    ("detail", "count", "text"),
    [
        ("records without a time", 3, "3 records without a time"),
        ("records without a time", 1, "1 record without a time"),
        ("gpu: deallocations that match none", 1, "gpu: 1 deallocation that matches none"),
        ("(unnamed allocator): records", 2000, "(unnamed allocator): 2,000 records"),
        ("entries of the history", 1, "1 entry of the history"),
        ("executions without a start time, taken as 0", 2,
         "2 executions without a start time, taken as 0"),
    ],
)  # fmt: skip
def test_the_count_stands_before_the_noun(detail, count, text):
    assert counted_text(detail, count) == text


def test_a_warning_is_a_sentence_and_a_code(capsys):
    assert said(capsys, ("bad_times", 2, "records whose time is missing")) == [
        "peakline: warning: 2 records whose time is missing [bad_times]"
    ]
    assert said(capsys, ("truncated", 3, "the file ends\nhere")) == [
        "peakline: warning: the file ends\\nhere (3 times) [truncated]"
    ]
    # A kind of somebody's own is printed as it is.
    assert said(capsys, ("own", 1, "of a plug-in")) == ["peakline: warning: of a plug-in [own]"]


def test_the_same_of_several_hosts_is_one_line(capsys):
    warning = ("bad_times", 2, "records whose time is missing")
    assert said(capsys, warning, warning) == [
        "peakline: warning: 4 records whose time is missing [bad_times]"
    ]


def test_what_nobody_can_do_anything_about_is_not_printed(capsys):
    assert said(capsys, ("early_device_work", 9, "work on a device")) == []
    assert said(capsys, ("no_steps", 1, "no steps"), besides="no_steps") == []


def test_what_is_left_out_is_a_line_each(capsys):
    print_left_out(["host a: cut\n", "host b: gone"])
    assert capsys.readouterr().err.splitlines() == [
        "peakline: warning: left out: host a: cut\\n",
        "peakline: warning: left out: host b: gone",
    ]


_OF_SEVERAL = re.compile(
    r"\b(?:are|(?<!not )have|were|they|their|them|that (?:name|begin|lie)|and never end)\b"
)


def test_of_one_thing_no_warning_speaks_in_the_plural():
    """Details are of several things; what follows the noun fits one as well, or is made to."""
    plural = {
        f"{path.name}: {text}"
        for path in SOURCE.rglob("*.py")
        for kind, detail in _details(path)
        if KINDS[kind].is_counted
        # What comes behind is of the others, or of what the reader does.
        and _OF_SEVERAL.search(text := re.split("[;:(]", counted_text(detail, 1))[0])
    }
    assert not plural


def _details(path: Path) -> Iterator[tuple[str, str]]:
    """The kinds and details of a module's counted losses, where both are written there."""
    source = path.read_text()
    for node in ast.walk(ast.parse(source)) if _A_CALL.search(source) else ():
        if not isinstance(node, ast.Call) or len(node.args) < 3:
            continue
        name = getattr(node.func, "attr", getattr(node.func, "id", ""))
        kind, detail = node.args[:2]
        if name in _CALLS and isinstance(kind, ast.Constant) and kind.value in KINDS:
            parts = detail.values if isinstance(detail, ast.JoinedStr) else [detail]
            texts = [str(one.value) if isinstance(one, ast.Constant) else "X" for one in parts]
            yield kind.value, "".join(texts)


def _constants(tree: ast.Module) -> dict[str, str]:
    return {
        target.id: node.value.value
        for node in tree.body
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant)
        for target in node.targets
        if isinstance(target, ast.Name) and isinstance(node.value.value, str)
    }


def _used(path: Path) -> Iterator[str]:
    """The kinds that a module counts: first arguments of the calls that do, and the rows of loops
    over kinds.
    """
    source = path.read_text()
    if not _A_CALL.search(source):
        return
    tree = ast.parse(source)
    named = _constants(tree)

    def text(node: ast.expr) -> Iterator[str]:
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value
        elif isinstance(node, ast.Name) and node.id in named:
            yield named[node.id]

    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and len(node.args) > 1:
            function = node.func
            name = getattr(function, "attr", getattr(function, "id", ""))
            if name in _CALLS:
                yield from text(node.args[0])
        if isinstance(node, ast.For) and isinstance(node.iter, ast.Tuple):
            rows = [row for row in node.iter.elts if isinstance(row, ast.Tuple)]
            if any(_counts_kinds(one) for one in ast.walk(node)):
                for row in rows:
                    yield from text(row.elts[0])


def _counts_kinds(node: ast.AST) -> bool:
    """Whether it counts what the variable ``kind`` holds."""
    if not isinstance(node, ast.Call) or not node.args:
        return False
    name = getattr(node.func, "attr", getattr(node.func, "id", ""))
    return name in _CALLS and isinstance(node.args[0], ast.Name) and node.args[0].id == "kind"


def _modules() -> list[Path]:
    own = SOURCE / "tables" / "warning_kinds"
    return [path for path in SOURCE.rglob("*.py") if own not in path.parents]


def test_every_kind_that_the_code_counts_is_known():
    used = {kind: path.name for path in _modules() for kind in _used(path)}
    assert len(used) > 60
    assert {kind: name for kind, name in used.items() if kind not in KINDS} == {}


def test_every_known_kind_is_counted_somewhere():
    text = "\n".join(path.read_text() for path in _modules())
    made = {"planes_left_out", "lines_left_out"}  # put together from a word
    assert [kind for kind in KINDS if f'"{kind}"' not in text and kind not in made] == []


@pytest.mark.parametrize("name", ["means", "changes", "advice"])
def test_what_is_known_is_sentences(name):
    for one in KINDS.values():
        text = getattr(one, name)
        assert text[0].isupper(), one.code
        assert text.endswith("."), one.code


def test_every_code_is_on_the_page(root):
    page = (root / "docs" / "warnings.md").read_text()
    assert [line[4:] for line in page.splitlines() if line.startswith("### ")] == list(KINDS)
