"""Programs that break a rule: what the tables say then, and what they count."""

from collections import Counter

from tests.analysis.timing.programs import Maker, f32
from tests.each_row import each_row

import peakline
from peakline.hlo.memory import memory_of, program_order

HUGE = 2**63 - 1


def opened(tmp_path, made):
    path = tmp_path / "odd.hlo.pb"
    path.write_bytes(made.data)
    return peakline.open(path)


def test_a_dilated_window_is_that_of_its_instruction(tmp_path):
    made = Maker()
    main = made.computation("main")
    x = made.add(main, "parameter", f32(4))
    made.add(main, "convolution", f32(4), x, x)
    for field, name in (("base_dilation", "base"), ("window_dilation", "window")):
        one = made.add(main, "convolution", f32(4), x, x, name=name)
        one.window.dimensions.add(size=1)
        one.window.dimensions.add(**{field: 2})
    with opened(tmp_path, made) as profile:
        assert profile.table("hlo_instructions")["category"].to_pylist()[1:] == [
            "convolution", "convolution base-dilated", "convolution window-dilated",
        ]  # fmt: skip


def test_of_two_instructions_with_the_number_of_the_root_the_first_is_it(tmp_path):
    made = Maker()
    main = made.computation("main")
    first = made.add(main, "parameter", f32(4))
    made.add(main, "parameter", f32(4)).id = first.id
    main.root_id = first.id
    with opened(tmp_path, made) as profile:
        assert profile.table("hlo_instructions")["is_root"].to_pylist() == [True, False]
        assert profile.table("hlo_computations")["root_id"].to_pylist() == [0]


def test_sizes_beyond_all_memory_do_not_wrap(tmp_path):
    made = Maker()
    main = made.computation("main")
    assignment = made.proto.buffer_assignment
    for number in range(3):
        one = made.add(main, "parameter", f32(4), parameter_number=number)
        assignment.logical_buffers.add(id=number, size=HUGE).defined_at.instruction_id = one.id
        allocation = assignment.buffer_allocations.add(
            index=number, size=HUGE, is_entry_computation_parameter=True
        )
        allocation.assigned.add(logical_buffer_id=number, size=HUGE)
    with opened(tmp_path, made) as profile:
        (row,) = profile.table("hlo_modules").to_pylist()
        assert (row["argument_bytes"], row["peak_bytes"]) == (2**62, 2**62)


def test_values_without_instructions_take_memory_all_the_time(tmp_path):
    made = Maker()
    made.computation("main")
    assignment = made.proto.buffer_assignment
    assignment.logical_buffers.add(id=1, size=64).defined_at.instruction_id = 7
    assignment.buffer_allocations.add(index=0, size=64).assigned.add(logical_buffer_id=1, size=64)
    with opened(tmp_path, made) as profile:
        assert profile.table("hlo_modules")["peak_bytes"].to_pylist() == [64]


def test_a_fusion_whose_parameter_has_no_number_costs_what_its_parts_do(tmp_path):
    made = Maker()
    fused = made.computation("fused")
    x = made.add(fused, "parameter", f32(4), parameter_number=-(2**63))
    made.add(fused, "negate", f32(4), x)
    main = made.computation("main")
    y = made.add(main, "parameter", f32(4))
    made.add(main, "fusion", f32(4), y, calls=(fused,), fusion_kind="kLoop")
    with opened(tmp_path, made) as profile:
        assert profile.table("hlo_modules")["flops"].to_pylist() == [4]


def test_a_computation_runs_where_it_is_called_first(tmp_path):
    made = Maker()
    last = made.computation("last")
    made.add(last, "parameter", f32(1))
    first = made.computation("first")
    made.add(first, "call", f32(1), calls=(last,))
    made.add(made.computation("main"), "conditional", f32(1), calls=(first, last))
    with opened(tmp_path, made) as profile:
        programs = profile.programs()
        tables = (
            programs.read(0, name) for name in ("hlo_computations", "hlo_instructions", "hlo_calls")
        )
        # What the first branch calls comes within it, though it is the second branch too.
        assert program_order(*tables).tolist() == [0, 1, 2]


def test_the_condition_of_a_loop_runs_before_its_body(tmp_path):
    made = Maker()
    body, condition = made.computation("body"), made.computation("condition")
    made.add(body, "parameter", f32(1))
    made.add(condition, "parameter", f32(1))
    made.add(made.computation("main"), "while", f32(1), calls=(body, condition))
    with opened(tmp_path, made) as profile:
        assert memory_of(profile, 0).order.tolist() == [1, 0, 2]


def test_calls_in_a_circle_end(tmp_path):
    made = Maker()
    one, other = made.computation("one"), made.computation("other")
    made.add(one, "call", f32(1), calls=(other,))
    made.add(other, "while", f32(1), calls=(one, other))
    with opened(tmp_path, made) as profile:
        assert profile.table("hlo_modules")["runs"].to_pylist() == [None]
        assert profile.table("hlo_calls").num_rows == 3


def lossy():
    """Three references that lead nowhere, each of its own kind, and two events that fit nothing."""
    made = Maker()
    one = made.add(made.computation("main"), "call", f32(1))
    one.operand_ids.append(99)
    one.called_computation_ids.append(99)
    assignment = made.proto.buffer_assignment
    assignment.logical_buffers.add(id=1, size=4)
    allocation = assignment.buffer_allocations.add(size=4)
    for number in (1, 99):
        allocation.assigned.add(logical_buffer_id=number, size=4)
    trace = assignment.heap_simulator_traces.add()
    for kind in (0, 77, 1, 1):
        trace.events.add(kind=kind, buffer_id=1)
    return made


@each_row(
    "order",
    [
        ["hlo_operands", "hlo_calls", "hlo_buffers", "hlo_heap_events"],
        ["hlo_buffers", "hlo_heap_events", "hlo_calls", "hlo_operands", "hlo_calls"],
        ["hlo_modules", "hlo_heap_events", "hlo_operands", "hlo_calls", "hlo_buffers"],
    ],
)
def test_each_loss_counts_once_whatever_is_read_first(tmp_path, order):
    with opened(tmp_path, lossy()) as profile:
        for table in order:
            profile.table(table)
        counts = Counter({one.kind: one.count for one in profile.warnings})
    assert (counts["hlo_reference"], counts["hlo_heap"]) == (3, 2)


def test_an_event_of_no_known_kind_changes_nothing(tmp_path):
    with opened(tmp_path, lossy()) as profile:
        rows = profile.table("hlo_heap_events").to_pylist()
    assert [row["kind"] for row in rows] == ["allocation", None, "deallocation", "deallocation"]
    assert [row["live_bytes"] for row in rows] == [4, 4, 0, 0]


def test_a_program_of_nothing(tmp_path):
    made = Maker("nothing")
    made.proto.buffer_assignment.heap_simulator_traces.add()
    with opened(tmp_path, made) as profile:
        (row,) = profile.table("hlo_modules").to_pylist()
        assert (row["entry"], row["peak_bytes"], row["peak_found_by"]) == ("", 0, "no temporaries")


def test_a_value_freed_twice_ends_the_memory_that_another_shares(tmp_path):
    made = Maker()
    made.computation("main")
    assignment = made.proto.buffer_assignment
    allocation = assignment.buffer_allocations.add(size=24)
    for number, size in ((1, 8), (2, 8), (3, 16)):
        assignment.logical_buffers.add(id=number, size=size)
        allocation.assigned.add(logical_buffer_id=number, size=size)
    trace = assignment.heap_simulator_traces.add()
    trace.events.add(kind=0, buffer_id=1)
    trace.events.add(kind=2, buffer_id=2, share_with_canonical_id=1)
    trace.events.add(kind=1, buffer_id=1)
    trace.events.add(kind=1, buffer_id=1)
    trace.events.add(kind=0, buffer_id=3)
    with opened(tmp_path, made) as profile:
        memory = memory_of(profile, 0)
        assert [one.bytes for one in memory.live] == [16]
        assert memory.peak_bytes == 16
