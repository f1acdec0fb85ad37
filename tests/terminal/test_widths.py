"""Every verb on samples of all kinds, 60 to 200 columns wide: lines fit, no word is broken."""

import re
import sys
from pathlib import Path

import pytest
from tests.each_row import each_row
from tests.terminal.screens import Screen

from peakline.__main__ import main
from peakline.render.terminal.layout import width_of

DATA = Path(__file__).parent.parent / "data"
_WIDTHS = (60, 80, 120, 200)
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
def test_every_line_fits(monkeypatch, words):
    whole = _lines(monkeypatch, words, None)
    assert whole
    assert not any("\x1b" in line for line in whole), "a pipe has no colors"
    known = {word for line in whole for word in line.split()}
    for width in _WIDTHS:
        found = [_plain(line) for line in _lines(monkeypatch, words, width)]
        assert max(map(width_of, found)) <= width
        assert not any(line != line.rstrip() for line in found)
        cut = [word for word in _LEFT_OUT.sub("", "\n".join(found)).split() if "…" not in word]
        assert set(cut) <= known, f"words that the whole answer has not, at {width} columns"


@each_row("verb", ["summary", "memory", "steps", "ops"])
def test_the_first_line_is_the_answer(monkeypatch, verb):
    first, second, *_ = _lines(monkeypatch, (verb, _TF), None)
    assert first
    assert "tf2_cnn" not in first
    assert "tf2_cnn" in second


def test_a_summary_fits_a_small_screen(monkeypatch):
    assert len(_lines(monkeypatch, ("summary", _TF), 80)) <= 24
