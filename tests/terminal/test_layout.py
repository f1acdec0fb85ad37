"""Columns of text: widths, layout, tables."""

import re
import sys
from pathlib import Path

import pytest
from tests.each_row import each_row
from tests.terminal.screens import Screen, lines_of, shown

from peakline.__main__ import main
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
from peakline.render.terminal.table import Choice, Grid, Head, Labelled, elided


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
    result = wrapped("peak 73.0 MiB at 33.183 ms in step 0", 16, hang=2)
    # A number stays with its unit.
    assert result == ["peak 73.0 MiB at", "  33.183 ms in", "  step 0"]
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
    result = wrapped(text.strip(), width, hang=2)
    assert max(map(width_of, result)) <= width
    assert " ".join(result).split() == text.split()


def test_a_word_that_no_line_holds_is_cut_in_its_middle():
    result = wrapped(f"made by {'scope/' * 20}MatMul", 30)
    assert result[0] == "made by"
    assert "…" in result[1]
    assert result[1].endswith("MatMul")
    assert width_of(result[1]) == 30


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


DATA = Path(__file__).parent.parent / "data"
_LEFT_OUT = re.compile(r"^\([^()]+ left\s+out:\s+\d+\s+columns\)$", re.MULTILINE)
_TF, _LEAK = "sessions/tf2_cnn", "programs/leak_list.xplane.pb.gz"
_ANSWERS = [
    *(
        (verb, name)
        for verb in ("summary", "memory", "steps", "ops")
        for name in (
            _TF,
            _LEAK,
            "programs/time/input_bound.xplane.pb.gz",
            "chrome_trace/noleak.pt.trace.json.gz",
            "pprof/device_memory.pprof.pb.gz",
        )
    ),
    ("steps", "sessions/tf2_multihost"),
    ("ops", "--by", "module", "chrome_trace/noleak.pt.trace.json.gz"),
    ("memory", "--at", "33ms", _TF),
    ("memory", "hlo"),
    ("programs", "hlo"),
    ("programs", "--module", "12", "hlo"),
    ("fit", _TF),
    ("check", "--max-peak", "1MiB", "--max-growth-per-step", "0", _LEAK),
    ("diff", "programs/leak_list_healthy.xplane.pb.gz", _LEAK),
    ("trace", "--limit", "40", _LEAK),
    ("graph", "hlo"),
    ("sessions", "sessions/tf2_multihost"),
    ("tool", "--list"),
    ("sql", "--list"),
    ("sql", _TF, "from ops_at_peak"),
    ("sql", _TF, "select name, count(*) n, sum(duration_ps) ps from events group by all limit 9"),
]


def _lines(monkeypatch, words, width):
    """What a verb prints on a terminal of that width; None is a pipe."""
    out, err = Screen(terminal=width is not None), Screen(terminal=False)
    monkeypatch.setattr(sys, "stdout", out)
    monkeypatch.setattr(sys, "stderr", err)
    monkeypatch.setenv("COLUMNS", str(width or 50))
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    verb, *others = words
    code = main([verb, *(str(DATA / one) if (DATA / one).exists() else one for one in others)])
    assert code in {0, 1}, err.getvalue()
    return out.getvalue().splitlines()


def _plain(line):
    """A line without its colors."""
    while "\x1b[" in line:
        before, _, rest = line.partition("\x1b[")
        line = before + rest.partition("m")[2]
    return line


@pytest.mark.parametrize("words", _ANSWERS, ids=" ".join)
@pytest.mark.parametrize("widths", [(60, 200), pytest.param((80, 120), marks=pytest.mark.nightly)])
def test_every_line_fits(monkeypatch, words, widths):
    whole = _lines(monkeypatch, words, None)
    assert whole
    assert not any("\x1b" in line for line in whole), "a pipe has no colors"
    known = {word for line in whole for word in line.split()}
    for width in widths:
        result = [_plain(line) for line in _lines(monkeypatch, words, width)]
        assert max(map(width_of, result)) <= width
        assert not any(line != line.rstrip() for line in result)
        cut = [word for word in _LEFT_OUT.sub("", "\n".join(result)).split() if "…" not in word]
        assert set(cut) <= known, f"words that the whole answer has not, at {width} columns"


@each_row("verb", ["summary", "memory", "steps", "ops"])
def test_the_first_line_is_the_answer(monkeypatch, verb):
    first, second, *_ = _lines(monkeypatch, (verb, _TF), None)
    assert first
    assert "tf2_cnn" not in first
    assert "tf2_cnn" in second


def test_a_summary_fits_a_small_screen(monkeypatch):
    assert len(_lines(monkeypatch, ("summary", _TF), 80)) <= 24


_SCOPE = "model/encoder/attention_with_a_long_name"
_LAYERS = [f"{_SCOPE}/layer_{n}/query/projection/MatMul" for n in (0, 1, 11)]


def grid(names, **settings):
    heads = [Head("SIZE", "number"), Head("SHARE", "number"), Head("OP", "name"), Head("SHAPE")]
    rows = [(f"{n}.0 MiB", f"{n}.5%", name, "[32, 28, 28, 32]") for n, name in enumerate(names)]
    return Grid(heads, rows, **settings)


def test_a_table_that_has_room_is_whole():
    assert lines_of(grid(["MatMul", "Add"]), None) == [
        "   SIZE  SHARE  OP      SHAPE",
        "0.0 MiB   0.5%  MatMul  [32, 28, 28, 32]",
        "1.0 MiB   1.5%  Add     [32, 28, 28, 32]",
    ]


@each_row("width", range(20, 130, 5))
@each_row("names", [_LAYERS, ["x" * 3000], ["行列" * 40, "行列" * 41], [""], []])
def test_a_row_is_one_line(width, names):
    result = lines_of(grid(names), width)
    assert len(result) == 1 + len(names)
    assert max(map(width_of, result)) <= max(width, 20)
    # Numbers are never cut.
    assert all(f"{n}.0 MiB" in line for n, line in enumerate(result[1:]))


def test_columns_without_content_are_left_out():
    empty = Grid([Head("A"), Head("B", "number"), Head("C")], [("x", "", " "), ("y", "", "")])
    assert lines_of(empty, 80) == ["A", "x", "y"]
    assert empty.left_out(80) == []


def test_the_least_columns_are_left_out_first():
    wide = grid(_LAYERS, least=("share",))
    assert wide.left_out(120) == []
    assert wide.left_out(54) == ["SHARE"]
    assert "SHAPE" in lines_of(wide, 54)[0]
    assert wide.left_out(40) == ["SHARE", "SHAPE"]


def test_what_is_left_out_is_said_once_in_the_end(monkeypatch):
    monkeypatch.setenv("COLUMNS", "50")
    monkeypatch.setenv("NO_COLOR", "1")
    text = shown([grid(_LAYERS, least=("SHAPE",)), grid(_LAYERS, least=("SHAPE", "SHARE"))])
    assert text.splitlines()[-1] == "(SHAPE left out: 50 columns)"
    assert "left out" not in shown([grid(_LAYERS)], terminal=False)


def test_three_columns_at_sixty():
    result = lines_of(Grid([Head("A"), Head("B"), Head("C")], [("a" * 50, "b" * 50, "c" * 50)]), 60)
    assert [len(line) for line in result][1] <= 60
    assert result[1].count("…") == 3


def test_a_style_is_that_of_a_cell():
    marked = Grid([Head("RESULT"), Head("OP")], [("fail", "fail/MatMul")], styles={"fail": "red"})
    row = [*marked.lines(80)][1]
    assert [style for text, style in row if text == "fail"] == ["red"]
    assert [style for text, style in row if "MatMul" in text] == [""]


def test_the_first_table_that_has_room_is_chosen():
    tables = Choice([grid(_LAYERS), Grid([Head("OP", "name")], [(name,) for name in _LAYERS])])
    assert "SHAPE" in lines_of(tables, 100)[0]
    assert lines_of(tables, 45)[0].split() == ["OP"]
    assert tables.left_out(45) == ["SIZE", "SHARE", "SHAPE"]


def test_a_text_beside_a_label_is_wrapped_beside_it():
    result = lines_of(Labelled([("memory", "gpu", "peak 73.0 MiB at 3 ms"), ("", "", "x")]), 27)
    assert result == ["memory  gpu  peak 73.0 MiB", "             at 3 ms", "             x"]


@each_row("room", range(24, 60))
def test_names_stay_apart(room):
    result = elided(_LAYERS, room)
    assert len(set(result)) == len(_LAYERS)
    assert max(map(width_of, result)) <= room
    for name, shown_name in zip(_LAYERS, result, strict=True):
        assert name.rpartition("layer_")[2].split("/")[0] in shown_name


@each_row("room", range(12, 60, 3))
def test_names_stay_apart_though_they_differ_in_more_than_there_is_room_for(room):
    kinds = [
        f"void at::native::kernel<{one * 40}, {two * 50}>(int)" for one in "ab" for two in "xy"
    ]
    assert len(set(elided(kinds, room))) == 4


def test_parts_that_two_colons_separate():
    stages = [f"Iterator::Root::Prefetch::{name}Dataset" for name in ("Map", "Shuffle")]
    assert elided(stages, 20) == ["…::MapDataset", "…::ShuffleDataset"]


def test_what_long_names_share_is_left_out_first():
    assert elided(_LAYERS, 38)[0] == "…/layer_0/query/projection/MatMul"
    assert elided([*_LAYERS, "Add"], 38)[-1] == "Add"


def test_the_last_part_of_a_name_stays():
    (result,) = elided(["gradient_tape/sequential_1/conv2d_1/Conv2DBackpropFilter"], 36)
    assert result == "gradient_tape/…/Conv2DBackpropFilter"


def test_names_with_room_are_as_they_are():
    assert elided(["a/b", "a/c"], 3) == ["a/b", "a/c"]
    assert elided([], 3) == []
