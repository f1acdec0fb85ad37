"""Sizes and times as people write them."""

import pytest

from peakline.cli.options import parse_duration, parse_size
from peakline.errors import UsageError


@pytest.mark.parametrize(
    ("text", "milliseconds"),
    [
        ("500ms", 500),
        ("2s", 2000),
        ("1.5s", 1500),
        ("1m", 60_000),
        ("5 min", 300_000),
        ("2S", 2000),
        ("1h", 3_600_000),
        ("0s", 0),
        ("0.0001s", 0),
    ],
)
def test_times_have_units(text, milliseconds):
    assert parse_duration(text) == milliseconds


@pytest.mark.parametrize(
    "text", ["", "2", "s", "-1s", "1d", "2 days", "1e3s", "inf", "1 2s", "0x1s", "9" * 40 + "s"]
)
def test_anything_else_is_no_time(text):
    with pytest.raises(UsageError, match="is no time"):
        parse_duration(text)


@pytest.mark.parametrize(
    ("text", "size"),
    [("4096", 4096), ("10MB", 10**7), ("64KiB", 65536), ("1.5 GiB", 3 << 29), ("1k", 1000)],
)
def test_sizes(text, size):
    assert parse_size(text) == size


@pytest.mark.parametrize("text", ["", "MB", "-1", "1e3", "10 bytes", "1.5.5MB"])
def test_anything_else_is_no_size(text):
    with pytest.raises(UsageError, match="is no size"):
        parse_size(text)
