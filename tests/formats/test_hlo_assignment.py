"""A program's memory: assignments, live ranges, dumps, damage, and the slow reference."""

import re
import shutil
from collections import Counter
from itertools import permutations
from pathlib import Path
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.amplification.cases import hlo_dump
from tests.amplification.cases.hlo_assignment import values_of_rows
from tests.each_row import each_row
from tests.formats.format_damage import dice
from tests.hanging import no_hang
from tests.reference.hlo import Reference
from tests.reference.hlo_mutations import mutated
from tests.wire.wirebytes import len_field

import peakline
from peakline.errors import InputError
from peakline.formats import open_reader
from peakline.formats.hlo_dump import reader
from peakline.formats.hlo_text.program import module_name, translate_assignment, translate_program
from peakline.formats.hlo_text.usage_report import size_text
from peakline.schema import BufferAssignmentProto, HloProto
from peakline.tables.program_tables import PROGRAM_TABLES

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


LIVE = "-live-range.txt"


@pytest.fixture
def dumped(root, tmp_path):
    """A copy of the dump of a program, without the files with these ends."""

    def make(*without):
        folder = tmp_path / "dump"
        shutil.rmtree(folder, ignore_errors=True)
        ends = shutil.ignore_patterns(*(f"*{end}" for end in without))
        return shutil.copytree(root / "tests" / "data" / "xla_live_range", folder, ignore=ends)

    return make


def answer(path):
    with peakline.open(path) as profile:
        (module,) = profile.sql(
            "select name, peak_bytes, peak_found_by from hlo_modules"
        ).to_pylist()
        rows = profile.sql(
            'select i.name, b.shape_index, b.bytes, b.kind, b.start, b."end", b.is_live_at_peak '
            "from hlo_buffers b join hlo_instructions i using (instruction_id) "
            "order by 1, 2"
        ).to_pylist()
        assert not profile.warnings
    return module, rows


def check_lives(path, rows):
    """The temporaries among these rows live as long as XLA says; how many they are."""
    # XLA numbers the instructions as the tables do.
    (text,) = path.glob(f"*{LIVE}")
    said = {
        (name, index.replace("{}", "")): (int(start), int(end))
        for name, index, start, end in re.findall(
            r"^    (\S+?)(\{[\d,]*\}):(\d+)-(\d+)$", text.read_text(), re.MULTILINE
        )
    }
    temporary = [row for row in rows if row["kind"] == "temporary"]
    for row in temporary:
        assert (row["start"], row["end"]) == said[row["name"], row["shape_index"]], row
    return len(temporary)


def test_texts_say_what_the_message_says(dumped):
    module, rows = answer(dumped())
    assert (module["peak_bytes"], module["peak_found_by"]) == (163944, "heap trace")
    path = dumped(".hlo.pb")
    again, result = answer(path)
    check_lives(path, result)
    # Ends in a heap trace have the names of the makers, in the texts those of the last users.
    assert check_lives(path, [row for row in rows if row["end"] not in (None, 33)]) > 15
    assert again == module
    at_peak = [row["name"] for row in rows if row["is_live_at_peak"]]
    assert [row["name"] for row in result if row["is_live_at_peak"]] == at_peak
    assert len(result) == len(rows)


def test_without_the_ranges_the_peak_is_an_upper_bound(dumped):
    module, _ = answer(dumped(".hlo.pb", LIVE))
    assert module["peak_found_by"] == "allocations"
    assert module["peak_bytes"] > 163944


def test_what_adds_nothing_is_passed_over(dumped):
    folder = dumped()
    for number in ("0006.jit_ranges", "0099.jit_other"):
        stem = folder / f"module_{number}.cpu_after_optimizations"
        for extra in ("-memory-usage-report.pb", "-memory-usage-report.txt", "-odd.txt"):
            stem.with_name(stem.name + extra).write_bytes(b"\n\x03odd\xff")
        stem.with_name(f"module_{number}.debug_options").write_text("odd")
    (folder / f"{stem.name}{LIVE}").write_text("odd")
    assert answer(folder)[0]["name"] == "jit_ranges"


ASSIGNMENT = b"""BufferAssignment:
allocation 0: size 16, preallocated-temp:
 value: <1 a @0> (size=16,offset=0): f32[4]{0}
 value: <2 b @0> (size=8,offset=8): f32[2]{0}
 value: <3 c{1} @0> (size=8,offset=0): f32[2]{0}
allocation 1: size 16, maybe-live-out:
 value: <4 d @0> (size=16,offset=0): f32[4]{0}
"""
ALLOCATION, DEALLOCATION, SHARE = range(3)


def events(ranges):
    text = "HloLiveRange (max 9):\n  InstructionSequence:\n" + "".join(
        f"    {place}:i{place}\n" for place in range(9)
    )
    text += "  BufferLiveRange:\n" + "".join(f"    {one}\n" for one in ranges)
    data, losses = translate_assignment(ASSIGNMENT, None, text.encode())
    assert losses.entries() == []
    return [
        (one.kind, one.buffer_id, one.share_with_canonical_id, one.instruction_name)
        for trace in BufferAssignmentProto.FromString(data).heap_simulator_traces
        for one in trace.events
    ]


@each_row(
    "ranges, expected",
    [
        # One after the other.
        (["a{}:1-2", "b{}:3-4"],
         [(ALLOCATION, 1, 0, "i1"), (DEALLOCATION, 1, 0, "i2"), (ALLOCATION, 2, 0, "i3"),
          (DEALLOCATION, 2, 0, "i4")]),
        # The memory of one is taken over: it ends before the other begins.
        (["a{}:1-3", "b{}:3-4"],
         [(ALLOCATION, 1, 0, "i1"), (DEALLOCATION, 1, 0, "i3"), (ALLOCATION, 2, 0, "i3"),
          (DEALLOCATION, 2, 0, "i4")]),
        # It is shared.
        (["a{}:1-5", "b{}:3-4"],
         [(ALLOCATION, 1, 0, "i1"), (SHARE, 2, 1, "i3"), (DEALLOCATION, 2, 0, "i4"),
          (DEALLOCATION, 1, 0, "i5")]),
        # Beside each other, one of them a part of a tuple.
        (["b{}:1-2", "c{1}:2-2"],
         [(ALLOCATION, 2, 0, "i1"), (ALLOCATION, 3, 0, "i2"), (DEALLOCATION, 2, 0, "i2"),
          (DEALLOCATION, 3, 0, "i2")]),
        # What is held all the time has no heap, what is unknown or damaged no event.
        (["d{}:1-2", "c{}:1-2", "other{}:1-2", "a{}:5-3", "a{}:1-", "a{:1-2", "b{}:1-99999999999"],
         []),
        ([], []),
    ],
)  # fmt: skip
def test_events(ranges, expected):
    assert events(ranges) == expected


def test_values_without_allocations_are_no_assignment(root):
    name = "module_0000.jit_flow.cpu_after_optimizations-buffer-assignment-values.txt"
    with peakline.open(root / "tests" / "data" / "xla_dump" / name) as profile:
        (row,) = profile.table("hlo_modules").to_pylist()
        assert (row["peak_bytes"], row["peak_found_by"]) == (None, None)


DATA = Path(__file__).parents[1] / "data"
DUMPED = sorted(DATA.rglob("*.hlo.pb"))
SPACES = sorted((DATA / "sessions").glob("jax*/**/*.xplane.pb*"))
SMALL = sorted(DUMPED, key=lambda path: path.stat().st_size)[:10]
ROWS_OF = {
    "computation_id": "hlo_computations",
    "root_id": "hlo_instructions",
    "instruction_id": "hlo_instructions",
    "operand_id": "hlo_instructions",
    "buffer_id": "hlo_buffers",
}
KINDS = ("hlo_reference", "hlo_heap")


def expected(protos):
    """The rows of all programs, numbered through, and what was lost."""
    tables, losses = {table: [] for table in PROGRAM_TABLES}, Counter()
    stacks = 0
    for number, proto in enumerate(protos):
        one = Reference(proto)
        losses += one.losses
        first = {table: len(tables[table]) for table in PROGRAM_TABLES}
        assert one.tables.keys() == PROGRAM_TABLES
        for table, rows in one.tables.items():
            for row in rows:
                for name in row.keys() & ROWS_OF.keys():
                    row[name] = None if row[name] is None else row[name] + first[ROWS_OF[name]]
                if row.get("stack_id") is not None:
                    row["stack_id"] += stacks
                tables[table].append(row | ({"module_id": number} if "module_id" in row else {}))
        stacks += len(proto.hlo_module.stack_frame_index.stack_frames)
    return tables, losses


def check(path, protos, order=None):
    """Compare all tables of a file; ``order`` is that in which they are read."""
    tables, losses = expected(protos)
    with peakline.open(path) as profile:
        for table in order or sorted(tables):
            result = profile.table(table).to_pylist()
            assert len(result) == len(tables[table]), table
            for row, wanted in zip(result, tables[table], strict=True):
                assert {name: row[name] for name in wanted} == wanted, table
        counts = Counter({one.kind: one.count for one in profile.warnings})
        assert {kind: counts[kind] for kind in KINDS} == {kind: losses[kind] for kind in KINDS}


@pytest.mark.parametrize("path", DUMPED, ids=lambda path: path.name)
def test_programs_that_xla_dumped(path):
    check(path, [HloProto.FromString(path.read_bytes())])


@pytest.mark.parametrize("path", SPACES, ids=lambda path: path.name)
def test_programs_of_a_profile(path):
    with peakline.open(path) as profile:
        programs = profile.programs()
        protos = [HloProto.FromString(bytes(programs.data(n))) for n in range(len(programs))]
    assert len(protos) > 5
    check(path, protos)


def write(folder, proto):
    path = folder / "program.hlo.pb"
    path.write_bytes(proto.SerializeToString())
    return path


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("programs")


@settings(max_examples=60)
@given(st.integers(0, 2**32))
def test_programs_that_no_compiler_writes(folder, seed):
    rng = Random(seed)
    made = mutated(rng, HloProto.FromString(rng.choice(SMALL).read_bytes()), rng.randrange(1, 12))
    order = sorted(PROGRAM_TABLES)
    rng.shuffle(order)
    check(write(folder, made), [made], order)


@pytest.fixture
def opened(monkeypatch):
    """How often each file was."""
    counts = Counter()
    content_of = reader.content_of

    def counting(path, *words):
        counts[path] += 1
        return content_of(path, *words)

    monkeypatch.setattr(reader, "content_of", counting)
    return counts


def _profile(tmp_path):
    for name, content in hlo_dump.programs(2000).items():
        (tmp_path / name).write_bytes(content)
    return peakline.open(str(tmp_path))


def test_small_programs_are_opened_once_for_all_tables(tmp_path, opened):
    with _profile(tmp_path) as profile:
        for table in reader.DumpReader.tables:
            profile.columns(table)
    assert len(opened) > 10
    assert set(opened.values()) == {1}


def test_whether_a_table_has_rows_is_known_from_the_first_program(tmp_path, opened):
    with _profile(tmp_path) as profile:
        assert profile.has_rows("hlo_instructions")
        assert len(opened) == 1
        assert not profile.has_rows("hlo_heap_events")
        opened.clear()
        assert not profile.has_rows("hlo_heap_events")
        assert not opened, "it is known"


def test_of_very_many_tiny_programs_some_are_left_out(tmp_path):
    for number in range(1100):
        (tmp_path / f"module_{number:04}.f.cpu_after_optimizations.hlo.pb").write_bytes(b"x" * 64)
    with peakline.open(str(tmp_path)) as profile:
        # One more for each 2 KiB.
        assert len(profile.programs()) == 1024 + 1100 * 64 // 2048
        profile.programs()
        (warning,) = profile.warnings
        assert (warning.kind, warning.count) == ("hlo_programs", 42)
    (tmp_path / "module_0000.f.cpu_after_optimizations.hlo.pb").write_bytes(bytes(128 << 10))
    with peakline.open(str(tmp_path)) as profile:
        assert (len(profile.programs()), profile.warnings) == (1100, [])


_SAMPLE = next((Path(__file__).parents[1] / "data/hlo").glob("*jit_donate_sgd*.hlo.pb"))
_METADATA, _WINDOW = 7, 15
_BROKEN = b"\x0a\x7f"
"""A text that is longer than what it stands in."""


def program(*broken):
    """A sample in which a field of some of the first instructions is broken, each by its number."""
    proto = HloProto.FromString(_SAMPLE.read_bytes())
    numbers = iter(broken)
    computations = []
    for computation in proto.hlo_module.computations:
        made = []
        for one in computation.instructions:
            field = next(numbers, None)
            more = b"" if field is None else len_field(field, _BROKEN)
            made.append(len_field(2, one.SerializeToString() + more))
        computation.ClearField("instructions")
        computations.append(len_field(3, computation.SerializeToString() + b"".join(made)))
    proto.hlo_module.ClearField("computations")
    module = proto.hlo_module.SerializeToString() + b"".join(computations)
    proto.ClearField("hlo_module")
    return len_field(1, module) + proto.SerializeToString()


def test_damage_that_only_some_tables_meet_is_counted_in_any_order(tmp_path):
    # Metadata is read for every table, a window only for categories.
    path = tmp_path / "odd.hlo_proto.pb"
    path.write_bytes(program(_METADATA, _WINDOW))
    with peakline.open(_SAMPLE) as profile:
        rows = profile.columns("hlo_instructions").rows
    result = []
    for tables in permutations(["hlo_modules", "hlo_instructions", "hlo_computations"]):
        with peakline.open(path) as profile:
            counts = {table: profile.columns(table).rows for table in tables}
            result.append({warning.kind: warning.count for warning in profile.warnings})
        assert counts["hlo_instructions"] == rows - 1
    assert result == [{"damaged": 2, "hlo_damaged": 1}] * len(result)
