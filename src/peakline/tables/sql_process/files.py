"""Files without a name: memory that processes share by passing its descriptor."""

from __future__ import annotations

import mmap
import os
import tempfile
from typing import TYPE_CHECKING

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
        found = file.read(size) or b""
        while len(found) < size and (more := file.read(size - len(found))):
            found += more
    return found
