"""Reading a ProfileResponse without parsing it: where the profile lies in its bytes.

An answer may hold a gigabyte. It is a file that nobody else has, and a map of it is looked at where
that is needed: the fields of the outermost message, and what stands around the events of the
profile. What is no part of the profile is then taken out of the file.
"""

from __future__ import annotations

import mmap
import os
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import BinaryIO

import numpy as np

from peakline import schema
from peakline.errors import InputError
from peakline.formats.xplane.detect import why_not_xspace
from peakline.wire import Buffer, Plan, Spans, as_buffer, decode, stream

_BYTES = 12
"""The type of a field that holds bytes (google/protobuf/descriptor.proto)."""
_SPACE = "tensorflow.profiler.XSpace"
_XSPACE_FILE = "xplane.pb"
_BLOCK = 1 << 20


@dataclass(frozen=True)
class ToolFile:
    """A file that an old server made for one tool: its name without the host, and where it lies."""

    name: str
    start: int
    length: int


@dataclass(frozen=True, eq=False)
class Answer:
    """A ProfileResponse. The profile is ``buffer`` at ``xspace``, all spans after one another.

    A message may be split over several occurrences of its field; their merge is the message that
    their bytes make, one after the other.
    """

    buffer: Buffer
    xspace: Spans
    empty_trace: bool
    tool_files: tuple[ToolFile, ...]

    @property
    def size(self) -> int:
        """The length of the profile in bytes."""
        return int(self.xspace.length.sum())


def mapped(stream: BinaryIO) -> Buffer:
    """What was written to ``stream``, a file that nobody else can shorten."""
    descriptor = stream.fileno()
    if not os.fstat(descriptor).st_size:
        return as_buffer(b"")
    return as_buffer(mmap.mmap(descriptor, 0, access=mmap.ACCESS_READ))


def retain(stream: BinaryIO, spans: Spans, check: Callable[[], object]) -> None:
    """Leave only ``spans``, which follow one another, in the file; maps of it are void then.

    In place: there may be no room for a second copy. ``check`` is called now and then, and may
    raise.
    """
    descriptor, size = stream.fileno(), 0
    for start, length in zip(spans.start.tolist(), spans.length.tolist(), strict=True):
        for at in range(start, start + length, _BLOCK):
            check()
            block = memoryview(os.pread(descriptor, min(_BLOCK, start + length - at), at))
            while block:
                written = os.pwrite(descriptor, block, size)
                size, block = size + written, block[written:]
    os.ftruncate(descriptor, size)


def read_answer(content: bytes | Buffer) -> Answer:
    """Find the parts of an answer; InputError when it is no ProfileResponse.

    Servers before emit_xspace may send the profile as a tool's file, ``xplane.pb``.
    """
    buffer = as_buffer(content)
    decoded = decode(buffer, _answer_plan())
    if decoded.damage:
        raise InputError("its answer is damaged, or no ProfileResponse")
    xspace = decoded["xspace"].spans("value")
    files = decoded["tool_data"]
    names = files.spans("name").texts(buffer)
    data = files.spans("data")
    spans = zip(names, data.start.tolist(), data.length.tolist(), strict=True)
    result = tuple(ToolFile(*span) for span in spans)
    empty = bool(decoded[""].array("empty_trace")[0])
    if len(content) and not (len(xspace) or result or decoded[""].array("empty_trace?")[0]):
        raise InputError("its answer holds nothing that a ProfileResponse has")
    if not len(xspace):
        rows = [row for row, file in enumerate(result) if file.name == _XSPACE_FILE]
        xspace = data.take(np.array(rows, dtype=np.int64))
        result = tuple(file for file in result if file.name != _XSPACE_FILE)
    return Answer(buffer, xspace.take(xspace.length > 0), empty, result)


def check_xspace(answer: Answer) -> None:
    """Raise InputError when what stands for the profile is no XSpace."""
    for row in range(len(answer.xspace)):
        start, length = int(answer.xspace.start[row]), int(answer.xspace.length[row])
        reason = why_not_xspace(answer.buffer[start : start + length])
        if reason is not None:
            raise InputError(f"what it sent as the profile is {reason}")
    damage = decode(answer.buffer, _outline_plan(), answer.xspace).damage
    if damage:
        raise InputError(
            f"the profile it sent is damaged in {damage.places} places, "
            f"first at byte {damage.first_offset} of the answer"
        )


def has_events(buffer: Buffer, spans: Spans | None = None) -> bool:
    """Whether an XSpace holds any event; reads no further than the first."""
    parts = stream(buffer, _events_plan(), spans)
    return any(part.tables["planes.lines.events"].rows for part in parts)


@cache
def _answer_plan() -> Plan:
    """The fields of a ProfileResponse, with the profile as bytes that may come several times.

    A plan gives the last occurrence of a field that is not repeated, as parsers do with numbers.
    """
    response = schema.shape("tensorflow.ProfileResponse")
    number = response.fields_by_name["xspace"].number
    paths = ("empty_trace?", "xspace", "tool_data.name", "tool_data.data")
    return Plan(response.with_field(f"xspace {number} {_BYTES} *"), paths)


@cache
def _outline_plan() -> Plan:
    return Plan(schema.shape(_SPACE), ("planes.lines",), containers=("", "planes"))


@cache
def _events_plan() -> Plan:
    containers = ("", "planes", "planes.lines")
    return Plan(schema.shape(_SPACE), ("planes.lines.events.@",), containers=containers)
