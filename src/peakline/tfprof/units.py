"""Numbers as tfprof prints them: decimal units, two digits."""

from __future__ import annotations


def format_number(value: int) -> str:
    """A count."""
    return _scaled(value, "", "k", "m", "b")


def format_time(micros: int) -> str:
    """Microseconds."""
    return _scaled(micros, "us", "ms", "sec")


def format_memory(size: int) -> str:
    """Bytes."""
    return _scaled(size, "B", "KB", "MB")


def _scaled(value: int, unit: str, *larger: str) -> str:
    if value < 1000:
        return f"{value}{unit}"
    power = 1
    while power < len(larger) and value >= 1000 ** (power + 1):
        power += 1
    return f"{value / 1000**power:.2f}{larger[power - 1]}"
