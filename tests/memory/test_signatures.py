import numpy as np
from hypothesis import given, settings
from tests.each_row import each_row
from tests.memory.records import alloc, events, free, history, records

from peakline.memory.signatures import (
    dimensions,
    normal_shape,
    number_keys,
    read_history,
    scope_of,
    split_by,
)
from peakline.tables.columns import Columns, Names
from reference.memory_history import buffers, in_use, requested_of, size_of


@each_row(
    ("written", "normal"),
    [
        ("[32,10]", "[32, 10]"),
        ("[32, 10]", "[32, 10]"),
        (" ( 32 ,10, ) ", "[32, 10]"),
        ("[]", "[]"),
        ("()", "[]"),
        ("[?,10]", "[?, 10]"),
        ("unknown", "unknown"),
        ("[5,1024]{1,0:T(8,128)}", "[5,1024]{1,0:T(8,128)}"),
        ("[[1,2],[3]]", "[[1,2],[3]]"),
        ("", ""),
    ],
)
def test_shapes_are_spelled_in_one_way(written, normal):
    assert normal_shape(written) == normal
    assert normal_shape(normal) == normal


@each_row(
    ("shape", "sizes"),
    [("[32, 10]", (32, 10)), ("(3,)", (3,)), ("[]", ()), ("[?, 1]", None), ("x", None)],
)
def test_dimensions(shape, sizes):
    assert dimensions(shape) == sizes


def test_the_scope_is_what_stands_before_the_last_slash():
    assert scope_of("model/hidden/MatMul") == "model/hidden"
    assert scope_of("MatMul") == ""


def test_two_spellings_of_a_shape_are_one_signature():
    result = history([alloc(1, 8, op="a", shape="[2,1]"), alloc(2, 8, op="a", shape="[2, 1]")])
    assert len(result.signatures) == 1
    assert result.signatures[0].shape == "[2, 1]"
    assert result.signatures[0].bytes is None
    assert result.signatures[0].title == "a [2, 1]"


def test_buffers_without_a_shape_are_told_apart_by_what_was_asked_for():
    result = history([alloc(n, 256, requested_bytes=size) for n, size in enumerate((8, 8, 12))])
    assert result.signatures.codes.tolist() == [0, 0, 1]
    assert [result.signatures[n].bytes for n in range(2)] == [8, 12]
    assert result.signatures[1].title == "(no op) of 12 B"


def test_equal_names_with_two_codes_are_one_signature_and_null_is_the_empty_name():
    made = events([alloc(1, 1, shape="[1]"), alloc(2, 1, shape="[1]"), alloc(3, 1, shape="[1]")])
    ops = Names(np.array([0, 1, -1], np.int32), ["x", "x"])
    result = read_history(Columns(dict(made.data) | {"op": ops}, made.valid)).signatures
    assert result.codes.tolist() == [0, 0, 1]
    assert (result[0].op, result[1].op) == ("x", "")


def test_ten_thousand_signatures():
    rows = [alloc(n, 1, op=f"op{n % 5000}", shape=f"[{n % 2}, {n % 10000}]") for n in range(20000)]
    result = history(rows)
    assert len(result.signatures) == 10000
    assert result.signatures.codes.tolist() == [n % 10000 for n in range(20000)]


def test_the_capacity_is_that_of_the_last_record_with_all_figures():
    rows = [
        alloc(1, 5, in_use_bytes=5, free_bytes=95),
        alloc(2, 5, in_use_bytes=10, free_bytes=70, reserved_bytes=20),
        free(1, in_use_bytes=5),
        alloc(1, 5, allocator="z"),
    ]
    assert history(rows).capacities == (100, None)


@settings(max_examples=200)
@given(records)
def test_the_history_equals_the_slow_one(rows):
    result = history(rows)
    by_row = {one.begin: one for one in buffers(rows)}
    for number, row in enumerate(rows):
        begins = row["activity"] == "allocation"
        assert result.allocated[number] == (size_of(row) if begins else 0)
        assert result.requested[number] == (requested_of(row) if begins else 0)
        assert (result.signatures.codes[number] >= 0) == begins
        if number in by_row:
            one = result.signatures[int(result.signatures.codes[number])]
            names = (one.allocator, one.op, one.region_type, one.data_type, one.shape, one.bytes)
            assert names == by_row[number].signature
    for number, allocator in enumerate(result.lifetimes.allocators):
        own = result.rows_of(number)
        expected = np.array(in_use(rows, allocator))[own]
        assert result.used[own].tolist() == expected.tolist()
        assert all((rows[row].get("allocator") or "") == allocator for row in own)


@each_row("distinct", [0, 1, 511, 512, 513, 2049, 9000])
def test_keys_are_numbered_in_order_of_first_appearance(distinct):
    chosen = np.random.default_rng(0).integers(0, max(distinct, 1), 3 * distinct)
    chosen = np.concatenate([chosen, np.arange(distinct)])
    keys = np.stack([chosen % 7, chosen // 7, -chosen], axis=1)
    seen = {}
    slow = [seen.setdefault(key, len(seen)) for key in map(tuple, keys.tolist())]
    numbers, first = number_keys(keys)
    assert numbers.tolist() == slow
    assert [tuple(keys[row]) for row in first] == list(seen)
    assert [slow.index(number) for number in range(min(len(seen), 50))] == first[:50].tolist()


@each_row("count", [1, 3, 2**16 + 1])
def test_places_by_number(count):
    numbers = np.array([0, 2, 0, 2, 2], np.int32) % count
    parts = split_by(numbers, count)
    assert len(parts) == count
    for number, part in enumerate(parts[:3]):
        assert part.tolist() == np.flatnonzero(numbers == number).tolist()


def test_the_last_record_with_all_figures_tells_the_capacity():
    result = {"in_use_bytes": 5, "free_bytes": 7, "reserved_bytes": 1}
    rows = [
        alloc(1, 1, **result),
        alloc(2, 1, in_use_bytes=6, free_bytes=14),
        alloc(3, 1, in_use_bytes=9),
        alloc(4, 1, allocator="z"),
        alloc(5, 1, allocator="y", **result),
    ]
    assert read_history(events(rows)).capacities == (20, 13, None)
