"""Compiled programs as messages, of large ones one computation at a time.

Messages of protobuf's runtime need eleven times the bytes that they are read from. So of a large
program there is only the message of what it says beside its computations, and that of the
computation in hand: each is read when it is wanted, and anew when it is wanted again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple, overload

import numpy as np

from peakline import schema
from peakline.wire import Buffer, as_buffer

if TYPE_CHECKING:
    from google.protobuf.descriptor import Descriptor

    from peakline.arrays import Int64Array
    from peakline.schema import HloComputationProto, HloModuleProto

    Change = Callable[[HloComputationProto], object]

LARGE = 1 << 20
"""Bytes above which a message is read in parts."""
_MODULE, _COMPUTATIONS = 1, 3
"""HloProto.hlo_module, HloModuleProto.computations."""
_VARINT, BYTES = 0, 2
_FIXED = {1: 8, 5: 4}


class WireField(NamedTuple):
    """A field of a message: number, type on the wire, where its tag begins, and its content."""

    number: int
    wire: int
    begin: int
    start: int
    end: int


def fields(data: memoryview) -> Iterator[WireField]:
    """The fields of a message in their order.

    Raises DecodeError at what is none, and at groups, which no program has.
    """
    from google.protobuf.message import DecodeError

    at, size = 0, len(data)
    while at < size:
        begin = at
        tag, start = _varint(data, at)
        wire = tag & 7
        if wire == _VARINT:
            _, at = _varint(data, start)
        elif wire == BYTES:
            length, start = _varint(data, start)
            at = start + length
        else:
            at = start + _FIXED.get(wire, size)
        if at > size:
            raise DecodeError("the message is cut")
        yield WireField(tag >> 3, wire, begin, start, at)


def _varint(data: memoryview, at: int) -> tuple[int, int]:
    """The number at a place, and where it ends."""
    if at < len(data) and (value := data[at]) < 0x80:  # most are of one byte
        return value, at + 1
    from google.protobuf.message import DecodeError

    value = 0
    for shift, byte in enumerate(data[at : at + 10]):
        value |= (byte & 0x7F) << 7 * shift
        if byte < 0x80:
            return value, at + shift + 1
    raise DecodeError("no number")


def messages_below(kind: Descriptor) -> dict[int, Descriptor]:
    """The messages that fields of one hold, by the number of the field; entries of maps are none
    of these.
    """
    return {
        field.number: field.message_type
        for field in kind.fields
        if field.message_type is not None and not field.message_type.GetOptions().map_entry
    }


@dataclass(frozen=True)
class ModuleParts:
    """A program: ``head`` is its message, and ``computations`` are in place of those in it."""

    head: HloModuleProto
    computations: Sequence[HloComputationProto]

    @classmethod
    def of(cls, module: HloModuleProto) -> ModuleParts:
        """A program of which the whole message is there."""
        return cls(module, module.computations)

    def changed(self, change: Change) -> ModuleParts:
        """The program with its computations as ``change`` leaves them."""
        if isinstance(self.computations, _Stored):
            return replace(self, computations=self.computations.changed(change))
        for one in self.computations:
            change(one)
        return self

    def whole(self) -> HloModuleProto:
        """The message of all of it."""
        if isinstance(self.computations, _Stored):
            self.head.computations.extend(self.computations)
        return self.head


def read_module(data: bytes | Buffer) -> ModuleParts | None:
    """The program of a serialized HloProto; None where the bytes are none."""
    from google.protobuf.message import DecodeError

    view = as_buffer(data).data
    try:
        if len(view) <= LARGE:
            return ModuleParts.of(schema.HloProto.FromString(view.tobytes()).hlo_module)
        _check(schema.descriptor("xla.HloProto"), view)
        return _split(view)
    except DecodeError:
        return None


def _check(kind: Descriptor, data: memoryview) -> None:
    """Raises DecodeError where the bytes are no such message."""
    if len(data) <= LARGE:
        schema.message(kind.full_name).FromString(data.tobytes())
        return
    below, message, begin = messages_below(kind), schema.message(kind.full_name), 0
    for field in fields(data):
        is_large = field.end - field.start > LARGE
        if is_large or field.end - begin > LARGE:
            message.FromString(data[begin : field.begin].tobytes())
            begin = field.begin
        if is_large and field.number in below and field.wire == BYTES:
            _check(below[field.number], data[field.start : field.end])
            begin = field.end
    message.FromString(data[begin:].tobytes())


def _split(data: memoryview) -> ModuleParts:
    head = bytearray()
    spans: list[tuple[int, int]] = []
    for module in fields(data):
        if (module.number, module.wire) != (_MODULE, BYTES):
            continue
        for field in fields(data[module.start : module.end]):
            begin, start, end = (module.start + at for at in field[2:])
            if (field.number, field.wire) == (_COMPUTATIONS, BYTES):
                spans.append((start, end))
            else:
                head += data[begin:end]
    places = np.array(spans, np.int64).reshape(-1, 2)
    return ModuleParts(schema.HloModuleProto.FromString(bytes(head)), _Stored(data, places))


class _Stored(Sequence["HloComputationProto"]):
    """Computations that are read whenever one is wanted."""

    def __init__(
        self, data: memoryview, places: Int64Array, changes: tuple[Change, ...] = ()
    ) -> None:
        self._data, self._places, self._changes = data, places, changes

    def changed(self, change: Change) -> _Stored:
        """The same computations, changed once more."""
        return _Stored(self._data, self._places, (*self._changes, change))

    def __len__(self) -> int:
        return len(self._places)

    @overload
    def __getitem__(self, place: int) -> HloComputationProto: ...
    @overload
    def __getitem__(self, place: slice) -> _Stored: ...
    def __getitem__(self, place: int | slice) -> HloComputationProto | _Stored:
        if isinstance(place, slice):
            return _Stored(self._data, self._places[place], self._changes)
        start, end = self._places[place].tolist()
        one = schema.HloComputationProto.FromString(self._data[start:end].tobytes())
        for change in self._changes:
            change(one)
        return one
