"""Rows as data frames, and queries with parameters."""

import sys

import pandas as pd
import polars as pl
import pytest

from peakline.errors import CheckFailed, UsageError
from tests.each_row import each_row
from tests.shared import DATA, shared

LIMITS = [None, 1 << 28]


@pytest.fixture
def profile():
    return shared(DATA / "sessions" / "tf2_cnn")


@each_row("limit", LIMITS)
def test_parameters_are_values_by_place_and_by_name(profile, limit):
    def rows(query, parameters):
        return profile.sql(query, parameters, memory_limit_bytes=limit).to_pylist()

    above = rows("select count(*) n from allocator_events where allocated_bytes > ?", [1000])
    plain = rows("select count(*) n from allocator_events where allocated_bytes > 1000", None)
    assert above == plain
    assert above[0]["n"] > 0
    named = "select count(*) n from allocator_events where activity = $what and $none is null"
    assert rows(named, {"what": "allocation", "none": None})[0]["n"] > 0
    hostile = "x'; drop table steps; --"
    assert rows("select ? as text, ? as real, ? as flag", [hostile, 1.5, True]) == [
        {"text": hostile, "real": 1.5, "flag": True}
    ]


@each_row("limit", LIMITS)
@each_row(
    ("query", "parameters", "error", "says"),
    [
        ("select ?", [], CheckFailed, "not provided"),
        ("select 1", [1], CheckFailed, "Expected 0, got 1"),
        ("select $x", {"y": 1}, CheckFailed, "not provided"),
        ("select * from query(?)", ["select 1"], CheckFailed, "needs a constant text"),
        ("select * from read_csv(?)", ["/etc/passwd"], CheckFailed, "read_csv"),
        ("select ?", [b"x"], UsageError, "parameter 1 of the query is bytes"),
        ("select ?", [1 << 64], UsageError, "more than 64 bits"),
        ("select ?", "x", UsageError, "a list of values"),
    ],
)
def test_wrong_parameters_are_one_line(profile, limit, query, parameters, error, says):
    with pytest.raises(error, match=says.replace("(", r"\(")) as result:
        profile.sql(query, parameters, memory_limit_bytes=limit)
    assert "\n" not in str(result.value)


def test_pandas_has_whole_numbers_and_categories(profile):
    frame = profile.to_pandas("allocator_events")
    table = profile.table("allocator_events")
    assert frame["time_ps"].dtype == "int64"
    assert isinstance(frame["op"].dtype, pd.CategoricalDtype)
    assert table["allocation_id"].null_count
    assert frame["allocation_id"].dtype == pd.Int64Dtype()
    expected = [pd.NA if one is None else one for one in table["allocation_id"].to_pylist()]
    assert all(a is b or a == b for a, b in zip(frame["allocation_id"], expected, strict=True))
    sums = profile.to_pandas(
        "select sum(allocated_bytes) b from allocator_events where $x > 0", {"x": 1}
    )
    assert sums["b"].dtype == "int64"
    assert len(profile.to_pandas("step_totals")) == len(profile.sql("from step_totals"))


def test_polars_has_whole_numbers_and_categories(profile):
    frame = profile.to_polars("allocator_events")
    assert frame.schema["time_ps"] == pl.Int64
    assert frame.schema["op"] == pl.Categorical
    assert (
        frame["allocation_id"].to_list()
        == profile.table("allocator_events")["allocation_id"].to_pylist()
    )


@each_row("name", ["pandas", "polars"])
def test_without_the_library_one_line_says_what_to_type(profile, monkeypatch, name):
    monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(UsageError, match=f"{name} is not installed: pip install {name}"):
        getattr(profile, f"to_{name}")("steps")


def test_answers_have_their_rows(profile):
    memory = profile.memory()
    assert memory.to_arrow().num_rows == sum(len(one.peak_buffers) for one in memory.allocators)
    assert sum(memory.to_arrow()["bytes"].to_pylist()) == memory.allocators[0].peak_bytes
    assert profile.time().to_arrow().num_rows == profile.steps().rows == 16
    path = profile.critical_path()
    assert sum(path.to_arrow()["busy_ps"].to_pylist()) == path.busy_ps
    result = shared(DATA / "programs" / "leak_list.xplane.pb.gz").findings()
    assert result.to_arrow()["title"].to_pylist() == [one.title for one in result]
    assert [*result[:1]] == [result[0]]
    assert result[0].to_arrow().num_rows == len(result[0].table)
