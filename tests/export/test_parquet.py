"""Parquet and other encodings."""

import io

import numpy as np
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.each_row import each_row
from tests.export.written import DATA, SESSION

import peakline
from peakline import schema
from peakline.errors import UsageError
from peakline.export import Options, export
from peakline.export import parquet as module
from peakline.tables.tables import TABLES
from peakline.wire.encode import Number, Pool, encode, fixed, packed
from peakline.wire.tables import varint


def files_of(profile, **options):
    files = {}

    def sink(write, name=""):
        stream = io.BytesIO()
        write(stream)
        files[name] = stream.getvalue()

    export(profile, "parquet", sink, Options(**options))
    return files


@each_row(
    "path", [SESSION, DATA / "run_metadata" / "tf1_cnn_2.pb.gz", DATA / "graph_def" / "frozen.pb"]
)
def test_every_table_comes_back(path, monkeypatch):
    monkeypatch.setattr(module, "_ROWS", 1000)
    with peakline.open(str(path)) as profile:
        files = files_of(profile)
        assert set(files) == {f"{name}.parquet" for name in profile.tables}
        for name in profile.tables:
            read = pq.read_table(io.BytesIO(files[f"{name}.parquet"]))
            assert read.to_pylist() == profile.table(name).to_pylist(), name
            for field in read.schema:
                column = TABLES[name][field.name]
                assert field.metadata == {b"doc": column.doc.encode()}
                assert field.nullable == column.nullable
                assert field.type == profile.table(name).schema.field(field.name).type
                if column.type == "string":
                    assert str(field.type).startswith("dictionary")
                else:
                    assert field.type.to_pandas_dtype() == np.dtype(column.type)
            assert read.schema.metadata[b"doc"] == TABLES[name].doc.encode()


def test_big_tables_are_written_in_groups_and_compressed(monkeypatch):
    monkeypatch.setattr(module, "_ROWS", 10_000)
    with peakline.open(str(SESSION)) as profile:
        content = files_of(profile)["events.parquet"]
        rows = profile.columns("events").rows
    about = pq.ParquetFile(io.BytesIO(content)).metadata
    assert [about.row_group(n).num_rows for n in range(about.num_row_groups)] == [
        10_000, 10_000, rows - 20_000,
    ]  # fmt: skip
    assert about.row_group(0).column(0).compression == "ZSTD"


def test_warnings_of_reading_the_other_tables_are_told():
    path = DATA / "memory_log" / "session_default_allocator.log.gz"
    with peakline.open(str(path)) as profile:
        result = pq.read_table(io.BytesIO(files_of(profile)["warnings.parquet"])).to_pylist()
        assert [(w["kind"], w["count"]) for w in result] == [
            (w.kind, w.count) for w in profile.warnings
        ]
        assert result


def test_what_may_be_left_out():
    with peakline.open(str(SESSION)) as profile:
        assert "event_stats.parquet" not in files_of(profile, args=False)
        with pytest.raises(UsageError, match="--allocator is not for it"):
            files_of(profile, allocator="a")


def test_warnings_do_not_depend_on_what_was_asked_before():
    path = str(DATA / "memory_log" / "session_default_allocator.log.gz")
    with peakline.open(path) as profile:
        alone = pq.read_table(io.BytesIO(files_of(profile)["warnings.parquet"])).to_pylist()
    with peakline.open(path) as profile:
        profile.memory()
        after = pq.read_table(io.BytesIO(files_of(profile)["warnings.parquet"])).to_pylist()
    assert "unmatched_deallocation" in {warning["kind"] for warning in alone}
    assert alone == after


def test_a_table_is_given_up_before_the_next_is_read(monkeypatch):
    with peakline.open(str(SESSION)) as profile:
        held = []
        real = module._write

        def write(stream, name, columns):
            held.append((name, "event_stats" in profile._columns))
            real(stream, name, columns)

        monkeypatch.setattr(module, "_write", write)
        files_of(profile)
        assert held[0] == ("event_stats", True)
        assert not any(there for _, there in held[1:])


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
