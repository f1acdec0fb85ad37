"""Profiles in pprof's format: what heaps hold, and by which call stacks it was allocated.

Source of the format: ``proto/profile.proto`` in google/pprof.
"""

from __future__ import annotations

from collections.abc import Callable
from collections.abc import Set as AbstractSet
from functools import cached_property

import numpy as np

from peakline import schema
from peakline.arrays import AnyArray, BoolArray, Int64Array
from peakline.errors import DamagedError
from peakline.formats.common.files import SourceFile
from peakline.formats.common.reader import FileReader
from peakline.formats.pprof.stacks import PATHS, Stacks, read_stacks
from peakline.tables.columns import Columns, Names
from peakline.tables.reader import Warnings
from peakline.wire import Plan, decode

_PLAN_PATHS = (
    *PATHS,
    "sample_type.type",
    "sample_type.unit",
    "default_sample_type",
    "sample.value",
    "sample.label.key",
    "sample.label.str",
    "string_table",
    "duration_nanos",
)
_UNITS = {"bytes": 1, "byte": 1, "b": 1, "kb": 1 << 10, "kilobytes": 1 << 10, "mb": 1 << 20,
          "megabytes": 1 << 20}  # fmt: skip
_LIVE_SPACE = ("inuse_space", "inuse", "space", "live_space", "memory", "heap")
_COUNTS = {"inuse_space": ("inuse_objects",), "alloc_space": ("alloc_objects",)}
_ANY_COUNT = ("objects", "allocations", "inuse_objects", "count")
_DEVICE, _KIND = "device", "kind"


class PprofReader(FileReader):
    """One ``perftools.profiles.Profile``.

    A heap has one row of ``buffers`` per sample that holds memory: the sum of ``count`` buffers
    with the same call stack and labels, live at the end and begun at an unknown time. The
    allocator is the label ``device`` (JAX), the region type the label ``kind``, or else the
    labels there are; the op is the caller's frame outside the libraries. A profile of something
    else has only its stacks.
    """

    __retained__ = "_file _profile _strings _types _stacks"

    def __init__(self, file: SourceFile, form: str = "pprof") -> None:
        super().__init__(file, form)
        plan = Plan(schema.shape("perftools.profiles.Profile"), _PLAN_PATHS)
        self._profile = decode(file.buffer, plan)
        self._strings = self._profile["string_table"].spans("value").texts(file.buffer)
        self._types = self._sample_types()
        damage = self._profile.damage
        if damage and not (self._profile["sample"].rows and any(kind for kind, _ in self._types)):
            # The names of the values stand at the end.
            raise DamagedError(
                f"{file.path}: damaged at offset {damage.first_offset}; what is whole does not "
                "tell what the profile measures",
                damage.first_offset,
            )
        self._space = self._find_space()
        self._told = False

    @property
    def tables(self) -> frozenset[str]:
        """``stacks``, and ``buffers`` where the profile holds memory."""
        return frozenset(("stacks",) if self._space is None else ("stacks", "buffers"))

    def read(
        self,
        table: str,
        warnings: Warnings,
        columns: AbstractSet[str] | None = None,  # noqa: ARG002 (all are at hand)
    ) -> Columns:
        """Read one table."""
        read: dict[str, Callable[[], Columns]] = {
            "stacks": self._stacks.table,
            "buffers": self._buffers,
        }
        found = read[table]()
        if not self._told:
            self._told = True
            self._report(warnings)
        return found

    def duration_ps(self) -> int:
        """What the file says; heaps are moments and say 0."""
        nanos = self._profile[""].array("duration_nanos")
        return max(int(nanos[0]), 0) * 1000 if nanos.size else 0

    # What the values are.

    def _text(self, number: int) -> str:
        return self._strings[number] if 0 <= number < len(self._strings) else ""

    def _sample_types(self) -> list[tuple[str, str]]:
        table = self._profile["sample_type"]
        pairs = zip(table.array("type").tolist(), table.array("unit").tolist(), strict=True)
        return [(self._text(kind), self._text(unit)) for kind, unit in pairs]

    def _find_space(self) -> int | None:
        """Which value is the bytes that are live: by its name, else the default, else the first."""
        sizes = [n for n, (_, unit) in enumerate(self._types) if unit.lower() in _UNITS]
        by_name = {self._types[n][0]: n for n in reversed(sizes)}
        default = self._profile[""].array("default_sample_type").tolist()
        wished = [*_LIVE_SPACE, *(self._text(number) for number in default if number)]
        return next((by_name[name] for name in wished if name in by_name), min(sizes, default=None))

    def _find_count(self, space: int) -> int | None:
        """Which value counts what ``space`` measures."""
        names = [kind for kind, _ in self._types]
        for name in (*_COUNTS.get(names[space], ()), *_ANY_COUNT):
            if name in names:
                return names.index(name)
        return None

    def _values(self, number: int) -> Int64Array:
        """One value of every sample, 0 where a sample has fewer."""
        table = self._profile["sample.value"]
        sample = table.parent.astype(np.int64)
        starts = np.searchsorted(sample, np.arange(self._profile["sample"].rows))
        position = np.arange(sample.size) - starts[sample]
        found = np.zeros(self._profile["sample"].rows, np.int64)
        mine = position == number
        found[sample[mine]] = table.array("value")[mine]
        return found

    def _sizes(self, space: int) -> Int64Array:
        return self._values(space) * _UNITS[self._types[space][1].lower()]

    # The tables.

    @cached_property
    def _stacks(self) -> Stacks:
        return read_stacks(self._profile, self._strings)

    def _labels(self) -> tuple[list[str], list[str | None]]:
        """Allocator and region type of every sample."""
        count = self._profile["sample"].rows
        devices, kinds = [""] * count, [""] * count
        others: dict[int, list[str]] = {}
        table = self._profile["sample.label"]
        columns = (table.parent, table.array("key"), table.array("str"))
        for sample, key_number, text_number in zip(*(c.tolist() for c in columns), strict=True):
            key, text = self._text(key_number), self._text(text_number)
            if key == _DEVICE:
                devices[sample] = text
            elif key == _KIND:
                kinds[sample] = text
            elif text:
                others.setdefault(sample, []).append(f"{key}={text}")
        regions = [
            kind or ", ".join(others.get(sample, ())) or None for sample, kind in enumerate(kinds)
        ]
        return devices, regions

    def _buffers(self) -> Columns:
        space = self._space
        if space is None:
            raise TypeError("a profile without memory has no buffers")
        size = self._sizes(space)
        count_type = self._find_count(space)
        count = np.zeros(size.size, np.int64)
        if count_type is not None:
            count = self._values(count_type)
        # A heap also lists stacks whose memory is all freed again, and what has no known size.
        rows = np.flatnonzero(size > 0)
        devices, regions = self._labels()
        stacks = self._stacks
        callers = [*stacks.callers(), None]
        stack = stacks.of_sample[rows]
        data: dict[str, AnyArray | Names] = {
            "buffer_id": np.arange(rows.size, dtype=np.int64),
            "allocator": Names.encode([devices[row] for row in rows.tolist()]),
            "op": Names.encode([callers[number] for number in stack.tolist()]),
            "region_type": Names.encode([regions[row] for row in rows.tolist()]),
            "allocated_bytes": size[rows],
            "stack_id": stack,
            "count": count[rows],
        }
        known = np.full(rows.size, count_type is not None, np.bool_)
        return Columns(data, {"stack_id": stack >= 0, "count": known})

    def _report(self, warnings: Warnings) -> None:
        damage = self._profile.damage
        warnings.add(
            "damaged",
            f"first at offset {damage.first_offset}; {damage.skipped_bytes} bytes skipped",
            damage.places,
        )
        warnings.add(
            "missing_locations",
            "references to locations and functions that the file lacks",
            self._stacks.missing,
        )
        samples = self._profile["sample"].rows
        told = np.bincount(self._profile["sample.value"].parent.astype(np.int64), minlength=samples)
        warnings.add(
            "sample_values",
            f"samples with more or fewer than {len(self._types)} values; what lacks is taken as 0",
            int((told != len(self._types)).sum()),
        )
        if self._space is not None:
            self._report_unknown(warnings, self._sizes(self._space) < 0)
        else:
            types = ", ".join(f"{kind}/{unit}" for kind, unit in self._types) or "nothing"
            warnings.add("no_memory_values", f"the profile measures {types}, not memory")

    def _report_unknown(self, warnings: Warnings, unknown: BoolArray) -> None:
        """Samples below 0 bytes: an executable that cannot tell the size of its code has -1."""
        _, regions = self._labels()
        kinds = dict.fromkeys(regions[row] for row in np.flatnonzero(unknown).tolist())
        of = ", ".join(kind for kind in kinds if kind)
        warnings.add(
            "unknown_sizes",
            f"samples{f' ({of})' if of else ''} of a size that the runtime does not know, left out",
            int(unknown.sum()),
        )
