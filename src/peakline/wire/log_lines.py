"""`MemoryLogScanner`: the records of a memory log among the lines of any text log.

A runtime that logs its memory writes lines that hold, somewhere, ``__LOG_MEMORY__``, the name of a
message of ``tensorflow/core/framework/log_memory.proto``, and that message in text format.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from peakline.kernels import text_layout as L
from peakline.kernels.log_scan import find_byte, rfind_byte, scan_log
from peakline.wire.decode import as_buffer
from peakline.wire.tables import Buffer
from peakline.wire.text import grown, new_stack
from peakline.wire.text_tables import LINE_CLASSES, make_tables

MOST_LINE_BYTES = 4 << 20
"""A longer line is no line of a log."""

_ROOM = 1 << 20
_NEWLINE = 10

_INNER = np.frombuffer(b"LOG_MEMORY", np.uint8)
_SHIFTS = np.full(256, _INNER.size, np.uint8)
_SHIFTS[_INNER] = np.arange(_INNER.size - 1, -1, -1)
"""For the search of the records' token (`peakline.kernels.log_scan`)."""


@dataclass(frozen=True)
class LogCounts:
    """What was found in a log, and what of it is not in the output.

    ``records`` are those written, ``with_time`` of them have a time, and ``undated`` of these one
    without a year. ``cut`` records end with their line or where another one begins, before they
    are complete; ``malformed`` ones break the text format otherwise; ``unknown_messages`` have a
    name that the schema does not know. ``unknown_fields`` (the first is ``first_unknown_field``)
    and ``redacted`` values are left out of their records. ``too_long`` lines were given up.
    """

    records: int = 0
    with_time: int = 0
    undated: int = 0
    cut: int = 0
    malformed: int = 0
    unknown_messages: int = 0
    unknown_fields: int = 0
    first_unknown_field: str = ""
    redacted: int = 0
    too_long: int = 0


class MemoryLogScanner:
    """Turns a text log, fed in blocks of any size, into the bytes of one ``peakline.MemoryLog``.

    ``time_ns`` is what the line's prefix says: nanoseconds since the epoch where it has a date
    (clock text is taken for UTC unless it names a zone), since the beginning of the year (a leap
    year) where the date has no year, since midnight where there is no date, and absent where
    there is no time. ``thread_id`` is there where the prefix names the thread.
    """

    def __init__(self) -> None:
        from peakline import schema

        record = schema.shape("peakline.MemoryLogRecord")
        kinds = {f.message_type.name: f.name for f in record.fields if f.message_type is not None}
        self._tables = make_tables(record, {record.full_name: kinds})
        self._state = np.zeros(L.S_WIDTH, np.int64)
        self._stack, self._seen = new_stack(self._tables)
        self._fixes = np.zeros(L.X_WIDTH, np.int64)
        self._counts = np.zeros(L.C_WIDTH, np.int64)
        self._out = np.empty(_ROOM, np.uint8)
        self._carry = bytearray()
        self._skipping = False
        self._too_long = 0
        self._first_unknown = ""

    @property
    def counts(self) -> LogCounts:
        """The counts of everything fed so far; an unfinished line is not in them."""
        counts, state = self._counts.tolist(), self._state.tolist()
        return LogCounts(
            counts[L.C_RECORDS], counts[L.C_WITH_TIME], counts[L.C_UNDATED], counts[L.C_CUT],
            counts[L.C_MALFORMED], counts[L.C_UNKNOWN_MESSAGES], state[L.S_UNKNOWN],
            self._first_unknown, state[L.S_REDACTED], self._too_long,
        )  # fmt: skip

    def feed(self, block: Buffer | bytes) -> Buffer:
        """The records of the lines that end in ``block``; valid until the next call."""
        self._counts[L.C_OUT] = 0
        text = as_buffer(block)
        for start in range(0, text.size, MOST_LINE_BYTES):
            self._feed(text[start : start + MOST_LINE_BYTES])
        return self._out[: self._counts[L.C_OUT]]

    def finish(self) -> Buffer:
        """The records of a last line that does not end; valid until the next call."""
        self._counts[L.C_OUT] = 0
        self._scan(as_buffer(bytes(self._carry)))
        self._carry.clear()
        self._skipping = False
        return self._out[: self._counts[L.C_OUT]]

    def _feed(self, text: Buffer) -> None:
        begin = 0
        if self._carry or self._skipping:
            begin = min(find_byte(text, 0, text.size, _NEWLINE) + 1, text.size)
            if not self._skipping:
                self._carry += text[:begin].tobytes()
            ended = text[begin - 1] == _NEWLINE
            if len(self._carry) > MOST_LINE_BYTES:
                self._too_long += 1
                self._carry.clear()
                self._skipping = True
            if not ended:
                return
            self._scan(as_buffer(bytes(self._carry)))
            self._carry.clear()
            self._skipping = False
        end = rfind_byte(text, text.size, _NEWLINE) + 1
        if end > begin:
            self._scan(text[begin:end])
        self._carry += text[max(begin, end) :].tobytes()

    def _scan(self, lines: Buffer) -> None:
        before = int(self._state[L.S_UNKNOWN])
        self._counts[[L.C_POSITION, L.C_FLOOR]] = 0
        while not scan_log(
            lines, lines.size, LINE_CLASSES, _SHIFTS,
            self._tables.fields, self._tables.hashes, self._tables.names,
            self._state, self._stack, self._seen, self._out, self._fixes, self._counts,
            np.empty(3, np.int64),
        ):  # fmt: skip
            self._out = grown(self._out, int(self._counts[L.C_OUT]))
        if self._state[L.S_UNKNOWN] and not before:
            at, length = self._state[[L.S_UNKNOWN_AT, L.S_UNKNOWN_LENGTH]].tolist()
            self._first_unknown = lines[at : at + length].tobytes().decode("utf-8", "replace")
