"""What a limit may be: a size, a time, a share; and the unit in which it was written.

What is measured is shown in the unit of its limit: who writes ``10GB`` does not want to read GiB.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from peakline.errors import UsageError
from peakline.text import parse_size, parse_time, size_text, time_text

_SHARE = re.compile(r"(\d{1,9}(?:\.\d{1,9})?|\.\d{1,9})\s*(%?)", re.ASCII)
_PARTS = re.compile(r"(\d*)(?:\.(\d+))?\s*([a-z%]*)", re.IGNORECASE | re.ASCII)
_TIMES = {"ps": 1, "ns": 10**3, "us": 10**6, "ms": 10**9, "s": 10**12}
_MOST_DECIMALS = 6
BYTES, PS, SHARE = "bytes", "ps", "share"
"""What a figure is measured in."""


@dataclass(frozen=True)
class Unit:
    """``name`` as a person wrote it (``GiB``, ``GB``, ``ms``, ``%``), empty without one; ``size``
    is that of one in bytes, ps or shares; ``decimals`` are those of the number that was written.
    """

    measure: str
    name: str = ""
    size: float = 1
    decimals: int = 0

    def text(self, value: float, decimals: int | None = None) -> str:
        """``value``, of this measure, in this unit; what is far below one unit in a smaller one."""
        if self.measure == SHARE:
            if self.name:
                return f"{value:.{max(self.decimals, decimals or 1)}%}"
            return f"{value:.{max(self.decimals, decimals or 0)}f}"
        if not self.name:
            return size_text(value) if self.measure == BYTES else time_text(round(value))
        if self.measure == PS:
            if 0 < abs(value) < self.size / 10:
                return time_text(round(value))
            digits = self.decimals if decimals is None else max(self.decimals, decimals)
            return f"{value / self.size:.{digits}f} {self.name}"
        if abs(value) < self.size and value:
            return size_text(value) if "i" in self.name else _decimal_size(value)
        return f"{value / self.size:.{max(self.decimals, decimals or 1)}f} {self.name}"

    def written(self, value: float) -> str:
        """``value`` as a person wrote it, for `size_amount` and its like: ``1.5GiB``, ``5%``."""
        if not self.name:
            return f"{value:.{self.decimals}f}"
        return f"{value / self.size:.{self.decimals}f}{self.name}"

    def pair(self, measured: float, limit: float) -> tuple[str, str]:
        """Both as texts, which differ where the values do."""
        decimals = 3 if self.measure == PS or (self.measure == SHARE and not self.name) else None
        first, second = self.text(measured, decimals), self.text(limit)
        more = 1
        while first == second and measured != limit and more < _MOST_DECIMALS and self.name:
            more += 1
            first, second = self.text(measured, more), self.text(limit, more)
        return first, second


@dataclass(frozen=True)
class Amount:
    """What a limit allows: bytes, ps or a share from 0 to 1, in the unit it was written in."""

    value: float
    unit: Unit


def size_amount(text: str) -> Amount:
    """``10GB``, ``64KiB`` or bytes; UsageError for anything else."""
    value = parse_size(text)
    decimals, name = _written(text)
    prefix = name.upper().removesuffix("B").removesuffix("I")
    if not prefix:
        return Amount(value, Unit(BYTES))
    binary = "I" in name.upper()
    size = (1024 if binary else 1000) ** " KMGTPE".index(prefix)
    name = f"{'k' if prefix == 'K' and not binary else prefix}{'i' if binary else ''}B"
    return Amount(value, Unit(BYTES, name, size, decimals))


def time_amount(text: str) -> Amount:
    """``150ms`` or ``1.2s``; UsageError for anything else."""
    value = parse_time(text)
    decimals, name = _written(text)
    return Amount(value, Unit(PS, name.lower(), _TIMES[name.lower()], decimals))


def share_amount(text: str) -> Amount:
    """``5%`` or ``0.05``; UsageError for anything else, and for 5 without a sign."""
    match = _SHARE.fullmatch(text.strip())
    share = 2.0 if match is None else float(match[1]) / (100 if match[2] else 1)
    if match is None or (not match[2] and share > 1):
        raise UsageError(f"{text!r} is no share; write 5% or 0.05")
    return Amount(share, Unit(SHARE, match[2], 0.01 if match[2] else 1, _written(text)[0]))


def part_amount(text: str) -> Amount:
    """A share of something, at most 100%; else as `share_amount`."""
    amount = share_amount(text)
    if amount.value > 1:
        raise UsageError(f"{text!r} is more than the whole; write at most 100%")
    return amount


def share_or_time(text: str) -> Amount:
    """``5%``, ``0.05`` or ``20ms``; UsageError for anything else."""
    if _written(text)[1] in {"", "%"}:
        try:
            return part_amount(text)
        except UsageError as error:
            raise UsageError(f"{error}, or a time such as 20ms") from None
    return time_amount(text)


def _written(text: str) -> tuple[int, str]:
    """How many decimals a number has, and what stands behind it."""
    match = _PARTS.fullmatch(text.strip())
    return (0, "") if match is None else (len(match[2] or ""), match[3])


def _decimal_size(value: float) -> str:
    """A size below a decimal unit, in the next smaller one."""
    for name, size in (("PB", 10**15), ("TB", 10**12), ("GB", 10**9), ("MB", 10**6), ("kB", 10**3)):
        if abs(value) >= size:
            return f"{value / size:.1f} {name}"
    return f"{value:.0f} B"
