"""Lines that change while something is under way."""

from tests.terminal.screens import Screen

from peakline.capture import CaptureRequest, Target, profile_options
from peakline.render.terminal.capture import bar, clock, live_lines, show_progress


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
