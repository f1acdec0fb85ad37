"""Columns as protobuf messages: what protobuf's own classes read is what was put in."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from tests.each_row import each_row

from peakline import schema
from peakline.wire.encode import Number, Pool, encode, fixed, packed
from peakline.wire.tables import varint

NUMBERS = st.integers(-(2**63), 2**63 - 1)


@each_row("value", [0, 1, 127, 128, 300, 2**32, 2**63, 2**64 - 1, -1, -(2**63)])
def test_a_number_has_the_fewest_bytes(value):
    entry = schema.AllocationRecord(alloc_bytes=value if value < 2**63 else value - 2**64)
    assert (b"\x10" + varint(value) if value else b"") == entry.SerializeToString()


@given(st.lists(st.tuples(NUMBERS, st.text(max_size=5), st.lists(NUMBERS, max_size=4)), max_size=9))
def test_messages_in_messages_are_read_as_they_were(rows):
    sizes = np.array([size for size, _, _ in rows], np.int64)
    records = np.array([number for _, _, several in rows for number in several], np.int64)
    first = np.cumsum([0, *(len(several) for _, _, several in rows)])
    names = list(dict.fromkeys(name for _, name, _ in rows))
    codes = np.array([names.index(name) for _, name, _ in rows], np.int64)
    inside = encode(records.size, [Number(2, records)], frame=6)
    memory = encode(
        len(rows),
        [Pool(1, names, skip_empty=True).of(codes), Number(2, sizes), inside.of(first)],
        frame=6,
    )
    made = encode(1, [memory.of(np.array([0, len(rows)]))])
    expected = schema.NodeExecStats()
    for size, name, several in rows:
        used = expected.memory.add(allocator_name=name, total_bytes=size)
        for number in several:
            used.allocation_records.add(alloc_bytes=number)
    assert schema.NodeExecStats.FromString(made.data.tobytes()) == expected


@given(st.lists(st.lists(NUMBERS, max_size=4), max_size=6))
def test_packed_numbers(rows):
    flat = np.array([number for several in rows for number in several], np.int64)
    first = np.cumsum([0, *map(len, rows)])
    stats = encode(len(rows), [packed(5, flat, first)])
    for row, several in enumerate(rows):
        part = stats.data[stats.bounds[row] : stats.bounds[row + 1]].tobytes()
        assert part == schema.MemoryStats(persistent_tensor_alloc_ids=several).SerializeToString()


def test_a_message_of_a_negative_number_is_none():
    outer = encode(3, [encode(2, [Number(1, np.array([3, 4]))], frame=1).at(np.array([1, -1, 0]))])
    assert np.diff(outer.bounds).tolist() == [4, 0, 4]
    assert encode(2, [encode(0, [], frame=1).at(np.array([-1, -1]))]).data.size == 0


def test_values_of_eight_bytes():
    event = encode(2, [fixed(44, np.array([1.5, -2.0])).at(np.arange(2))])
    read = [
        schema.TrackEvent.FromString(event.data[a:b].tobytes()).double_counter_value
        for a, b in zip(event.bounds[:-1], event.bounds[1:], strict=True)
    ]
    assert read == [1.5, -2.0]
