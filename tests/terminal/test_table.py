"""Tables fitted to a width, and names that are cut so that they stay apart."""

from tests.each_row import each_row
from tests.terminal.screens import lines_of, shown

from peakline.render.terminal.layout import width_of
from peakline.render.terminal.table import Choice, Grid, Head, Labelled, elided

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
    found = lines_of(grid(names), width)
    assert len(found) == 1 + len(names)
    assert max(map(width_of, found)) <= max(width, 20)
    # Numbers are never cut.
    assert all(f"{n}.0 MiB" in line for n, line in enumerate(found[1:]))


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
    found = lines_of(Grid([Head("A"), Head("B"), Head("C")], [("a" * 50, "b" * 50, "c" * 50)]), 60)
    assert [len(line) for line in found][1] <= 60
    assert found[1].count("…") == 3


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
    found = lines_of(Labelled([("memory", "gpu", "peak 73.0 MiB at 3 ms"), ("", "", "x")]), 27)
    assert found == ["memory  gpu  peak 73.0 MiB", "             at 3 ms", "             x"]


@each_row("room", range(24, 60))
def test_names_stay_apart(room):
    found = elided(_LAYERS, room)
    assert len(set(found)) == len(_LAYERS)
    assert max(map(width_of, found)) <= room
    for name, shown_name in zip(_LAYERS, found, strict=True):
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
    (found,) = elided(["gradient_tape/sequential_1/conv2d_1/Conv2DBackpropFilter"], 36)
    assert found == "gradient_tape/…/Conv2DBackpropFilter"


def test_names_with_room_are_as_they_are():
    assert elided(["a/b", "a/c"], 3) == ["a/b", "a/c"]
    assert elided([], 3) == []
