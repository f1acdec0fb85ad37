"""Many lines of one form as text, written at once into memory of just their size.

Large texts are bound by the memory they touch: each byte is written once, where it stays, and no
line is ever an object of its own.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Iterable, Sequence
from copy import copy
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate

import numpy as np

from peakline.arrays import AnyArray, Int64Array, UInt8Array
from peakline.kernels.text_lines import measure_lines, write_lines
from peakline.kernels.viewer_layout import (
    MICROSECONDS,
    MICROSECONDS_UNLESS_ZERO,
    NUMBER,
    SIGNED_UNLESS_ZERO,
    TEXT,
    UNSIGNED_UNLESS_ZERO,
)
from peakline.text import ROW_BYTES
from peakline.wire import on_all_cores

_ROWS = 1 << 13
"""Lines that a thread writes at a time."""


@dataclass(frozen=True, eq=False)
class Gap:
    """What differs from line to line: a value per line between two fixed texts.

    The value is a decimal number or, where there are ``texts``, the one of that place; with
    ``is_picoseconds`` it is written in microseconds with six decimals. With ``unless_zero`` a line
    whose number is 0 has neither value nor fixed texts here. All texts are ASCII.
    """

    before: str
    values: AnyArray
    after: str = ""
    texts: Sequence[str] | None = None
    unless_zero: bool = False
    is_picoseconds: bool = False

    @property
    def kind(self) -> int:
        """What the kernels call it."""
        if self.texts is not None:
            return TEXT
        if self.is_picoseconds:
            return MICROSECONDS_UNLESS_ZERO if self.unless_zero else MICROSECONDS
        if not self.unless_zero:
            return NUMBER
        return UNSIGNED_UNLESS_ZERO if self.values.dtype.kind == "u" else SIGNED_UNLESS_ZERO


class Lines:
    """``rows`` lines, each the gaps one after the other."""

    def __init__(self, rows: int, gaps: Sequence[Gap]) -> None:
        self._values = [gap.values for gap in gaps]
        pieces: list[str] = []
        kinds = []
        for gap in gaps:
            kinds.append((gap.kind, len(pieces)))
            pieces += [gap.before, gap.after, *(gap.texts or ())]
        self._gaps = np.array(kinds, np.int64)
        self._text = np.frombuffer("".join(pieces).encode("ascii"), np.uint8)
        self._bounds = np.array([0, *accumulate(map(len, pieces))], np.int64)
        self.rows = rows

    @property
    def source_bytes(self) -> int:
        """What the lines are made of, about: each text once, and something for each line."""
        return int(self._text.size) + ROW_BYTES * self.rows

    def part(self, rows: slice) -> Lines:
        """Some of the lines, measured and written by themselves; the fixed texts are shared."""
        chosen = copy(self)
        chosen.__dict__.pop("lengths", None)
        chosen._values = [values[rows] for values in self._values]  # noqa: SLF001 (of its class)
        chosen.rows = len(range(*rows.indices(self.rows)))
        return chosen

    @cached_property
    def lengths(self) -> Int64Array:
        """Bytes per line."""
        lengths: Int64Array = np.zeros(self.rows, np.int64)

        def measure(rows: slice) -> None:
            measure_lines(self._values_of(rows), self._gaps, self._bounds, lengths[rows])

        _in_parts(self.rows, measure)
        return lengths

    def write(self, out: UInt8Array, starts: Int64Array) -> None:
        """Write every line into ``out``, from its entry in ``starts`` on."""

        def write(rows: slice) -> None:
            values = self._values_of(rows)
            write_lines(values, self._gaps, self._text, self._bounds, starts[rows], out)

        _in_parts(self.rows, write)

    def _values_of(self, rows: slice) -> Int64Array:
        result = np.empty((len(self._values), rows.stop - rows.start), np.int64)
        for values, row in zip(self._values, result, strict=True):
            # Of numbers without a sign the bits.
            row[:] = values[rows]
        return result


def _in_parts(rows: int, do: Callable[[slice], None]) -> None:
    """Do it for all rows, on the cores there are."""
    on_all_cores(do, [slice(row, min(row + _ROWS, rows)) for row in range(0, rows, _ROWS)])


def put_together(
    size: int, head: bytes, lines: Iterable[tuple[Lines, Int64Array]], tail: bytes
) -> bytes:
    """A text of ``size`` bytes: the head, all lines from where they start on, and the tail."""
    # Its view is writable, and what it holds is given away as it is.
    content = io.BytesIO(bytes(size))
    with content.getbuffer() as view:
        view[: len(head)] = head
        view[size - len(tail) :] = tail
        for several, starts in lines:
            several.write(np.frombuffer(view, np.uint8), starts)
    return content.getvalue()
