"""Limits as people write them, and figures in the units of their limits."""

import pytest
from tests.each_row import each_row

from peakline.check.units import (
    BYTES,
    PS,
    SHARE,
    Unit,
    part_amount,
    share_amount,
    share_or_time,
    size_amount,
    time_amount,
)
from peakline.errors import UsageError


@each_row(
    ("parse", "text", "measured", "shown", "limit"),
    [
        (size_amount, "10GB", 12.34e9, "12.3 GB", "10.0 GB"),
        (size_amount, "10GB", 12.34e6, "12.3 MB", "10.0 GB"),
        (size_amount, "10GB", 512, "512 B", "10.0 GB"),
        (size_amount, "10gb", 12.34e9, "12.3 GB", "10.0 GB"),
        (size_amount, "10GiB", 3 * 2**30, "3.0 GiB", "10.0 GiB"),
        (size_amount, "1.25 GiB", 2**30, "1.00 GiB", "1.25 GiB"),
        (size_amount, "10GiB", 10 * 2**30 + 2**20, "10.001 GiB", "10.000 GiB"),
        (size_amount, "64k", 1000, "1.0 kB", "64.0 kB"),
        (size_amount, "4096", 2048, "2.0 KiB", "4.0 KiB"),
        (time_amount, "150ms", 12_400_000_000, "12.400 ms", "150 ms"),
        (time_amount, "1.5 s", 2 * 10**12, "2.000 s", "1.5 s"),
        (time_amount, "1s", 10**9, "1.000 ms", "1 s"),
        (share_amount, "10%", 0.123, "12.3%", "10.0%"),
        (share_amount, "0.1", 0.1234, "0.123", "0.1"),
        (share_or_time, "20ms", 10**10, "10.000 ms", "20 ms"),
        (share_or_time, "5%", 0.01, "1.0%", "5.0%"),
        (share_or_time, "0", 0.0, "0.000", "0"),
    ],
)
def test_a_figure_is_shown_in_the_unit_of_its_limit(parse, text, measured, shown, limit):
    amount = parse(text)
    assert amount.unit.pair(measured, amount.value) == (shown, limit)


@each_row(
    ("parse", "text", "message"),
    [
        (size_amount, "10 apples", "is no size"),
        (time_amount, "150", "is no time"),
        (time_amount, "10%", "is no time"),
        (share_amount, "5", "is no share"),
        (part_amount, "130%", "more than the whole"),
        (share_or_time, "5", "or a time such as 20ms"),
        (share_or_time, "5 GB", "is no time"),
    ],
)
def test_what_is_no_amount_is_refused(parse, text, message):
    with pytest.raises(UsageError, match=message):
        parse(text)


@each_row(
    ("measure", "value", "text"),
    [(BYTES, 2**20, "1.0 MiB"), (PS, 10**9, "1.000 ms"), (SHARE, 0.5, "0")],
)
def test_without_a_unit_a_figure_has_the_usual_one(measure, value, text):
    assert Unit(measure).text(value) == text
