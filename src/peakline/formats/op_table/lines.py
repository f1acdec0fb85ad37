"""Reads printed tables line by line: the columns are where the header says.

Sources: ``_build_table`` of ``torch/autograd/profiler_util.py`` in pytorch/pytorch, which has
written "Self CPU total %" and "Number of Calls" before 1.7; ``lightning/pytorch/profilers``
(``simple.py``, ``advanced.py``); ``Lib/pstats.py`` (``print_title``, ``print_line``) in
python/cpython.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from peakline.tables.columns import Columns
from peakline.tables.reader import Warnings
from peakline.tables.tables import columns_of_rows

ANNOUNCING = (
    b"Self CPU", b"CPU time avg", b"Mean duration (s)", b"tottime", b"Profile stats for",
    b" function calls ",
)  # fmt: skip
TABLES = frozenset(("printed_ops",))

_NUMBER = re.compile(r"-?\d{1,18}(?:\.\d{1,9})?(?:[eE][+-]?\d{1,2})?")
_TIME = {"s": 10**12, "ms": 10**9, "us": 10**6, "μs": 10**6, "ns": 10**3}
_SIZE = {"b": 1, "kb": 1 << 10, "mb": 1 << 20, "gb": 1 << 30, "tb": 1 << 40}
_FLOPS = {"": 1.0, "k": 1e3, "m": 1e6, "g": 1e9, "t": 1e12, "p": 1e15}
_MOST = 2**62
"""What is more is no time or size of a program."""
_COLUMN = re.compile(
    r"Overload Name|Name|Self [A-Za-z]\w{1,11}(?: total %| %| Mem)?"
    r"|[A-Z]\w{1,11} (?:total(?: %)?|Mem|time avg)|# of Calls|Number of Calls|Node ID"
    r"|Input Shapes|Source Location|Total \w?FLOPs"
)
_CELL = {
    "Name": r"(\S.*?)",
    "Overload Name": r"(?: (\S+))??",
    "Input Shapes": r" (\[.*)",
    "Source Location": r"(?: (.*?))?",
}
_RULE = re.compile(r"(?<!-)-{5,}(?: +-{4,}|$)")
_SIZES = r" (-?[\d.]{1,20} [KMGTkmgt]?[Bb])"
_LONGEST = 1 << 12
_MISSES = 20
"""So many lines that are no rows end a table whose end is not marked."""
_WHOLE = re.compile(r"Self ([A-Za-z0-9]{2,12}) time total: (\S{1,24})")
_STATS = re.compile(r"Profile stats for: (.{1,300}?)(?: rank: \d{1,6})?\s*$")
_CALLS = re.compile(r"\b\d{1,15} function calls.{0,60} in (\d[\d.]{0,20}) (?:CPU )?seconds")
_FUNCTION = re.compile(
    r"(\d{1,15})(?:/\d{1,15})? ([\d.]{3,20}) [\d.]{3,20} ([\d.]{3,20}) [\d.]{3,20} (\S.*)"
)


@dataclass(frozen=True)
class PrintedOp:
    """A line of a table; None is what the table has no column for, or what cannot be read."""

    source: str
    op: str
    part: str | None = None
    occurrences: int | None = None
    self_ps: int | None = None
    total_ps: int | None = None
    device: str | None = None
    device_self_ps: int | None = None
    device_total_ps: int | None = None
    self_bytes: int | None = None
    device_self_bytes: int | None = None
    flops: float | None = None
    input_shape: str | None = None
    whole_ps: int | None = None
    device_whole_ps: int | None = None


class PrintedTables:
    """The tables of one text: give `line` every line of it, in order."""

    __retained__ = "rows _header _part"

    tables = TABLES

    def __init__(self) -> None:
        self.rows: list[PrintedOp] = []
        self.skipped = 0
        """Lines within a table that could not be read."""
        self._header: list[str] | None = None
        self._row = re.compile("")
        self._misses = self._lead = 0
        self._begin = 0
        """The first row of the table that is being read."""
        self._part: str | None = None
        self._whole: int | None = None
        self._in_stats = False

    def line(self, line: str) -> bool:
        """Read one line; False when it belongs to no table."""
        if self._header is not None and self._within(self._header, line):
            return True
        if "Self CPU" in line and "CPU time avg" in line:
            header = _COLUMN.findall(line[:_LONGEST])
            return _is_whole(header) and self._begins(header)
        if "Mean duration (s)" in line and "|" in line:
            header = [cell.strip() for cell in line[:_LONGEST].strip().strip("|").split("|")]
            return "Action" in header and self._begins(header)
        if "Self " in line and (match := _WHOLE.search(line)):
            self._sum(match[1], _time(match[2]))
            return True
        return self._profile(line)

    def _begins(self, header: list[str]) -> bool:
        self._header, self._begin = header, len(self.rows)
        self._misses = self._lead = 0
        self._in_stats = False
        cells = (_CELL.get(name, _SIZES if name.endswith(" Mem") else r" (\S+)") for name in header)
        self._row = re.compile("".join(cells))
        return True

    def _within(self, header: Sequence[str], line: str) -> bool:
        """A line after a header."""
        if rule := _RULE.search(line):
            # A logger may put its own words before every line.
            self._lead = rule.start()
        stripped = line[self._lead :].strip()[:_LONGEST]
        if not stripped.strip("-= |"):
            # Two rules frame the header, a third ends the table.
            if len(self.rows) > self._begin and "Name" in header:
                self._header = None
            return True
        if "Action" in header:
            return self._action(header, stripped)
        match = self._row.fullmatch(" ".join(stripped.split()))
        cells = () if match is None else (cell or "" for cell in match.groups())
        row = _of_torch(dict(zip(header, cells, strict=False)))
        if row is not None:
            self.rows.append(row)
            self._misses = 0
            return True
        if _WHOLE.search(line):
            self._header = None
            return False
        if self._misses == _MISSES:
            # They were lines of the log.
            self._header = None
            self.skipped -= self._misses
            return False
        if "Source Location" not in header:
            # Else it is the next line of a stack.
            self.skipped += 1
            self._misses += 1
        return True

    def _action(self, header: Sequence[str], line: str) -> bool:
        """A line of Lightning's simple profiler."""
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if len(cells) != len(header):
            self._header = None
            return False
        cell = dict(zip(header, cells, strict=True))
        total = _seconds(cell.get("Total time (s)", ""))
        if cell["Action"] == "Total":
            self._whole = total
            return True
        self.rows.append(
            PrintedOp(
                "Lightning",
                cell["Action"],
                occurrences=_integer(cell.get("Num calls", "")),
                total_ps=total,
                whole_ps=self._whole,
            )
        )
        return True

    def _sum(self, device: str, whole: int | None) -> None:
        """The line below a table that says what all ops took, those not printed included."""
        for place in range(self._begin, len(self.rows)):
            row = self.rows[place]
            is_host = device == "CPU"
            self.rows[place] = (
                replace(row, whole_ps=whole) if is_host else replace(row, device_whole_ps=whole)
            )

    def _profile(self, line: str) -> bool:
        """Of cProfile, with Lightning's line before it."""
        if match := _STATS.search(line):
            self._part, self._whole, self._in_stats = match[1], None, False
            return True
        if "function calls" in line and (match := _CALLS.search(line)):
            self._whole = _seconds(match[1])
            return True
        if "tottime" in line and "cumtime" in line:
            self._in_stats = True
            return True
        if not self._in_stats:
            return False
        match = _FUNCTION.match(" ".join(line.split()))
        if match is None:
            self._in_stats = not line.strip()
            return self._in_stats
        calls, own, total, name = match.groups()
        self.rows.append(
            PrintedOp(
                "cProfile",
                name.strip(),
                part=self._part,
                occurrences=int(calls),
                self_ps=_seconds(own),
                total_ps=_seconds(total),
                whole_ps=self._whole,
            )
        )
        return True

    def read(self, _table: str) -> Columns:
        """The table ``printed_ops``."""
        return columns_of_rows("printed_ops", (tuple(vars(row).values()) for row in self.rows))

    def report(self, warnings: Warnings) -> None:
        """Count the lines that could not be read, and say where a table has no end."""
        text = "lines within a printed table that do not fit its columns"
        warnings.add("malformed_lines", text, self.skipped)
        is_open = self._header is not None and "Name" in self._header
        warnings.add("truncated", "the text ends within a printed table", is_open)


def _is_whole(header: Sequence[str]) -> bool:
    """Whether the columns are those of torch.profiler in its order: cells with blanks come first
    and last, so that there is one way to read a line.
    """
    calls = next((n for n, name in enumerate(header) if name.endswith(" of Calls")), 0)
    last = all(name in _CELL or name.endswith(("FLOPs", "ID")) for name in header[calls + 1 :])
    return bool(calls) and header[0] == "Name" and last and len(set(header)) == len(header)


def _of_torch(cell: Mapping[str, str]) -> PrintedOp | None:
    """A row of torch.profiler's table; None where it is none."""
    name = cell.get("Name", "")
    own = _time(cell.get("Self CPU") or cell.get("Self CPU total") or "")
    if not name or own is None:
        return None
    values: dict[str, Any] = {}
    device = _device(cell)
    if device:
        values = {
            "device": device.lower(),
            "device_self_ps": _time(cell[f"Self {device}"]),
            "device_total_ps": _time(cell.get(f"{device} total", "")),
            "device_self_bytes": _size(cell.get(f"Self {device} Mem", "")),
        }
    flops = next((key for key in cell if key.endswith("FLOPs")), "")
    return PrintedOp(
        "torch.profiler",
        name,
        occurrences=_integer(cell.get("# of Calls") or cell.get("Number of Calls") or ""),
        self_ps=own,
        total_ps=_time(cell.get("CPU total", "")),
        self_bytes=_size(cell.get("Self CPU Mem", "")),
        flops=_flops(cell[flops], flops) if flops else None,
        input_shape=cell.get("Input Shapes"),
        **values,
    )


def _device(cell: Mapping[str, str]) -> str:
    """What the columns of a device call it: ``CUDA`` of ``CUDA total``; empty without any."""
    for key in cell:
        device = key.removesuffix(" total")
        if device not in {key, "CPU", "Self CPU"} and f"Self {device}" in cell:
            return device
    return ""


def _time(text: str) -> int | None:
    return _scaled(text, _TIME)


def _size(text: str) -> int | None:
    return _scaled(text.lower(), _SIZE)


def _scaled(text: str, units: Mapping[str, int]) -> int | None:
    """``1.5ms`` or ``1.5 KB`` as a whole number; None for what is neither."""
    match = _NUMBER.match(text)
    if match is None or (unit := text[match.end() :].strip()) not in units:
        return None
    value = round(float(match[0]) * units[unit])
    return value if abs(value) < _MOST else None


def _seconds(text: str) -> int | None:
    return _scaled(f"{text.strip()}s", _TIME)


def _integer(text: str) -> int | None:
    return int(text) if text.isascii() and text.isdigit() and len(text) < 16 else None


def _flops(text: str, header: str) -> float | None:
    """``1.819`` below ``Total MFLOPs``; None for ``--``."""
    prefix = header.removeprefix("Total ").removesuffix("FLOPs").lower()
    scale, match = _FLOPS.get(prefix), _NUMBER.fullmatch(text)
    return None if scale is None or match is None else float(match[0]) * scale
