"""The line about long work: on a terminal alone, and gone when the work is done."""

import os
import subprocess
import sys

from tests.each_row import each_row
from tests.terminal.ptys import on_a_terminal

from peakline.cli.progress import is_drawn, progress_text
from peakline.progress import Progress

ERASE = "\r\x1b[K"
DRAWN = """
import sys, threading
from peakline.cli import progress as drawer
drawer._FIRST_S = 0
text, shown = drawer.progress_text, threading.Event()
def counted(*words):
    if again: shown.set()
    again.append(1)
    return text(*words)
again = []
drawer.progress_text = counted
with drawer.drawn_progress() as progress:
    assert progress is not None
    progress.begin("reading " + "events" * 40, 100)
    progress.advance(50)
    shown.wait()
    print("answer")
    if "fail" in sys.argv: raise SystemExit(3)
"""


def visible(text):
    """What stays on the screen, line by line."""
    return [line.rpartition(ERASE)[2] for line in text.split("\n")]


@each_row(("word", "code"), [("done", 0), ("fail", 3)])
def test_the_line_is_drawn_and_gone_when_the_work_is_done(word, code):
    ended, got = on_a_terminal(["-c", DRAWN, word])
    assert ended == code
    assert f"{ERASE}reading events" in got
    assert visible(got) == ["answer", ""]
    assert max(map(len, [part for part in got.split(ERASE) if part.startswith("reading")])) < 80


@each_row("term", ["dumb", ""])
def test_a_terminal_that_cannot_move_its_cursor_gets_no_line(sessions, term):
    code, got = on_a_terminal(
        ["-m", "peakline", "summary", sessions / "tf2_cnn"], {"TERM": term, "NO_COLOR": "1"}
    )
    assert code == 0
    assert ERASE not in got


def test_a_verb_on_a_terminal_shows_what_it_shows_elsewhere(sessions):
    early = "import peakline.cli.progress as p, sys; p._FIRST_S = p._EVERY_S = 0.0001\n"
    early += "from peakline.__main__ import main; sys.exit(main(sys.argv[1:]))"
    words = ["summary", str(sessions / "tf2_cnn"), "--json"]
    code, got = on_a_terminal(["-c", early, *words])
    plain = subprocess.run(
        [sys.executable, "-m", "peakline", *words], capture_output=True, text=True, check=True
    )
    assert (code, plain.stderr) == (0, "")
    assert visible(got) == plain.stdout.split("\n")


def test_nothing_is_drawn_into_a_pipe(monkeypatch):
    monkeypatch.setenv("TERM", "xterm")
    read, write = os.pipe()
    os.close(read)
    with os.fdopen(write, "w") as pipe:
        assert not is_drawn(pipe)


@each_row(
    ("stage", "done", "total", "unit", "text"),
    [
        ("", 0, 0, "bytes", "working, 3 s"),
        ("reading events", 0, 100, "bytes", "reading events, 3 s"),
        ("reading events", 5 << 20, 10 << 20, "bytes", "reading events, 5.0 MiB of 10.0 MiB, 3 s"),
        ("reading events", 5 << 20, 1 << 20, "bytes", "reading events, 5.0 MiB, 3 s"),
        ("reading the hosts", 1, 2000, "hosts", "reading the hosts, 1 of 2,000 hosts, 3 s"),
    ],
)
def test_what_the_line_says(stage, done, total, unit, text):
    progress = Progress()
    progress.begin(stage, total, unit)
    progress.advance(done)
    assert progress_text(progress, 3.2) == text


def test_the_time_that_is_left():
    progress = Progress()
    progress.begin("reading", 1000)
    progress.began -= 100
    progress.advance(500)
    said = progress_text(progress, 130)
    assert said == ("reading, 500 B of 1000 B, 2 min 10 s, about 1 min 40 s left in this stage")
