"""Cuts a real XSpace file into an event template that can be written again at a later time.

Only the few wire-format rules needed here are implemented (no dependence on the decoder that is
being measured). Field numbers are those of the public ``xplane.proto``: ``XSpace.planes`` 1,
``XPlane`` name 2 / lines 3 / event_metadata 4 / stat_metadata 5, ``XLine`` name 2 / events 4,
``XEvent`` metadata_id 1 / offset_ps 2 / duration_ps 3 / stats 4, ``XStat`` metadata_id 1 /
double 2 / uint64 3 / int64 4.

An event becomes a short program of operations on its bytes:

======== ============================================ =======================================
kind     operands                                     writes
======== ============================================ =======================================
COPY     start, length                                those bytes of the source
NUMBER   value, rule                                  ``rule(value, repetition)`` as a varint
STAT     start, length, value, rule                   a stat: those bytes, then the number
======== ============================================ =======================================
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

COPY, NUMBER, STAT = 0, 1, 2
PICOSECONDS, NANOSECONDS, STEPS, COUNTED, HASHED = 0, 1, 2, 3, 4

_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5

# A context id below this came from a counter, one above it from a hash or a random generator.
_COUNTER_LIMIT = 1 << 32


@dataclass(frozen=True)
class Operation:
    """One operation; ``value`` is unsigned 64-bit (a negative int64 as its two's complement)."""

    kind: int
    start: int = 0
    length: int = 0
    value: int = 0
    rule: int = 0


@dataclass(frozen=True)
class MemoryEvent:
    """An allocation or deallocation: the bytes of its event and the numbers of its stats."""

    line: int
    offset_ps: int
    event: bytes
    is_allocation: bool
    stats: dict[str, int]


@dataclass
class Line:
    """A line: its bytes before and after the events, and one program per event.

    ``closing`` events follow the others in every repetition but the last.
    """

    before: bytes
    after: bytes
    events: list[list[Operation]] = field(default_factory=list)
    closing: list[list[Operation]] = field(default_factory=list)


@dataclass
class Plane:
    """A plane: its bytes before and after the lines. A plane without events is copied whole."""

    before: bytes
    after: bytes
    lines: list[Line]


@dataclass
class Template:
    """A whole file. ``source`` holds the bytes that COPY and STAT operations point into."""

    source: bytes
    planes: list[Plane]
    after: bytes
    strides: dict[int, int]


def encode_varint(value: int) -> bytes:
    """The shortest base-128 form of an unsigned number."""
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def encode_bytes(number: int, payload: bytes) -> bytes:
    """A length-delimited field."""
    return encode_varint(number << 3 | _BYTES) + encode_varint(len(payload)) + payload


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7


def read_fields(data: bytes, at: int, end: int) -> Iterator[tuple[int, int, int, int, int]]:
    """Yield ``(number, field start, value start, value end, varint)`` of a message."""
    while at < end:
        begin = at
        tag, at = _varint(data, at)
        wire_type = tag & 7
        number = value = 0
        if wire_type == _VARINT:
            start = at
            value, at = _varint(data, at)
        elif wire_type == _BYTES:
            length, start = _varint(data, at)
            at = start + length
        elif wire_type in (_FIXED64, _FIXED32):
            start = at
            at += 8 if wire_type == _FIXED64 else 4
        else:
            raise ValueError(f"wire type {wire_type} at {begin}")
        number = tag >> 3
        yield number, begin, start, at, value


def _metadata_names(data: bytes, start: int, end: int, map_field: int) -> dict[int, str]:
    """``{id: name}`` of a plane's event (4) or stat (5) metadata map."""
    names = {}
    for number, _, entry, entry_end, _ in read_fields(data, start, end):
        if number != map_field:
            continue
        key, name = 0, ""
        for part, _, value, value_end, varint in read_fields(data, entry, entry_end):
            if part == 1:
                key = varint
            elif part == 2:
                for sub, _, text, text_end, _ in read_fields(data, value, value_end):
                    if sub == 2:
                        name = data[text:text_end].decode()
        names[key] = name
    return names


def _stat_rule(stat: str, event: str, value: int) -> int | None:
    """How a stat's number changes from one repetition to the next; None when it does not.

    Ids that name one run of something (a step, a function run, a context, a tf.data element)
    must differ between repetitions, or step grouping would join all of them into one group.
    Ids that name a thing that lives on (a tf.data iterator), and the 0 that stands for "no
    step" on memory events, stay as they are.
    """
    if stat in ("_p", "_c") or (stat == "id" and value and not event.startswith("Iterator::")):
        return COUNTED if value < _COUNTER_LIMIT else HASHED
    return {"step_num": STEPS, "element_id": NANOSECONDS}.get(stat)


class PlaneReader:
    """Turns the events of one plane into programs and notes what spans the repetition."""

    def __init__(self, data: bytes, start: int, end: int, *, repeated_ids: bool) -> None:
        self.data = data
        self.repeated_ids = repeated_ids
        self.event_names = _metadata_names(data, start, end, 4)
        self.stat_names = _metadata_names(data, start, end, 5)
        self.end_ps = 0
        self.strides = {STEPS: 1, COUNTED: 1}
        self.memory_events: list[MemoryEvent] = []

    def line(self, index: int, start: int, end: int) -> Line:
        """The line whose bytes are ``[start, end)``."""
        line = Line(b"", b"")
        head, tail = bytearray(), bytearray()
        for number, begin, value_start, value_end, _ in read_fields(self.data, start, end):
            if number == 4:
                line.events.append(self.program(index, value_start, value_end))
            else:
                (tail if line.events else head).extend(self.data[begin:value_end])
        line.before, line.after = bytes(head), bytes(tail)
        return line

    def program(self, line: int, start: int, end: int) -> list[Operation]:
        """The operations that write the event whose bytes are ``[start, end)``."""
        operations: list[Operation] = []
        numbers: dict[str, int] = {}
        name, offset, duration = "", 0, 0
        for number, begin, value_start, value_end, varint in read_fields(self.data, start, end):
            if number == 1:
                name = self.event_names.get(varint, "")
            elif number == 2:
                offset = varint
                _copy(operations, begin, value_start)
                operations.append(Operation(NUMBER, value=offset, rule=PICOSECONDS))
                continue
            elif number == 3:
                duration = varint
            elif number == 4 and (stat := self._stat(name, value_start, value_end, numbers)):
                operations.append(stat)
                continue
            _copy(operations, begin, value_end)
        self.end_ps = max(self.end_ps, offset + duration)
        if name in ("MemoryAllocation", "MemoryDeallocation"):
            event = self.data[start:end]
            self.memory_events.append(
                MemoryEvent(line, offset, event, name == "MemoryAllocation", numbers)
            )
        return operations

    def _stat(self, event: str, start: int, end: int, numbers: dict[str, int]) -> Operation | None:
        stat = ""
        for number, _, value_start, value_end, varint in read_fields(self.data, start, end):
            if number == 1:
                stat = self.stat_names.get(varint, "")
            elif number in (3, 4):
                numbers[stat] = varint
                rule = None if self.repeated_ids else _stat_rule(stat, event, varint)
                if rule is None or value_end != end:
                    return None
                if rule in self.strides:
                    self.strides[rule] = max(self.strides[rule], varint + 1)
                return Operation(STAT, start, value_start - start, varint, rule)
        return None


def _copy(operations: list[Operation], start: int, end: int) -> None:
    """Append a COPY, joined to the one before where the bytes are neighbours."""
    if operations and operations[-1].kind == COPY:
        last = operations[-1]
        if last.start + last.length == start:
            operations[-1] = Operation(COPY, last.start, end - last.start)
            return
    operations.append(Operation(COPY, start, end - start))


def read_template(data: bytes, *, repeated_ids: bool = False) -> Template:
    """Cut ``data`` (an uncompressed XSpace) into a template, with ``repeated_ids`` of times alone.

    A repetition lasts as long as the profile, up to the next millisecond but one: whole
    milliseconds keep the shifted times exact in picoseconds and nanoseconds, and the gap keeps
    an event of one repetition from enclosing an event of the next.
    """
    planes: list[Plane] = []
    readers: list[PlaneReader] = []
    after = bytearray()
    for number, begin, start, end, _ in read_fields(data, 0, len(data)):
        if number != 1:
            after += data[begin:end]
            continue
        reader = PlaneReader(data, start, end, repeated_ids=repeated_ids)
        head, tail, lines = bytearray(), bytearray(), []
        for part, part_begin, part_start, part_end, _ in read_fields(data, start, end):
            if part == 3:
                lines.append(reader.line(len(lines), part_start, part_end))
            else:
                (tail if lines else head).extend(data[part_begin:part_end])
        planes.append(Plane(bytes(head), bytes(tail), lines))
        readers.append(reader)
    period_ps = (max(reader.end_ps for reader in readers) // 10**9 + 2) * 10**9
    strides = {
        PICOSECONDS: period_ps,
        NANOSECONDS: period_ps // 1000,
        STEPS: max(reader.strides[STEPS] for reader in readers),
        COUNTED: max(reader.strides[COUNTED] for reader in readers),
    }
    template = Template(data, planes, bytes(after), strides)
    for plane, reader in zip(planes, readers, strict=True):
        _close_memory(template, plane, reader)
    return template


def _close_memory(template: Template, plane: Plane, reader: PlaneReader) -> None:
    """Give ``plane`` closing events that bring every allocator back to where it began.

    A profile begins with buffers it did not see allocated and ends with some it did not see
    freed. Repeated as it is, it would allocate live addresses again and the in-use figures would
    jump at each seam. So the buffers live at the end are freed, and those that were freed
    without an allocation are allocated again, one microsecond apart after the last event.
    """
    events = sorted(reader.memory_events, key=lambda event: event.offset_ps)
    if not events:
        return
    live: dict[int, MemoryEvent] = {}
    lost: list[MemoryEvent] = []
    for event in events:
        if event.is_allocation:
            live[event.stats["addr"]] = event
        elif live.pop(event.stats["addr"], None) is None:
            lost.append(event)
    names = {name: key for key, name in reader.event_names.items()}
    in_use, offset = events[-1].stats["bytes_allocated"], reader.end_ps
    total = in_use + events[-1].stats["bytes_available"]
    model = next(event for event in reversed(events) if not event.is_allocation)
    for event in [*live.values(), *lost]:
        size = event.stats["allocation_bytes"]
        in_use += -size if event.is_allocation else size
        offset += 10**6
        numbers = event.stats | {"bytes_allocated": in_use, "bytes_available": total - in_use}
        kind = "MemoryDeallocation" if event.is_allocation else "MemoryAllocation"
        closing = _memory_event(reader, model, names[kind], offset, numbers)
        start = len(template.source)
        template.source += closing
        reader.data = template.source
        plane.lines[event.line].closing.append(
            reader.program(event.line, start, len(template.source))
        )


def _memory_event(
    reader: PlaneReader, model: MemoryEvent, metadata_id: int, offset: int, numbers: dict[str, int]
) -> bytes:
    """``model`` with another name and time, and its int64 stats taken from ``numbers``."""
    event = bytearray(b"\x08" + encode_varint(metadata_id) + b"\x10" + encode_varint(offset))
    for part, begin, start, end, _ in read_fields(model.event, 0, len(model.event)):
        if part in (1, 2):
            continue
        stat, name = model.event[start:end], ""
        for number, value_begin, _, _, varint in read_fields(stat, 0, len(stat)):
            if number == 1:
                name = reader.stat_names.get(varint, "")
            elif number == 4:
                stat = stat[:value_begin] + b"\x20" + encode_varint(numbers[name])
        event += encode_bytes(4, stat) if part == 4 else model.event[begin:end]
    return bytes(event)
