"""Protobuf text to wire bytes, compared with google.protobuf.text_format case by case."""

import gzip
import random

import pytest
from google.protobuf import text_format
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.each_row import each_row
from tests.wire.parts import Fence
from tests.wire.text_cases import BAD, BETTER, GOOD, STRICTER, Zoo, reference, scanned, wire
from tests.wire.wirebytes import ArbitraryWriter

from peakline import schema
from peakline.wire import text_to_wire
from peakline.wire.text_tables import make_tables


def read(text, kind=Zoo):
    """The message that the scanner's bytes hold, as bytes again."""
    result = scanned(text, kind)
    assert not result.error
    return wire(kind.FromString(result.data.tobytes()))


@each_row("text", GOOD)
def test_what_both_accept(text):
    assert reference(text) is not None
    assert read(text) == reference(text)


@each_row("text", BAD)
def test_what_both_refuse(text):
    assert reference(text) is None
    result = scanned(text)
    assert result.error
    assert 0 <= result.error_at <= len(text.encode())
    assert result.data.size == 0


@each_row("text", BETTER)
def test_what_only_the_scanner_accepts(text):
    assert reference(text) is None
    assert read(text) == reference(BETTER[text])


def test_an_escaped_question_mark_is_one():
    """The reference keeps the backslash; the specification and C++ do not."""
    assert read(r"string: 'a\?'") == reference("string: 'a?'")


@each_row("text", STRICTER)
def test_what_only_the_reference_accepts(text):
    assert reference(text) is not None
    assert scanned(text).error


@each_row(
    ("text", "error", "at"),
    [
        ("leaf { id: 1", "the text ends inside a message", 12),
        ("leaf {\n  id: x\n}", "expected an integer", 13),
        ("int32: 1\n?", "expected the name of a field", 9),
        ("leaf { id: 1 >", "a closing bracket that does not belong to the one that is open", 13),
        ("int32: 99999999999", "a number that is out of range for its field", 7),
        ("int32: 1 int32: 2", "a field, or another member of its oneof, is given a second time", 9),
        ("int32: [1]", "a list for a field that is not repeated", 7),
        ("int32_list: [1 2]", "expected ',' or ']'", 15),
        ("string: 'abc\n'", "a string without a closing quote on its line", 12),
        (r"string: 'ab\q'", "an escape sequence that means nothing", 11),
        ("leaf 1", "expected '{' or '<', as the field holds a message", 5),
        ("int32 1", "expected ':' behind the name of a field", 6),
    ],
)
def test_errors_tell_what_was_expected_and_where(text, error, at):
    result = scanned(text)
    assert (result.error, result.error_at) == (error, at)


def test_unknown_things_are_counted_and_the_first_is_named():
    result = scanned("int32: 1 none { no: 1 nil: 2 } [x.y]: 3 color: BLUE leaf { 9: 1 }")
    assert (result.unknown, result.first_unknown, result.first_unknown_at) == (4, "none", 9)
    assert scanned("int32: 1").first_unknown_at == -1


def test_redacted_values_are_counted():
    assert scanned("string: [REDACTED] bytes_list: [[REDACTED], 'a', [REDACTED]]").redacted == 3


def test_bytes_are_those_of_the_protobuf_library_but_for_the_order():
    text = "int32: 5 leaf { id: 300 name: 'x' } string: '%s' leaves {} int64: 0" % ("y" * 200)
    expected = text_format.Parse(text, Zoo())
    assert sorted(scanned(text).data) == sorted(expected.SerializeToString())


@each_row("size", [126, 127, 128, 129, 16383, 16384, 2_100_000])
def test_messages_of_every_length_of_a_length(size):
    message = Zoo()
    message.tree.left.leaf.name = "n" * size
    message.tree.left.named["a"].id = size
    message.tree.id = -size
    message.double_list.extend([0.1234567890123456789, 1e-300])
    message.zoo.zoo.double = 0.30000000000000004
    assert read(text_format.MessageToString(message)) == wire(message)


def test_more_inexact_numbers_than_are_kept_at_once():
    values = [1 / (n + 3) for n in range(10_000)]
    text = f"zoo {{ tree {{ }} double_list: [{', '.join(map(repr, values))}] }}"
    assert list(Zoo.FromString(scanned(text).data.tobytes()).zoo.double_list) == values


def test_output_larger_than_the_text():
    got = Zoo.FromString(scanned(f"int32_list: [{','.join(['-1'] * 60_000)}]").data.tobytes())
    assert list(got.int32_list) == [-1] * 60_000


@each_row("form", ["tree %s", "none %s", "zoos: [%s]"])
def test_depth_is_limited_as_for_wire_bytes(form):
    name = {"tree %s": "left", "none %s": "x", "zoos: [%s]": "none"}[form]
    for depth, accepted in [(100, True), (101, False), (5000, False)]:
        result = scanned(form % (f"{{ {name} " * (depth - 1) + "{ }" + " }" * (depth - 1)))
        assert (not result.error) == accepted, depth
        if accepted:
            Zoo.FromString(result.data.tobytes())
        else:
            assert result.error == "messages are nested more than 100 deep"


def test_any_and_fields_unknown_to_it_are_skipped():
    kind = schema.message("tensorflow.MetaGraphDef")
    text = """
        meta_info_def { any_info { [type.googleapis.com/tensorflow.GraphDef] { node { } } } }
        graph_def { node { name: "a" } }
    """
    result = scanned(text, kind)
    assert (result.unknown, result.error) == (1, "")
    assert kind.FromString(result.data.tobytes()).graph_def.node[0].name == "a"


def test_aliases_stand_for_fields_of_one_message_only():
    stats = schema.descriptor("tensorflow.NodeExecStats")
    text = b"memory_stats { old_size: 7 } old_size: 8"
    aliases = {"tensorflow.MemoryStats": {"old_size": "temp_memory_size"}}
    result = text_to_wire(text, stats, aliases)
    assert schema.NodeExecStats.FromString(result.data.tobytes()).memory_stats.temp_memory_size == 7
    assert (result.unknown, result.first_unknown_at) == (1, 29)


@each_row("alias", [{"node_name": "memory"}, {"old": "none"}])
def test_an_alias_must_be_new_and_stand_for_a_field(alias):
    stats = schema.descriptor("tensorflow.NodeExecStats")
    with pytest.raises(ValueError, match="cannot stand for"):
        make_tables(stats, {stats.full_name: alias})


def test_every_name_is_found_and_no_other():
    """The hash table against the descriptor, for a message that reaches most of the schema."""
    descriptor = schema.descriptor("tensorflow.CostGraphDef.Node")
    for field in descriptor.fields:
        result = text_to_wire(f"{field.name}: [REDACTED]".encode(), descriptor)
        assert (result.unknown, result.redacted) == (0, 1)
        for other in (field.name + "_", field.name[:-1] + "0", "x" + field.name[1:]):
            assert text_to_wire(f"{other}: 'x'".encode(), descriptor).unknown == 1


def test_a_real_graph_in_every_style(root):
    kind = schema.message("tensorflow.GraphDef")
    text = gzip.decompress((root / "tests/data/text/graph.pbtxt.gz").read_bytes())
    message = text_format.Parse(text, kind())
    assert len(message.node) > 100
    for style in (
        {},
        {"as_one_line": True},
        {"pointy_brackets": True},
        {"use_short_repeated_primitives": True, "force_colon": True},
        {"as_utf8": True, "use_index_order": True},
    ):
        result = scanned(text_format.MessageToString(message, **style), kind)
        assert (result.error, result.unknown) == ("", 0)
        assert kind.FromString(result.data.tobytes()) == message


KINDS = [
    Zoo,
    *map(
        schema.message,
        """tensorflow.RunMetadata tensorflow.StepStats tensorflow.GraphDef tensorflow.AttrValue
        tensorflow.NodeDef tensorflow.CostGraphDef tensorflow.TensorDescription
        tensorflow.MemoryLogTensorAllocation tensorflow.MemoryLogTensorOutput
        tensorflow.MemoryLogRawDeallocation tensorflow.TensorProto peakline.MemoryLog""".split(),
    ),
]
STYLES = ["as_one_line", "pointy_brackets", "use_short_repeated_primitives", "force_colon",
          "as_utf8", "use_index_order"]  # fmt: skip
_QUICK = settings(suppress_health_check=[HealthCheck.data_too_large])


def arbitrary(rng):
    kind = rng.choice(KINDS)
    return kind.FromString(ArbitraryWriter(rng, 60).message(kind.DESCRIPTOR))


@settings(_QUICK, max_examples=400)
@given(st.randoms(use_true_random=False))
def test_any_message_in_any_style(rng):
    message = arbitrary(rng)
    style = {name: True for name in STYLES if rng.random() < 0.4}
    text = text_format.MessageToString(message, **style)
    result = scanned(text, type(message))
    assert (result.error, result.unknown, result.redacted) == ("", 0, 0)
    assert wire(type(message).FromString(result.data.tobytes())) == reference(text, type(message))


@settings(_QUICK, max_examples=100)
@given(st.randoms(use_true_random=False))
def test_any_message_read_as_another_is_full_of_unknown_fields(rng):
    text = text_format.MessageToString(arbitrary(rng))
    kind = rng.choice(KINDS)
    expected, result = reference(text, kind), scanned(text, kind)
    if expected is None:
        # The reference also refuses enum names that the schema does not have.
        assert result.error or result.unknown
    else:
        assert not result.error
        assert wire(kind.FromString(result.data.tobytes())) == expected


@settings(_QUICK, max_examples=300)
@given(st.sampled_from([st.floats(), st.floats(width=32), st.floats(-1e20, 1e20)]), st.data())
def test_any_float(values, data):
    value = data.draw(values)
    for form in (repr, "{:.9g}".format, "{:.17e}".format, "{:.30f}".format):
        text = f"double: {form(value)} float: {form(value)}"
        assert wire(Zoo.FromString(scanned(text).data.tobytes())) == reference(text), text


_PIECES = [
    *(b"{", b"}", b"<", b">", b"[", b"]", b":", b",", b";", b"#", b"\n", b'"', b"'", b"\\"),
    *(b"-", b".", b"0", b"9", b"e5", b"f", b"0x", b"\\u12", b"\\777", b" ", b"\x00", b"\xff"),
    *(b"[REDACTED]", b"goo.gle/debugstr  ", b"leaf {", b"string: 'x'", b"zoos: ["),
]


def damaged(rng, text):
    for _ in range(rng.choice((1, 1, 2, 4))):
        at, n = rng.randrange(len(text) + 1), rng.choice((0, 0, 1, 1, 2, 9))
        change = rng.random()
        if change < 0.5:
            text = text[:at] + rng.choice(_PIECES) + text[at + n :]
        elif change < 0.65:
            text = text[:at]
        elif change < 0.8:
            text = text[:at] + text[at + n :]
        else:
            text = text[: at + n] + text[at:]
    return text


def check_damaged(rng, fence):
    if rng.random() < 0.5:
        kind, text = Zoo, rng.choice(GOOD + BAD).encode()
    else:
        message = arbitrary(rng)
        kind = type(message)
        text = text_format.MessageToString(message, as_one_line=rng.random() < 0.5).encode()
    text = damaged(rng, text)[-fence.size :]
    result = text_to_wire(fence.hold(text), kind.DESCRIPTOR)
    assert -1 <= result.error_at <= len(text)
    if result.error:
        return
    expected = reference(text, kind)
    if expected is not None:
        assert wire(kind.FromString(result.data.tobytes())) == expected


class SizedFence(Fence):
    size = 64 * 4096


@each_row("part", range(3))
def test_damaged_text(part):
    fence = SizedFence()
    for n in range(part * 500, part * 500 + 500):
        check_damaged(random.Random(f"text {n}"), fence)


@pytest.mark.soak
@each_row("part", range(10))
def test_much_damaged_text(part):
    fence = SizedFence()
    for n in range(10_000 + part * 5000, 15_000 + part * 5000):
        check_damaged(random.Random(f"text {n}"), fence)
