"""Files as read-only bytes, as they are or unpacked; one that is held open, and what became of it.

A URL is read once into a temporary file without a name, which then is a file like any other.
"""

from __future__ import annotations

import mmap
import os
import stat
import sys
import threading
import weakref
import zlib
from collections.abc import Callable, Iterator, Mapping
from copy import copy
from pathlib import Path

import numpy as np

from peakline.deadline import check_deadline
from peakline.errors import (
    NO_DESCRIPTOR,
    BusyError,
    DamagedError,
    InputError,
    NotFoundError,
    PeaklineError,
)
from peakline.kernels import bus_errors
from peakline.places import is_url
from peakline.progress import advance
from peakline.wire import Buffer, Spans, as_buffer

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


STDIN = "-"
_GZIP = b"\x1f\x8b"
_GZIP_WINDOW = 31
_PACKED_BYTES = 1 << 20
_HEAD_BYTES = 1 << 20
"""A file up to here is read when it is opened, and not again."""
_BLOCK = 4 << 20
_PIECE_BYTES = 1 << 20
_LEAST_LIMIT = 1 << 30
_MOST_EXPANSION = 200
"""Real profiles shrink by a factor of 5 to 50; gzip can reach 1000 with zeros."""

Opener = Callable[[str], int]
"""Gives a descriptor to read a local file by, for callers who may not open every one; raises
OSError, or an error of `peakline.errors`."""


def open_to_read(path: str) -> int:
    """A descriptor of the local file ``path``; raises OSError or ValueError."""
    return os.open(path, os.O_RDONLY | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0))


class SourceFile:
    """The bytes of one file, unpacked when it is gzip; ``-`` is standard input.

    ``path`` is a path or a URL, for which fsspec's driver is given the ``storage_options``; a
    path is opened by ``opener`` where there is one.

    ``buffer`` is all of it at once, ``blocks`` one part after the other without holding the
    rest. A gzip file may expand to ``max_unpacked_bytes`` (default: 200 times its size, at
    least 1 GiB). Raises NotFoundError, InputError for what is empty, unless it ``may_be_empty``, or
    cannot be read, or
    UsageError for a URL that no driver opens; whatever reads raises InputError once the file was
    cut short or written over (`StoredFile`).
    """

    __retained__ = "_buffer _packed head"

    def __init__(
        self,
        path: str,
        *,
        max_unpacked_bytes: int | None = None,
        storage_options: Mapping[str, object] | None = None,
        opener: Opener | None = None,
        may_be_empty: bool = False,
    ) -> None:
        self.path = path
        self._limit = max_unpacked_bytes
        self.unpacking_error = ""
        """Why not all could be unpacked, once `blocks_of_whole` has come to its end."""
        first, stored = (
            (self._standard_input(), None) if path == STDIN else self._open(storage_options, opener)
        )
        self._is_packed = first[:2].tobytes() == _GZIP
        self._stored: StoredFile | None = stored
        """The file as it is on the disk, unless all of it is in memory."""
        self._packed: Buffer = first if stored is None else as_buffer(b"")
        """All of it, packed or not, where it is in memory."""
        self._buffer: Buffer | None = first if stored is None and not self._is_packed else None
        self.head: bytes = bytes(next(self.blocks(_HEAD_BYTES), b""))
        """The first bytes (at most 1 MiB), unpacked."""
        if not self.head and not may_be_empty:
            raise InputError(f"{path}: the file is empty")

    def _open(
        self, storage_options: Mapping[str, object] | None, opener: Opener | None
    ) -> tuple[Buffer, StoredFile | None]:
        """The first bytes, and the file; without it all of them, where they are few, or where they
        come but once.
        """
        try:
            stored = StoredFile(self._descriptor(storage_options, opener), self.path)
            if not (stored.is_regular and stored.size):
                return as_buffer(stored.rest()), None
            first = stored.read(0, min(stored.size, _HEAD_BYTES))
        except FileNotFoundError:
            raise NotFoundError(f"{self.path}: no such file") from None
        except (OSError, ValueError) as error:
            raise self._unreadable(error) from None
        if stored.size > first.size:
            return first, stored
        stored.close()
        return first, None

    def _descriptor(
        self, storage_options: Mapping[str, object] | None, opener: Opener | None
    ) -> int:
        """One of the file itself, or of the temporary copy of what a URL names."""
        if not is_url(self.path):
            return (opener or open_to_read)(self.path)
        from peakline.formats.common.urls import spooled

        with spooled(self.path, storage_options) as copied:
            return os.dup(copied.fileno())

    def _standard_input(self) -> Buffer:
        if sys.stdin is None:
            raise InputError(f"{self.path}: standard input is closed")
        try:
            return as_buffer(sys.stdin.buffer.read())
        except OSError as error:
            raise self._unreadable(error) from None

    @property
    def size(self) -> int:
        """How many bytes there are, unpacked; what is packed is unpacked for that."""
        if self._stored is None or self._is_packed or self._buffer is not None:
            return int(self.buffer.size)
        return self._stored.size

    @property
    def stored_bytes(self) -> int:
        """The size of the file on the disk, packed or not; 0 where all of it is in memory."""
        return 0 if self._stored is None else self._stored.size

    @property
    def buffer(self) -> Buffer:
        """The whole content, which stays in memory (a large file as it is mapped).

        Raises InputError when the file is no longer the one that was opened.
        """
        if self._buffer is None:
            if self._stored is not None and not self._is_packed:
                self._buffer = self._stored.content()
            else:
                content = bytearray()
                for block in self._unpacking(_BLOCK):
                    content += block
                self._buffer = as_buffer(content)
        self.check()
        return self._buffer

    @property
    def in_memory(self) -> bool:
        """Whether `buffer` is there without reading anything."""
        return self._buffer is not None

    def check(self) -> None:
        """Raise InputError when the file is no longer the one that was opened, and what was read
        of it may be void; what was in memory before is not.
        """
        if self._stored is not None:
            self._stored.check()

    def read(self, start: int, length: int) -> Buffer:
        """``length`` bytes from ``start`` on, which lie in the file."""
        if self._buffer is None and self._stored is not None and not self._is_packed:
            return self._stored.read(start, length)
        return self.buffer[start : start + length]

    def read_into(self, target: Buffer, start: int) -> None:
        """Fill ``target`` with the bytes from ``start`` on, which lie in the file."""
        if self._buffer is None and self._stored is not None and not self._is_packed:
            self._stored.read_into(target, start)
        else:
            target[:] = self.buffer[start : start + target.size]

    def pieces(self, spans: Spans) -> Iterator[tuple[Buffer, Spans]]:
        """The bytes of spans, ascending, that lie in the file: buffers that have some of them each,
        and where.
        """
        if self.in_memory:
            yield self.buffer, spans
            return
        starts = spans.start.astype(np.int64)
        stops = starts + spans.length
        row = 0
        while row < starts.size:
            first = int(starts[row])
            last = int(np.searchsorted(starts, first + _PIECE_BYTES))
            buffer = self.read(first, int(stops[row:last].max()) - first)
            yield buffer, Spans(starts[row:last] - first, spans.length[row:last])
            row = last

    def blocks(self, size: int = _BLOCK) -> Iterator[Buffer | bytes]:
        """The content in order, in blocks of ``size`` bytes; only the last may be shorter."""
        if self._buffer is None and self._is_packed:
            yield from self._unpacking(size)
        elif self._buffer is None and self._stored is not None:
            yield from self._stored.blocks(size)
        else:
            for start in range(0, self.buffer.size, size):
                yield self.buffer[start : start + size]

    def blocks_of_whole(self, size: int = _BLOCK) -> Iterator[Buffer | bytes]:
        """As `blocks`, but a damaged gzip file just ends early: `unpacking_error` says why."""
        try:
            yield from self.blocks(size)
        except DamagedError as error:
            self.unpacking_error = str(error).removeprefix(f"{self.path}: ")

    def _packed_blocks(self) -> Iterator[bytes]:
        """The packed bytes in order."""
        if self._stored is not None:
            for block in self._stored.blocks(_PACKED_BYTES):
                yield block.tobytes()
        else:
            for start in range(0, self._packed.size, _PACKED_BYTES):
                yield self._packed[start : start + _PACKED_BYTES].tobytes()

    def _unpacking(self, size: int) -> Iterator[bytes]:
        """Blocks of a gzip file. One that is cut or broken gives what is whole, then DamagedError;
        one that expands beyond the limit ends in InputError.
        """
        packed = self._packed.size if self._stored is None else self._stored.size
        most = self._limit or max(_LEAST_LIMIT, packed * _MOST_EXPANSION)
        pieces = self._packed_blocks()
        total, block = 0, bytearray()
        reason = "it ends too early"
        decoder = zlib.decompressobj(_GZIP_WINDOW)
        read = next(pieces, b"")
        try:
            while read:
                while read:
                    # No more at a time than is wanted: a bomb must not go off in here.
                    block += decoder.decompress(read, size - len(block))
                    read = decoder.unconsumed_tail
                    if decoder.eof:
                        read = decoder.unused_data.lstrip(b"\0") or next(pieces, b"")
                        decoder = zlib.decompressobj(_GZIP_WINDOW) if read else decoder
                    if len(block) == size:
                        total += size
                        if total > most:
                            raise self._too_large(most)
                        yield bytes(block)
                        block.clear()
                if not decoder.eof:
                    read = next(pieces, b"")
        except zlib.error as error:
            reason = str(error)
            decoder = zlib.decompressobj(_GZIP_WINDOW)
        if total + len(block) > most:
            raise self._too_large(most)
        if block:
            yield bytes(block)
        if not decoder.eof:
            raise DamagedError(f"{self.path}: damaged gzip file: {reason}")

    def _too_large(self, most: int) -> InputError:
        return InputError(
            f"{self.path}: expands to more than {most} bytes; "
            "--max-unpacked allows more if it is what it should be"
        )

    def _unreadable(self, error: OSError | ValueError) -> PeaklineError:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        if isinstance(error, OSError) and error.errno in NO_DESCRIPTOR:
            return BusyError(f"{self.path}: cannot be read now: {reason}")
        return InputError(f"{self.path}: cannot be read: {reason}")

    def translated(self, content: bytes | bytearray | Buffer) -> SourceFile:
        """The same file under the same name with other bytes: its binary form."""
        buffer = as_buffer(content)
        other = copy(self)
        vars(other).update(
            _buffer=buffer, _stored=None, _packed=buffer, head=buffer[:_HEAD_BYTES].tobytes()
        )
        return other

    @property
    def host(self) -> str:
        """The host a session's file is named after: what stands before ``.xplane.pb``."""
        name = Path(self.path).name
        for suffix in (".xplane.pb", ".xplane.pb.gz", ".profile"):
            if name.endswith(suffix):
                return name.removesuffix(suffix)
        return ""

    def release(self, position: int) -> None:
        """The bytes before ``position`` are not needed for now: those of a file that is mapped give
        their memory back.
        """
        if self._stored is not None:
            self._stored.release(position)

    def close(self) -> None:
        """Close the file; nothing can be read afterwards."""
        self._buffer = self._packed = as_buffer(b"")
        if self._stored is not None:
            self._stored.close()
            self._stored = None
