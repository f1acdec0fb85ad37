"""Writing memory logs: one method per message of log_memory.proto, as text or binary.

    with MemoryLog("run.memlog") as log:
        log.record_step(1, "x:0->loss:0/train/0/;0")
        tensor = Tensor("float", (64, 64), "gpu:0", requested_bytes=16384, allocation_id=7)
        log.record_tensor_allocation("layer/MatMul", 1, tensor)
        log.record_tensor_deallocation(7, "gpu:0")

The methods are those of TensorFlow's LogMemory, so that any runtime can emit what TensorFlow
does. The text form is TensorFlow's own, a line per record, and may share a stream with other
output; the binary form is peakline.MemoryLog, whose files may be appended to and concatenated.
"""

from __future__ import annotations

import io
import os
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import IO, Any, Self

from google.protobuf import text_format
from google.protobuf.message import Message

from peakline import schema
from peakline.errors import OutputError, UsageError

__all__ = ["MemoryLog", "Tensor"]

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_LAST_YEAR_NS = (datetime(9999, 12, 31, tzinfo=UTC) - _EPOCH) // timedelta(microseconds=1) * 1000


@dataclass(frozen=True)
class Tensor:
    """A tensor and the buffer behind it (TensorDescription, AllocationDescription).

    ``data_type`` is a DataType's name (``float``, ``DT_FLOAT``) or number; ``shape`` the sizes
    of the dimensions, -1 for an unknown one, or None for an unknown rank. 0 and False stand for
    what is not known; without an ``allocation_id`` the buffer cannot be followed.
    """

    data_type: str | int
    shape: Sequence[int] | None
    allocator_name: str
    requested_bytes: int
    allocated_bytes: int = 0
    allocation_id: int = 0
    ptr: int = 0
    has_single_reference: bool = False

    def description(self) -> Message:
        """The tensorflow.TensorDescription; raises UsageError for an unknown ``data_type``."""
        message = schema.TensorDescription(dtype=_data_type(self.data_type))
        if self.shape is None:
            message.shape.unknown_rank = True
        else:
            message.shape.SetInParent()
            for size in self.shape:
                message.shape.dim.add(size=size)
        buffer = message.allocation_description
        buffer.requested_bytes = self.requested_bytes
        buffer.allocated_bytes = self.allocated_bytes
        buffer.allocator_name = self.allocator_name
        buffer.allocation_id = self.allocation_id
        buffer.ptr = self.ptr
        buffer.has_single_reference = self.has_single_reference
        return message


class MemoryLog:
    """A memory log being written to a path or to an open stream.

    ``text`` chooses the form. A path is created anew unless ``append``; a stream is left open,
    and may be one of characters (``sys.stderr``) for the text form. Records are written whole
    and at once, by any thread. Every method takes ``time_ns``, nanoseconds since the epoch (now
    by default, 0 for not known), and ``thread_id`` (the calling thread by default, 0 for not
    known). The text form keeps whole microseconds and no thread.

    Raises UsageError for what cannot be written: a wrong argument, a closed log; OutputError
    where the disk is full. A file then ends with the last whole record.
    """

    def __init__(
        self,
        target: str | os.PathLike[str] | IO[bytes] | IO[str],
        *,
        text: bool = False,
        append: bool = False,
    ) -> None:
        self._text = text
        self._lock = threading.Lock()
        self._closed = False
        self._stream: Any
        self._owned = isinstance(target, str | os.PathLike)
        if isinstance(target, str | os.PathLike):
            try:
                # Unbuffered: a record is in the file when the method returns.
                self._stream = Path(target).open(  # noqa: SIM115 (closed by `close`)
                    "ab" if append else "wb", buffering=0
                )
            except OSError as error:
                raise UsageError(f"{target}: cannot be written: {error.strerror}") from None
        else:
            self._stream = target
        self._characters = isinstance(self._stream, io.TextIOBase)
        if self._characters and not text:
            raise UsageError("a binary memory log needs a stream of bytes")

    def record_step(
        self, step_id: int, handle: str, *, time_ns: int | None = None, thread_id: int | None = None
    ) -> None:
        """A step begins; ``handle`` names its feeds, fetches and targets."""
        self._write("step", time_ns, thread_id, step_id=step_id, handle=handle)

    def record_tensor_allocation(
        self,
        kernel_name: str,
        step_id: int,
        tensor: Tensor,
        *,
        time_ns: int | None = None,
        thread_id: int | None = None,
    ) -> None:
        """A kernel's tensor got a new buffer."""
        self._write(
            "tensor_allocation", time_ns, thread_id,
            step_id=step_id, kernel_name=kernel_name, tensor=tensor,
        )  # fmt: skip

    def record_tensor_deallocation(
        self,
        allocation_id: int,
        allocator_name: str,
        *,
        time_ns: int | None = None,
        thread_id: int | None = None,
    ) -> None:
        """The last reference to a tensor's buffer was dropped."""
        self._write(
            "tensor_deallocation", time_ns, thread_id,
            allocation_id=allocation_id, allocator_name=allocator_name,
        )  # fmt: skip

    def record_tensor_output(
        self,
        kernel_name: str,
        step_id: int,
        index: int,
        tensor: Tensor,
        *,
        time_ns: int | None = None,
        thread_id: int | None = None,
    ) -> None:
        """A kernel set its output number ``index``; the buffer may be older than the kernel."""
        self._write(
            "tensor_output", time_ns, thread_id,
            step_id=step_id, kernel_name=kernel_name, index=index, tensor=tensor,
        )  # fmt: skip

    def record_raw_allocation(
        self,
        operation: str,
        step_id: int,
        num_bytes: int,
        ptr: int,
        allocation_id: int,
        allocator_name: str,
        *,
        time_ns: int | None = None,
        thread_id: int | None = None,
    ) -> None:
        """Memory was taken that is not a tensor's buffer."""
        self._write(
            "raw_allocation", time_ns, thread_id,
            step_id=step_id, operation=operation, num_bytes=num_bytes, ptr=ptr,
            allocation_id=allocation_id, allocator_name=allocator_name,
        )  # fmt: skip

    def record_raw_deallocation(
        self,
        operation: str,
        step_id: int,
        allocation_id: int,
        allocator_name: str,
        *,
        deferred: bool = False,
        time_ns: int | None = None,
        thread_id: int | None = None,
    ) -> None:
        """Such memory was given back; after a ``deferred`` record another without it follows."""
        self._write(
            "raw_deallocation", time_ns, thread_id,
            step_id=step_id, operation=operation,
            allocation_id=allocation_id, allocator_name=allocator_name, deferred=deferred,
        )  # fmt: skip

    def flush(self) -> None:
        """Pass on what the stream itself holds back."""
        with self._lock:
            self._check_open()
            self._stream.flush()

    def close(self) -> None:
        """End the log; closes what was opened by path."""
        with self._lock:
            if not self._closed:
                self._closed = True
                if self._owned:
                    self._stream.close()
                else:
                    self._stream.flush()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _write(
        self, kind: str, time_ns: int | None, thread_id: int | None, **fields: object
    ) -> None:
        when = time.time_ns() if time_ns is None else time_ns
        thread = threading.get_native_id() if thread_id is None else thread_id
        try:
            record = schema.MemoryLogRecord(time_ns=when, thread_id=thread)
            message = getattr(record, kind)
            # Present even where every field has its default.
            message.SetInParent()
            tensor = fields.pop("tensor", None)
            for name, value in fields.items():
                setattr(message, name, value)
            if isinstance(tensor, Tensor):
                message.tensor.CopyFrom(tensor.description())
            data = _line(message, when) if self._text else _framed(record)
        except (TypeError, ValueError) as error:
            raise UsageError(f"{kind}: {' '.join(str(error).split())}") from None
        with self._lock:
            self._check_open()
            end = self._end()
            try:
                self._put(data)
            except OSError as error:
                if end is not None:
                    with suppress(OSError):
                        self._stream.truncate(end)
                        self._stream.seek(end)
                raise OutputError(f"a record cannot be written: {error.strerror}") from error

    def _end(self) -> int | None:
        """Where the next record begins in a file of ours; None for a pipe, or what is not ours."""
        if not self._owned or not self._stream.seekable():
            return None
        return int(self._stream.seek(0, os.SEEK_END))

    def _put(self, data: bytes) -> None:
        """Write all of ``data``; the caller holds the lock."""
        if self._characters:
            self._stream.write(data.decode("ascii"))
        else:
            rest = memoryview(data)
            while rest:
                # An unbuffered stream may take a part; others say nothing or all.
                taken = self._stream.write(rest)
                rest = rest[len(rest) if taken is None else taken :]
        self._stream.flush()

    def _check_open(self) -> None:
        if self._closed:
            raise UsageError("the memory log is closed")


def _data_type(data_type: str | int) -> int:
    if isinstance(data_type, int):
        return data_type
    name = data_type.upper()
    try:
        return int(schema.DataType.Value(name if name.startswith("DT_") else f"DT_{name}"))
    except ValueError:
        raise UsageError(f"no data type {data_type!r}; DataType has float, int32, ...") from None


def _framed(record: schema.MemoryLogRecord) -> bytes:
    """The record as an element of peakline.MemoryLog."""
    return schema.MemoryLog(record=[record]).SerializeToString()


def _line(message: Message, time_ns: int) -> bytes:
    """The line TensorFlow prints; without the date where the time is not known."""
    if not 0 <= time_ns <= _LAST_YEAR_NS:
        raise ValueError(f"time_ns is {time_ns}: text has the years 1970 to 9999")
    when = ""
    if time_ns:
        moment = _EPOCH + timedelta(microseconds=time_ns // 1000)
        when = f"{moment:%Y-%m-%d %H:%M:%S.%f}: "
    text = text_format.MessageToString(message, as_utf8=False, as_one_line=True)
    line = f"{when}I peakline] __LOG_MEMORY__ {message.DESCRIPTOR.name} {{ {text} }}\n"
    return line.encode("ascii")
