"""The ``live_memory`` tool: its rows, groups, filters, order and scopes."""

import csv
import io
import json
import random
from collections import Counter
from itertools import pairwise

import pytest
from tests.each_row import each_row
from tests.engine.ending import DATA
from tests.memory.records import alloc, events, free
from tests.shared import shared
from tests.sweeps import each_sample
from tests.tables.fake import FakeReader
from tests.timing.timelines import profile_of
from tests.tools.scopes import assert_adds_up

from peakline.api import Profile
from peakline.errors import NotFoundError, UsageError
from peakline.findings.memory_answer import answer_memory
from peakline.memory.peak.moments import memory_at
from peakline.memory.signatures import normal_shape
from peakline.tools import available_tools
from peakline.tools.live_memory import MOST_ROWS

ROWS = [
    alloc(1, 10, op="net/a/MatMul", shape="[2,3]", data_type="float", step_id=0, time_ps=100),
    alloc(2, 30, op="net/a/Relu", shape="(2, 3)", data_type="half", step_id=1, time_ps=200),
    alloc(3, 20, op="net/b", region_type="temp", step_id=1, requested_bytes=17, time_ps=300),
    alloc(4, 5, time_ps=400),
    free(2, step_id=2, time_ps=500),
]
STEPS = [{"step_id": n, "name": f"train {n}", "start_ps": 0, "end_ps": 1} for n in (0, 1, 2)]


def of_rows(rows, steps=()):
    tables = {"allocator_events": events(rows), "steps": list(steps)}
    return Profile(FakeReader(tables))


def ask(profile, **parameters):
    return json.loads(profile.tool("live_memory", **parameters).content)


def column(answer, name):
    return [row[name] for row in answer["rows"]]


def groups(**parameters):
    result = ask(of_rows(ROWS, STEPS), at_ps=400, **parameters)
    return [(row["key"], row["bytes"], row["count"]) for row in result["rows"]]


def test_the_default_is_the_peak():
    result = ask(of_rows(ROWS, STEPS), limit=1)
    assert result | {"columns": []} == {
        "host": "worker-0",
        "start_ps": 100,
        "end_ps": 500,
        "allocators": [
            {
                "allocator": "", "capacity_bytes": None, "peak_bytes": 65, "peak_time_ps": 400,
                "peak_step": None, "lifetime_peak_bytes": None, "live_at_end_bytes": 35,
                "untracked_allocations": 0,
            }
        ],
        "allocator": "", "at_ps": 400, "record_ps": 400, "bytes_in_use": 65, "fragmentation": None,
        "step_id": None, "step_name": None, "is_peak": True, "is_described": False,
        "has_stacks": False, "group": "buffer",
        "columns": [],
        "rows": [
            {
                "record": 1, "op": "net/a/Relu", "scope": "net/a", "region_type": "",
                "data_type": "half", "shape": "[2, 3]",
                **dict.fromkeys(("category", "module", "function", "input_shape"), ""),
                "bytes": 30, "requested_bytes": None, "count": 1, "start_ps": 200, "end_ps": 500,
                "start_step": 1, "end_step": 2, "address": "0x2", "allocation_id": None,
                "stream": None, "stack_id": None,
            }
        ],
        "rows_total": 4,
        "rows_bytes": 65,
    }  # fmt: skip
    assert result["columns"] == list(result["rows"][0])


def test_a_moment_between_records_is_that_of_the_record_before():
    result = ask(of_rows(ROWS, STEPS), at_ps=299)
    assert (result["at_ps"], result["record_ps"], result["step_name"]) == (299, 200, "train 1")
    assert (result["bytes_in_use"], result["is_peak"]) == (40, False)
    assert column(result, "bytes") == [30, 10]


def test_before_the_first_record_nothing_is_known():
    result = ask(of_rows(ROWS), at_ps=99)
    assert (result["record_ps"], result["bytes_in_use"], result["rows"]) == (None, None, [])
    assert result["allocators"][0]["peak_bytes"] == 65


def test_what_no_buffer_explains_is_a_row():
    rows = [
        alloc(1, 10, op="a", in_use_bytes=110, reserved_bytes=7, free_bytes=40, fragmentation=0.5),
        alloc(None, 6, op="b", in_use_bytes=116, reserved_bytes=7),
    ]
    result = ask(of_rows(rows))
    assert [(row["op"], row["bytes"], row["count"], row["record"]) for row in result["rows"]] == [
        ("(before profile)", 100, 0, None),
        ("a", 10, 1, 0),
        ("(reserved)", 7, 0, None),
        ("(unattributed)", 6, 0, None),
    ]
    assert (result["rows_bytes"], result["bytes_in_use"], result["fragmentation"]) == (
        123,
        123,
        None,
    )
    first = ask(of_rows(rows), at_ps=0)
    assert (first["fragmentation"], first["rows_bytes"]) == (0.5, 117)
    assert column(ask(of_rows(rows), group="region_type"), "key") == [
        "(before profile)", "", "(reserved)", "(unattributed)",
    ]  # fmt: skip
    # An answer without a step says so; what is of no op has no step either.
    by_step = ask(of_rows(rows), group="step", sort="key")
    assert [(row["key"], row["step_id"]) for row in by_step["rows"]] == [
        ("(before profile)", None), ("", None), ("(reserved)", None), ("(unattributed)", None),
    ]  # fmt: skip


def test_memory_from_before_the_profile_has_no_begin_and_is_its_own_group():
    rows = [
        alloc(1, 4, op="(before profile)", region_type="small", is_before=True, step_id=3),
        alloc(2, 8, op="w", region_type="small", is_before=True, step_id=3),
        alloc(3, 1, op="x", region_type="small", step_id=3),
    ]
    profile = of_rows(rows)
    result = [(row["op"], row["start_ps"], row["start_step"]) for row in ask(profile)["rows"]]
    assert result == [("w", None, None), ("(before profile)", None, None), ("x", 2, 3)]
    assert column(ask(profile, group="region_type"), "key") == ["small", "(before profile)"]
    assert column(ask(profile, region_type="small"), "op") == ["w", "x"]


@each_row(
    ("group", "expected"),
    [
        ("op", [("net/a/Relu", 30, 1), ("net/b", 20, 1), ("net/a/MatMul", 10, 1), ("", 5, 1)]),
        ("scope", [("net/a", 40, 2), ("net", 20, 1), ("", 5, 1)]),
        ("region_type", [("", 45, 3), ("temp", 20, 1)]),
        ("data_type", [("half", 30, 1), ("", 25, 2), ("float", 10, 1)]),
        ("shape", [("[2, 3]", 40, 2), ("", 25, 2)]),
        ("step", [("train 1", 50, 2), ("train 0", 10, 1), ("", 5, 1)]),
    ],
)
def test_groups(group, expected):
    assert groups(group=group) == expected


def test_a_group_has_its_share_and_a_step_its_id():
    result = ask(of_rows(ROWS, STEPS), group="step")
    assert column(result, "share") == [50 / 65, 10 / 65, 5 / 65]
    assert column(result, "step_id") == [1, 0, None]
    assert result["columns"] == ["key", "bytes", "count", "share", "step_id"]
    assert column(ask(of_rows(ROWS), group="step"), "key") == ["1", "0", ""]


@each_row(
    ("parameters", "sizes"),
    [
        ({"search": "RELU"}, [30]),
        ({"search": "net/a"}, [30, 10]),
        ({"search": "[2, 3]"}, [30, 10]),
        ({"search": "TEMP"}, [20]),
        ({"search": "nothing"}, []),
        ({"op": "net/b"}, [20]),
        ({"op": ""}, [5]),
        ({"scope": "net"}, [20]),
        ({"scope": ""}, [5]),
        ({"within": "net"}, [30, 20, 10]),
        ({"within": "net/a"}, [30, 10]),
        ({"within": "net/b"}, [20]),
        ({"within": "ne"}, []),
        ({"within": ""}, [30, 20, 10, 5]),
        ({"region_type": "temp"}, [20]),
        ({"data_type": ""}, [20, 5]),
        ({"shape": "[2,3]"}, [30, 10]),
        ({"step": "1"}, [30, 20]),
        ({"step": ""}, [5]),
        ({"record": "2"}, [20]),
        ({"record": "4"}, []),
        ({"search": "net", "step": "0"}, [10]),
    ],
)
def test_filters(parameters, sizes):
    result = ask(of_rows(ROWS, STEPS), **parameters)
    assert column(result, "bytes") == sizes
    assert (result["rows_total"], result["rows_bytes"]) == (len(sizes), sum(sizes))
    # They choose among rows; what is in use stays what it is.
    assert result["bytes_in_use"] == 65


def test_filters_but_that_of_the_op_leave_out_what_is_of_no_op():
    profile = of_rows([alloc(1, 10, in_use_bytes=30)])
    assert column(ask(profile, region_type=""), "bytes") == [10]
    assert column(ask(profile, step=""), "bytes") == [10]
    assert column(ask(profile, op="(before profile)"), "bytes") == [20]
    assert column(ask(profile, search="BEFORE"), "bytes") == [20]


@each_row(
    ("parameters", "records"),
    [
        ({}, [1, 2, 0, 3]),
        ({"descending": False}, [3, 0, 2, 1]),
        ({"sort": "op"}, [0, 1, 2, 3]),
        ({"sort": "op", "descending": True}, [2, 1, 0, 3]),
        ({"sort": "start_ps"}, [3, 2, 1, 0]),
        ({"sort": "end_ps", "descending": False}, [1, 2, 0, 3]),
        ({"sort": "start_step", "descending": False}, [0, 1, 2, 3]),
        ({"sort": "requested_bytes"}, [2, 1, 0, 3]),
        ({"sort": "address"}, [3, 2, 1, 0]),
        ({"sort": "shape"}, [1, 0, 2, 3]),
        ({"offset": 1, "limit": 2}, [2, 0]),
        ({"offset": 4}, []),
        ({"limit": 0}, []),
    ],
)
def test_the_order_of_rows(parameters, records):
    result = ask(of_rows(ROWS, STEPS), at_ps=400, **parameters)
    assert column(result, "record") == records
    assert (result["rows_total"], result["rows_bytes"]) == (4, 65)


def test_groups_in_another_order():
    assert [key for key, _, _ in groups(group="op", sort="key")] == [
        "net/a/MatMul", "net/a/Relu", "net/b", "",
    ]  # fmt: skip
    rows = [alloc(n, 1, step_id=n) for n in (10, 9, 100)]
    result = ask(of_rows(rows), group="step", sort="key", descending=False)
    assert column(result, "key") == ["9", "10", "100"]
    assert [key for key, _, _ in groups(group="shape", sort="count", limit=1)] == ["[2, 3]"]


def test_an_address_beyond_what_a_double_holds():
    result = ask(of_rows([alloc(2**64 - 1, 1), alloc(2**63, 2)]), sort="address")
    assert column(result, "address") == ["0xffffffffffffffff", "0x8000000000000000"]


def test_the_tree_of_scopes():
    result = ask(of_rows(ROWS), scopes=True)["scopes"]
    assert list(zip(*result.values(), strict=True)) == [
        ("scope:", "", "", "", 65, 4),
        ("scope:net", "net", "scope:", "net", 60, 3),
        ("scope:net/a", "a", "scope:net", "net/a", 40, 2),
        ("op:net/a/Relu", "Relu", "scope:net/a", "net/a/Relu", 30, 1),
        ("op:net/a/MatMul", "MatMul", "scope:net/a", "net/a/MatMul", 10, 1),
        ("op:net/b", "b", "scope:net", "net/b", 20, 1),
        ("op:", "(no op)", "scope:", "", 5, 1),
    ]
    assert list(result) == ["id", "label", "parent", "path", "bytes", "count"]
    assert "scopes" not in ask(of_rows(ROWS))


def test_a_scope_that_is_an_op_too_and_very_many_ops():
    rows = [alloc(1, 9, op="a"), alloc(2, 8, op="a/b"), alloc(3, 7, op="a/c")]
    result = ask(of_rows(rows), scopes=True)["scopes"]
    assert result["id"] == ["scope:", "scope:a", "op:a", "op:a/b", "op:a/c"]
    rows = [alloc(n, 1 + n % 7, op=f"s{n % 50}/op{n}") for n in range(3000)]
    result = ask(of_rows(rows), scopes=True)["scopes"]
    assert_adds_up(result, sum(1 + n % 7 for n in range(3000)))
    assert sum(name.startswith("rest:") for name in result["id"]) == 50


def test_the_allocator_with_the_largest_peak_is_the_default():
    rows = [alloc(1, 5, allocator="a"), alloc(1, 9, allocator="b"), alloc(2, 1, allocator="b")]
    result = ask(of_rows(rows))
    assert [one["allocator"] for one in result["allocators"]] == ["a", "b"]
    assert (result["allocator"], result["bytes_in_use"]) == ("b", 10)
    assert ask(of_rows(rows), allocator="a")["bytes_in_use"] == 5
    with pytest.raises(NotFoundError, match="no allocator 'c' in the profile; there is: a, b"):
        ask(of_rows(rows), allocator="c")


@each_row(
    ("parameters", "message"),
    [
        ({"sort": "key"}, "rows by buffer have no column 'key'; there is: record, op, "),
        ({"group": "op", "sort": "op"}, "rows by op have no column 'op'; there is: key, bytes, "),
        ({"group": "color"}, "parameter group must "),
        ({"limit": MOST_ROWS + 1}, "parameter limit must "),
        ({"at_ps": 1 << 63}, "parameter at_ps must "),
        ({"step": "first"}, "parameter step must "),
    ],
)
def test_what_is_refused(parameters, message):
    with pytest.raises(UsageError) as refused:
        ask(of_rows(ROWS), **parameters)
    assert str(refused.value).startswith(f"live_memory: {message}")


def test_rows_as_csv():
    content = of_rows(ROWS).tool("live_memory", format="csv", sort="op", limit=2).content
    rows = list(csv.DictReader(io.StringIO(content.decode())))
    assert [(row["op"], row["bytes"], row["requested_bytes"]) for row in rows] == [
        ("net/a/MatMul", "10", ""), ("net/a/Relu", "30", ""),
    ]  # fmt: skip
    empty = of_rows(ROWS).tool("live_memory", format="csv", group="op", search="nothing").content
    assert empty == b'"key","bytes","count","share"\n'


def test_a_profile_without_memory():
    profile = profile_of([("a", 0, 1)])
    assert "live_memory" not in available_tools(profile)
    assert "live_memory" in available_tools(of_rows(ROWS))
    result = ask(profile, scopes=True)
    assert (result["allocators"], result["allocator"], result["rows"]) == ([], None, [])
    assert result["scopes"]["id"] == []
    assert [warning.kind for warning in profile.warnings] == ["no_memory_events"]
    with pytest.raises(NotFoundError):
        ask(profile, allocator="a")


def test_a_size_that_no_memory_can_have_is_told_and_not_drawn():
    profile = of_rows([alloc(1, 10), alloc(2, 2**60)])
    assert ask(profile)["bytes_in_use"] == 10
    assert [(one.kind, one.count) for one in profile.warnings] == [("implausible_size", 1)]
    answer_memory(profile)
    assert len(profile.warnings) == 1
    assert json.loads(profile.tool("timeline", view="counter", width=2).content)["high"] == [10, 10]


def test_a_chart_of_a_viewport_reads_no_events():
    reader = FakeReader({"allocator_events": events(ROWS), "events": []})
    profile = Profile(reader)
    parameters = {"view": "counter", "start_ps": 100, "end_ps": 500, "width": 4}
    assert json.loads(profile.tool("timeline", **parameters).content)["last"] == [10, 40, 60, 65]
    ask(profile, at_ps=300)
    assert (reader.reads["allocator_events"], reader.reads["events"]) == (1, 0)


def test_the_time_of_records_that_are_out_of_order():
    result = ask(of_rows([alloc(1, 10, time_ps=(1 << 63) - 1), alloc(2, 20, time_ps=-5)]))
    assert (result["start_ps"], result["end_ps"]) == (-5, (1 << 63) - 1)


SPECIAL = {"(before profile)", "(reserved)", "(unattributed)"}
SAMPLES = sorted(
    path
    for folder in ("sessions", "programs", "run_metadata", "memory_log", "oom_report", "pprof",
                   "chrome_trace")
    for path in (DATA / folder).glob("**/*")
    if path.is_file() and path.suffix in {".pb", ".gz"}
)  # fmt: skip


@each_sample("path", SAMPLES)
def test_every_sample_adds_up_and_is_the_memory_answer(path):
    profile = shared(path)
    answer = answer_memory(profile)
    if answer.history is None:
        assert ask(profile)["allocators"] == []
        return
    result = ask(profile)
    for one, peak in zip(result["allocators"], answer.allocators, strict=True):
        assert one.items() <= peak.as_json().items()
    rng = random.Random(path.name)
    for peak in answer.allocators:
        assert_equal(profile, peak, allocator=peak.allocator)
        for _ in range(3):
            at = rng.randint(result["start_ps"], result["end_ps"])
            expected = memory_at(answer.history, at, allocator=peak.allocator)
            if expected:
                assert_equal(profile, expected[0], allocator=peak.allocator, at_ps=at)


def assert_equal(profile, expected, **parameters):
    result = ask(profile, limit=MOST_ROWS, scopes=True, **parameters)
    assert result["bytes_in_use"] == expected.peak_bytes
    assert result["record_ps"] == expected.peak_time_ps
    assert result["step_id"] == expected.peak_step
    assert result["fragmentation"] == expected.fragmentation_at_peak
    rows = result["rows"]
    assert result["rows_total"] == len(rows)
    assert sum(row["bytes"] for row in rows) == result["rows_bytes"] == expected.peak_bytes
    assert summed((labels(row), row["bytes"]) for row in rows) == summed(
        (labels({name: getattr(one, name) for name in one.__slots__}), one.bytes)
        for one in expected.peak_buffers
    )
    by_op = summed((row["op"], row["bytes"]) for row in rows)
    positive = sum(size for size in by_op.values() if size > 0)
    if positive:
        assert_adds_up(result["scopes"], positive)
    for group in ("op", "scope", "region_type", "data_type", "shape", "step"):
        grouped = ask(profile, group=group, limit=MOST_ROWS, **parameters)
        assert sum(row["bytes"] for row in grouped["rows"]) == expected.peak_bytes


def labels(row):
    """What the memory answer groups buffers by; what was there before is one row of it."""
    if row["op"] in SPECIAL:
        return row["op"]
    return (
        row["op"], row["region_type"], row["data_type"], normal_shape(row["shape"]),
        row["start_step"],
    )  # fmt: skip


def summed(pairs):
    total = Counter()
    for key, size in pairs:
        total[key] += size
    return {key: size for key, size in total.items() if size}


@each_sample("path", SAMPLES)
def test_records_come_in_the_order_of_time_and_sequence(path):
    profile = shared(path)
    if "allocator_events" not in profile.tables:
        return
    events = profile.columns("allocator_events")
    keys = list(
        zip(events.array("time_ps").tolist(), events.array("sequence").tolist(), strict=True)
    )
    assert all(one < other for one, other in pairwise(keys))
