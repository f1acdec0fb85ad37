"""The outline of an XSpace: planes, metadata and where the lines lie, without any event.

Where fields lie follows from their tags and lengths alone; nothing is decoded for that, and what no
profiler writes is left to those who decode all: `OddError`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cache, cached_property
from itertools import pairwise

import numpy as np

from peakline import schema
from peakline.arrays import Int32Array, Int64Array
from peakline.deadline import check_deadline
from peakline.formats.common.files import SourceFile
from peakline.formats.xplane.names import HOST_PLANE, is_device_plane, is_host_plane
from peakline.wire import Buffer, Damage, Decoded, Plan, Spans, WireTable, as_buffer, decode
from peakline.wire.tables import varint

_SPACE = b"\x0a\x12\x1a\x22"
"""The tags of an XSpace's fields: planes, errors, warnings, hostnames."""
_PLANES = 0x0A
PLANE_ID, PLANE_NAME, _PLANE_LINES = 0x08, 0x12, 0x1A
"""The tags of the fields of a plane that are written before its metadata."""
_VARINT_BYTES = 10
_MOST_COPIED = 64 << 20
"""Metadata that is larger (whole programs) is better not copied."""

Piece = Callable[[int, int], bytes]
"""The bytes from a place on, so many at most."""


class OddError(Exception):
    """Not the bytes of a whole XSpace, in the usual order."""


def field(piece: Piece, at: int) -> tuple[int, int, int]:
    """The tag at ``at``, the number that follows it, and where that ends."""
    head = piece(at, 1 + _VARINT_BYTES)
    value = 0
    for index in range(1, len(head)):
        byte = head[index]
        value |= (byte & 0x7F) << (7 * index - 7)
        if byte < 0x80:
            return head[0], value, at + index + 1
    raise OddError


def fields(piece: Piece, size: int) -> Iterator[tuple[int, int, int]]:
    """The fields of an XSpace: tag, and from where to where its content goes."""
    at = 0
    while at < size:
        tag, length, start = field(piece, at)
        at = start + length
        if at > size or tag not in _SPACE:
            raise OddError
        yield tag, start, at


def planes(piece: Piece, size: int) -> Iterator[tuple[int, int]]:
    """From where to where each plane goes."""
    for tag, start, end in fields(piece, size):
        if tag == _PLANES:
            yield start, end


def head_fields(piece: Piece, at: int, end: int) -> Iterator[tuple[int, int, int]]:
    """The id, name and lines of a plane that stand before anything else: tag, where the content
    begins (of a number: where it ends), and where the field ends.
    """
    while at < end:
        tag, value, start = field(piece, at)
        if tag in (PLANE_NAME, _PLANE_LINES):
            at = start + value
        elif tag == PLANE_ID:
            at = start
        else:
            return
        if at > end:
            raise OddError
        yield tag, start, at


def without_lines(
    file: SourceFile, most_planes: int, most_lines: int
) -> tuple[Buffer, list[Spans]] | None:
    """The XSpace with no line in front of the metadata of its planes, and where these lines are.

    None for one that is odd, or of which too much would be left, and for more planes or lines.
    """
    left, lines, size = bytearray(), list[Spans](), file.size

    def piece(at: int, most: int) -> bytes:
        most = min(most, size - at)
        if at + most <= len(file.head):
            return file.head[at : at + most]
        return file.read(at, most).tobytes()

    try:
        for tag, start, end in fields(piece, size):
            check_deadline()
            content, after, spans = bytearray(), start, list[tuple[int, int]]()
            for inner, begin, stop in head_fields(piece, start, end) if tag == _PLANES else ():
                if inner == _PLANE_LINES:
                    spans.append((begin, stop - begin))
                else:
                    content += piece(after, stop - after)
                after = stop
            most_lines -= len(spans)
            too_many = len(lines) == most_planes or most_lines < 0
            if too_many or len(left) + len(content) + end - after > _MOST_COPIED:
                return None
            content += piece(after, end - after)
            left += bytes([tag]) + varint(len(content)) + content
            if tag == _PLANES:
                columns = np.array(spans, np.int64).reshape(-1, 2)
                lines.append(Spans(columns[:, 0], columns[:, 1]))
    except OddError:
        return None
    return as_buffer(left), lines


_FEW_IDS, _SPARSE = 1 << 12, 64
"""Ids are looked up in a table where the largest is below this, or so many times their number."""
MOST_PLANES, MOST_LINES = 1 << 10, 1 << 14
"""What is read of an XSpace. A host has a plane per device and some more, and a line per thread."""

_PATHS = (
    "hostnames", "errors", "warnings", "planes.name", "planes.id", "planes.lines",
    "planes.event_metadata.key", "planes.event_metadata.value.name",
    "planes.event_metadata.value.display_name", "planes.stat_metadata.key",
    "planes.stat_metadata.value.name", "planes.stats.metadata_id", "planes.stats.value",
)  # fmt: skip


def most_id(count: int) -> int:
    """The largest id that ``count`` ids may have for a table of them to be in proportion."""
    return max(_FEW_IDS, _SPARSE * count)


@dataclass(frozen=True, eq=False)
class PlaneOutline:
    """One plane: its names, its metadata, and the spans of its lines."""

    index: int
    name: str
    lines: Spans
    first_line: int
    event_names: dict[int, str]
    stat_names: dict[int, str]
    native_id: int
    numbers: dict[str, int]
    """The plane's own integer stats; of equal names the first counts."""

    @property
    def process_id(self) -> int | None:
        """The process the plane's contexts belong to, as int32; None when it does not say."""
        number = self.numbers.get("process_id")
        return None if number is None else (number + 2**31) % 2**32 - 2**31

    @property
    def kind(self) -> str:
        """host, device or other."""
        if is_host_plane(self.name):
            return "host"
        return "device" if is_device_plane(self.name) else "other"

    @property
    def is_tpu(self) -> bool:
        """Whether the plane belongs to a TPU."""
        return self.name.startswith("/device:TPU:")

    @cached_property
    def stat_name_set(self) -> frozenset[str]:
        """Names of all stats the plane declares, used or not."""
        return frozenset(self.stat_names.values())

    @cached_property
    def event_name_set(self) -> frozenset[str]:
        """Names of all events the plane declares, used or not."""
        return frozenset(self.event_names.values())

    @cached_property
    def event_ids(self) -> Int64Array:
        """The ids of all events' metadata, ascending."""
        return np.array(sorted(self.event_names), np.int64)

    @cached_property
    def event_places(self) -> Int32Array | None:
        """The place in `event_ids` by id, -1 for none, as for all that are larger at the end; None
        where ids are too large for a table, or negative.
        """
        ids = self.event_ids
        if ids.size and (ids[0] < 0 or ids[-1] >= most_id(ids.size)):
            return None
        table = np.full(int(ids.max(initial=-1)) + 2, -1, np.int32)
        table[ids] = np.arange(ids.size, dtype=np.int32)
        return table


@dataclass(frozen=True, eq=False)
class Outline:
    """All planes of one XSpace."""

    file: SourceFile
    """What the outline was read from: without the lines, where these could be separated."""
    planes: list[PlaneOutline]
    hostnames: list[str]
    errors: list[str]
    notes: list[str]
    damage: Damage
    planes_left_out: int = 0
    lines_left_out: int = 0

    @cached_property
    def with_lines(self) -> list[PlaneOutline]:
        """The planes that have any."""
        return [plane for plane in self.planes if len(plane.lines)]

    @cached_property
    def host_plane(self) -> PlaneOutline | None:
        """The first plane named /host:CPU."""
        return next((plane for plane in self.planes if plane.name == HOST_PLANE), None)


def read_outline(file: SourceFile) -> Outline:
    """Decode the outline of the XSpace ``file``.

    A file on disk is read without its lines, unless anything in it is damaged, or is not where
    every profiler writes it.
    """
    content = None if file.in_memory else without_lines(file, MOST_PLANES, MOST_LINES)
    if content is not None:
        buffer, lines = content
        decoded = decode(buffer, _plan())
        if not decoded.damage and not decoded["planes.lines"].rows:
            return _outline(file.translated(buffer), decoded, lines)
    decoded = decode(file.buffer, _plan())
    damage, more = decoded.damage, max(decoded["planes"].rows - MOST_PLANES, 0)
    if more:
        file = file.translated(file.buffer[: _end_of_planes(file.buffer)])
        decoded = decode(file.buffer, _plan())
    spans, planes = decoded["planes.lines"].spans("value"), decoded["planes"].rows
    first = np.searchsorted(decoded["planes.lines"].parent, np.arange(planes + 1))
    many = max(int(first[-1]) - MOST_LINES, 0)
    bounds = np.minimum(first, MOST_LINES).tolist()
    lines = [spans.take(np.arange(*pair)) for pair in pairwise(bounds)]
    result = _outline(file, decoded, lines)
    return replace(result, damage=damage, planes_left_out=more, lines_left_out=many)


def _end_of_planes(buffer: Buffer) -> int:
    """Where the last of the planes ends that are read."""
    plan = Plan(schema.shape("tensorflow.profiler.XSpace"), ("planes.@span",))
    span = decode(buffer, plan)["planes"].spans("@span")
    return int(span.start[MOST_PLANES - 1]) + int(span.length[MOST_PLANES - 1])


def _outline(file: SourceFile, decoded: Decoded, lines: list[Spans]) -> Outline:
    """The outline that was decoded from ``file``; ``lines`` are those of each plane."""
    buffer = decoded.buffer
    names = decoded["planes"].spans("name").texts(buffer)
    ids = decoded["planes"].array("id").tolist()
    first = np.cumsum([0, *map(len, lines)]).tolist()
    events = _metadata(decoded, "event_metadata", len(names))
    stats = _metadata(decoded, "stat_metadata", len(names))
    numbers = _numbers(decoded, stats)
    planes = [
        PlaneOutline(
            index,
            name,
            lines[index],
            first[index],
            events[index],
            stats[index],
            ids[index],
            numbers[index],
        )
        for index, name in enumerate(names)
    ]

    def texts(path: str) -> list[str]:
        return decoded[path].spans("value").texts(buffer)

    return Outline(
        file, planes, texts("hostnames"), texts("errors"), texts("warnings"), decoded.damage
    )


@cache
def _plan() -> Plan:
    space = schema.shape("tensorflow.profiler.XSpace")
    return Plan(space, _PATHS, containers=("", "planes"))


def _metadata(decoded: Decoded, which: str, planes: int) -> list[dict[int, str]]:
    """Per plane: id -> name. A repeated id counts as its last entry, as in any protobuf map."""
    entries, values = decoded[f"planes.{which}"], decoded[f"planes.{which}.value"]
    names = [""] * entries.rows
    texts = values.spans("name").texts(decoded.buffer)
    for row, text in zip(values.parent.tolist(), texts, strict=True):
        names[row] = text
    result: list[dict[int, str]] = [{} for _ in range(planes)]
    keys = entries.array("key").tolist()
    for plane, key, name in zip(entries.parent.tolist(), keys, names, strict=True):
        result[plane][key] = name
    return result


def _numbers(decoded: Decoded, stat_names: list[dict[int, str]]) -> list[dict[str, int]]:
    """Per plane its integer stats: int64, or uint64 below 2^63; 0 for any other kind."""
    table: WireTable = decoded["planes.stats"]
    value = table.union("value")
    result: list[dict[str, int]] = [{} for _ in stat_names]
    rows = zip(
        table.parent.tolist(),
        table.array("metadata_id").tolist(),
        value.case.tolist(),
        value.bits.tolist(),
        strict=True,
    )
    for plane, stat, case, bits in rows:
        name = stat_names[plane].get(stat, "")
        unsigned = case == 3 and bits >= 0 and name != "process_id"
        result[plane].setdefault(name, bits if case == 4 or unsigned else 0)
    return result
