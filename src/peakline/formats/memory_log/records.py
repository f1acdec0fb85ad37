"""A memory log's records as columns: one row per record, whatever its message."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

import numpy as np

from peakline import schema
from peakline.arrays import AnyArray, BoolArray, Int8Array, Int32Array, Int64Array, UInt64Array
from peakline.formats.memory_log.tensors import shape_text
from peakline.kernels import memory_log_layout as layout
from peakline.wire import Buffer, Plan, WireTable
from peakline.wire.strings import Interner

_Tables = Mapping[str, WireTable]

_NUMBERS = (
    "kind", "flags", "time_ns", "thread", "step", "op", "output_index", "data_type", "shape",
    "requested_bytes", "allocated_bytes", "allocator", "number", "address",
)  # fmt: skip
_CODES = frozenset(("op", "shape", "allocator"))


@dataclass(frozen=True, eq=False)
class Records:
    """All records in file order, in the narrowest types that hold them.

    ``kind`` and ``flags`` are those of `peakline.kernels.memory_log_layout`; ``op`` is a code of
    ``texts`` (kernel_name, operation, or the handle of a step), ``shape`` of ``shapes``,
    ``allocator`` of ``allocators``, each -1 where the record has none. ``number`` is the
    allocation id. What a message does not say is 0, as on the wire.
    """

    kind: Int8Array
    flags: Int8Array
    time_ns: Int64Array
    thread: AnyArray
    step: AnyArray
    op: AnyArray
    output_index: Int8Array
    data_type: Int8Array
    shape: Int8Array
    requested_bytes: AnyArray
    allocated_bytes: AnyArray
    allocator: Int8Array
    number: AnyArray
    address: UInt64Array
    texts: list[str]
    shapes: list[str]
    allocators: list[str]

    def __len__(self) -> int:
        return int(self.kind.size)

    def has(self, flag: int) -> BoolArray:
        """Which records have the flag."""
        result: BoolArray = (self.flags & flag) != 0
        return result


@cache
def record_plan() -> Plan:
    """What is decoded of peakline.MemoryLog: everything."""
    tensor = ("dtype", "shape", "shape?", "allocation_description.*")
    paths = ["record.time_ns", "record.thread_id"]
    for kind, name in layout.KINDS.items():
        paths.append(f"record.{name}.*")
        if kind in {layout.TENSOR_ALLOCATION, layout.TENSOR_OUTPUT}:
            paths += [f"record.{name}.tensor.{field}" for field in tensor]
    return Plan(schema.shape("peakline.MemoryLog"), paths)


class Collector:
    """Takes a log's decoded parts one after the other, then gives its `Records`."""

    def __init__(self) -> None:
        self._parts: dict[str, list[AnyArray]] = {name: [] for name in _NUMBERS}
        self._texts, self._shapes, self._allocators = Interner(), Interner(), Interner()
        self.records = 0
        self.unknown = 0
        """Records without any of the six messages."""

    def add(self, tables: _Tables, buffer: Buffer) -> None:
        """Append the records of one part; ``buffer`` is what its spans point into."""
        record = tables["record"]
        kind = record.array("record.case")
        part: dict[str, AnyArray] = {
            "kind": kind,
            "flags": np.zeros(record.rows, np.int8),
            "time_ns": record.array("time_ns"),
            "thread": record.array("thread_id"),
            "address": np.zeros(record.rows, np.uint64),
        }
        for name in _NUMBERS:
            if name not in part:
                part[name] = np.full(record.rows, -1 if name in _CODES else 0, np.int64)
        for number, name in layout.KINDS.items():
            table = tables[f"record.{name}"]
            if table.rows:
                self._fill(part, number, name, tables, buffer)
        known = kind > 0
        if not known.all():
            self.unknown += int(record.rows - known.sum())
            part = {name: column[known] for name, column in part.items()}
        self.records += part["kind"].size
        for name, column in part.items():
            self._parts[name].append(_narrow(column))

    def _fill(
        self, part: dict[str, AnyArray], kind: int, name: str, tables: _Tables, buffer: Buffer
    ) -> None:
        table = tables[f"record.{name}"]
        rows = table.parent

        def texts(field: str) -> Int32Array:
            return self._texts.add(buffer, table.spans(field))

        if kind == layout.TENSOR_DEALLOCATION:
            self._buffer(part, rows, table, buffer)
            return
        part["step"][rows] = table.array("step_id")
        if kind == layout.STEP:
            part["op"][rows] = texts("handle")
        elif kind in {layout.RAW_ALLOCATION, layout.RAW_DEALLOCATION}:
            part["op"][rows] = texts("operation")
            self._buffer(part, rows, table, buffer)
            if kind == layout.RAW_ALLOCATION:
                part["requested_bytes"][rows] = table.array("num_bytes")
                part["address"][rows] = table.array("ptr")
            else:
                part["flags"][rows] |= table.array("deferred") * np.int8(layout.DEFERRED)
        else:
            part["op"][rows] = texts("kernel_name")
            if kind == layout.TENSOR_OUTPUT:
                part["output_index"][rows] = table.array("index")
            self._tensor(part, rows, f"record.{name}.tensor", tables, buffer)

    def _buffer(
        self, part: dict[str, AnyArray], rows: Int32Array, table: WireTable, buffer: Buffer
    ) -> None:
        """What names a buffer."""
        part["flags"][rows] |= layout.HAS_BUFFER
        part["number"][rows] = table.array("allocation_id")
        part["allocator"][rows] = self._allocators.add(buffer, table.spans("allocator_name"))

    def _tensor(
        self,
        part: dict[str, AnyArray],
        rows: Int32Array,
        path: str,
        tables: _Tables,
        buffer: Buffer,
    ) -> None:
        tensor = tables[path]
        rows = rows[tensor.parent]
        part["data_type"][rows] = tensor.array("dtype")

        known = tensor.array("shape?")
        shapes = tensor.spans("shape").take(known)
        part["shape"][rows[known]] = self._shapes.add(buffer, shapes)

        described = tables[f"{path}.allocation_description"]
        rows = rows[described.parent]
        self._buffer(part, rows, described, buffer)
        part["requested_bytes"][rows] = described.array("requested_bytes")
        part["allocated_bytes"][rows] = described.array("allocated_bytes")
        part["address"][rows] = described.array("ptr")
        part["flags"][rows] |= described.array("has_single_reference") * np.int8(
            layout.SINGLE_REFERENCE
        )

    def finish(self) -> Records:
        """All records; the collector is empty afterwards."""
        columns: dict[str, AnyArray] = {}
        for name in _NUMBERS:
            # One column after the other, so that little is there twice at a time.
            parts = self._parts.pop(name)
            columns[name] = np.concatenate(parts) if parts else np.zeros(0, np.int8)
        shapes = [shape_text(self._shapes.bytes(code)) for code in range(len(self._shapes))]
        if None in shapes:
            whole = np.array([text is not None for text in shapes])
            columns["shape"] = np.where(whole[columns["shape"]], columns["shape"], -1)
        return Records(
            **columns,
            texts=self._texts.values,
            shapes=[text or "" for text in shapes],
            allocators=self._allocators.values,
        )


def _narrow(column: AnyArray) -> AnyArray:
    """A copy in the narrowest type that holds it."""
    if column.dtype == np.uint64 or not column.size:
        return column.copy()
    low, high = int(column.min()), int(column.max())
    for dtype in (np.int8, np.int16, np.int32):
        info = np.iinfo(dtype)
        if info.min <= low and high <= info.max:
            return column.astype(dtype)
    return column.astype(np.int64)
