"""How wide texts are, where lines are wrapped, and when there are colors."""

import pytest
from tests.each_row import each_row
from tests.terminal.screens import Screen, lines_of, shown

from peakline.render.terminal.layout import (
    Indented,
    Text,
    begin_of,
    cut,
    end_of,
    has_colors,
    show,
    terminal_width,
    width_of,
    wrapped,
)


@each_row(
    ("text", "width"),
    [("", 0), ("MatMul", 6), ("行列", 4), ("e\u0301", 1), ("ﬁ", 1), ("🙂", 2), ("…", 1)],
)
def test_the_columns_of_a_text(text, width):
    assert width_of(text) == width


@each_row(
    ("text", "room", "begin", "end"),
    [
        ("MatMul", 3, "Mat", "Mul"),
        ("MatMul", 0, "", ""),
        ("MatMul", 9, "MatMul", "MatMul"),
        ("行列x", 3, "行", "列x"),
        ("行列x", 1, "", "x"),
        ("ae\u0301b", 2, "ae\u0301", "e\u0301b"),
        ("ae\u0301", 0, "", ""),
    ],
)
def test_the_begin_and_the_end_of_a_text(text, room, begin, end):
    assert (begin_of(text, room), end_of(text, room)) == (begin, end)


@each_row("text", ["gradient_tape/MatMul", "行列の積を計算する層", "e\u0301" * 40, "🙂" * 9])
@each_row("room", range(3, 30))
def test_a_text_is_cut_to_its_room(text, room):
    assert width_of(cut(text, room)) <= room
    assert (cut(text, room) == text) is (width_of(text) <= room)


def test_a_sentence_is_wrapped_at_blanks():
    found = wrapped("peak 73.0 MiB at 33.183 ms in step 0", 16, hang=2)
    # A number stays with its unit.
    assert found == ["peak 73.0 MiB at", "  33.183 ms in", "  step 0"]
    assert wrapped("all of it", None) == ["all of it"]
    assert wrapped("", 20) == [""]


def test_what_is_to_be_typed_is_whole():
    text = "no such file: tests/data/sessions/tf2_cnn/vm.xplane.pb; did you mean"
    assert wrapped(text, 24, hang=2, is_whole=True) == [
        "no such file: tests/data/sessions/tf2_cnn/vm.xplane.pb;",
        "  did you mean",
    ]


def test_blanks_at_the_begin_stay():
    assert wrapped("   one two three", 11) == ["   one two", "   three"]


@each_row("width", range(20, 70, 7))
def test_no_word_is_broken_and_no_line_too_wide(width):
    text = "the pool grew in regions that are too small for it; 32.0 MiB of 行列 " * 3
    found = wrapped(text.strip(), width, hang=2)
    assert max(map(width_of, found)) <= width
    assert " ".join(found).split() == text.split()


def test_a_word_that_no_line_holds_is_cut_in_its_middle():
    found = wrapped(f"made by {'scope/' * 20}MatMul", 30)
    assert found[0] == "made by"
    assert "…" in found[1]
    assert found[1].endswith("MatMul")
    assert width_of(found[1]) == 30


def test_prose_is_no_wider_than_is_read_well():
    (first, *_) = lines_of(Text("word " * 60), 200)
    assert len(first) <= 100
    assert len(lines_of(Text("word " * 60), None)) == 1


def test_control_characters_are_escaped():
    assert lines_of(Text("a\x1b[2J\u202e\nb"), 80) == ["a\\x1b[2J\\u202e\\nb"]


def test_lines_have_no_blanks_at_their_ends():
    assert shown([Indented(Text("  a  ")), "", Text(" ")]) == "    a\n\n\n"


def test_a_terminal_has_the_width_of_columns(monkeypatch):
    monkeypatch.setenv("COLUMNS", "72")
    assert terminal_width(Screen()) == 72
    assert terminal_width(Screen(terminal=False)) is None
    monkeypatch.setenv("COLUMNS", "3")
    assert terminal_width(Screen()) == 20


@pytest.mark.parametrize(
    ("terminal", "variables", "colors"),
    [
        (True, {"TERM": "xterm"}, True),
        (False, {"TERM": "xterm"}, False),
        (True, {"TERM": "dumb"}, False),
        (True, {"TERM": "xterm", "NO_COLOR": "1"}, False),
        (True, {"TERM": "xterm", "NO_COLOR": ""}, True),
        (False, {"FORCE_COLOR": "1"}, True),
        (False, {"FORCE_COLOR": "0"}, False),
        (False, {"FORCE_COLOR": "1", "NO_COLOR": "1"}, False),
    ],
)
def test_when_there_are_colors(monkeypatch, terminal, variables, colors):
    for name in ("TERM", "NO_COLOR", "FORCE_COLOR"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    screen = Screen(terminal=terminal)
    assert has_colors(screen) is colors
    show([Text("peak", "bold yellow")], screen)
    assert screen.getvalue() == ("\x1b[1;33mpeak\x1b[0m\n" if colors else "peak\n")
