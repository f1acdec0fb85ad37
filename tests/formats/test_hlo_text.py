"""HLO text as HloProto: what XLA itself wrote as both, and texts by hand."""

import re
from contextlib import suppress

import pytest
from tests.amplification.cases.hlo_text import shape_of_wrapped
from tests.each_row import each_row
from tests.formats.format_damage import dice
from tests.formats.hlo_odd_texts import ODD
from tests.formats.hlo_same import differences
from tests.hanging import no_hang

from peakline.errors import InputError
from peakline.formats import open_reader
from peakline.formats.hlo_text.module import translate_module, translate_modules
from peakline.schema import HloModuleProto, HloProto

STAGES = ("before_optimizations", "cpu_after_optimizations")
DUMPS = [
    f"module_{number:04}.jit_{name}.{stage}"
    for number, name in ((0, "flow"), (2, "image"), (6, "table"), (8, "spread"))
    for stage in STAGES
]


def module_of(text):
    """The module, nothing of which may be lost."""
    data, losses = translate_module(text)
    assert losses.entries() == []
    return HloProto.FromString(data).hlo_module


def entry_of(text):
    """The instructions of the entry computation by name."""
    module = module_of(text)
    entry = next(c for c in module.computations if c.id == module.entry_computation_id)
    return {one.name: one for one in entry.instructions}


@pytest.fixture
def dumps(root):
    return root / "tests" / "data" / "xla_dump"


@each_row("name", DUMPS)
def test_a_dump_is_what_xla_wrote_as_a_proto(dumps, name):
    upstream = HloProto.FromString((dumps / f"{name}.hlo.pb").read_bytes()).hlo_module
    made = module_of((dumps / f"{name}.txt").read_bytes())
    assert differences(upstream, made) == []
    assert made.stack_frame_index == upstream.stack_frame_index


@each_row(("name", "text"), ODD.items())
def test_styles_say_the_same(name, text):
    """Without ``%``, with CR LF, with comments between tokens."""
    plain = module_of(text)
    bare = re.sub(r'%(?=[\w.]+(?:[^"\n]*"[^"\n]*")*[^"\n]*$)', "", text, flags=re.MULTILINE)
    commented = re.sub(r"^(  )(?=\S)", r"/* = { ( */ ", text, flags=re.MULTILINE)
    for other in (bare, text.replace("\n", "\r\n"), commented, "\n// x\n" + text):
        assert differences(plain, module_of(other)) == [], name


def test_ids_are_unique_and_mean_what_the_names_do():
    module = module_of(ODD["calls"])
    assert len({c.id for c in module.computations}) == len(module.computations)
    numbers = [one.id for c in module.computations for one in c.instructions]
    assert len(set(numbers)) == len(numbers)
    assert 0 not in numbers


def test_layouts():
    result = entry_of(ODD["layouts"])
    layout = result["p"].shape.layout
    assert list(layout.minor_to_major) == [1, 0]
    assert [list(tile.dimensions) for tile in layout.tiles] == [[8, 128]]
    assert layout.memory_space == 5
    assert [len(tile.dimensions) for tile in result["b"].shape.layout.tiles] == [2, 2]
    assert result["b"].shape.layout.element_size_in_bits == 16
    assert list(result["d"].shape.is_dynamic_dimension) == [True, False]
    assert len(result["q"].shape.tuple_shapes[1].tuple_shapes[0].tuple_shapes) == 2


def test_only_what_is_no_fusion_is_scheduled():
    module = module_of(ODD["calls"].replace("HloModule m", "HloModule m, is_scheduled=true"))
    names = {c.id: c.name for c in module.computations}
    assert sorted(names[number] for number in module.schedule.sequences) == ["main", "one"]


def test_an_asynchronous_opcode_calls_what_it_names():
    wrapped, main = module_of(ODD["asynchronous"]).computations
    by_name = {one.name: one for one in main.instructions}
    assert by_name["cs"].opcode == "async-start"
    assert by_name["cd"].opcode == "async-done"
    assert by_name["c"].opcode == "copy-start"
    assert list(by_name["cs"].called_computation_ids) == [wrapped.id]
    assert [one.opcode for one in wrapped.instructions] == ["parameter"] * 3 + ["dynamic-slice"]
    assert wrapped.execution_thread == "host"


def test_an_old_text():
    """As XLA wrote them in 2018: no layout of the entry, shapes of operands, no parameters."""
    text = """HloModule cluster_0__XlaCompiledKernel_true__XlaNumConstantArgs_0.7

ENTRY %cluster.7 (arg0.1: f32[2], arg1.2: f32[2]) -> (f32[2]) {
  %arg0.1 = f32[2]{0} parameter(0), parameter_replication={false}, metadata={op_name="XLA_Args"}
  %arg1.2 = f32[2]{0} parameter(1), metadata={op_name="XLA_Args"}
  %add.3 = f32[2]{0} add(f32[2]{0} %arg0.1, f32[2]{0} %arg1.2), metadata={op_type="A" source_line=5}
  ROOT %tuple.6 = (f32[2]{0}) tuple(f32[2]{0} %add.3), metadata={op_name="XLA_Retvals"}
}
"""
    module = module_of(text)
    assert module.name.endswith("Args_0.7")
    assert module.entry_computation_name == "cluster.7"
    assert len(module.host_program_shape.parameters) == 2
    add = module.computations[0].instructions[2]
    assert (add.metadata.op_type, add.metadata.source_line) == ("A", 5)
    assert list(add.operand_ids) == [one.id for one in module.computations[0].instructions[:2]]


def test_computations_without_a_header():
    module = module_of("a {\n  p = f32[] parameter(0)\n  r = f32[] negate(p)\n}")
    assert module.name == "module_a"
    assert module.computations[0].root_id == module.computations[0].instructions[1].id


def test_several_modules_in_one_text(tmp_path):
    text = ODD["dots"] + "\n" + ODD["header"]
    result, losses = translate_modules(text)
    assert [name for name, _ in result] == ["m", "odd.name-1"]
    assert losses.entries() == []
    path = tmp_path / "two.txt"
    path.write_text(text)
    programs = open_reader(str(path)).programs()
    assert [programs.name(number) for number in range(len(programs))] == ["m", "odd.name-1"]
    with pytest.raises(InputError, match=r"line \d+: expected the end of the text"):
        translate_module(text)


def _entry(line):
    return f"HloModule m\n\nENTRY e {{\n  p = f32[4]{{0}} parameter(0)\n  {line}\n}}\n"


BROKEN = {
    "nothing": ("", 1),
    "a word": ("hello", 1),
    "a header": ("HloModule m", 1),
    "no end": ("HloModule m\nENTRY e {\n  p = f32[] parameter(0)\n", 4),
    "no operands": (_entry("a = f32[4]{0} negate(p"), 5),
    "no opcode": (_entry("a = f32[4]{0}"), 5),
    "no name": (_entry("= f32[4]{0} negate(p)"), 5),
    "brackets": (_entry("a = f32[4]{0} negate((p]), x={"), 5),
    "empty": ("HloModule m\nENTRY e {\n}\n", 3),
    "two roots": (_entry("ROOT a = f32[] negate(p)\n  ROOT b = f32[] negate(p)"), 6),
    "parameter": (_entry("a = f32[] parameter(x)"), 5),
    "trailing": (_entry("a = f32[] negate(p) negate(p)"), 5),
    "stack frames": ("HloModule m\n\nFileLocations\n1 {line=-92233720368547758090}\n", 3),
}


@each_row(("text", "line"), BROKEN.values())
def test_what_breaks_the_syntax_is_one_line(text, line):
    with pytest.raises(InputError, match=rf"^line {line}: expected [^\n]+$"):
        translate_module(text)


LOST = {
    "quotes": ('a = f32[4]{0} negate(p), metadata={op_name="x}', "hlo_values"),
    "unknown attribute": ("a = f32[] negate(p), unheard_of={1,{2}}", "hlo_attributes"),
    "no value of it": ("a = f32[] negate(p), dimensions={x}", "hlo_values"),
    "huge": ("a = f32[] negate(p), channel_id=99999999999999999999", "hlo_values"),
    "shape": ("a = f33[3] negate(p)", "hlo_values"),
    "layout": ("a = f32[3]{0:Q(3)} negate(p)", "hlo_values"),
    "deep": (f"a = {'(' * 5000}f32[]{')' * 5000} tuple(p)", "hlo_values"),
    "constant": ("a = s8[] constant(1000)", "hlo_values"),
    "operand": ("a = f32[] negate(missing)", "hlo_reference"),
    "computation": ("a = f32[] call(p), to_apply=missing", "hlo_reference"),
    "predecessor": ("a = f32[] negate(p), control-predecessors={%missing}", "hlo_reference"),
    "name": ("p = f32[] negate(p)", "hlo_repeated"),
    "number": ("a = f32[] negate(p), metadata={source_line=99999999999999999999}", "hlo_values"),
}


@each_row(("line", "kind"), LOST.values())
def test_what_is_lost_is_counted(line, kind):
    data, losses = translate_module(_entry(line))
    assert [(result, count) for result, count, _ in losses.entries()] == [(kind, 1)]
    assert len(HloProto.FromString(data).hlo_module.computations[0].instructions) == 2


@each_row(("line", "kind"), LOST.values())
def test_what_is_lost_is_in_the_warnings_of_the_reader(tmp_path, line, kind):
    path = tmp_path / "a.txt"
    path.write_text(_entry(line))
    reader = open_reader(str(path))
    assert reader.format == "hlo_text"
    assert [result for result, _, _ in reader._losses.entries()] == [kind]


def test_names_may_come_before_what_they_name():
    text = """HloModule m
ENTRY e {
  ROOT a = f32[] add(p, q), control-predecessors={q}
  p = f32[] parameter(0)
  q = f32[] call(p), to_apply=later
}
later {
  ROOT x = f32[] parameter(0)
}
"""
    module = module_of(text)
    first, second, third = module.computations[0].instructions
    assert list(first.operand_ids) == [second.id, third.id]
    assert list(first.control_predecessor_ids) == [third.id]
    assert list(third.called_computation_ids) == [module.computations[1].id]


def test_computations_that_call_each_other_are_translated():
    body = "  p = f32[] parameter(0)\n  r = f32[] call(p), to_apply="
    text = f"HloModule m\na {{\n{body}b\n}}\nb {{\n{body}c\n}}\nENTRY c {{\n{body}a\n}}\n"
    assert len(module_of(text).computations) == 3


def test_a_text_without_its_entry_may_be_cut(dumps):
    text = (dumps / f"{DUMPS[1]}.txt").read_bytes()
    losses = translate_module(text[: text.index(b"ENTRY")])[1]
    assert [kind for kind, _, _ in losses.entries()] == ["hlo_entry"]


def test_text_that_is_no_utf8_is_replaced(tmp_path):
    path = tmp_path / "a.txt"
    path.write_bytes(_entry('a = f32[] negate(p), metadata={op_name="\\377"}').encode())
    data = open_reader(str(path)).programs().data(0).tobytes()
    made = HloProto.FromString(data).hlo_module.computations[0].instructions[1]
    assert made.metadata.op_name == "\ufffd"


SLOW = {
    "open braces": lambda n: _entry("a = f32[] negate(p), x=" + "{" * n),
    "braces": lambda n: _entry("a = f32[] negate(p), x=" + "{" * n + "}" * n),
    "quotes": lambda n: _entry('a = f32[] negate(p), x="' + "\\" * n),
    "parentheses": lambda n: _entry("a = " + "(" * n),
    "operands": lambda n: _entry("a = f32[] add(" + "p," * n + "p)"),
    "attributes": lambda n: _entry("a = f32[] negate(p)" + ", x={1}" * n),
    "comments": lambda n: "/* " + "* / /*" * n,
    "dimensions": lambda n: _entry("a = f32[" + "1," * n + "1] negate(p)"),
    "roots": lambda n: _entry("ROOT " * n),
    "names": lambda n: "HloModule m\n" + "%" * n,
}


@each_row("make", SLOW.values())
def test_time_is_linear(make):
    # What takes the square of it takes hours.
    with no_hang(60), suppress(InputError):
        translate_module(make(100_000))


def test_mutants_are_translated_or_one_line(dumps):
    texts = [text.encode() for text in ODD.values()]
    texts += [(dumps / f"{name}.txt").read_bytes() for name in DUMPS]
    parts = b'{ } ( ) " , = % [ ] \0 \xff 99999999999999999999 -1 /* //'.split()
    parts += (b"ROOT ", b"ENTRY ", b"\n", b"HloModule ")
    outcomes = {"error": 0, "lost": 0, "whole": 0}
    for n in range(1500):
        rng = dice(2027, n)
        text = bytearray(rng.choice(texts))
        if rng.random() < 0.2:
            del text[rng.randrange(len(text)) :]
        for _ in range(rng.randrange(4)):
            at = rng.randrange(len(text) + 1)
            text[at : at + rng.choice((0, 1, 5, 40))] = rng.choice(parts)
        with no_hang(20):
            try:
                result, losses = translate_modules(bytes(text))
            except InputError as error:
                outcomes["error"] += 1
                lines = str(error).splitlines()
            else:
                lines = []
        if lines:
            assert len(lines) == 1, n
            continue
        for _, data in result:
            assert HloProto.FromString(data).hlo_module.computations, n
        outcomes["lost" if len(losses) else "whole"] += 1
    assert min(outcomes.values()) > 20, outcomes


def test_a_serialized_module_is_read_again():
    module = module_of(ODD["indexing"])
    assert HloModuleProto.FromString(module.SerializeToString()) == module


def test_what_a_call_wraps_has_room_for_so_many_long_shapes():
    data, losses = translate_module(shape_of_wrapped(20_000))
    (kind, count, _) = losses.entries()[0]
    assert kind == "hlo_shapes"
    assert 0 < count < data.count(b"param_")
    assert len(data) < 3_000_000
