"""XLA's memory usage reports, of which two forms exist, as what they say of an assignment.

``BufferAssignment::MemoryUsageReport`` in openxla/xla (``xla/service/buffer_assignment.cc``) groups
the values of each allocation by offset, without their names. Newer versions leave out which
allocation it is, and begin with the memory space. Sizes are rounded for people; where the shape of
a value says what was rounded it is taken from there.
"""

from __future__ import annotations

import re

from peakline.deadline import checked
from peakline.errors import InputError
from peakline.formats.hlo_text.assignment import Allocation, Assigned, Assignment, described
from peakline.formats.hlo_text.scan import COMMENT, items
from peakline.formats.hlo_text.shapes import element_types
from peakline.tables.reader import Warnings

_SIZE = rb"(\d{1,18}(?:\.\d{1,18})?)(B|[KMGTPE]iB)"
_ROW = re.compile(
    rb"\s*"
    + _SIZE
    + rb"\(\s*-?(?:\d+|nan|inf)%\);\s*"
    + _SIZE
    + rb";\s*(\d{1,18});\s*(\d{1,18}); (.*)"
)
_ALLOCATION = re.compile(rb"allocation (\d{1,18}): size " + _SIZE + rb"(.*):\s*")
_SPACE = re.compile(rb"Memory Space: .*\(color=(-?\d{1,18})\)\s*")
_TOTAL = re.compile(rb"Total bytes(?: used)?: (\d{1,18})\b")
_HEADER = re.compile(rb"\s*cumulative_size;\s+size;\s+offset;.*")
_REST = re.compile(rb"\s*The rest (\d{1,18}) .*not shown.*")
_WITH_VALUES = b"Allocations sorted by size with their values:"
_COUNT = re.compile("(\\d{1,9})\u00d7(.*)".encode())
_UNITS = {b"B": 1} | {b"%ciB" % letter: 1 << 10 * (at + 1) for at, letter in enumerate(b"KMGTPE")}
_BITS = re.compile(rb"[a-z]+(\d+)")
_FREE_VALUES, _TEXT_OF_VALUE = 20_000, 4
"""A few characters can stand for any number of values. A report has at most so many, and one more
for each so many of its characters.
"""


def read_report(text: bytes, warnings: Warnings) -> Assignment:
    """What a ``-memory-usage-report.txt`` says; values are called ``value.N`` in its order.

    Counts lines that are not understood, what the report leaves out, sizes that remain rounded, and
    allocations whose kind it does not say. Raises InputError where it has no allocation.
    """
    return _Report(warnings).read(text)


class _Report:
    def __init__(self, warnings: Warnings) -> None:
        self._warnings = warnings
        self._found = Assignment()
        self._values = self._rounded = self._unsaid = self._strange = self._total = 0
        self._color, self._most = 0, _FREE_VALUES
        self._current: Allocation | None = None
        self._size = b""

    def read(self, text: bytes) -> Assignment:
        self._most = _FREE_VALUES + len(text) // _TEXT_OF_VALUE
        at = text.find(_WITH_VALUES)
        self._note_total(text)
        lines = (text if at < 0 else text[at + len(_WITH_VALUES) :]).split(b"\n")
        for line in checked(lines, 4096):
            self._line(line)
        self._finish_allocation()
        allocations = self._found.allocations
        if not allocations:
            raise InputError("no allocation in the text of a memory usage report")
        warnings = self._warnings
        warnings.add("hlo_lines", "lines of a report that are not understood", self._strange)
        warnings.add("hlo_rounded", "sizes that the report has only rounded", self._rounded)
        warnings.add(
            "hlo_unsaid", "allocations of contents that the report does not say", self._unsaid
        )
        total = sum(one.size for one in allocations)
        if self._total and total != self._total:
            warnings.add(
                "hlo_total", f"the allocations make {total} bytes, the report says {self._total}"
            )
        return self._found

    def _note_total(self, text: bytes) -> None:
        self._total = sum(
            int(result[1]) for result in re.finditer(rb"^" + _TOTAL.pattern, text, re.MULTILINE)
        )

    def _line(self, line: bytes) -> None:
        stripped = line.strip()
        if not stripped or stripped.startswith((b"---", b"Total bytes")):
            return
        if (row := _ROW.fullmatch(line)) is not None:
            self._row(row)
        elif (space := _SPACE.fullmatch(line)) is not None:
            self._finish_allocation()
            self._color = int(space[1])
        elif (named := _ALLOCATION.fullmatch(stripped)) is not None:
            self._finish_allocation()
            self._current = described(int(named[1]), 0, named[4])
            self._size = named[2] + named[3]
        elif _HEADER.fullmatch(line) is not None:
            if self._current is None or not self._size:
                # Nothing but its table says that another allocation begins.
                self._finish_allocation()
                self._current = Allocation(len(self._found.allocations), 0, self._color)
                self._unsaid += 1
        elif (rest := _REST.fullmatch(line)) is not None:
            self._warnings.add("hlo_left_out", "values that the report leaves out", int(rest[1]))
        else:
            self._strange += 1

    def _row(self, row: re.Match[bytes]) -> None:
        if self._current is None:
            self._strange += 1
            return
        text = row[3] + row[4]
        offset, shapes = int(row[5]), COMMENT.sub(b"", row[7])
        result: list[bytes] = []
        for one in items(shapes):
            many = _COUNT.fullmatch(one)
            count, shape = (int(many[1]), many[2]) if many else (1, one)
            if self._values + len(result) + count > self._most:
                raise InputError(f"more than {self._most:,} values in so short a report")
            result += [shape] * count
        sizes = [_bytes_of(shape) for shape in result]
        # The size is that of the largest value.
        largest = max((size for size in sizes if size is not None), default=None)
        if largest is None or size_text(largest) != text:
            self._rounded += row[4] != b"B"
            largest = _bytes_in(row[3], row[4])
        for shape, size in zip(result, sizes, strict=True):
            number = self._values
            self._values += 1
            taken = largest if size is None else min(size, largest)
            name, color = b"value.%d" % number, self._current.color
            self._current.values.append(Assigned(number, name, (), color, taken, offset, shape))
        self._current.size = max(self._current.size, offset + largest)

    def _finish_allocation(self) -> None:
        """End the allocation; one whose values are not listed has the size that is written."""
        one, self._current = self._current, None
        if one is None:
            return
        written = re.fullmatch(_SIZE, self._size)
        if written is not None and size_text(one.size) != self._size:
            self._rounded += written[2] != b"B"
            one.size = _bytes_in(written[1], written[2])
        self._size = b""
        self._found.allocations.append(one)


def _bytes_in(number: bytes, unit: bytes) -> int:
    return min(round(float(number) * _UNITS[unit]), 2**62)


def size_text(size: int) -> bytes:
    """A size as ``HumanReadableNumBytes`` writes it (``xla/tsl/platform/numbers.cc``)."""
    if size < 1 << 10:
        return b"%dB" % size
    for unit, step in _UNITS.items():
        if step > 1 and (size < step << 10 or unit == b"EiB"):
            return b"%.*f%b" % (1 if unit == b"KiB" else 2, size / step, unit)
    return b""


def _bytes_of(shape: bytes) -> int | None:
    """The bytes of a value without padding: its elements, or a tuple's pointers."""
    if shape.startswith(b"("):
        return 8 * len(list(items(shape[1:-1])))
    kind, _, rest = shape.partition(b"[")
    if kind not in element_types():
        return None
    bits = _BITS.match(kind)
    size = max(int(bits[1]) // 8, 1) if bits else int(kind == b"pred")
    for one in items(rest.partition(b"]")[0]):
        digits = one.lstrip(b"<=")
        if not digits.isdigit() or len(digits) > 18:
            return None
        size *= int(digits)
    return size if size < 2**62 else None
