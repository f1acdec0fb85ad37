"""The outline of an XSpace: planes, metadata and where the lines lie, without any event."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache, cached_property
from itertools import pairwise

import numpy as np

from peakline import schema
from peakline.arrays import Int32Array, Int64Array
from peakline.formats.common.files import SourceFile
from peakline.formats.xplane.names import HOST_PLANE, is_device_plane, is_host_plane
from peakline.formats.xplane.skim import without_lines
from peakline.wire import Buffer, Damage, Decoded, Plan, Spans, WireTable, decode

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
    found = _outline(file, decoded, lines)
    return replace(found, damage=damage, planes_left_out=more, lines_left_out=many)


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
    found: list[dict[int, str]] = [{} for _ in range(planes)]
    keys = entries.array("key").tolist()
    for plane, key, name in zip(entries.parent.tolist(), keys, names, strict=True):
        found[plane][key] = name
    return found


def _numbers(decoded: Decoded, stat_names: list[dict[int, str]]) -> list[dict[str, int]]:
    """Per plane its integer stats: int64, or uint64 below 2^63; 0 for any other kind."""
    table: WireTable = decoded["planes.stats"]
    value = table.union("value")
    found: list[dict[str, int]] = [{} for _ in stat_names]
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
        found[plane].setdefault(name, bits if case == 4 or unsigned else 0)
    return found
