"""Sizes, times and counts as people write and read them."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import lru_cache, wraps
from typing import TypeVar, cast

from peakline.errors import InputError, UsageError

_Function = TypeVar("_Function", bound=Callable[..., object])

_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*([KMGTPE]?)(i?)B?", re.IGNORECASE | re.ASCII)
_TIME = re.compile(
    r"(\d{1,15}(?:\.\d{1,12})?)\s*(ps|ns|us|µs|μs|ms|s|min|m|h)", re.ASCII | re.IGNORECASE
)
_UNIT_PS = {
    "ps": 1, "ns": 10**3, "us": 10**6, "µs": 10**6, "μs": 10**6, "ms": 10**9, "s": 10**12,
    "min": 60 * 10**12, "m": 60 * 10**12, "h": 3600 * 10**12,
}  # fmt: skip
"""The two letters that look like a micro sign are both typed."""
_LONGEST_PS = 2**63 - 1
_LONG_TEXT, _FEW_LONG = 1000, 8
_FREE_BYTES, _MOST_TIMES, ROW_BYTES = 64 << 20, 100, 16
"""An answer may be that long, and so many times as long as its distinct texts, and so many bytes
for each row, are together.
"""


def parse_size(text: str) -> int:
    """A size such as 10MB, 64KiB, 1.5GiB or 4096 in bytes; UsageError for anything else."""
    match = _SIZE.fullmatch(text.strip())
    if match is None:
        raise UsageError(f"{text!r} is no size; write 10MB, 64KiB, 1.5GiB or a number of bytes")
    number, prefix, binary = match.groups()
    power = " KMGTPE".index((prefix or " ").upper())
    from decimal import Decimal

    size: Decimal = Decimal(number) * (1024 if binary else 1000) ** power
    return int(size)


def parse_duration(text: str) -> int:
    """A time such as 500ms, 2s, 1.5min or 1h in milliseconds; UsageError for anything else."""
    result = _picoseconds(text)
    if result is None:
        raise UsageError(f"{text!r} is no time; write 500ms, 2s, 5min or 1h")
    return result // _UNIT_PS["ms"]


def parse_time(text: str) -> int:
    """A time such as 12.5ms, 1.2s or 827750630000ps in picoseconds; UsageError for anything else.

    It counts from the start of the profile, as all times that Peakline shows.
    """
    result = _picoseconds(text)
    if result is None:
        raise UsageError(f"{text!r:.80} is no time; write 12.5ms, 1.2s or 827750630000ps")
    return min(result, _LONGEST_PS)


def _picoseconds(text: str) -> int | None:
    """The time that a text says; None for what is none."""
    match = _TIME.fullmatch(text.strip())
    if match is None:
        return None
    from decimal import Decimal

    return int(Decimal(match[1]) * _UNIT_PS[match[2].lower()])


def whole_number(text: str, digits: int = 18) -> int | None:
    """The whole number that a text of a file is, of at most so many digits: those of 18 fit into 64
    bits. None for any other text.
    """
    own = text.removeprefix("-")
    return int(text) if len(own) <= digits and own.isascii() and own.isdecimal() else None


def size_text(size: float) -> str:
    """A size with a binary unit and one decimal: ``73.0 MiB``; bytes below 1 KiB."""
    if abs(size) < 1024:
        return f"{size:.0f} B"
    value, unit = size / 1024, "KiB"
    for larger in ("MiB", "GiB", "TiB", "PiB", "EiB"):
        if round(abs(value), 1) < 1024:
            break
        value, unit = value / 1024, larger
    return f"{value:.1f} {unit}"


def chosen_size_text(size: int) -> str:
    """A size that somebody chose, in the unit in which it is a short number: ``16 GB``,
    ``1.5 GiB``; as `size_text` where it is in none.
    """
    for base, infix in ((1024, "i"), (1000, "")):
        power = 0
        while power < 6 and abs(size) >= base ** (power + 1):
            power += 1
        if power and not size * 100 % base**power:
            number = f"{size / base**power:.2f}".rstrip("0").rstrip(".")
            return f"{number} {'KMGTPE'[power - 1] if infix or power > 1 else 'k'}{infix}B"
    return size_text(size)


def number_text(number: float) -> str:
    """A number with a decimal prefix and three digits: ``186 M``, ``1.20 T``; whole ones below
    1000.
    """
    if abs(number) < 1000:
        return f"{number:.0f}"
    number, prefix = number / 1000, "k"
    for larger in "MGTPEZY":
        if abs(number) < 999.5:
            break
        number, prefix = number / 1000, larger
    decimals = 2 if abs(number) < 9.995 else 1 if abs(number) < 99.95 else 0
    return f"{number:.{decimals}f} {prefix}"


def share_text(part: float, whole: float) -> str:
    """``part`` of ``whole`` in percent: ``12.3%``, ``less than 0.1%``."""
    share = part / whole
    return "less than 0.1%" if 0 < share < 0.0005 else f"{share:.1%}"


def shares_text(parts: Sequence[int], decimals: int = 1) -> list[str]:
    """What share of their sum each of ``parts`` is, in percent: ``62.5%``.

    They add up to 100 as printed: each is rounded down, and those that lose most by that are
    rounded up instead (the largest remainder method). All are 0 where the sum is not positive.
    """
    whole, units = sum(parts), 100 * 10**decimals
    if whole <= 0:
        return [f"{0:.{decimals}%}"] * len(parts)
    result = [part * units // whole for part in parts]
    order = sorted(range(len(parts)), key=lambda k: -(parts[k] * units % whole))
    for k in order[: units - sum(result)]:
        result[k] += 1
    return [f"{share / 10**decimals:.{decimals}f}%" for share in result]


def time_text(picoseconds: int) -> str:
    """A time in milliseconds: ``32.773 ms``; from one second on in seconds: ``1.204 s``.

    Below a microsecond in nanoseconds, exactly: ``15.5 ns``, ``0 ns``.
    """
    if abs(picoseconds) < 10**6:
        return f"{picoseconds / 10**3:.3f}".rstrip("0").rstrip(".") + " ns"
    if abs(picoseconds) < 10**12:
        return f"{picoseconds / 10**9:.3f} ms"
    return f"{picoseconds / 10**12:.3f} s"


def short_time_text(picoseconds: int) -> str:
    """As `time_text`, but for times below 0.1 ms, which have digits in microseconds."""
    if 10**6 <= abs(picoseconds) < 10**8:
        return f"{picoseconds / 10**6:.3f} us"
    return time_text(picoseconds)


def source_text(file: str, line: int | None) -> str:
    """File and line, the file without its folders; empty where they are not known."""
    name = file.replace("\\", "/").rpartition("/")[2]
    return f"{name}:{line}" if name and line else name


def allocator_text(name: str | None) -> str:
    """An allocator's name, also where it has none."""
    return name or "(unnamed allocator)"


def counted(number: int, what: str) -> str:
    """``3 buffers``, ``1 buffer``."""
    return f"{number:,} {what}{'' if number == 1 else 's'}"


def ordinal(number: int) -> str:
    """``1st``, ``12th``."""
    ending = {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number}{'th' if 10 <= number % 100 <= 20 else ending}"


_DIGITS = "0123456789"


def population_of(name: str) -> str:
    """What a step is called without its number: ``train`` of ``train 170``."""
    return name.rstrip(f" #;:_-{_DIGITS}") if name.endswith(tuple(_DIGITS)) else name


def remembered(most: int) -> Callable[[_Function], _Function]:
    """`lru_cache` of so many results, for functions that take texts of files by position.

    What it holds outlives the profile: of results for long texts, as no program has many, only few.
    """

    def decorated(function: _Function) -> _Function:
        short, long = lru_cache(most)(function), lru_cache(_FEW_LONG)(function)

        @wraps(function)
        def found(*given: object) -> object:
            length = sum(len(one) for one in given if isinstance(one, str))
            return (long if length > _LONG_TEXT else short)(*given)

        return cast("_Function", found)

    return decorated


def check_length(size: int, source_bytes: int) -> None:
    """Raise InputError where an answer of ``size`` bytes that is made of so many says the same very
    long texts too often: a name of a megabyte for each of a million events fills any memory.
    """
    most = _FREE_BYTES + _MOST_TIMES * source_bytes
    if size > most:
        raise InputError(
            f"the answer would be longer than {size_text(most)}, as very long texts stand in very "
            "many of its rows; peakline sql can leave them out"
        )


def check_repeated(texts: Sequence[str]) -> None:
    """`check_length` of an answer in which all of ``texts`` stand, a row for each."""
    distinct = sum(map(len, set(texts)))
    check_length(sum(map(len, texts)), distinct + ROW_BYTES * len(texts))


_ADDRESS = re.compile(r" at 0x[0-9a-fA-F]{1,16}(?=>)")


def without_address(name: str) -> str:
    """The name of a built-in function without the address of its object, another in each process.

    >>> without_address("<built-in method size of Tensor object at 0x7f3b019a7000>")
    '<built-in method size of Tensor object>'
    """
    return _ADDRESS.sub("", name)


def spans_of(numbers: Sequence[int]) -> list[str]:
    """Ascending numbers as texts, what follows each other as one.

    >>> spans_of([0, 1, 2, 3, 7])
    ['0-3', '7']
    """
    spans: list[list[int]] = []
    for number in numbers:
        if spans and number == spans[-1][1] + 1:
            spans[-1][1] = number
        else:
            spans.append([number, number])
    return [f"{first}-{last}" if last > first else str(first) for first, last in spans]
