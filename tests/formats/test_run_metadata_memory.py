"""Allocator events of traced runs: tiny runs, and exactly the events that they give."""

import pytest
from tests.formats.step_stats_reference import (
    add_device,
    add_memory,
    add_node,
    add_output,
    open_run,
    run_metadata,
)

from peakline.findings.memory_answer import explain_memory
from peakline.formats.run_metadata.runs import Run
from peakline.formats.run_metadata.tables import RunTables
from peakline.tables.reader import Warnings
from peakline.tables.tables import check_columns
from peakline.wire import as_buffer


@pytest.fixture
def run():
    return run_metadata()


@pytest.fixture
def device(run):
    return add_device(run)


@pytest.fixture
def events(run, tmp_path):
    """Time in microseconds, activity (+ or -), bytes, op, id and region of every event."""

    def read(expected_warnings=()):
        profile = open_run(tmp_path, run)
        result = profile.columns("allocator_events").to_pylist()
        assert [(w.kind, w.count) for w in profile.warnings] == list(expected_warnings)
        return [short(row) for row in result]

    return read


def short(row):
    return (
        row["time_ps"] // 1_000_000,
        {"allocation": "+", "deallocation": "-"}[row["activity"]],
        row["allocated_bytes"],
        row["op"],
        row["allocation_id"],
        row["region_type"],
    )


def test_a_temporary_buffer(run, device, tmp_path):
    add_memory(add_node(device, "a"), [(1, 64), (5, -64)])
    first, second = open_run(tmp_path, run).columns("allocator_events").to_pylist()
    assert {name: value for name, value in first.items() if value is not None} == {
        "time_ps": 1_000_000, "sequence": 0, "allocator": "bfc", "activity": "allocation",
        "allocation_id": -1, "allocated_bytes": 64, "op": "a", "region_type": "temp", "step_id": 0,
        "is_before": False,
    }  # fmt: skip
    assert (second["time_ps"], second["sequence"]) == (5_000_000, 1)
    assert (second["activity"], second["allocation_id"]) == ("deallocation", -1)


def test_an_output_names_its_buffer(run, device, tmp_path):
    node = add_node(device, "a")
    add_memory(node, [(1, 64), (30, -64)])
    output = add_output(node, 64, 7, address=4096)
    output.tensor_description.allocation_description.requested_bytes = 60
    first, second = open_run(tmp_path, run).columns("allocator_events").to_pylist()
    known = ("allocation_id", "address", "data_type", "shape", "region_type", "allocated_bytes")
    expected = (7, 4096, "float", "[16]", "output", 64)
    assert tuple(first[name] for name in known) == expected
    assert tuple(second[name] for name in known) == expected
    assert (first["requested_bytes"], second["requested_bytes"]) == (60, None)


def test_frees_end_the_first_allocation_of_their_size(device, events):
    add_memory(add_node(device, "a"), [(1, 64), (2, 32), (3, 64), (4, -64), (5, -32)])
    assert [(event[0], event[1], event[4]) for event in events()] == [
        (1, "+", -1),
        (2, "+", -2),
        (3, "+", -3),
        (4, "-", -1),
        (5, "-", -2),
    ]


def test_a_free_of_nothing_ends_nothing(device, events):
    add_memory(add_node(device, "a"), [(1, -64), (2, 64)])
    assert events() == [(1, "-", 64, "a", -1, None), (2, "+", 64, "a", -2, None)]


def test_of_equal_sizes_the_outputs_are_those_that_live_longest(device, events):
    node = add_node(device, "a")
    add_memory(node, [(1, 64), (2, 64), (3, 64), (4, -64), (20, -64)])
    add_output(node, 64, 9)
    add_output(node, 64, 8)
    assert events() == [
        (1, "+", 64, "a", -1, "temp"),
        (2, "+", 64, "a", 8, "output"),
        (3, "+", 64, "a", 9, "output"),
        (4, "-", 64, "a", -1, "temp"),
        (20, "-", 64, "a", 8, "output"),
    ]


def test_an_input_passed_on_is_not_a_new_buffer(device, events):
    first = add_node(device, "a", 0)
    add_memory(first, [(1, 64), (40, -64)])
    add_output(first, 64, 5)
    second = add_node(device, "b", 20, label="b = Op(a)")
    # Its own temporary memory has the size of the output that it passes on.
    add_memory(second, [(21, 64), (25, -64)])
    add_output(second, 64, 5)
    assert events() == [
        (1, "+", 64, "a", 5, "output"),
        (21, "+", 64, "b", -1, "temp"),
        (25, "-", 64, "b", -1, "temp"),
        (40, "-", 64, "a", 5, "output"),
    ]


def test_memory_from_before_the_run_counts_once_from_its_start(device, events):
    for name in ("w", "w/read"):
        add_output(add_node(device, name, 3), 64, 2)
    add_node(device, "first", 0)
    assert events() == [(0, "+", 64, "w", 2, "persist")]


def test_memory_from_before_belongs_to_no_step(run, device, tmp_path):
    add_output(add_node(device, "w"), 64, 2)
    row = open_run(tmp_path, run).columns("allocator_events").to_pylist()[0]
    assert row["step_id"] is None
    assert row["requested_bytes"] == 64
    assert row["is_before"] is True


def report(node, in_use):
    """What the allocator had in use when the execution ended."""
    node.memory[0].allocator_bytes_in_use = in_use


def test_what_the_allocator_had_in_use_beyond_all_buffers_was_there_before(run, device, tmp_path):
    first, second = add_node(device, "a", 0), add_node(device, "b", 20)
    add_output(add_node(device, "w", 2), 16, 2)
    add_memory(first, [(1, 64), (40, -64)])
    add_memory(second, [(21, 32), (25, -32)])
    add_memory(add_node(device, "c", 50), [(51, 8)])  # reports nothing
    report(first, 64 + 16 + 1000)
    report(second, 64 + 16 + 900)
    rows = open_run(tmp_path, run).columns("allocator_events").to_pylist()
    assert [short(row) for row in rows] == [
        (0, "+", 900, "(before profile)", -4, None),
        (0, "+", 16, "w", 2, "persist"),
        (1, "+", 64, "a", -1, None),
        (21, "+", 32, "b", -2, "temp"),
        (25, "-", 32, "b", -2, "temp"),
        (40, "-", 64, "a", -1, None),
        (51, "+", 8, "c", -3, None),
    ]
    assert [row["is_before"] for row in rows] == [True, True] + 5 * [False]
    assert (rows[0]["requested_bytes"], rows[0]["step_id"]) == (900, None)


def test_what_was_there_before_and_was_freed_in_the_run_counts_until_then(run, device, tmp_path):
    """No free of it is recorded, only that the allocator has less in use from then on."""
    for number in range(12):
        node = add_node(device, f"n{number}", 10 * number)
        add_memory(node, [(10 * number + 1, 64), (10 * number + 2, -64)])
        # One execution runs beside another's 5000 bytes; from the sixth on 700 bytes are freed.
        report(node, (1000 if number < 6 else 300) + (5000 if number in {3, 8} else 0))
    with open_run(tmp_path, run) as profile:
        rows = [
            short(row)[:3]
            for row in profile.columns("allocator_events").to_pylist()
            if row["op"] == "(before profile)"
        ]
        runs = profile.columns("op_runs").to_pylist()
        end = (runs[5]["start_ps"] + runs[5]["duration_ps"]) // 1_000_000
        assert rows == [(0, "+", 700), (0, "+", 300), (end, "-", 700)]
        [peak] = explain_memory(
            profile.columns("allocator_events"), profile.columns("steps")
        ).allocators
        assert peak.peak_bytes == 1000 + 64
        assert peak.lifetime_peak_bytes == 6000


def test_each_allocator_has_its_own_memory_from_before(device, events):
    for allocator, in_use in (("bfc", 64 + 100), ("cpu", 64 + 7)):
        node = add_node(device, allocator)
        add_memory(node, [(1, 64)], allocator)
        report(node, in_use)
    assert [event[2:4] for event in events() if event[0] == 0] == [
        (100, "(before profile)"),
        (7, "(before profile)"),
    ]


def test_an_allocator_that_had_less_in_use_than_was_found_tells_nothing(device, events):
    first, second = add_node(device, "a", 0), add_node(device, "b", 20)
    add_memory(first, [(1, 64)])
    add_memory(second, [(21, 32)])
    report(first, 500)
    report(second, 50)
    assert events() == [(1, "+", 64, "a", -1, None), (21, "+", 32, "b", -2, None)]


def test_what_was_received_counts_from_its_first_sight(device, events):
    add_node(device, "first", 0)
    add_output(add_node(device, "sum", 9, label="sum = AddN(first, far/_7:1)"), 64, 2)
    assert events() == [(9, "+", 64, "sum", 2, "output")]


def test_what_was_fed_counts_although_it_has_no_id(device, events):
    for name, label in (("x", "x = _Arg()"), ("y", "y = Identity(x)")):
        output = add_output(add_node(device, name, 3, label=label), 64, 0)
        output.tensor_description.allocation_description.ClearField("allocated_bytes")
    assert events() == [(3 - 3, "+", 64, "x", -1, "output")]


def test_persistent_ids_mark_their_buffers(device, events):
    node = add_node(device, "a")
    add_memory(node, [(1, 64), (2, 32)])
    add_output(node, 64, 5)
    add_output(node, 32, 6)
    node.memory_stats.persistent_tensor_alloc_ids.append(6)
    assert [(event[4], event[5]) for event in events()] == [(5, "output"), (6, "persist")]


def test_temporary_memory_that_is_freed_late(device, events):
    node = add_node(device, "a")
    add_memory(node, [(1, 64), (2, 32), (50, -64)])
    node.memory_stats.temp_memory_size = 64
    assert [event[5] for event in events()] == ["temp", "temp", "temp"]


def test_a_buffer_that_one_op_makes_and_another_shows(device, events):
    """An assignment has no output; the read that follows shows what it allocated."""
    first = add_node(device, "a", 0)
    add_memory(first, [(1, 32)])
    add_output(first, 32, 10)
    add_memory(add_node(device, "assign", 10), [(11, 64)])
    last = add_node(device, "b", 20)
    add_memory(last, [(21, 32)])
    add_output(last, 32, 12)
    add_output(add_node(device, "read", 30), 64, 11)
    # Its id tells that this one is older.
    add_output(add_node(device, "old", 40), 64, 3)
    assert events() == [
        (0, "+", 64, "old", 3, "persist"),
        (1, "+", 32, "a", 10, "output"),
        (11, "+", 64, "assign", 11, "output"),
        (21, "+", 32, "b", 12, "output"),
    ]


def test_ids_that_every_execution_numbers_anew(device, events):
    """An allocator without ids of its own: each execution counts from 1."""
    for number, name in enumerate(("a", "b")):
        node = add_node(device, name, 10 * number)
        add_memory(node, [(10 * number + 1, 64), (50 + number, -64)])
        add_output(node, 64, 1, address=4096 * (number + 1))
    add_output(add_node(device, "view", 30), 64, 1, address=4096)
    assert events() == [
        (1, "+", 64, "a", -1, "output"),
        (11, "+", 64, "b", -2, "output"),
        (50, "-", 64, "a", -1, "output"),
        (51, "-", 64, "b", -2, "output"),
    ]


def test_buffers_known_by_their_address_alone(device, events):
    for name in ("w", "w/read"):
        add_output(add_node(device, name), 64, 0, address=4096)
    add_output(add_node(device, "numbered", 5), 64, 3, address=8192)
    add_output(add_node(device, "same place", 6), 64, 0, address=8192)
    assert events() == [(0, "+", 64, "w", -1, "persist"), (0, "+", 64, "numbered", 3, "persist")]


def test_totals_without_records_are_estimated(device, events):
    node = add_node(device, "a", 0)
    node.memory.add(allocator_name="bfc", total_bytes=200, peak_bytes=150, live_bytes=64)
    add_output(node, 64, 5)
    node = add_node(device, "b", 20)
    node.memory.add(allocator_name="bfc", total_bytes=32)
    # Two outputs share what is live: the sum is there already.
    node = add_node(device, "c", 40)
    node.memory.add(allocator_name="bfc", peak_bytes=48, live_bytes=48)
    add_output(node, 16, 6)
    add_output(node, 32, 7)
    assert events([("estimated_allocations", 3)]) == [
        (0, "+", 64, "a", 5, "output"),
        (0, "+", 86, "a", -1, "temp"),
        (10, "-", 86, "a", -1, "temp"),
        (20, "+", 32, "b", -2, "temp"),
        (30, "-", 32, "b", -2, "temp"),
        (40, "+", 48, "c", -3, None),
    ]


def test_each_task_has_memory_of_its_own(run, events):
    for task in (0, 1):
        for device in ("CPU:0", "CPU:1"):
            entry = add_device(run, f"/job:worker/replica:0/task:{task}/device:{device}")
            node = add_node(entry, "a")
            number = 1 + int(device[-1])
            add_memory(node, [(number, 64)])
            add_output(node, 64, number)
    assert [event[4] for event in events()] == [1, 1, 2, 2]


def test_memories_of_tasks_are_named_for_them(run, tmp_path):
    for task in (0, 1):
        entry = add_device(run, f"/job:worker/replica:0/task:{task}/device:CPU:0")
        add_memory(add_node(entry, "a"), [(task, 64)])
    names = open_run(tmp_path, run).columns("allocator_events").names("allocator").to_list()
    assert names == [f"/job:worker/replica:0/task:{task}/bfc" for task in (0, 1)]


# Several runs in one file.


def several(*runs):
    """The events of runs that stand in one buffer, and the warnings."""
    buffer, places = b"", []
    for number, run in enumerate(runs):
        data = run.SerializeToString()
        places.append(Run(f"step {number}", number, len(buffer), len(data)))
        buffer += data
    warnings = Warnings()
    tables = RunTables(as_buffer(buffer), places)
    result = check_columns("allocator_events", tables.read("allocator_events", warnings, None))
    return [(*short(row), row["step_id"]) for row in result.to_pylist()], warnings.entries()


def test_what_is_not_seen_in_a_later_run_was_freed_when_its_run_ended():
    first, second = run_metadata(), run_metadata()
    device = add_device(first)
    node = add_node(device, "a", 0)
    add_memory(node, [(1, 64), (2, 32)])
    add_output(node, 64, 10)
    add_output(add_node(device, "w"), 16, 2)
    add_output(add_node(device, "v"), 8, 3)
    device = add_device(second)
    for name, size, number in (("kept", 64, 10), ("w", 16, 2), ("new", 4, 11)):
        add_output(add_node(device, name, 100), size, number)
    events, warnings = several(first, second)
    assert events == [
        (0, "+", 16, "w", 2, "persist", None),
        (0, "+", 8, "v", 3, "persist", None),
        (1, "+", 64, "a", 10, "output", 0),
        (2, "+", 32, "a", -1, None, 0),
        (10, "-", 8, "v", 3, "persist", 0),
        (10, "-", 32, "a", -1, None, 0),
        (100, "+", 4, "new", 11, "persist", None),
    ]
    assert [(kind, count) for kind, count, _ in warnings] == [("freed_between_runs", 2)]


def test_runs_count_in_the_order_of_their_times():
    first, second = run_metadata(), run_metadata()
    add_output(add_node(add_device(first), "w", 100), 16, 2)
    add_output(add_node(add_device(second), "w", 0), 16, 2)
    events, warnings = several(first, second)
    assert events == [(0, "+", 16, "w", 2, "persist", None)]
    assert warnings == []


def test_what_was_there_before_each_run_ends_with_it():
    runs = [run_metadata(), run_metadata()]
    for number, run in enumerate(runs):
        node = add_node(add_device(run), "a", 100 * number)
        add_memory(node, [(100 * number + 1, 64), (100 * number + 5, -64)])
        report(node, 10 + number)
    events, warnings = several(*runs)
    assert events == [
        (0, "+", 10, "(before profile)", -3, None, None),
        (1, "+", 64, "a", -1, "temp", 0),
        (5, "-", 64, "a", -1, "temp", 0),
        (10, "-", 10, "(before profile)", -3, None, None),
        (100, "+", 11, "(before profile)", -4, None, None),
        (101, "+", 64, "a", -2, "temp", 1),
        (105, "-", 64, "a", -2, "temp", 1),
    ]
    assert warnings == []
