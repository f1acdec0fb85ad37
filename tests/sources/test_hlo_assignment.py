"""Buffer assignments and usage reports as texts: what XLA wrote beside them as protos."""

import pytest
from tests.amplification.cases.hlo_assignment import values_of_rows
from tests.each_row import each_row
from tests.hanging import no_hang
from tests.sources.format_damage import dice

from peakline.errors import InputError
from peakline.formats import open_reader
from peakline.formats.hlo_text.program import module_name, translate_assignment, translate_program
from peakline.formats.hlo_text.usage_report import size_text
from peakline.schema import BufferAssignmentProto, HloProto

NAMES = [f"module_{number:04}.jit_{name}.cpu_after_optimizations"
         for number, name in ((0, "flow"), (2, "image"), (6, "table"), (8, "spread"))]  # fmt: skip
TUPLE = 13


@pytest.fixture
def dumps(root):
    return root / "tests" / "data" / "xla_dump"


def _programs(dumps, name, ending="-buffer-assignment.txt"):
    upstream = HloProto.FromString((dumps / f"{name}.hlo.pb").read_bytes())
    return upstream, (dumps / f"{name}{ending}").read_bytes()


@each_row("name", NAMES)
def test_an_assignment_is_what_xla_wrote_as_a_proto(dumps, name):
    upstream, text = _programs(dumps, name)
    data, losses = translate_assignment(text, upstream.SerializeToString())
    made = BufferAssignmentProto.FromString(data)
    assert losses.entries() == []
    assert list(made.logical_buffers) == list(upstream.buffer_assignment.logical_buffers)
    assert len(made.buffer_allocations) == len(upstream.buffer_assignment.buffer_allocations)
    for mine, theirs in zip(
        made.buffer_allocations, upstream.buffer_assignment.buffer_allocations, strict=True
    ):
        kinds = {one.element_type == TUPLE for one in theirs.assigned}
        if len(kinds) == 2:
            # The text does not say what temporary memory began as.
            theirs.is_tuple = False
        assert mine == theirs


@each_row("name", NAMES)
def test_without_its_module_an_assignment_has_one_of_its_values(dumps, name):
    upstream, text = _programs(dumps, name)
    data, losses = translate_program(text, "jit_f")
    program = HloProto.FromString(data)
    assert losses.entries() == []
    assert program.hlo_module.name == "jit_f"
    (entry,) = program.hlo_module.computations
    names = {one.id: one for one in entry.instructions}
    theirs = {one.id: one for c in upstream.hlo_module.computations for one in c.instructions}
    pairs = zip(
        program.buffer_assignment.logical_buffers,
        upstream.buffer_assignment.logical_buffers,
        strict=True,
    )
    for mine, other in pairs:
        here = names[mine.defined_at.instruction_id]
        there = theirs[other.defined_at.instruction_id]
        assert here.name == there.name
        if not mine.defined_at.shape_index and here.shape.element_type != TUPLE:
            assert here.shape == there.shape


@each_row("name", NAMES)
def test_values_have_their_instructions(dumps, name):
    upstream, text = _programs(dumps, name, "-buffer-assignment-values.txt")
    data, losses = translate_program(text, "jit_f")
    (entry,) = HloProto.FromString(data).hlo_module.computations
    assert [kind for kind, _, _ in losses.entries()] == ["hlo_allocations"]
    theirs = {one.name: one for c in upstream.hlo_module.computations for one in c.instructions}
    assert len(entry.instructions) > 3
    for one in entry.instructions:
        assert one.opcode == theirs[one.name].opcode
        assert one.shape == theirs[one.name].shape
        assert one.metadata == theirs[one.name].metadata


def test_both_in_one_text_as_older_versions_wrote_them(dumps):
    upstream, text = _programs(dumps, NAMES[0])
    values = _programs(dumps, NAMES[0], "-buffer-assignment-values.txt")[1]
    data, losses = translate_program(text + values, "jit_f")
    program = HloProto.FromString(data)
    assert losses.entries() == []
    mine = program.buffer_assignment.buffer_allocations
    assert len(mine) == len(upstream.buffer_assignment.buffer_allocations)
    assert any(one.metadata.op_name for one in program.hlo_module.computations[0].instructions)


def test_an_assignment_that_was_cut_says_so(dumps):
    _, text = _programs(dumps, NAMES[1])
    values = _programs(dumps, NAMES[1], "-buffer-assignment-values.txt")[1]
    losses = translate_program(text.split(b"allocation 3:")[0] + values)[1]
    assert [kind for kind, _, _ in losses.entries()] == ["truncated"]


def test_a_text_that_ends_within_a_line_says_so(dumps):
    _, text = _programs(dumps, NAMES[0])
    assert [kind for kind, _, _ in translate_program(text[:-3])[1].entries()] == ["truncated"]


OLD = """BufferAssignment:
allocation 0: 0x7f0a4c0035e0, size 4, color 1, parameter 0 at ShapeIndex {1}, maybe-live-out:
  param[](#3 @1) [0,4]: f32[]
allocation 1: 0x7f0a4c003600, size 24, preallocated-temp:
  tuple.2[1,0](#5) [8,16]: f32[4]{0}
  tuple.2[](#6 @0) [0,8]: ((), f32[])
"""


def test_the_form_of_2018():
    program = HloProto.FromString(translate_program(OLD)[0])
    first, second = program.buffer_assignment.buffer_allocations
    assert (first.color, first.parameter_number, list(first.parameter_shape_index)) == (1, 0, [1])
    assert first.is_entry_computation_parameter
    assert first.maybe_live_out
    assert [(one.logical_buffer_id, one.offset, one.size) for one in second.assigned] == [
        (5, 8, 16),
        (6, 0, 8),
    ]
    buffers = {one.id: one for one in program.buffer_assignment.logical_buffers}
    assert list(buffers[5].defined_at.shape_index) == [1, 0]
    assert buffers[3].color == 1


@each_row("name", NAMES)
def test_a_report_has_the_sizes_and_offsets(dumps, name):
    upstream, text = _programs(dumps, name, "-memory-usage-report.txt")
    data, losses = translate_program(text)
    made = HloProto.FromString(data).buffer_assignment
    theirs = upstream.buffer_assignment
    assert {kind for kind, _, _ in losses.entries()} == {"hlo_unsaid"}

    def rows(assignment):
        return sorted(
            (one.size, sorted((value.offset, value.element_type) for value in one.assigned))
            for one in assignment.buffer_allocations
        )

    assert rows(made) == rows(theirs)


REPORT = """Total bytes used: 224494040 (214.09MiB)

Allocations sorted by size:

cumulative_size; total_size - cumulative_size; allocation
------------------------------------------------------------------------------
 205.03MiB( 96%);    9.06MiB; allocation 0: size 205.03MiB, preallocated-temp:
 212.50MiB( 99%);    1.59MiB; allocation 1: size 7.43MiB, parameter 0, shape |c64[974700]|:
The rest 3 allocations are less than 5% of the total size and not shown.


Allocations sorted by size with their values:
allocation 0: size 205.03MiB, preallocated-temp:

\tcumulative_size;       size;       offset; used_by_n_values; shapes_list
\t------------------------------------------------------------
\t205.00MiB(100%);  205.00MiB;            0;                3; 2\u00d7u8[214958080], f32[16]
\t205.03MiB(100%);    32.0KiB;    214958080;                1; u8[32768]

allocation 1: size 7.43MiB, color 5, parameter 0, shape |c64[27,190,190]| at ShapeIndex {0}:
"""


def test_the_report_of_2024():
    data, losses = translate_program(REPORT)
    first, second = HloProto.FromString(data).buffer_assignment.buffer_allocations
    assert first.size == 214958080 + 32768
    assert [(one.offset, one.size) for one in first.assigned] == [
        (0, 214958080),
        (0, 214958080),
        (0, 64),
        (214958080, 32768),
    ]
    assert (second.color, second.is_entry_computation_parameter) == (5, True)
    assert second.size == round(7.43 * 2**20)
    assert [kind for kind, _, _ in losses.entries()] == ["hlo_rounded", "hlo_total"]


@each_row(
    ("size", "text"),
    [(0, b"0B"), (1023, b"1023B"), (1024, b"1.0KiB"), (106108, b"103.6KiB"),
     (224494040, b"214.09MiB"), (3 << 40, b"3.00TiB")],
)  # fmt: skip
def test_sizes_are_rounded_as_xla_does(size, text):
    assert size_text(size) == text


@each_row(
    ("path", "name"),
    [
        ("a/module_0028.jit_f.cpu_after_optimizations-buffer-assignment.txt", "jit_f"),
        ("module_12.jit_a.b.sm_9.0_gpu_after_optimizations-buffer-assignment.txt", "jit_a.b"),
        ("module_12.a.gpu_after_optimizations-memory-usage-report.txt.gz", "a"),
        ("odd.txt", "odd"),
    ],
)
def test_the_name_is_that_of_the_dump(path, name):
    assert module_name(path) == name


@each_row("text", ["", "BufferAssignment:\n", "Memory Space: a (color=0)\n", "Total bytes used: 3"])
def test_nothing_is_one_line(text):
    with pytest.raises(InputError, match=r"^no allocation in the text of a [^\n]+$"):
        translate_program(text)


def test_a_row_stands_for_no_more_values_than_a_report_has_room_for():
    with pytest.raises(InputError, match=r"^more than 20,\d{3} values in so short a report$"):
        translate_program(values_of_rows(1000).decode())


def test_a_value_without_its_instruction_has_its_name(dumps):
    upstream, text = _programs(dumps, NAMES[0])
    data, losses = translate_assignment(text, HloProto().SerializeToString())
    made = BufferAssignmentProto.FromString(data)
    assert {one.defined_at.instruction_id for one in made.logical_buffers} == {0}
    assert all(one.defined_at.instruction_name for one in made.logical_buffers)
    assert [kind for kind, _, _ in losses.entries()] == ["hlo_reference"]
    assert len(made.logical_buffers) == len(upstream.buffer_assignment.logical_buffers)


def test_readers(dumps):
    reader = open_reader(str(dumps / f"{NAMES[0]}-memory-usage-report.txt"))
    assert reader.format == "hlo_assignment"
    assert [reader.programs().name(0)] == ["jit_flow"]
    assert reader.duration_ps() == 0


def test_mutants_are_translated_or_one_line(dumps):
    texts = [OLD.encode(), REPORT.encode()]
    endings = (
        "-buffer-assignment.txt",
        "-buffer-assignment-values.txt",
        "-memory-usage-report.txt",
    )
    texts += [(dumps / f"{name}{ending}").read_bytes() for name in NAMES for ending in endings]
    parts = [b"{", b"}", b"(", b"|", b"9999999999999999999", b"-1", b"\n", b"\0", b"\xff", b"<",
             b"size=", b"\xc3\x97", b"999999\xc3\x97"]  # fmt: skip
    outcomes = {"error": 0, "lost": 0}
    for n in range(800):
        rng = dice(2028, n)
        text = bytearray(rng.choice(texts))
        if rng.random() < 0.3:
            del text[rng.randrange(len(text)) :]
        for _ in range(rng.randrange(1, 5)):
            at = rng.randrange(len(text) + 1)
            text[at : at + rng.choice((0, 1, 5, 40))] = rng.choice(parts)
        with no_hang(20):
            try:
                data, losses = translate_program(bytes(text))
            except InputError as error:
                outcomes["error"] += 1
                lines = str(error).splitlines()
            else:
                lines = []
        if lines:
            assert len(lines) == 1, n
            continue
        assert HloProto.FromString(data).hlo_module.computations, n
        outcomes["lost"] += bool(len(losses))
    assert min(outcomes.values()) > 5, outcomes
