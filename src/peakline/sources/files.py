"""Files as read-only bytes: memory-mapped where they lie on disk as they are, else unpacked."""

from __future__ import annotations

import gzip
import mmap
import os
import zlib
from pathlib import Path
from typing import BinaryIO

from peakline.errors import InputError, NotFoundError
from peakline.wire import Buffer, as_buffer

__all__ = ["SourceFile"]

_GZIP = b"\x1f\x8b"
_RELEASE_BYTES = 32 << 20
_BLOCK = 4 << 20
_LEAST_LIMIT = 1 << 30
_MOST_EXPANSION = 200
"""Real profiles shrink by a factor of 5 to 50; gzip can reach 1000 with zeros."""


def _unpacked(path: str, file: BinaryIO, packed: int) -> bytearray:
    """The content of a gzip file; InputError for one that expands beyond all reason."""
    most = max(_LEAST_LIMIT, packed * _MOST_EXPANSION)
    content = bytearray()
    with gzip.GzipFile(fileobj=file) as unpacking:
        while block := unpacking.read(_BLOCK):
            content += block
            if len(content) > most:
                raise InputError(
                    f"{path}: expands to more than {_MOST_EXPANSION} times its size; "
                    "unpack it first if it is what it should be"
                )
    return content


class SourceFile:
    """The bytes of one file. ``release`` gives pages that were read back to the system."""

    def __init__(self, path: str) -> None:
        self.path = path
        self._map: mmap.mmap | None = None
        self._released = 0
        try:
            with Path(path).open("rb") as file:
                size = os.fstat(file.fileno()).st_size
                head = file.read(2)
                if not head:
                    raise InputError(f"{path}: the file is empty")
                file.seek(0)
                if head == _GZIP:
                    self.buffer: Buffer = as_buffer(_unpacked(path, file, size))
                elif size:
                    self._map = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
                    self.buffer = as_buffer(self._map)
                else:
                    self.buffer = as_buffer(file.read())
        except FileNotFoundError:
            raise NotFoundError(f"{path}: no such file") from None
        except (EOFError, zlib.error, gzip.BadGzipFile) as error:
            raise InputError(f"{path}: damaged gzip file: {error}") from None
        except (OSError, ValueError) as error:
            reason = error.strerror if isinstance(error, OSError) else str(error)
            raise InputError(f"{path}: cannot be read: {reason}") from None
        if not self.buffer.size:
            raise InputError(f"{path}: the file is empty")

    @property
    def host(self) -> str:
        """The host a session's file is named after: what stands before ``.xplane.pb``."""
        name = Path(self.path).name.removesuffix(".gz")
        return name.removesuffix(".xplane.pb") if name.endswith(".xplane.pb") else ""

    def release(self, position: int) -> None:
        """Tell that the bytes before ``position`` are not needed for now."""
        if self._map is None or not hasattr(self._map, "madvise"):
            return
        if position < self._released:
            self._released = 0
        end = position // mmap.PAGESIZE * mmap.PAGESIZE
        if end - self._released >= _RELEASE_BYTES:
            self._map.madvise(mmap.MADV_DONTNEED, self._released, end - self._released)
            self._released = end

    def close(self) -> None:
        """Unmap the file."""
        self.buffer = as_buffer(b"")
        if self._map is not None:
            try:
                self._map.close()
            except BufferError:
                # Someone still holds a view; the map goes with it.
                self._map = None
