"""Lines of text from columns: every kind of gap, and where the lines lie."""

import numpy as np
from tests.each_row import each_row

from peakline.viewer.lines import Gap, Lines, put_together


def written(rows, *gaps):
    lines = Lines(rows, gaps)
    starts = np.cumsum(lines.lengths) - lines.lengths
    return put_together((2 + int(lines.lengths.sum()) + 1), b"<<", [(lines, 2 + starts)], b">")


def test_a_text_per_line_between_two_fixed_ones():
    assert written(3, Gap("(", np.array([1, 0, 1]), ")", ["", "xy"])) == b"<<(xy)()(xy)>"


@each_row(
    "value",
    [0, 9, 10, 99, 100, 999, 1000, 9999, 10_000, 12_345_678, 10**16, 2**63 - 1, -1, -(2**63)],
)
def test_whole_numbers(value):
    assert written(2, Gap("", np.array([value, 7]), ",")) == f"<<{value},7,>".encode()


def test_a_zero_can_leave_nothing():
    signed = Gap("a", np.array([0, -5]), ";", unless_zero=True)
    unsigned = Gap("b", np.array([2**64 - 1, 0], np.uint64), ";", unless_zero=True)
    assert written(2, signed, unsigned) == b"<<b18446744073709551615;a-5;>"


def test_more_lines_than_a_thread_writes_at_a_time():
    numbers = np.arange(20_000)
    expected = "".join(f"{number}\n" for number in range(20_000))
    assert written(20_000, Gap("", numbers, "\n")) == f"<<{expected}>".encode()


def test_lines_of_two_kinds_take_turns():
    first = Lines(2, [Gap("a", np.array([1, 22]))])
    second = Lines(2, [Gap("b", np.array([3, 4]))])
    parts = [(first, np.array([0, 4])), (second, np.array([2, 7]))]
    assert put_together(9, b"", parts, b"") == b"a1b3a22b4"


def test_no_lines():
    assert written(0, Gap("a", np.zeros(0, np.int64))) == b"<<>"
