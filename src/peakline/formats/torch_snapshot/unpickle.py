"""Reads a pickle that may hold plain containers and nothing else, and columns out of these."""

from __future__ import annotations

import copyreg
import gc
import io
import os
import pickle
import pickletools
from collections.abc import Callable, Sequence
from operator import itemgetter
from typing import Any, NoReturn

import numpy as np

from peakline.arrays import Int64Array
from peakline.errors import DamagedError, InputError
from peakline.formats.common.files import SourceFile
from peakline.kernels import pickle_layout as layout
from peakline.kernels.pickle_scan import scan
from peakline.safe_text import valid_text
from peakline.wire import Buffer


class Bad(InputError):
    """A field is not what a snapshot has there; the message does not name the file yet."""


def dicts(value: object, what: str) -> list[dict[Any, Any]]:
    """``value`` as a list of dicts; None stands for an empty one."""
    if value is None:
        return []
    if not isinstance(value, list) or not set(map(type, value)) <= {dict}:
        raise Bad(f"{what} is no list of dicts")
    return value


def integers(rows: Sequence[dict[Any, Any]], name: str, default: int | None = None) -> Int64Array:
    """Field ``name`` of every row; Bad for one that is missing without a default or no integer.

    Unsigned 64-bit values keep their bits.
    """
    try:
        try:
            return _numbers(rows, itemgetter(name))
        except KeyError:
            if default is None:
                raise Bad(f"{name!r} is missing") from None
            return _numbers(rows, lambda row: row.get(name, default))
    except (TypeError, ValueError, OverflowError):
        raise Bad(f"{name!r} is no 64-bit number") from None


def _numbers(rows: Sequence[dict[Any, Any]], field: Callable[[dict[Any, Any]], Any]) -> Int64Array:
    try:
        return np.fromiter(map(field, rows), np.int64, len(rows))
    except OverflowError:
        return np.fromiter(map(field, rows), np.uint64, len(rows)).view(np.int64)


def texts(rows: Sequence[dict[Any, Any]], name: str, default: str = "") -> list[str]:
    """`text` of field ``name`` of every row."""
    return [text(row.get(name), default) for row in rows]


def text(value: object, default: str = "") -> str:
    """``value``, or ``default`` where it is no text; a pickle may hold halves of characters."""
    # Nothing else is turned into text: lists that share their parts have texts without end.
    return valid_text(value) if isinstance(value, str) else default


# The opcodes of protocols 0 to 5, by the standard library's ``pickletools``.


_EFFECTS = {
    "PUSH_SCALAR": "INT BININT BININT1 BININT2 LONG LONG1 LONG4 STRING BINSTRING SHORT_BINSTRING "
    "BINBYTES SHORT_BINBYTES BINBYTES8 NONE NEWTRUE NEWFALSE UNICODE SHORT_BINUNICODE BINUNICODE "
    "BINUNICODE8 FLOAT BINFLOAT",
    "PUSH_CONTAINER": "EMPTY_LIST EMPTY_TUPLE EMPTY_DICT EMPTY_SET BYTEARRAY8",
    "COLLECT": "LIST TUPLE",
    "COLLECT_DICT": "DICT",
    "COLLECT_SET": "FROZENSET",
    "PUT": "PUT BINPUT LONG_BINPUT",
    "GET": "GET BINGET LONG_BINGET",
    "NAME": "GLOBAL STACK_GLOBAL INST PERSID BINPERSID",
    "EXTENSION": "EXT1 EXT2 EXT4",
    "OUT_OF_BAND": "NEXT_BUFFER READONLY_BUFFER",
    "BUILD": "REDUCE BUILD OBJ NEWOBJ NEWOBJ_EX",
    "NOTHING": "PROTO FRAME",
}
"""What several opcodes do alike; any other does what its name says."""

_LENGTHS = {
    pickletools.UP_TO_NEWLINE: layout.A_LINE,
    pickletools.TAKEN_FROM_ARGUMENT1: layout.A_LENGTH_1,
    pickletools.TAKEN_FROM_ARGUMENT4: layout.A_LENGTH_4,
    pickletools.TAKEN_FROM_ARGUMENT4U: layout.A_LENGTH_4,
    pickletools.TAKEN_FROM_ARGUMENT8U: layout.A_LENGTH_8,
}

ARGUMENT = np.full(256, layout.A_NO_OPCODE, np.int8)
"""Per opcode how its argument is written: a constant of `pickle_layout`, or its length."""

EFFECT = np.zeros(256, np.int8)
"""Per opcode what it does to the stack, a constant of `pickle_layout`."""

_EFFECT_OF = {name: effect for effect, names in _EFFECTS.items() for name in names.split()}
for _opcode in pickletools.opcodes:
    _code = ord(_opcode.code)
    EFFECT[_code] = getattr(layout, f"E_{_EFFECT_OF.get(_opcode.name, _opcode.name)}")
    if _opcode.arg is None:
        ARGUMENT[_code] = 0
    elif _opcode.name in {"GLOBAL", "INST"}:
        ARGUMENT[_code] = layout.A_TWO_LINES
    else:
        ARGUMENT[_code] = _LENGTHS.get(_opcode.arg.n, _opcode.arg.n)


def scanned(data: Buffer) -> tuple[int, int]:
    """How far the pickle is one of plain containers (``S_`` of `pickle_layout`), and where that
    was seen: the position of an opcode or, of a whole pickle, behind its last.
    """
    room = 1 << 14
    while True:
        status, at = scan(
            data, ARGUMENT, EFFECT,
            np.empty(room, np.uint8), np.empty(room, np.int64), np.zeros(room, np.uint8),
        )  # fmt: skip
        if status != layout.S_FULL:
            return status, at
        room *= 8


class _Refused(Exception):
    """The pickle names what is not a plain container."""


class _Plain(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> NoReturn:
        raise _Refused(f"{module}.{name}")

    def persistent_load(self, pid: Any) -> NoReturn:
        # Only what is small has a text for certain.
        raise _Refused(f"a persistent object {pid if isinstance(pid, str) else ''}".strip()[:80])


def load_plain(file: SourceFile) -> tuple[Any, int]:
    """The content of the pickle, and how many bytes follow it.

    Raises InputError, naming it, for a pickle that needs anything but plain containers;
    DamagedError for one that is cut off or no pickle.
    """
    status, at = scanned(file.buffer)
    if status in {layout.S_CUT, layout.S_DAMAGED}:
        what = "is cut off" if status == layout.S_CUT else "is damaged"
        raise DamagedError(f"{file.path}: the pickle {what} at byte {at}", at)
    if status == layout.S_EXTENSION:
        raise _refusal(file.path, _extension(file.buffer, at))
    if status == layout.S_OUT_OF_BAND:
        raise _refusal(file.path, "a buffer that is not in the file")
    if status == layout.S_BUILD:
        raise _refusal(file.path, f"an object to be built, at byte {at}")
    try:
        return _load(file.buffer), file.buffer.size - at
    except _Refused as refused:
        raise _refusal(file.path, str(refused)) from None
    except MemoryError:
        raise InputError(f"{file.path}: the pickle needs more memory than there is") from None
    except (pickle.UnpicklingError, ValueError, TypeError, EOFError, IndexError, KeyError,
            AttributeError, OverflowError, RecursionError) as error:  # fmt: skip
        reason = " ".join(str(error).split()) or type(error).__name__
        raise DamagedError(f"{file.path}: the pickle is damaged: {reason:.200}") from None


def _load(buffer: Buffer) -> Any:
    # Nothing of millions of containers can be garbage while they are made.
    collecting = gc.isenabled()
    gc.disable()
    try:
        # Text of Python 2 may be anything.
        reader = io.BufferedReader(_BytesStream(buffer.data), 1 << 20)
        return _Plain(reader, encoding="latin-1").load()
    finally:
        if collecting:
            gc.enable()


def _refusal(path: str, wanted: str) -> InputError:
    return InputError(
        f"{path}: the pickle needs {wanted}: refused; a memory snapshot holds only plain containers"
    )


def _extension(buffer: Buffer, at: int) -> str:
    """The name behind an extension code (``copyreg.add_extension``), else the code."""
    width = {0x82: 1, 0x83: 2, 0x84: 4}[int(buffer[at])]
    code = int.from_bytes(buffer[at + 1 : at + 1 + width].tobytes(), "little")
    registry: dict[int, tuple[str, str]] = copyreg._inverted_registry  # type: ignore[attr-defined]  # noqa: SLF001
    return ".".join(registry[code]) if code in registry else f"extension code {code}"


class _BytesStream(io.RawIOBase):
    """Bytes as a stream, without copying all."""

    def __init__(self, content: memoryview) -> None:
        self._content, self._position = content, 0

    def readable(self) -> bool:
        """It is."""
        return True

    def seekable(self) -> bool:
        """It is."""
        return True

    def readinto(self, target: Any) -> int:
        """Fill ``target`` with the next bytes; how many those are."""
        view = memoryview(target).cast("B")
        part = self._content[self._position : self._position + len(view)]
        view[: len(part)] = part
        self._position += len(part)
        return len(part)

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        """Go to another position, which is returned."""
        base = {os.SEEK_SET: 0, os.SEEK_CUR: self._position, os.SEEK_END: len(self._content)}
        self._position = base[whence] + offset
        return self._position
