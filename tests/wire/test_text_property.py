"""Arbitrary messages, printed in every style, come back as they were; damaged texts are read as
the reference reads them, or refused, and nothing beside the text is touched.
"""

import random

import pytest
from google.protobuf import text_format
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.each_row import each_row
from tests.wire.parts import Fence
from tests.wire.text_cases import BAD, GOOD, Zoo, reference, scanned, wire
from tests.wire.wirebytes import ArbitraryWriter

from peakline import schema
from peakline.wire import text_to_wire

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
