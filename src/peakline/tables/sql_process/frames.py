"""What a server and its workers say to each other: JSON and open files, over a Unix socket.

JSON, not pickles: what a worker says is no more trusted than the query it works on. A file without
a name is memory that processes share by passing its descriptor.
"""

from __future__ import annotations

import json
import mmap
import os
import socket
import tempfile
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pyarrow as pa


def nameless_file(purpose: str) -> int:
    """The descriptor of a new empty file, which is gone when nobody has it any more.

    In memory on Linux; on the disk where the system has no such files.
    """
    try:
        return os.memfd_create(purpose)
    except (AttributeError, OSError):
        with tempfile.TemporaryFile(prefix=purpose) as file:
            return os.dup(file.fileno())


def mapped(descriptor: int) -> pa.Buffer:
    """The content of a file, mapped: read where it is, never copied."""
    import pyarrow as pa

    size = os.fstat(descriptor).st_size
    if not size:
        return pa.py_buffer(b"")
    return pa.py_buffer(mmap.mmap(descriptor, size, access=mmap.ACCESS_READ))


def content(descriptor: int) -> bytes:
    """The content of a file."""
    size = os.fstat(descriptor).st_size
    with os.fdopen(os.dup(descriptor), "rb", buffering=0) as file:
        file.seek(0)
        result = file.read(size) or b""
        while len(result) < size and (more := file.read(size - len(result))):
            result += more
    return result


_HEAD = 8
_LONGEST = 64 << 20
MOST_FILES = 200
"""How many files fit into a frame: the system passes at most 253 at once."""

Frame = dict[str, Any]


class EndOfFramesError(OSError):
    """The other side is gone, or says what is no frame."""


def send(connection: socket.socket, frame: Frame, files: Sequence[int] = ()) -> None:
    """Send ``frame``, and with it the open files of these descriptors; raises OSError."""
    content = json.dumps(frame).encode()
    head = len(content).to_bytes(_HEAD, "little")
    if files:
        socket.send_fds(connection, [head], list(files))
    else:
        connection.sendall(head)
    connection.sendall(content)


def receive(connection: socket.socket) -> tuple[Frame, list[int]]:
    """What `send` sent; the descriptors are the caller's to close. Raises EndOfFramesError."""
    head, files, _, _ = socket.recv_fds(connection, _HEAD, MOST_FILES)
    while head and len(head) < _HEAD:
        head += connection.recv(_HEAD - len(head)) or b"\xff" * _HEAD
    size = int.from_bytes(head[:_HEAD], "little")
    if not head or size > _LONGEST:
        raise EndOfFramesError
    content = bytearray(size)
    view, done = memoryview(content), 0
    while done < size:
        count = connection.recv_into(view[done:])
        if not count:
            raise EndOfFramesError
        done += count
    try:
        frame = json.loads(content)
    except ValueError as error:
        raise EndOfFramesError from error
    if not isinstance(frame, dict):
        raise EndOfFramesError
    return frame, files
