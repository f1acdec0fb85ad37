"""Parquet: every table comes back, with what its columns mean."""

import io

import numpy as np
import pyarrow.parquet as pq
import pytest
from tests.each_row import each_row
from tests.export.written import DATA, SESSION

import peakline
from peakline.errors import UsageError
from peakline.export import Options, export
from peakline.export import parquet as module
from peakline.tables.tables import TABLES


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
        told = pq.read_table(io.BytesIO(files_of(profile)["warnings.parquet"])).to_pylist()
        assert [(w["kind"], w["count"]) for w in told] == [
            (w.kind, w.count) for w in profile.warnings
        ]
        assert told


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
