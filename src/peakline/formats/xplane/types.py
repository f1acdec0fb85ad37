"""What the events of a plane are: their metadata, its stats, and the stats of the plane itself."""

from __future__ import annotations

import re
from functools import cache, partial
from typing import TYPE_CHECKING

import numpy as np

from peakline import schema
from peakline.arrays import Int64Array
from peakline.formats.xplane.event_stats import coded_names, value_codes
from peakline.formats.xplane.line_parts import type_bases
from peakline.formats.xplane.outline import Outline
from peakline.tables.columns import Columns, Names
from peakline.wire import Buffer, Decoded, Interner, Plan, Spans, Union, WireTable, decode

if TYPE_CHECKING:
    from peakline.formats.hlo_proto.source import StoredProgram

METADATA = "/host:metadata"
"""The plane that holds the compiled programs."""
_HLO_STATS = ("Hlo Proto", "HLO Proto", "hlo_proto")
_PROGRAM_ID = "program_id"
_UINT64, _INT64, _BYTES = 3, 4, 6
_NUMBERED = re.compile(r"(.*)\((\d{1,20})\)", re.DOTALL)
_BACKENDS = ("gpu", "tpu")

_PATHS = (
    "planes.event_metadata.key",
    "planes.event_metadata.value.name",
    "planes.event_metadata.value.display_name",
    "planes.event_metadata.value.child_id",
    "planes.event_metadata.value.stats.metadata_id",
    "planes.event_metadata.value.stats.value",
    "planes.stats.metadata_id",
    "planes.stats.value",
)


class TypeTables:
    """``event_types``, ``event_type_stats`` and ``plane_stats``, and the compiled programs."""

    __retained__ = "_outline _file _decoded _bases"

    def __init__(self, outline: Outline) -> None:
        self._outline, self._file = outline, outline.file
        self._decoded: Decoded = decode(self._file.buffer, _plan())
        self._bases = type_bases(outline)

    def event_types(self) -> Columns:
        """One row per event metadata; of entries of one id the last counts."""
        entries = self._entries()
        values = self._decoded["planes.event_metadata.value"]
        buffer = self._file.buffer
        keys = self._decoded["planes.event_metadata"].array("key")[entries]
        value = self._value_of(entries)
        texts: dict[str, list[str]] = {}
        for name in ("name", "display_name"):
            spans = values.spans(name)
            texts[name] = [
                "" if row < 0 else spans.take(np.array([row])).texts(buffer)[0]
                for row in value.tolist()
            ]
        counts = np.diff(self._bases)
        return Columns(
            {
                "type_id": np.arange(entries.size, dtype=np.int64),
                "plane_id": np.repeat(np.arange(counts.size, dtype=np.int64), counts),
                "native_id": keys.astype(np.int64),
                "name": Names.encode(texts["name"]),
                "display_name": Names.encode(texts["display_name"]),
            }
        )

    def event_type_stats(self) -> Columns:
        """One row per stat of an event metadata."""
        _, own, plane = self._type_stats()
        return self._stats("type_id", own, plane, "planes.event_metadata.value.stats")

    def _type_stats(self) -> tuple[WireTable, Int64Array, Int64Array]:
        """The stats of event metadata; of each its kind of event (-1 for one that does not count)
        and its plane.
        """
        value = self._value_of(self._entries())
        stats = self._decoded["planes.event_metadata.value.stats"]
        type_of = np.full(self._decoded["planes.event_metadata.value"].rows + 1, -1, np.int64)
        type_of[value[value >= 0]] = np.flatnonzero(value >= 0)
        own = type_of[stats.parent]
        return stats, own, np.searchsorted(self._bases[1:], own, side="right")

    def plane_stats(self) -> Columns:
        """One row per stat of a plane."""
        plane = self._decoded["planes.stats"].parent.astype(np.int64)
        return self._stats("plane_id", plane, plane, "planes.stats")

    def plane_bytes(self, name: str) -> dict[int, bytes]:
        """The bytes of the stat called ``name``, by plane; of several the last counts."""
        stats = self._decoded["planes.stats"]
        value, ids = stats.union("value"), stats.array("metadata_id")
        result = {}
        for row in np.flatnonzero(value.case == _BYTES).tolist():
            plane = int(stats.parent[row])
            if self._outline.planes[plane].stat_names.get(int(ids[row])) == name:
                result[plane] = self._bytes(value, row)
        return result

    def type_bytes(self, name: str) -> dict[int, bytes]:
        """The bytes of the stat called ``name``, by kind of event; of several the last counts."""
        stats, own, plane = self._type_stats()
        value, ids = stats.union("value"), stats.array("metadata_id")
        result = {}
        for row in np.flatnonzero((value.case == _BYTES) & (own >= 0)).tolist():
            if self._outline.planes[int(plane[row])].stat_names.get(int(ids[row])) == name:
                result[int(own[row])] = self._bytes(value, row)
        return result

    def type_children(self) -> dict[int, tuple[int, ...]]:
        """By kind of event the kinds that it consists of; ids that name nothing are left out."""
        children = self._decoded["planes.event_metadata.value.child_id"]
        if not children.rows:
            return {}
        entries = self._entries()
        row_of = self._value_of(entries)
        plane = self._decoded["planes.event_metadata"].parent[entries].tolist()
        keys = self._decoded["planes.event_metadata"].array("key")[entries].tolist()
        kind_of = {pair: kind for kind, pair in enumerate(zip(plane, keys, strict=True))}
        kind_at = {row: kind for kind, row in enumerate(row_of.tolist()) if row >= 0}
        result: dict[int, list[int]] = {}
        pairs = zip(children.parent.tolist(), children.array("value").tolist(), strict=True)
        for row, number in pairs:
            kind = kind_at.get(row, -1)
            child = kind_of.get((plane[kind], number)) if kind >= 0 else None
            if child is not None:
                result.setdefault(kind, []).append(child)
        return {kind: tuple(parts) for kind, parts in result.items()}

    def _bytes(self, value: Union, row: int) -> bytes:
        return Spans(value.bits, value.length).bytes(self._file.buffer, row)

    def programs(self) -> list[StoredProgram]:
        """The compiled programs that the file holds (stat ``Hlo Proto`` of ``/host:metadata``),
        by the number of their metadata.

        A program's number is its stat ``program_id``, else that in its name, else that of its
        metadata (``hlo_proto_map.cc`` and ``xplane_hlo_fixer.cc`` in openxla/xprof).
        """
        from peakline.formats.hlo_proto.source import StoredProgram

        stats = self._decoded["planes.event_metadata.value.stats"]
        value, ids = stats.union("value"), stats.array("metadata_id")
        entry = self._decoded["planes.event_metadata.value"].parent
        plane = self._decoded["planes.event_metadata"].parent
        names = self._decoded["planes.event_metadata.value"].spans("name")
        is_number = (value.case == _INT64) | (value.case == _UINT64)
        rows = np.flatnonzero(is_number | (value.case == _BYTES))
        owners = entry[stats.parent[rows]]
        keys = self._decoded["planes.event_metadata"].array("key")[owners]
        result: dict[tuple[str, int], StoredProgram] = {}
        numbers: dict[int, int] = {}
        programs: list[tuple[int, int, int]] = []
        for at in np.lexsort((keys, plane[owners])).tolist():
            row, owner = int(rows[at]), int(stats.parent[rows[at]])
            outline = self._outline.planes[int(plane[int(owners[at])])]
            if outline.name != METADATA:
                continue
            stat = outline.stat_names.get(int(ids[row]), "")
            if stat == _PROGRAM_ID and is_number[row]:
                numbers[owner] = int(value.bits[row])
            elif stat in _HLO_STATS and not is_number[row]:
                programs.append((row, owner, int(keys[at])))
        for row, owner, key in programs:
            name = names.take(np.array([owner])).texts(self._file.buffer)[0]
            numbered = _NUMBERED.fullmatch(name)
            number = numbers.get(owner, int(numbered[2]) if numbered else key) % 2**64
            own = numbered[1] if numbered else name
            load = partial(self._content, value, row)
            result[own, number] = StoredProgram(own, number, self._backend, load)
        return list(result.values())

    @property
    def _backend(self) -> str:
        """What runs the programs, where the planes name it and only one."""
        kinds = {
            kind
            for plane in self._outline.planes
            for kind in _BACKENDS
            if plane.name.startswith(f"/device:{kind.upper()}:")
        }
        return kinds.pop() if len(kinds) == 1 else ""

    def _content(self, value: Union, row: int) -> Buffer:
        start = int(value.bits[row])
        return self._file.buffer[start : start + int(value.length[row])]

    def _entries(self) -> Int64Array:
        """The rows of the metadata entries that count, by plane and id."""
        entries = self._decoded["planes.event_metadata"]
        order = np.lexsort((np.arange(entries.rows), entries.array("key"), entries.parent))
        plane, key = entries.parent[order], entries.array("key")[order]
        last = np.ones(order.size, np.bool_)
        last[:-1] = (plane[1:] != plane[:-1]) | (key[1:] != key[:-1])
        return order[last].astype(np.int64)

    def _value_of(self, entries: Int64Array) -> Int64Array:
        """The row of each entry's message, -1 for one without."""
        parent = self._decoded["planes.event_metadata.value"].parent
        row = np.full(self._decoded["planes.event_metadata"].rows, -1, np.int64)
        row[parent] = np.arange(parent.size)
        return row[entries]

    def _stats(self, key: str, owner: Int64Array, plane: Int64Array, path: str) -> Columns:
        stats = self._decoded[path]
        chosen = np.flatnonzero(owner >= 0)
        chosen = chosen[np.argsort(owner[chosen], kind="stable")]
        names, texts = Interner(), Interner()
        name = np.full(owner.size, -1, np.int32)
        text = np.full(owner.size, -1, np.int32)
        for number in np.unique(plane[chosen]).tolist():
            rows = chosen[plane[chosen] == number]
            outline = self._outline.planes[number]
            name[rows] = coded_names(stats.array("metadata_id")[rows], names, outline)
            union = stats.union("value").take(rows)
            text[rows] = value_codes(self._file, outline, union, texts)
        return Columns(
            {
                key: owner[chosen],
                "name": Names(name[chosen], names.values),
                "value": Names(text[chosen], texts.values),
            }
        )


@cache
def _plan() -> Plan:
    space = schema.shape("tensorflow.profiler.XSpace")
    return Plan(space, _PATHS, containers=("", "planes"))
