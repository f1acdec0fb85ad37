"""StepStats of the op tables: every field of step_stats.proto as it was read."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from peakline import schema
from peakline.arrays import AnyArray, BoolArray, Int64Array
from peakline.tables import Profile
from peakline.tables.columns import Columns, Names
from peakline.text import whole_number
from peakline.wire.encode import Field, Messages, Number, Pool, Spans, encode, packed


def data_types(names: Names) -> Int64Array:
    """Numbers of ``tensorflow.DataType``; 0 for null and for what is no type."""
    known = schema.POOL.FindEnumTypeByName("tensorflow.DataType").values_by_name

    def number(name: str) -> int:
        entry = known.get(f"DT_{name.upper()}")
        if entry is not None:
            return int(entry.number)
        return max(whole_number(name) or 0, 0)

    return names.per_row(number, np.int64)


def shapes(names: Names, number: int) -> Spans:
    """Shapes such as ``[3, ?]`` as field ``number``; none where the text is null or no shape."""
    messages = [_shape(text, number) for text in names.values]
    bounds = np.cumsum([0, *map(len, messages)])
    data = np.frombuffer(bytearray().join(messages), np.uint8)
    return Messages(data, bounds).at(names.codes.astype(np.int64))


def _shape(text: str, number: int) -> bytes:
    shape: Any = schema.message("tensorflow.TensorShapeProto")()
    if text == "<unknown>":
        shape.unknown_rank = True
    else:
        inside = text.strip()[1:-1].strip()
        for part in filter(None, map(str.strip, inside.split(","))):
            size = -1 if part == "?" else whole_number(part)
            if size is None:
                return b""
            shape.dim.add(size=size)
    content = shape.SerializeToString()
    field = encode(1, [Spans.same(content, 1)], frame=number)
    return field.data.tobytes()


def allocation_descriptions(
    numbers: Sequence[tuple[int, AnyArray]], allocator: Spans, frame: int
) -> Messages:
    """AllocationDescription messages as field ``frame``: the fields by their numbers."""
    fields: list[Field] = [Number(number, values) for number, values in numbers]
    return encode(numbers[0][1].size, [*fields, allocator], frame=frame)


def tensor_descriptions(data_type: Names, shape: Names, allocation: Spans, frame: int) -> Messages:
    """TensorDescription messages as field ``frame``."""
    fields: list[Field] = [Number(1, data_types(data_type)), shapes(shape, 2), allocation]
    return encode(len(data_type), fields, frame=frame)


_TIMES = {
    "all_start_micros": 2,
    "op_start_rel_micros": 3,
    "op_end_rel_micros": 4,
    "all_end_rel_micros": 5,
    "scheduled_micros": 9,
    "thread_id": 10,
    "all_start_nanos": 13,
    "op_start_rel_nanos": 14,
    "op_end_rel_nanos": 15,
    "all_end_rel_nanos": 16,
    "scheduled_nanos": 17,
}


_PerRun = tuple[Int64Array, Messages]
"""Messages that belong to executions: the id of each one's execution."""


def executions(profile: Profile) -> tuple[Names, Int64Array, Messages, Messages, Int64Array]:
    """Devices, the first execution of each (and the end), the executions as messages; names of
    threads as messages, and the first of each device.
    """
    runs, times = profile.columns("op_runs"), profile.columns("op_times")
    devices = profile.columns("op_devices")
    ids = runs.array("op_run_id")
    bounds = np.append(ids, np.iinfo(np.int64).max)
    fields: list[Field] = [_text(1, runs.names("name")), _text(8, runs.names("label"))]
    fields += [Number(number, times.array(name)) for name, number in _TIMES.items()]
    for owner, messages in (
        _memory(profile),
        _outputs(profile.columns("op_outputs")),
        _references(profile.columns("op_references")),
        _memory_stats(profile),
    ):
        fields.append(messages.of(np.searchsorted(owner, bounds)))
    nodes = encode(runs.rows, fields, frame=2)
    entries = np.arange(devices.rows + 1)
    first = np.searchsorted(runs.array("device_entry"), entries)
    threads = profile.columns("thread_names")
    named = encode(
        threads.rows,
        [Number(1, threads.array("thread_id")), _text(2, threads.names("name"))],
        frame=3,
    )
    return (
        devices.names("device"),
        first,
        nodes,
        named,
        np.searchsorted(threads.array("device_entry"), entries),
    )


def encode_steps(
    devices: Names, first: Int64Array, nodes: Messages, threads: Messages, first_thread: Int64Array
) -> Messages:
    """StepStats as field 1 of RunMetadata."""
    fields: list[Field] = [_text(1, devices), nodes.of(first), threads.of(first_thread)]
    entries = encode(len(devices), fields, frame=1)
    return encode(1, [entries.of(np.array([0, len(devices)]))], frame=1)


def _text(number: int, names: Names) -> Spans:
    return Pool(number, names.values, skip_empty=True).of(names.codes)


def _value(table: Columns, name: str) -> AnyArray:
    return np.where(table.is_valid(name), table.array(name), 0)


def _descriptions(table: Columns, rows: Int64Array, frame: int) -> Messages:
    table = table.take(rows)
    names = ("requested_bytes", "allocated_bytes")
    numbers: list[tuple[int, AnyArray]] = [
        (number, _value(table, name)) for number, name in enumerate(names, start=1)
    ]
    numbers += [
        (4, _value(table, "allocation_id")),
        (5, table.array("has_single_reference").astype(np.int64)),
        (6, _value(table, "address").astype(np.uint64)),
    ]
    return allocation_descriptions(numbers, _text(3, table.names("allocator")), frame)


def _outputs(table: Columns) -> _PerRun:
    held = table.array("has_allocation")
    buffers = _descriptions(table, np.flatnonzero(held), 4)
    described = table.array("has_description")
    tensors = tensor_descriptions(
        table.names("data_type").take(described),
        table.names("shape").take(described),
        buffers.at(_places(held)[described]),
        3,
    )
    fields: list[Field] = [Number(1, table.array("slot")), tensors.at(_places(described))]
    return table.array("op_run_id"), encode(table.rows, fields, frame=7)


def _places(chosen: BoolArray) -> Int64Array:
    """The number of each chosen row among them, -1 for the others."""
    return np.where(chosen, np.cumsum(chosen) - 1, -1)


def _references(table: Columns) -> _PerRun:
    return table.array("op_run_id"), _descriptions(table, np.arange(table.rows), 11)


def _memory(profile: Profile) -> _PerRun:
    table, records = profile.columns("op_memory"), profile.columns("op_allocations")
    owner, order = _owners(table, records)
    each = encode(
        records.rows,
        [
            Number(1, _micros(profile, records.array("time_ps"))[order]),
            Number(2, records.array("bytes")[order]),
        ],
        frame=6,
    )
    first = np.searchsorted(owner, np.arange(table.rows + 1))
    sizes = {"total_bytes": 2, "peak_bytes": 3, "live_bytes": 4, "allocator_bytes_in_use": 5}
    fields: list[Field] = [_text(1, table.names("allocator")), each.of(first)]
    fields += [Number(number, table.array(name)) for name, number in sizes.items()]
    return table.array("op_run_id"), encode(table.rows, fields, frame=6)


def _owners(table: Columns, records: Columns) -> tuple[Int64Array, Int64Array]:
    """The row of ``table`` of each record, ascending, and the records in that order.

    Of two entries of one execution for one allocator the first has all records.
    """
    codes = {name: code for code, name in enumerate(table.names("allocator").values)}
    names = records.names("allocator")
    code = np.array([codes.get(name, -1) for name in (*names.values, "")], np.int64)[names.codes]
    width = len(codes) + 1
    keys = table.array("op_run_id") * width + table.names("allocator").codes
    by_key = np.argsort(keys, kind="stable")
    wanted = records.array("op_run_id") * width + code
    owner = by_key[np.searchsorted(keys[by_key], wanted)] if records.rows else wanted
    order = np.argsort(owner, kind="stable")
    return owner[order], order


def _micros(profile: Profile, time_ps: Int64Array) -> Int64Array:
    """Microseconds since the epoch, as written: the profile's clock begins at the earliest start.

    What stands at 0 where that is no whole microsecond had no time.
    """
    times = profile.columns("op_times")
    nanos, micros = times.array("all_start_nanos"), times.array("all_start_micros")
    when = np.where(nanos != 0, nanos, micros * 1000)
    zero = int(when[when != 0].min(initial=np.iinfo(np.int64).max)) if when.any() else 0
    since = time_ps // 1000 + zero
    return np.where((time_ps == 0) & (zero % 1000 != 0), 0, since // 1000)


def _memory_stats(profile: Profile) -> _PerRun:
    table, held = profile.columns("op_memory_stats"), profile.columns("op_persistent")
    owner = table.array("op_run_id")
    sizes = {
        "temp_bytes": 1, "device_temp_bytes": 2,
        "persistent_bytes": 3, "device_persistent_bytes": 4,
    }  # fmt: skip
    fields: list[Field] = [Number(number, table.array(name)) for name, number in sizes.items()]
    on_device = held.array("is_device")
    for number, mine in ((5, ~on_device), (6, on_device)):
        some = held.take(mine)
        first = np.append(np.searchsorted(some.array("op_run_id"), owner), some.rows)
        fields.append(packed(number, some.array("allocation_id"), first))
    return owner, encode(table.rows, fields, frame=12)
