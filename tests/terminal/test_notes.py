"""What stands on standard error: wrapped between words on a terminal, one line elsewhere."""

import subprocess

from tests.each_row import each_row
from tests.terminal.ptys import on_a_terminal
from tests.terminal.screens import Screen

from peakline.__main__ import main
from peakline.render.terminal.layout import width_of

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
