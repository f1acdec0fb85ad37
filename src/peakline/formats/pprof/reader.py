"""Profiles in pprof's format: what heaps hold, and by which call stacks it was allocated.

Source of the format: ``proto/profile.proto`` in google/pprof.
"""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from peakline import schema
from peakline.arrays import AnyArray, BoolArray, Int64Array
from peakline.formats.common.callers import Frame, callers, stacks_table
from peakline.formats.common.files import SourceFile
from peakline.formats.common.reader import ReportingReader, warn_of_damage
from peakline.tables.columns import Columns, Names
from peakline.tables.joins import positions
from peakline.tables.reader import Warnings
from peakline.wire import Decoded, Plan, decode

_PLAN_PATHS = (
    "sample.location_id", "location.id", "location.address", "location.line.function_id",
    "location.line.line", "function.id", "function.name", "function.filename", "sample_type.type",
    "sample_type.unit", "default_sample_type", "sample.value", "sample.label.key",
    "sample.label.str", "string_table", "duration_nanos",
)  # fmt: skip
_UNITS = {"bytes": 1, "byte": 1, "b": 1, "kb": 1 << 10, "kilobytes": 1 << 10, "mb": 1 << 20,
          "megabytes": 1 << 20}  # fmt: skip
_LIVE_SPACE = ("inuse_space", "inuse", "space", "live_space", "memory", "heap")
_COUNTS = {"inuse_space": ("inuse_objects",), "alloc_space": ("alloc_objects",)}
_ANY_COUNT = ("objects", "allocations", "inuse_objects", "count")
_DEVICE, _KIND = "device", "kind"
_LONGEST_LABEL = 200
"""Of other labels a region is named after, which are many texts of one."""
_FEW_FRAMES, _FRAMES_A_PLACE = 1 << 16, 2
"""So many frames are read, and so many for each place that a stack names: of what was inlined
beyond these only the innermost line.
"""


class PprofReader(ReportingReader):
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
            raise self._nothing_whole(
                damage, "what is whole does not say what the profile measures"
            )
        self._space = self._find_space()

    @property
    def tables(self) -> frozenset[str]:
        """``stacks``, and ``buffers`` where the profile holds memory."""
        return frozenset(("stacks",) if self._space is None else ("stacks", "buffers"))

    def _table(self, table: str, columns: AbstractSet[str] | None) -> Columns:
        del columns  # all are at hand
        return self._stacks.table() if table == "stacks" else self._buffers()

    def duration_ps(self) -> int:
        """What the file says; heaps are moments and say 0."""
        nanos = self._profile[""].array("duration_nanos")
        return max(int(nanos[0]), 0) * 1000 if nanos.size else 0

    # What the values are.

    def _sample_types(self) -> list[tuple[str, str]]:
        table = self._profile["sample_type"]
        pairs = zip(table.array("type").tolist(), table.array("unit").tolist(), strict=True)
        strings = self._strings
        return [(_text(strings, kind), _text(strings, unit)) for kind, unit in pairs]

    def _find_space(self) -> int | None:
        """Which value is the bytes that are live: by its name, else the default, else the first."""
        sizes = [n for n, (_, unit) in enumerate(self._types) if unit.lower() in _UNITS]
        by_name = {self._types[n][0]: n for n in reversed(sizes)}
        default = self._profile[""].array("default_sample_type").tolist()
        wished = [*_LIVE_SPACE, *(_text(self._strings, number) for number in default if number)]
        return next((by_name[name] for name in wished if name in by_name), min(sizes, default=None))

    def _find_count(self, space: int) -> int | None:
        """Which value counts what ``space`` measures."""
        names = [kind for kind, _ in self._types]
        wanted = (*_COUNTS.get(names[space], ()), *_ANY_COUNT)
        return next((names.index(name) for name in wanted if name in names), None)

    def _values(self, number: int) -> Int64Array:
        """One value of every sample, 0 where a sample has fewer."""
        table = self._profile["sample.value"]
        sample = table.parent.astype(np.int64)
        starts = np.searchsorted(sample, np.arange(self._profile["sample"].rows))
        position = np.arange(sample.size) - starts[sample]
        result = np.zeros(self._profile["sample"].rows, np.int64)
        mine = position == number
        result[sample[mine]] = table.array("value")[mine]
        return result

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
            key, text = (_text(self._strings, number) for number in (key_number, text_number))
            if key == _DEVICE:
                devices[sample] = text
            elif key == _KIND:
                kinds[sample] = text
            elif text:
                label = f"{key[:_LONGEST_LABEL]}={text[:_LONGEST_LABEL]}"
                others.setdefault(sample, []).append(label)
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
        warn_of_damage(warnings, self._profile.damage)
        warnings.add(
            "missing_locations",
            "references to locations and functions that the file lacks",
            self._stacks.missing,
        )
        warnings.add(
            "frames_left_out",
            f"frames of inlined code beyond {_FRAMES_A_PLACE} for each place of a stack",
            self._stacks.cut,
        )
        samples = self._profile["sample"].rows
        held = np.bincount(self._profile["sample.value"].parent.astype(np.int64), minlength=samples)
        warnings.add(
            "sample_values",
            f"samples with more or fewer than {len(self._types)} values; what lacks is taken as 0",
            int((held != len(self._types)).sum()),
        )
        if self._space is not None:
            self._report_unknown(warnings, self._sizes(self._space) < 0)
        else:
            types = ", ".join(f"{kind}/{unit}" for kind, unit in self._types) or "nothing"
            warnings.add("no_memory_values", f"the profile measures {types}, not memory")

    def _report_unknown(self, warnings: Warnings, unknown: BoolArray) -> None:
        """Samples below 0 bytes: an executable of whose code the size is unknown has -1."""
        _, regions = self._labels()
        kinds = dict.fromkeys(regions[row] for row in np.flatnonzero(unknown).tolist())
        of = ", ".join(kind for kind in kinds if kind)
        warnings.add(
            "unknown_sizes",
            f"samples{f' ({of})' if of else ''} of a size that the runtime does not know, left out",
            int(unknown.sum()),
        )


# Call stacks: samples point to locations, locations to lines of functions.


@dataclass(frozen=True, eq=False)
class Stacks:
    """Distinct stacks, and the one of every sample (-1: the sample has none).

    ``missing`` counts references to locations and functions that the file lacks, ``cut`` the frames
    of inlined code that are too many.
    """

    of_sample: Int64Array
    stack: Int64Array
    depth: Int64Array
    frames: list[Frame]
    frame: Int64Array
    """Per row of the table the number of its frame."""
    missing: int
    cut: int

    def table(self) -> Columns:
        """The ``stacks`` table."""
        return stacks_table(self.stack, self.depth, self.frames, self.frame)

    def callers(self) -> list[str | None]:
        """The caller of every stack."""
        bounds = np.searchsorted(self.stack, np.arange(int(self.stack.max(initial=-1)) + 2))
        return callers(bounds, self.frame, self.frames)


def read_stacks(profile: Decoded, strings: list[str]) -> Stacks:
    """The stacks of all samples, innermost frame first.

    A location with several lines is inlined code, innermost first (profile.proto); one without
    a line is named by its address.
    """
    location, line, function = (profile[path] for path in ("location", "location.line", "function"))
    names = [_text(strings, n) for n in function.array("name").tolist()]
    files = [_text(strings, n) for n in function.array("filename").tolist()]
    function_row, lost = _rows(function.array("id"), line.array("function_id"))

    # Frames of every location: its lines, or one frame for its address.
    line_location = line.parent.astype(np.int64)
    bare = np.setdiff1d(np.arange(location.rows), line_location)
    owner = np.concatenate([line_location, bare])
    order = np.argsort(owner, kind="stable")
    known = [n if n >= 0 else len(names) for n in function_row.tolist()]
    texts = [[*names, ""][n] for n in known]
    paths = [[*files, ""][n] for n in known]
    addresses = location.array("address")
    texts += [f"0x{int(addresses[row]):x}" for row in bare.tolist()]
    paths += [""] * bare.size
    numbers = np.concatenate([line.array("line").astype(np.int64), np.zeros(bare.size, np.int64)])
    first = np.searchsorted(owner[order], np.arange(location.rows + 1))

    # Distinct sequences of locations.
    used = profile["sample.location_id"]
    place, gone = _rows(location.array("id"), used.array("value"))
    sample = used.parent.astype(np.int64)[place >= 0]
    place = place[place >= 0]
    bounds = np.searchsorted(sample, np.arange(profile["sample"].rows + 1))
    seen: dict[bytes, int] = {}
    distinct: list[Int64Array] = []
    of_sample = np.full(profile["sample"].rows, -1, np.int64)
    for row, (start, end) in enumerate(zip(bounds[:-1].tolist(), bounds[1:].tolist(), strict=True)):
        if start == end:
            continue
        places = place[start:end]
        number = seen.setdefault(places.tobytes(), len(seen))
        if number == len(distinct):
            distinct.append(places)
        of_sample[row] = number

    places = np.concatenate(distinct) if distinct else np.zeros(0, np.int64)
    stack = np.repeat(np.arange(len(distinct), dtype=np.int64), [part.size for part in distinct])
    whole = first[places + 1] - first[places]
    most = _FEW_FRAMES + _FRAMES_A_PLACE * places.size
    count = np.where(np.cumsum(whole) > most, np.minimum(whole, 1), whole)
    begin = np.cumsum(count) - count
    frame = np.arange(int(count.sum())) - np.repeat(begin - first[places], count)
    stack = np.repeat(stack, count)
    starts = np.searchsorted(stack, np.arange(len(distinct)))
    return Stacks(
        of_sample,
        stack,
        np.arange(stack.size, dtype=np.int64) - starts[stack],
        list(zip(texts, paths, numbers.tolist(), strict=True)),
        order[frame],
        lost + gone,
        int((whole - count).sum()),
    )


def _text(strings: list[str], number: int) -> str:
    """The text of a number; empty for one that the file lacks."""
    return strings[number] if 0 <= number < len(strings) else ""


def _rows(ids: AnyArray, wanted: AnyArray) -> tuple[Int64Array, int]:
    """Where each of ``wanted`` is in ``ids``, -1 for those that are not, and how many those are."""
    order = np.argsort(ids, kind="stable")
    row = np.append(order, -1)[positions(ids[order], wanted)]
    return row, int((row < 0).sum())
