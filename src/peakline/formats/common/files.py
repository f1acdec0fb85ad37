"""Files as read-only bytes: memory-mapped where they lie on disk as they are, else unpacked.

A URL is read once into a temporary file without a name, which then is a file like any other.
"""

from __future__ import annotations

import io
import mmap
import os
import re
import sys
import weakref
import zlib
from collections.abc import Iterator, Mapping
from copy import copy
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from peakline.errors import DamagedError, InputError, NotFoundError
from peakline.wire import Buffer, Spans, as_buffer

STDIN = "-"
_URL = re.compile(r"(?!(?:file|local)://)[a-z][a-z0-9+.-]*(?:://|::)", re.IGNORECASE)
_GZIP = b"\x1f\x8b"
_GZIP_WINDOW = 31
_PACKED_BYTES = 1 << 20
_HEAD_BYTES = 1 << 20
_RELEASE_BYTES = 32 << 20
_BLOCK = 4 << 20
_PIECE_BYTES = 1 << 20
_LEAST_LIMIT = 1 << 30
_MOST_EXPANSION = 200
"""Real profiles shrink by a factor of 5 to 50; gzip can reach 1000 with zeros."""


class SourceFile:
    """The bytes of one file, unpacked when it is gzip; ``-`` is standard input.

    ``path`` is a path or a URL, for which fsspec's driver is given the ``storage_options``.

    ``buffer`` is all of it at once, ``blocks`` one part after the other without holding the
    rest. A gzip file may expand to ``max_unpacked_bytes`` (default: 200 times its size, at
    least 1 GiB). Raises NotFoundError, InputError for what is empty or cannot be read, or
    UsageError for a URL that no driver opens.
    """

    __retained__ = "_buffer head"

    def __init__(
        self,
        path: str,
        *,
        max_unpacked_bytes: int | None = None,
        storage_options: Mapping[str, object] | None = None,
    ) -> None:
        self.path = path
        self._storage_options = storage_options
        self._packed: mmap.mmap | None = None
        self._limit = max_unpacked_bytes
        self._map: mmap.mmap | None = None
        self._mapped: int | None = None
        """The descriptor of the file that is mapped, by which its size is known."""
        self._released = 0
        self._buffer: Buffer | None = None
        self.unpacking_error = ""
        """Why not all could be unpacked, once `blocks_of_whole` has come to its end."""
        if path == STDIN:
            self._buffer = as_buffer(self._standard_input())
        else:
            self._open()
        self.head: bytes = bytes(next(self.blocks(_HEAD_BYTES), b""))
        """The first bytes (at most 1 MiB), unpacked."""
        if not self.head:
            raise InputError(f"{path}: the file is empty")

    def _open(self) -> None:
        try:
            with self._stored() as file:
                size = os.fstat(file.fileno()).st_size
                head = file.read(2)
                if not head:
                    raise InputError(f"{self.path}: the file is empty")
                file.seek(0)
                if head == _GZIP:
                    if _URL.match(self.path):
                        self._packed = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
                    return
                if size:
                    self._map = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
                    self._mapped = os.dup(file.fileno())
                    self._forget = weakref.finalize(self, os.close, self._mapped)
                    self._buffer = as_buffer(self._map)
                else:
                    self._buffer = as_buffer(file.read())
        except FileNotFoundError:
            raise NotFoundError(f"{self.path}: no such file") from None
        except (OSError, ValueError) as error:
            raise self._unreadable(error) from None

    def _stored(self) -> BinaryIO:
        """The file itself, or the temporary copy of what a URL names."""
        if not _URL.match(self.path):
            return Path(self.path).open("rb")
        from peakline.formats.common.urls import spooled

        return spooled(self.path, self._storage_options)

    def _gzip_file(self) -> BinaryIO:
        """The packed bytes, from their beginning."""
        if self._packed is not None:
            return io.BufferedReader(BytesStream(self._packed))
        return Path(self.path).open("rb")

    def _standard_input(self) -> bytes | bytearray:
        if sys.stdin is None:
            raise InputError(f"{self.path}: standard input is closed")
        try:
            content = sys.stdin.buffer.read()
        except OSError as error:
            raise self._unreadable(error) from None
        if content[:2] != _GZIP:
            return content
        return self._joined(io.BytesIO(content), len(content))

    @property
    def buffer(self) -> Buffer:
        """The whole content; a gzip file is unpacked into memory once.

        Raises InputError when somebody has cut the mapped file short in the meantime: to touch
        what is gone would end the process.
        """
        self._check_size()
        if self._buffer is None:
            try:
                with self._gzip_file() as file:
                    self._buffer = as_buffer(self._joined(file, file.seek(0, os.SEEK_END)))
            except OSError as error:
                raise self._unreadable(error) from None
        return self._buffer

    @property
    def in_memory(self) -> bool:
        """Whether nobody can take the bytes of `buffer` away, as from a mapped file."""
        return self._map is None

    def read(self, start: int, length: int) -> Buffer:
        """``length`` bytes from ``start`` on, which lie in the file."""
        if self.in_memory:
            return self.buffer[start : start + length]
        content = np.empty(length, np.uint8)
        self.read_into(content, start)
        return content

    def read_into(self, target: Buffer, start: int) -> None:
        """Fill ``target`` with the bytes from ``start`` on, which lie in the file.

        Raises InputError where they are not there any more, or cannot be read.
        """
        if self._mapped is None or not hasattr(os, "preadv"):
            target[:] = self.buffer[start : start + target.size]
            return
        done = 0
        try:
            while done < target.size:
                got = os.preadv(self._mapped, [target[done:].data], start + done)
                if not got:
                    raise self._shorter()
                done += got
        except OSError as error:
            raise self._unreadable(error) from None

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
        if self._buffer is not None:
            for start in range(0, self._buffer.size, size):
                yield self._buffer[start : start + size]
            return
        try:
            with self._gzip_file() as file:
                yield from self._unpacking(file, file.seek(0, os.SEEK_END), size)
        except OSError as error:
            raise self._unreadable(error) from None

    def blocks_of_whole(self, size: int = _BLOCK) -> Iterator[Buffer | bytes]:
        """As `blocks`, but a damaged gzip file just ends early: `unpacking_error` says why."""
        try:
            yield from self.blocks(size)
        except DamagedError as error:
            self.unpacking_error = str(error).removeprefix(f"{self.path}: ")

    def _joined(self, file: BinaryIO, packed: int) -> bytearray:
        content = bytearray()
        for block in self._unpacking(file, packed, _BLOCK):
            content += block
        return content

    def _unpacking(self, file: BinaryIO, packed: int, size: int) -> Iterator[bytes]:
        """Blocks of a gzip file. One that is cut or broken gives what is whole, then DamagedError;
        one that expands beyond the limit ends in InputError.
        """
        file.seek(0)
        most = self._limit or max(_LEAST_LIMIT, packed * _MOST_EXPANSION)
        total, block = 0, bytearray()
        reason = "it ends too early"
        decoder = zlib.decompressobj(_GZIP_WINDOW)
        read = file.read(_PACKED_BYTES)
        try:
            while read:
                while read:
                    # No more at a time than is wanted: a bomb must not go off in here.
                    block += decoder.decompress(read, size - len(block))
                    read = decoder.unconsumed_tail
                    if decoder.eof:
                        read = decoder.unused_data.lstrip(b"\0") or file.read(_PACKED_BYTES)
                        decoder = zlib.decompressobj(_GZIP_WINDOW) if read else decoder
                    if len(block) == size:
                        total += size
                        if total > most:
                            raise self._too_large(most)
                        yield bytes(block)
                        block.clear()
                if not decoder.eof:
                    read = file.read(_PACKED_BYTES)
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

    def _unreadable(self, error: OSError | ValueError) -> InputError:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        return InputError(f"{self.path}: cannot be read: {reason}")

    def translated(self, content: bytes | bytearray | Buffer) -> SourceFile:
        """The same file under the same name with other bytes: its binary form."""
        buffer = as_buffer(content)
        other = copy(self)
        vars(other).update(
            _buffer=buffer, _map=None, _mapped=None, head=buffer[:_HEAD_BYTES].tobytes()
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
        """The bytes before ``position`` are not needed for now: give their memory back."""
        self._check_size()
        if self._map is None or not hasattr(self._map, "madvise"):
            return
        if position < self._released:
            self._released = 0
        end = position // mmap.PAGESIZE * mmap.PAGESIZE
        if end - self._released >= _RELEASE_BYTES:
            self._map.madvise(mmap.MADV_DONTNEED, self._released, end - self._released)
            self._released = end

    def _check_size(self) -> None:
        if self._map is None or self._mapped is None:
            return
        if os.fstat(self._mapped).st_size < len(self._map):
            raise self._shorter()

    def _shorter(self) -> InputError:
        return InputError(f"{self.path}: the file became shorter while it was read; try again")

    def close(self) -> None:
        """Unmap the file."""
        self._buffer = as_buffer(b"")
        if self._mapped is not None:
            self._mapped = None
            self._forget()
        self._packed = None
        if self._map is not None:
            try:
                self._map.close()
            except BufferError:
                # Someone still holds a view; the map goes with it.
                self._map = None


class BytesStream(io.RawIOBase):
    """A mapped file, or other bytes, as a stream of its own position, without copying all."""

    def __init__(self, content: mmap.mmap | memoryview) -> None:
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
