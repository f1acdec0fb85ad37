"""Sizes and times as people read and write them, and foreign text."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from peakline.errors import UsageError
from peakline.safe_text import one_line, valid_text
from peakline.text import (
    chosen_size_text,
    parse_duration,
    parse_size,
    parse_time,
    shares_text,
    size_text,
    time_text,
    whole_number,
)
from tests.each_row import each_row


@each_row(
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
def test_a_size_is_told_in_the_unit_that_fits(size, text):
    assert size_text(size) == text


@each_row(
    ("time", "text"),
    [
        (0, "0 ns"),
        (1, "0.001 ns"),
        (15_500, "15.5 ns"),
        (-120_000, "-120 ns"),
        (999_999, "999.999 ns"),
        (1_000_000, "0.001 ms"),
        (32_773_136_000, "32.773 ms"),
        (1_204_000_000_000, "1.204 s"),
    ],
)
def test_a_time_is_told_in_nanoseconds_milliseconds_or_seconds(time, text):
    assert time_text(time) == text


@each_row(
    ("parts", "decimals", "shares"),
    [
        ([1, 1, 1], 1, ["33.4%", "33.3%", "33.3%"]),
        ([1, 1, 1], 0, ["34%", "33%", "33%"]),
        ([2, 1, 3, 0], 1, ["33.3%", "16.7%", "50.0%", "0.0%"]),
        ([7], 1, ["100.0%"]),
        ([105, -5], 0, ["105%", "-5%"]),
        ([0, 0], 1, ["0.0%", "0.0%"]),
        ([], 1, []),
    ],
)
def test_shares_of_a_whole_add_up_as_printed(parts, decimals, shares):
    assert shares_text(parts, decimals) == shares


@given(st.lists(st.integers(0, 10**18), min_size=1, max_size=40), st.integers(0, 2))
def test_no_share_is_a_unit_away_from_what_it_is(parts, decimals):
    whole = max(sum(parts), 1)
    result = [Fraction(text.rstrip("%")) for text in shares_text(parts, decimals)]
    assert sum(result) == (100 if sum(parts) else 0)
    for part, share in zip(parts, result, strict=True):
        assert abs(share - Fraction(100 * part, whole)) < Fraction(1, 10**decimals)


def test_foreign_text_cannot_steer_a_terminal():
    assert one_line("a\nb\x1b[31m\u202e") == "a\\nb\\x1b[31m\\u202e"
    assert one_line("größe ≤ 3") == "größe ≤ 3"


@each_row(
    ("text", "valid"),
    [
        ("a b", "a b"),
        ("größe", "größe"),
        ("a\ud800b\udc00", "a\ufffdb\ufffd"),
        ("\ud83d\ude00", "😀"),
    ],
)
def test_half_a_character_is_replaced(text, valid):
    assert valid_text(text) == valid


@each_row(
    ("text", "milliseconds"),
    [
        ("500ms", 500), ("2s", 2000), ("1.5s", 1500), ("1m", 60_000), ("5 min", 300_000),
        ("2S", 2000), ("1h", 3_600_000), ("0s", 0), ("0.0001s", 0), ("2500us", 2)],
)  # fmt: skip
def test_times_have_units(text, milliseconds):
    assert parse_duration(text) == milliseconds


@each_row(
    "text",
    ["", "2", "s", "-1s", "1d", "2 days", "1e3s", "inf", "1 2s", "0x1s", "9" * 40 + "s", "\u0661s"],
)
def test_anything_else_is_no_time(text):
    with pytest.raises(UsageError, match="is no time"):
        parse_duration(text)


@each_row(
    ("text", "size"),
    [("4096", 4096), ("10MB", 10**7), ("64KiB", 65536), ("1.5 GiB", 3 << 29), ("1k", 1000)],
)
def test_sizes_have_binary_and_decimal_units(text, size):
    assert parse_size(text) == size


@each_row(
    ("text", "picoseconds"),
    [("250us", 25 * 10**7), ("250 µs", 25 * 10**7), ("250μs", 25 * 10**7), ("2min", 12 * 10**13),
     ("1.5ms", 15 * 10**8), ("7 ps", 7)],
)  # fmt: skip
def test_one_way_of_writing_times_serves_all(text, picoseconds):
    assert parse_time(text) == picoseconds


@each_row(
    ("typed", "text"),
    [
        ("16GB", "16 GB"), ("16GiB", "16 GiB"), ("1.5GB", "1.5 GB"), ("80MiB", "80 MiB"),
        ("60000000", "60 MB"), ("12345678", "11.8 MiB"), ("512", "512 B"), ("1kB", "1 kB"),
        ("2.25TiB", "2.25 TiB"), ("0", "0 B"), ("1024 GB", "953.7 GiB"), ("1.07GB", "1.07 GB"),
    ],
)  # fmt: skip
def test_a_size_that_was_chosen_is_said_in_the_unit_that_was_typed(typed, text):
    assert chosen_size_text(parse_size(typed)) == text


@each_row("text", ["", "MB", "-1", "1e3", "10 bytes", "1.5.5MB", "\u0661GB"])
def test_anything_else_is_no_size(text):
    with pytest.raises(UsageError, match="is no size"):
        parse_size(text)


@each_row(
    ("given", "number"),
    [
        ("0", 0), ("-7", -7), ("9" * 18, 10**18 - 1), ("9" * 19, None), ("9" * 5000, None),
        ("--5", None), ("+5", None), ("", None), ("-", None), ("²", None), ("٣", None),
        ("5\n", None), (" 5", None), ("1_0", None),
    ],
)  # fmt: skip
def test_whole_numbers_are_digits_that_fit(given, number):
    assert whole_number(given) == number


def test_as_many_digits_as_are_wanted():
    assert whole_number("-" + "9" * 20, 20) == 1 - 10**20
    assert whole_number("9" * 21, 20) is None
