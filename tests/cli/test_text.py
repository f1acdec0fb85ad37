import pytest

from peakline.cli.text import bytes_text, one_line, time_text


@pytest.mark.parametrize(
    ("size", "text"),
    [
        (0, "0 B"),
        (1023, "1023 B"),
        (1024, "1.0 KiB"),
        (-1536, "-1.5 KiB"),
        (1024**2 - 1, "1.0 MiB"),  # not 1024.0 KiB
        (76_584_448, "73.0 MiB"),
        (2**63 - 1, "8.0 EiB"),
    ],
)
def test_sizes(size, text):
    assert bytes_text(size) == text


@pytest.mark.parametrize(
    ("time", "text"),
    [(0, "0.000 ms"), (32_773_136_000, "32.773 ms"), (1_204_000_000_000, "1.204 s")],
)
def test_times(time, text):
    assert time_text(time) == text


def test_foreign_text_cannot_steer_a_terminal():
    assert one_line("a\nb\x1b[31m\u202e") == "a\\nb\\x1b[31m\\u202e"
    assert one_line("größe ≤ 3") == "größe ≤ 3"
