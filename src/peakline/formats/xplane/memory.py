"""Memory records of the host plane as tables: the allocator's own account, and upstream's reading.

``allocator_events`` accepts a number of any kind and puts all lines on one clock;
``memory_snapshots`` reads each stat as ``xplane_to_memory_profile.cc`` of openxla/xprof does
(int64 only for sizes, double only for the fragmentation, times relative to the line).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from peakline import schema
from peakline.arrays import AnyArray, BoolArray, Int32Array, Int64Array
from peakline.deadline import check_deadline
from peakline.formats.xplane.grouping import Grouping
from peakline.formats.xplane.groups import by_owner, no_group, of_owners
from peakline.formats.xplane.lines import PlanePass
from peakline.formats.xplane.times import FARTHEST_LINE_PS, Far, place_runs
from peakline.kernels.xplane_numbers import FIRST_MEMORY_ROLE, EventKind, Role
from peakline.tables.columns import Columns, Names

_FIRST = int(Role.BYTES_RESERVED)
_ID_NUMBER = 8
_SMALL = 1 << 10
_RECORD = (
    "step", "own_step", "line", "offset", "kind", "dtype", "id_role", "have", "odd", "numbers",
    "codes",
)  # fmt: skip
_ALLOCATOR, _OP, _REGION, _SHAPE = range(4)


class MemoryRecords:
    """All memory events of one plane, in the order of the (rewritten) file."""

    __retained__ = (
        "step own_step line offset kind numbers codes dtype id_role have odd _order"
        " _bases _texts _headers"
    )

    def __init__(
        self, result: PlanePass, nodes: slice = slice(None), grouping: Grouping | None = None
    ) -> None:
        """``nodes`` are the plane's own among those that were grouped; without ``grouping`` no
        record has a step.
        """
        get = result.found.get
        node = get("mem_node")
        self.rows = node.size
        self.step: Any = None
        """The step as upstream's memory profile reads it."""
        self.own_step: Any = None
        """The step as the profile's own steps are."""
        if grouping is not None:
            raw = grouping.runtime
            read = raw.group if raw.memory_group is None else raw.memory_group
            own = grouping.other is not None
            self.step = _steps(node.copy() if own else node, raw.spread[nodes], read[nodes])
            self.own_step = (
                _steps(node, grouping.spread[nodes], grouping.group[nodes]) if own else self.step
            )
        self.line, self.offset, self.kind = get("mem_line"), get("mem_offset"), get("mem_kind")
        self.numbers, self.codes = get("mem_numbers"), get("mem_codes")
        self.dtype, self.id_role = get("mem_dtype"), get("mem_id")
        self.have, self.odd = get("mem_have"), get("mem_odd")
        self._order: AnyArray | None = None
        """The place in the file of each record; None where they still are in its order."""
        self._is_given = False
        self._bases: AnyArray | None = None
        """What was added to the offsets of each line; None where they are as the file has them."""
        texts = result.texts()
        self._texts = [self._number_texts(codes, texts) for codes in self.codes]
        """Of each column of texts those that occur; the codes are numbers in it, -1 for none."""
        self._plane, self._headers = result.plane.index, result.headers
        self._first_line = np.int32(result.plane.first_line)

    def _has(self, role: Role) -> BoolArray:
        present: BoolArray = (self.have & np.uint16(1 << (role - FIRST_MEMORY_ROLE))) != 0
        return present

    def _is_odd(self, role: Role) -> BoolArray:
        odd: BoolArray = (self.odd & np.uint16(1 << (role - FIRST_MEMORY_ROLE))) != 0
        return odd

    def _number(self, role: Role) -> Int64Array:
        number: Int64Array = self.numbers[int(role) - _FIRST]
        return number

    def _upstream(self, role: Role) -> Int64Array:
        """The number as upstream reads it: zero when it is of another kind."""
        value, odd = self._number(role), self._is_odd(role)
        return np.where(odd, 0, value) if odd.any() else value

    @staticmethod
    def _number_texts(codes: Int32Array, texts: list[str]) -> list[str]:
        """Make codes of ``texts`` codes of the distinct ones that occur, -1 for the empty text."""
        check_deadline()
        used = np.zeros(len(texts) + 1, np.bool_)
        used[codes] = True
        values: dict[str, int] = {}
        new = np.full(used.size, -1, np.int32)
        for code in np.flatnonzero(used[:-1]).tolist():
            if texts[code]:
                new[code] = values.setdefault(texts[code], len(values))
        codes[:] = new[codes]
        return list(values)

    def _names(self, which: int) -> Names:
        """A text column; absent and empty texts are null."""
        return Names(self.codes[which], self._texts[which])

    def _whole_names(self, which: int) -> Names:
        """A text column; absent texts are empty."""
        codes, texts = self.codes[which], self._texts[which]
        if not (codes < 0).any():
            return Names(codes, texts)
        return Names(codes + np.int32(1), ["", *texts])

    def _memory_ids(self) -> Names:
        """The allocator's name, or the number of the memory, whichever stat came last."""
        named = self.id_role == int(Role.ALLOCATOR_NAME)
        texts = self._whole_names(_ALLOCATOR)
        if named.all():
            return texts
        values = list(texts.values)
        codes = texts.codes.copy()
        known = {value: code for code, value in enumerate(values)}
        numbered = self.id_role >= 0
        numbered &= ~named
        numbers, inverse = np.unique(self.numbers[_ID_NUMBER][numbered], return_inverse=True)
        for text in ["", *(str(n) for n in numbers.tolist())]:
            if text not in known:
                known[text] = len(values)
                values.append(text)
        codes[self.id_role < 0] = known[""]
        code_of = np.array([known[str(n)] for n in numbers.tolist()], np.int32)
        codes[numbered] = code_of[inverse] if numbers.size else 0
        return Names(codes, values)

    def _data_types(self, *, null: bool) -> Names:
        check_deadline()
        present = self._has(Role.DATA_TYPE)
        value = self.dtype if null else np.where(self._is_odd(Role.DATA_TYPE), 0, self.dtype)
        numbers, inverse = _distinct(value)
        values: list[str] = [] if null else [""]
        code_of = np.empty(numbers.size, np.int32)
        for k, number in enumerate(numbers.tolist()):
            if null and number == 0:
                code_of[k] = -1
                continue
            name = data_type_name(number)
            if name not in values:
                values.append(name)
            code_of[k] = values.index(name)
        codes = code_of[inverse] if numbers.size else np.zeros(0, np.int32)
        return Names(np.where(present, codes, -1 if null else 0).astype(np.int32), values)

    def snapshots(self) -> Columns:
        """The ``memory_snapshots`` table, in file order; of records that were grouped."""
        table = Columns(
            {
                "memory_id": self._memory_ids(),
                "time_offset_ps": self._offsets(),
                "activity": np.where(self.kind == EventKind.ALLOCATION, 1, 2).astype(np.int32),
                "stack_reserved_bytes": self._upstream(Role.BYTES_RESERVED),
                "heap_allocated_bytes": self._upstream(Role.BYTES_ALLOCATED),
                "free_memory_bytes": self._upstream(Role.BYTES_AVAILABLE),
                "fragmentation": self._upstream(Role.FRAGMENTATION).view(np.float64),
                "peak_bytes_in_use": self._upstream(Role.PEAK_BYTES_IN_USE),
                "requested_bytes": self._upstream(Role.REQUESTED_BYTES),
                "allocation_bytes": self._upstream(Role.ALLOCATION_BYTES),
                "address": self._upstream(Role.ADDRESS).view(np.uint64),
                "tf_op_name": self._whole_names(_OP),
                "step_id": self.step,
                "region_type": self._whole_names(_REGION),
                "data_type": self._data_types(null=False),
                "tensor_shape": self._whole_names(_SHAPE),
            }
        )
        if self._order is None:
            self._is_given = True
            return table
        place = np.empty(self.rows, np.int64)
        place[self._order] = np.arange(self.rows)
        return table.take(place)

    def allocator_events(self, zero_ps: int) -> tuple[Columns, Far]:
        """The ``allocator_events`` table, by time, then by place in the file; and how many of its
        times were out of reach. Records that were not grouped have no ``step_id``.

        The columns are the memory of the records themselves, which are put in this order.
        """
        time, far = self._times(zero_ps)
        order = self._order
        if order is None:
            order = np.arange(self.rows, dtype=np.int32 if self.rows < 2**31 else np.int64)
        if (time[1:] < time[:-1]).any():
            check_deadline()
            sort = np.lexsort((order, time))
            order = order[sort]
            if self._bases is None:
                time = time[sort]
            self._sort(sort)
            self._order = order
            if self._bases is not None:
                time = self.offset
        columns: dict[str, Any] = {
            "time_ps": time,
            "sequence": order,
            "allocator": self._memory_ids(),
            "activity": Names(
                np.where(self.kind == EventKind.ALLOCATION, 0, 1).astype(np.int32),
                ["allocation", "deallocation"],
            ),
            "address": self._number(Role.ADDRESS).view(np.uint64),
            "allocation_id": np.zeros(self.rows, np.int64),
            "requested_bytes": self._number(Role.REQUESTED_BYTES),
            "allocated_bytes": self._number(Role.ALLOCATION_BYTES),
            "op": self._names(_OP),
            "region_type": self._names(_REGION),
            "data_type": self._data_types(null=True),
            "shape": self._names(_SHAPE),
            "in_use_bytes": self._number(Role.BYTES_ALLOCATED),
            "reserved_bytes": self._number(Role.BYTES_RESERVED),
            "free_bytes": self._number(Role.BYTES_AVAILABLE),
            "fragmentation": self._number(Role.FRAGMENTATION).view(np.float64),
            "peak_bytes": self._number(Role.PEAK_BYTES_IN_USE),
            "line_id": self.line + self._first_line if self._first_line else self.line,
        }
        present = {
            "address": Role.ADDRESS,
            "requested_bytes": Role.REQUESTED_BYTES,
            "allocated_bytes": Role.ALLOCATION_BYTES,
            "in_use_bytes": Role.BYTES_ALLOCATED,
            "reserved_bytes": Role.BYTES_RESERVED,
            "free_bytes": Role.BYTES_AVAILABLE,
            "fragmentation": Role.FRAGMENTATION,
            "peak_bytes": Role.PEAK_BYTES_IN_USE,
        }
        valid = {"allocation_id": np.zeros(self.rows, np.bool_)}
        for name, role in present.items():
            mask = self._has(role)
            if not mask.all():
                valid[name] = mask
        if self.own_step is not None:
            columns["step_id"] = self.own_step
            if (self.own_step < 0).any():
                valid["step_id"] = self.own_step >= 0
        return Columns(columns, valid), far

    def _times(self, zero_ps: int) -> tuple[Int64Array, Far]:
        """The time of every record, and how many were out of reach.

        Where none can be, the times take the place of the offsets, unless somebody has those.
        """
        bases = [header.timestamp_ns * 1000 - zero_ps for header in self._headers]
        if self._bases is None and not self._is_given and _is_near(self.offset, bases):
            self._bases = np.array(bases, np.int64)
            self.offset += self._bases[self.line]
        if self._bases is not None:
            return self.offset, Far()
        time = self.offset.copy()
        return time, Far({(self._plane, "start"): place_runs(time, self.line, bases)})

    def _offsets(self) -> Int64Array:
        """How long after the start of its line each record is, in ps."""
        return self.offset if self._bases is None else self.offset - self._bases[self.line]

    def _sort(self, order: Int64Array) -> None:
        """Put the records in another order: where they are, unless somebody has been given them.

        Nothing may end this in the middle: some columns would be in one order, some in the other.
        """
        for name in _RECORD:
            if name == "own_step" and self.own_step is self.step:
                continue
            column = vars(self)[name]
            if column is None:
                continue
            if self._is_given:
                vars(self)[name] = column[..., order]
                continue
            for row in column if column.ndim > 1 else [column]:
                # Zeros that nobody has written take no memory.
                if row.any():
                    row[:] = row[order]
        self._is_given = False


def _steps(node: Int32Array, spread: Int32Array, group: AnyArray) -> AnyArray:
    """The group of each record by its node, -1 for none; in the memory of the nodes."""
    result = of_owners(node, by_owner(spread, group))
    result[result == no_group(result)] = -1
    return result


def _is_near(offset: Int64Array, bases: list[int]) -> bool:
    """Whether each sum of an offset and a base is a time that a profile can have, and exact."""
    near = FARTHEST_LINE_PS // 2
    lines = all(abs(base) < FARTHEST_LINE_PS for base in bases)
    return lines and -near < int(offset.min(initial=0)) <= int(offset.max(initial=0)) < near


def _distinct(values: Int32Array) -> tuple[AnyArray, AnyArray]:
    """The distinct values, ascending, and which of them each is; small ones without sorting."""
    if not values.size or values.min() < 0 or values.max() >= _SMALL:
        return np.unique(values, return_inverse=True)
    numbers = np.flatnonzero(np.bincount(values, minlength=1))
    place = np.zeros(_SMALL, np.int32)
    place[numbers] = np.arange(numbers.size, dtype=np.int32)
    return numbers, place[values]


def data_type_name(number: int) -> str:
    """The name of a TensorFlow DataType number as the runtime spells it: ``float``, ``half_ref``.

    A number above 100 is a reference to the type 100 below it. Numbers above 30 are newer than
    upstream's table and have no name there.
    """
    number = (number + 2**31) % 2**32 - 2**31
    is_reference = number > 100
    number -= 100 if is_reference else 0
    known = schema.enum_name("tensorflow.DataType", number) if 0 <= number <= 30 else None
    name = "INVALID" if number == 0 else f"unknown dtype enum ({number})"
    if number > 0 and known is not None:
        name = known.removeprefix("DT_").lower()
    return name + "_ref" if is_reference else name
