"""A file on the disk that is held open: its bytes, and whether it still is what was opened."""

from __future__ import annotations

import mmap
import os
import stat
import threading
import weakref
from collections.abc import Iterator

import numpy as np

from peakline.deadline import check_deadline
from peakline.errors import InputError
from peakline.kernels import bus_errors
from peakline.progress import advance
from peakline.wire import Buffer, as_buffer

_MOST_COPIED = 64 << 20
"""A file up to here is copied when it is wanted as one buffer, a larger one is mapped: much of it,
the values of constants, may never be needed.
"""
_AT_ONCE = 16 << 20
_RELEASE_BYTES = 32 << 20
_SAMPLE_BYTES = 4096
"""By so many bytes at its beginning and its former end a file that grew is known to be the same."""


class StoredFile:
    """A regular file, read through its ``descriptor``, which `close` closes.

    It is identified by its size and time of change. Whatever is read raises InputError, with the
    ``path``, once the file has been cut short or written over; that it was appended to, as a log
    is, changes nothing about the bytes that were there. Its name may lead to another file by now.
    """

    def __init__(self, descriptor: int, path: str) -> None:
        self._path, self._descriptor = path, descriptor
        self._forget = weakref.finalize(self, os.close, descriptor)
        status = os.fstat(descriptor)
        self.is_regular = stat.S_ISREG(status.st_mode)
        self.size = status.st_size
        self._modified = status.st_mtime_ns
        self._map: mmap.mmap | None = None
        self._slot = -1
        self._released = 0
        self._lock = threading.Lock()
        self._sample = self._samples() if self.is_regular else b""

    def read_into(self, target: Buffer, start: int) -> None:
        """Fill ``target`` with the bytes from ``start`` on, which lie in the file."""
        done = 0
        try:
            while done < target.size:
                got = self._read_some(target[done : done + _AT_ONCE], start + done)
                if not got:
                    raise self._shorter()
                done += got
                advance(got)
        except OSError as error:
            raise InputError(f"{self._path}: cannot be read: {error.strerror}") from None
        self.check()

    def read(self, start: int, length: int) -> Buffer:
        """``length`` bytes from ``start`` on, which lie in the file."""
        content = np.empty(length, np.uint8)
        self.read_into(content, start)
        content.flags.writeable = False
        return content

    def blocks(self, size: int) -> Iterator[Buffer]:
        """The content in order, in blocks of ``size`` bytes; only the last may be shorter."""
        for start in range(0, self.size, size):
            yield self.read(start, min(size, self.size - start))

    def content(self) -> Buffer:
        """All of it. What is large is mapped: `check` says whether what was read of it is void."""
        if self.size > _MOST_COPIED:
            mapped = self._mapped()
            if mapped is not None:
                return mapped
        content = np.empty(self.size, np.uint8)
        for start in range(0, self.size, _AT_ONCE):
            check_deadline()
            self.read_into(content[start : start + _AT_ONCE], start)
        content.flags.writeable = False
        return content

    def rest(self) -> bytes:
        """All that comes, of what is no regular file: a pipe, a file of ``/proc``. Closes it."""
        with os.fdopen(os.dup(self._descriptor), "rb") as stream:
            self.close()
            return stream.read()

    def release(self, position: int) -> None:
        """The bytes before ``position`` are not needed for now: give the memory of a map back."""
        self.check()
        if self._map is None or not hasattr(self._map, "madvise"):
            return
        if position < self._released:
            self._released = 0
        end = position // mmap.PAGESIZE * mmap.PAGESIZE
        if end - self._released >= _RELEASE_BYTES:
            self._map.madvise(mmap.MADV_DONTNEED, self._released, end - self._released)
            self._released = end

    def check(self) -> None:
        """Raise InputError when the file is no longer the one that was opened."""
        if not self._forget.alive:
            return
        status = os.fstat(self._descriptor)
        if status.st_size < self.size:
            raise self._shorter()
        if self._slot >= 0 and bus_errors.is_lost(self._slot):
            raise self._changed()
        if status.st_mtime_ns == self._modified:
            return
        if status.st_size == self.size or self._samples() != self._sample:
            raise self._changed()
        self._modified = status.st_mtime_ns

    def close(self) -> None:
        """Close the descriptor. A map stays as long as somebody has it."""
        self._forget()
        self._map, self._slot = None, -1

    def _read_some(self, target: Buffer, start: int) -> int:
        if hasattr(os, "preadv"):
            return os.preadv(self._descriptor, [target.data], start)
        with self._lock:
            os.lseek(self._descriptor, start, os.SEEK_SET)
            got = os.read(self._descriptor, target.size)
        target[: len(got)] = np.frombuffer(got, np.uint8)
        return len(got)

    def _samples(self) -> bytes:
        """The first bytes, and the last ones of those that were there when it was opened."""
        room = np.empty(_SAMPLE_BYTES, np.uint8)
        taken = b""
        for start in (0, max(0, self.size - _SAMPLE_BYTES)):
            taken += room[: self._read_some(room[: self.size - start], start)].tobytes()
        return taken

    def _mapped(self) -> Buffer | None:
        """The file mapped and guarded; None where that cannot be."""
        try:
            mapped = mmap.mmap(self._descriptor, self.size, access=mmap.ACCESS_READ)
        except (OSError, ValueError):
            return None
        buffer = as_buffer(mapped)
        slot = bus_errors.guard(buffer.ctypes.data, self.size)
        if slot < 0:
            return None
        # As long as the map: somebody may have it when this file is closed.
        weakref.finalize(mapped, bus_errors.forget, slot)
        self._map, self._slot = mapped, slot
        return buffer

    def _shorter(self) -> InputError:
        return InputError(f"{self._path}: the file became shorter while it was read; try again")

    def _changed(self) -> InputError:
        return InputError(f"{self._path}: the file was written while it was read; try again")
