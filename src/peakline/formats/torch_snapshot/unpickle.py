"""Reads a pickle that may hold plain containers and nothing else.

A pickle is a program that can name any function and call it. The pickles of snapshots have no
need to: they hold dicts, lists, tuples, numbers and text.
"""

from __future__ import annotations

import copyreg
import gc
import io
import pickle
from typing import Any, NoReturn

from peakline.errors import DamagedError, InputError
from peakline.formats.common.files import SourceFile
from peakline.formats.torch_snapshot.opcodes import Status, scanned
from peakline.wire import Buffer


class _Refused(Exception):
    """The pickle asks for what is named."""


class _Plain(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> NoReturn:
        raise _Refused(f"{module}.{name}")

    def persistent_load(self, pid: Any) -> NoReturn:
        # Only what is small has a text for certain.
        raise _Refused(f"a persistent object {pid if isinstance(pid, str) else ''}".strip()[:80])


class _Bytes(io.RawIOBase):
    """A buffer as a file, without copying it."""

    def __init__(self, buffer: Buffer) -> None:
        self._left = buffer.data

    def readable(self) -> bool:
        return True

    def readinto(self, target: Any) -> int:
        count = min(len(target), len(self._left))
        target[:count] = self._left[:count]
        self._left = self._left[count:]
        return count


def load_plain(file: SourceFile) -> tuple[Any, int]:
    """The content of the pickle, and how many bytes follow it.

    Raises InputError, naming it, for a pickle that asks for anything but plain containers;
    DamagedError for one that is cut off or no pickle.
    """
    status, at = scanned(file.buffer)
    if status in {Status.CUT, Status.DAMAGED}:
        what = "is cut off" if status == Status.CUT else "is damaged"
        raise DamagedError(f"{file.path}: the pickle {what} at byte {at}", at)
    if status == Status.EXTENSION:
        raise _refusal(file.path, _extension(file.buffer, at))
    if status == Status.OUT_OF_BAND:
        raise _refusal(file.path, "a buffer that is not in the file")
    if status == Status.BUILD:
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
        reader = io.BufferedReader(_Bytes(buffer), 1 << 20)
        return _Plain(reader, encoding="latin-1").load()
    finally:
        if collecting:
            gc.enable()


def _refusal(path: str, wanted: str) -> InputError:
    return InputError(
        f"{path}: the pickle asks for {wanted}: refused; "
        "a memory snapshot holds only plain containers"
    )


def _extension(buffer: Buffer, at: int) -> str:
    """The name behind an extension code (``copyreg.add_extension``), else the code."""
    width = {0x82: 1, 0x83: 2, 0x84: 4}[int(buffer[at])]
    code = int.from_bytes(buffer[at + 1 : at + 1 + width].tobytes(), "little")
    registry: dict[int, tuple[str, str]] = copyreg._inverted_registry  # type: ignore[attr-defined]  # noqa: SLF001
    return ".".join(registry[code]) if code in registry else f"extension code {code}"
