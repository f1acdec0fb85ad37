"""`text_to_wire`: a message in protobuf text format becomes the wire bytes of the same message."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from peakline.arrays import Int64Array, UInt64Array
from peakline.kernels import text_layout as L
from peakline.kernels.text_scan import scan_text
from peakline.schema.shapes import MessageShape
from peakline.wire.decode import as_buffer
from peakline.wire.tables import Buffer
from peakline.wire.text_tables import BYTE_CLASSES, TextTables, make_tables

_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_FIXES = 4096
_LEAST_ROOM = 1 << 16

_MESSAGES = {
    L.NO_NAME: "expected the name of a field",
    L.NO_COLON: "expected ':' behind the name of a field",
    L.NO_OPENING: "expected '{' or '<', as the field holds a message",
    L.WRONG_END: "a closing bracket that does not belong to the one that is open",
    L.NOT_ENDED: "the text ends inside a message",
    L.TOO_DEEP: f"messages are nested more than {L.MAX_DEPTH - 1} deep",
    L.TWICE: "a field, or another member of its oneof, is given a second time",
    L.NO_STRING: "expected a string in quotes",
    L.OPEN_STRING: "a string without a closing quote on its line",
    L.BAD_ESCAPE: "an escape sequence that means nothing",
    L.NO_INTEGER: "expected an integer",
    L.OUT_OF_RANGE: "a number that is out of range for its field",
    L.NO_NUMBER: "expected a number",
    L.NO_BOOL: "expected true or false",
    L.NO_ENUM: "expected the name or the number of an enum's value",
    L.NO_VALUE: "expected a value",
    L.NO_SEPARATOR: "expected ',' or ']'",
    L.NOT_REPEATED: "a list for a field that is not repeated",
}


@dataclass(frozen=True, eq=False)
class TextResult:
    """Wire bytes, and what of the text is not in them.

    ``unknown`` counts fields that the schema does not have (with all they hold), extensions, and
    names of enum values it does not have; ``first_unknown`` is the first one, at
    ``first_unknown_at``. ``redacted`` counts values printed as ``[REDACTED]``. Where the text
    breaks the grammar, ``error`` says what was expected at byte ``error_at`` and ``data`` is
    empty; otherwise they are empty and -1.
    """

    data: Buffer
    unknown: int = 0
    first_unknown: str = ""
    first_unknown_at: int = -1
    redacted: int = 0
    error: str = ""
    error_at: int = -1


def text_to_wire(
    buffer: Buffer | bytes,
    descriptor: MessageShape,
    aliases: Mapping[str, Mapping[str, str]] | None = None,
) -> TextResult:
    """The wire bytes of the message whose text format ``buffer`` holds.

    The grammar is https://protobuf.dev/reference/protobuf/textformat-spec/, with the marks
    (``goo.gle/debugstr``) and ``[REDACTED]`` values of debug strings. What
    `google.protobuf.text_format` refuses is refused, but for this: unknown names of enum values
    are counted instead, strings need not be UTF-8, and a minus sign may stand apart from its
    number, as the specification says. ``aliases`` gives fields further names:
    ``{full name of the message: {alias: name}}``.
    """
    text = as_buffer(buffer)
    tables = make_tables(descriptor, aliases)
    state = np.zeros(L.S_WIDTH, np.int64)
    if text[:3].tobytes() == _BYTE_ORDER_MARK:
        state[L.S_POSITION] = 3
    state[L.S_LIST] = L.NO_LIST
    stack, seen = new_stack(tables)
    fixes = np.zeros(_FIXES * L.X_WIDTH, np.int64)
    out = np.empty(text.size // 2 + _LEAST_ROOM, np.uint8)
    while True:
        code = scan_text(
            text, text.size, BYTE_CLASSES,
            tables.fields, tables.hashes, tables.names,
            state, stack, seen, out, fixes,
        )  # fmt: skip
        apply_fixes(text, state, out, fixes)
        if code == L.NEED_ROOM:
            out = grown(out, int(state[L.S_OUT]))
        elif code != L.NEED_FIXES:
            break
    if code != L.DONE:
        return TextResult(out[:0], error=_MESSAGES[code], error_at=int(state[L.S_ERROR_AT]))
    name, name_at = "", -1
    if state[L.S_UNKNOWN]:
        name_at = int(state[L.S_UNKNOWN_AT])
        name = text[name_at : name_at + int(state[L.S_UNKNOWN_LENGTH])].tobytes().decode(
            "utf-8", "replace"
        )  # fmt: skip
    return TextResult(
        out[: int(state[L.S_OUT])],
        int(state[L.S_UNKNOWN]), name, name_at, int(state[L.S_REDACTED]),
    )  # fmt: skip


def new_stack(tables: TextTables) -> tuple[Int64Array, UInt64Array]:
    """The stack with the root open, and its presence bits."""
    stack = np.zeros(L.MAX_DEPTH * L.K_WIDTH, np.int64)
    stack[[L.K_OWNER, L.K_CLOSE, L.K_LIST]] = 0, L.NO_CLOSE, L.NO_LIST
    return stack, np.zeros((L.MAX_DEPTH, tables.words), np.uint64)


def grown(out: Buffer, used: int) -> Buffer:
    """Twice the room, with the first ``used`` bytes."""
    larger = np.empty(2 * out.size + L.ROOM, np.uint8)
    larger[:used] = out[:used]
    return larger


def apply_fixes(text: Buffer, state: Int64Array, out: Buffer, fixes: Int64Array) -> None:
    """Convert the numbers that need Python's exact conversion, and forget them."""
    count = int(state[L.S_FIXES])
    for at, start, length, size, negative in fixes.reshape(-1, L.X_WIDTH)[:count].tolist():
        number = float(text[start : start + length].tobytes())
        value = np.array(-number if negative else number, np.float64)
        with np.errstate(over="ignore", under="ignore"):
            narrow = value.astype("<f8" if size == 8 else "<f4")
        out[at : at + size] = np.frombuffer(narrow.tobytes(), np.uint8)
    state[L.S_FIXES] = 0
