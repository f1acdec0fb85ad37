"""Large and odd programs."""

import os
import subprocess
import sys
from collections import Counter
from itertools import islice
from pathlib import Path

import pytest
from tests.each_row import each_row
from tests.reference.xspace_builder import SpaceBuilder
from tests.sweeps import sweep
from tests.timing.programs import Maker, f32

import peakline
from peakline.hlo import messages
from peakline.hlo.memory import memory_of, program_order
from peakline.hlo.messages import ModuleParts, read_module
from peakline.hlo.printing import LONG, PrintOptions, module_text, proto_text
from peakline.schema import HloComputationProto, HloInstructionProto, HloProto, ShapeProto
from peakline.schema import shape as shape_of

DUMPS = Path(__file__).parent.parent / "data/hlo"
PROGRAM = DUMPS / "module_0012.jit_chunk_attention.cpu_after_optimizations.hlo.pb"
SIZE = 5 << 20
MOST = 8 * SIZE
"""Above the answer, what a text may take: a program all of whose messages are there takes 19."""

ANSWER = """
import re, sys
from pathlib import Path
import peakline
words = dict(word.split("=") for word in sys.argv[3:])
with peakline.open(sys.argv[1]) as profile:
    answer = profile.tool(sys.argv[2], **words)
most = re.search(r"VmHWM:\\s+(\\d+)", Path("/proc/self/status").read_text())[1]
print(len(answer.content), most)
"""


def repeated(size):
    """A real program with its largest computation again and again, up to so many bytes."""
    made = HloProto.FromString(PROGRAM.read_bytes())
    one = max(made.hlo_module.computations, key=lambda one: len(one.instructions))
    again = type(one).FromString(one.SerializeToString())
    for number in range(size // again.ByteSize()):
        again.id, again.name = 10_000 + number, f"again.{number}"
        made.hlo_module.computations.append(again)
    return made.SerializeToString()


@pytest.fixture(scope="module")
def large(tmp_path_factory):
    path = tmp_path_factory.mktemp("large") / "large.hlo.pb"
    path.write_bytes(repeated(SIZE))
    return path


def run(path, tool, *words):
    """Bytes of an answer, and the most memory of the process that made it."""
    command = [sys.executable, "-c", ANSWER, path, tool, *words]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    size, peak = map(int, done.stdout.split())
    return size, peak << 10


@pytest.mark.skipif(sys.platform != "linux", reason="no measure of a process's memory")
@pytest.mark.parametrize("kind", sweep(["short_txt", "long_txt", "pbtxt"], "pbtxt".__eq__))
def test_a_text_needs_little_more_than_program_and_answer(large, kind):
    few, least = run(PROGRAM, "graph_viewer", f"type={kind}")
    size, most = run(large, "graph_viewer", f"type={kind}")
    assert size > 10 * few
    assert most - least - size < MOST


def ran(path, data):
    """A profile of a GPU that ran a fusion of a program a few times."""
    space = SpaceBuilder()
    plane = space.plane("/host:metadata")
    plane.add_stats(plane.message.event_metadata[plane.event_id("jit_f(7)")], {"Hlo Proto": data})
    line = space.plane("/device:GPU:0").line("Stream")
    computations = HloProto.FromString(data).hlo_module.computations
    names = (made.name for one in computations[-8:] for made in one.instructions)
    for number, name in enumerate(islice(dict.fromkeys(names), 20)):
        line.event("kernel", number * 1000, 500, {"hlo_op": name, "program_id": 7})
    path.write_bytes(space.space.SerializeToString())
    return path


@pytest.mark.skipif(sys.platform != "linux", reason="no measure of a process's memory")
@pytest.mark.nightly
@pytest.mark.parametrize("tool", ["hlo_stats", "op_profile"])
def test_ops_that_ran_need_little_of_their_program(tmp_path, large, tool):
    _, least = run(ran(tmp_path / "small.xplane.pb", PROGRAM.read_bytes()), tool)
    size, most = run(ran(tmp_path / "large.xplane.pb", large.read_bytes()), tool)
    assert size > 1000
    assert most - least < 10 * SIZE


@pytest.fixture
def in_parts(monkeypatch):
    """Reads small programs as it does large ones."""
    monkeypatch.setattr(messages, "LARGE", 0)
    monkeypatch.setattr(proto_text, "LARGE", 0)


@pytest.mark.usefixtures("in_parts")
@pytest.mark.parametrize("path", sorted(DUMPS.glob("*.hlo.pb")), ids=lambda path: path.name[:30])
def test_the_texts_are_those_of_the_whole_message(path):
    data = path.read_bytes()
    whole, parts = HloProto.FromString(data), read_module(data)
    assert parts.head != whole.hlo_module
    assert "".join(proto_text.stored_text(data, "xla.HloProto")) == "".join(
        proto_text.proto_text(whole)
    )
    for options in (LONG, PrintOptions(metadata=True)):
        shown = [
            "".join(module_text(p, options)) for p in (parts, ModuleParts.of(whole.hlo_module))
        ]
        assert shown[0] == shown[1]
    assert parts.whole() == whole.hlo_module


@pytest.mark.usefixtures("in_parts")
@each_row(
    "damage",
    [
        lambda data: data[:-1],
        lambda data: data + b"\x0b",
        lambda data: data.replace(b"parameter", b"param\xffter", 1),
        lambda _: b"\x0a\x80",
    ],
)
def test_damage_is_noticed_before_anything_is_shown(damage):
    assert read_module(damage(PROGRAM.read_bytes())) is None


@each_row("place", [0, 1_000_000])
def test_a_field_that_is_no_such_thing_is_found_among_many_small_ones(place):
    shape = ShapeProto(tuple_shapes=[ShapeProto(element_type=11)] * 300_000)
    module = HloProto()
    module.hlo_module.host_program_shape.result.CopyFrom(shape)
    whole = bytearray(module.SerializeToString())
    assert len(whole) > messages.LARGE
    assert read_module(bytes(whole)) is not None
    place = whole.index(b"\x22\x02\x10\x0b", place)
    whole[place + 2] = 0x0C  # the end of a group that none began
    assert read_module(bytes(whole)) is None


PROGRAM_OF_LARGE_CONSTANTS = (
    Path(__file__).parent.parent
    / "data/hlo/module_0012.jit_chunk_attention.cpu_after_optimizations.hlo.pb"
)
VALUE = 2**31 + 2**20
"""Bytes of the constant; in the file they take no room."""

LIMITED = """
import resource, sys
resource.setrlimit(resource.RLIMIT_DATA, (2**30, 2**30))
from peakline.cli.main import app
app(sys.argv[1:])
"""


def head(message, field, size):
    """Tag and length of a field, as protobuf writes them."""
    numbers = {one.name: one.number for one in shape_of(message).fields_by_number.values()}
    result = bytearray([numbers[field] << 3 | 2])
    while size > 127:
        result.append(size & 127 | 128)
        size >>= 7
    return bytes([*result, size])


def around(message, field, inner, size, own=b""):
    """Message bytes that end with a field of ``size`` bytes, which begins with ``inner``; their
    size.
    """
    begin = own + head(message, field, size) + inner
    return begin, len(begin) - len(inner) + size


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    """A real program, and beside it a computation of one constant."""
    real = HloProto.FromString(PROGRAM_OF_LARGE_CONSTANTS.read_bytes())
    constant = HloInstructionProto(name="huge", opcode="constant", id=1 << 40)
    constant.shape.element_type = 11
    constant.shape.dimensions.append(VALUE // 4)
    begin, size = around("xla.LiteralProto", "f32s", b"", VALUE)
    for message, field, own in (
        ("xla.HloInstructionProto", "literal", constant),
        ("xla.HloComputationProto", "instructions", HloComputationProto(name="huge", id=1 << 8)),
        ("xla.HloModuleProto", "computations", real.hlo_module),
        ("xla.HloProto", "hlo_module", HloProto()),
    ):
        begin, size = around(message, field, begin, size, own.SerializeToString())
    path = tmp_path_factory.mktemp("huge") / "huge.hlo.pb"
    with path.open("wb") as file:
        file.write(begin)
        file.truncate(size)
        file.seek(size)
        real.ClearField("hlo_module")
        file.write(real.SerializeToString())
    return path


@pytest.mark.skipif(os.name == "nt", reason="no limit of a process's memory")
@pytest.mark.parametrize(
    ("words", "shown"),
    [
        (["programs"], "8.0 MiB"),
        (["tool", "memory_viewer"], '"peakHeapMib":9.5'),
        (["tool", "hlo_stats"], "no_instructions"),
        (["tool", "graph_viewer", "-p", "node_name=huge"], "huge"),
        (["sql", "select name, bytes from hlo_instructions where name = 'huge'"], f"{VALUE}"),
    ],
    ids=lambda value: value[-1][:20] if isinstance(value, list) else None,
)
def test_it_is_read_in_a_gigabyte(program, words, shown):
    path = [words[0], program, *words[1:]] if words[0] == "sql" else [*words, program]
    done = subprocess.run(
        [sys.executable, "-c", LIMITED, *map(str, path)],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert shown in done.stdout + done.stderr


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
