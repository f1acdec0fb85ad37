"""Arbitrary bytes of arbitrary messages, seen through arbitrary projections: `decode` and `stream`
give what protobuf's own message objects hold.
"""

import numpy as np
from google.protobuf.message_factory import GetMessageClass
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.wire.cases import Case
from tests.wire.parts import uninitialised_memory_shows

from peakline.wire import Damage, Spans, as_buffer

_QUICK = settings(suppress_health_check=[HealthCheck.data_too_large])


def check(case: Case, data: bytes, spans: Spans | None = None) -> None:
    pairs = None
    if spans is not None:
        pairs = list(zip(spans.start.tolist(), spans.length.tolist(), strict=True))
    expected = case.projection.expected(data, pairs, case.keep)
    with uninitialised_memory_shows():
        assert case.decode_every_way(as_buffer(data), spans) == (expected, Damage())


@settings(_QUICK, max_examples=150)
@given(st.randoms(use_true_random=False))
def test_any_bytes_of_any_message_through_any_projection(rng):
    case = Case.arbitrary(rng)
    check(case, b"".join(case.data() for _ in range(rng.choice((1, 1, 2)))))


@settings(_QUICK, max_examples=60)
@given(st.randoms(use_true_random=False))
def test_any_spans_of_a_buffer(rng):
    """Every span is a message of its own: in any order, empty, twice, with rubbish between."""
    case = Case.arbitrary(rng)
    buffer = bytearray(b"\xff" * rng.randrange(3))
    pairs = []
    for _ in range(rng.choice((0, 1, 2, 4))):
        data = case.data()
        pairs.append((len(buffer), len(data)))
        buffer += data + b"\x00\xff\x07" * rng.randrange(2)
    pairs += rng.sample(pairs, rng.randrange(len(pairs) + 1)) + [(len(buffer), 0)] * rng.randrange(
        2
    )
    rng.shuffle(pairs)
    start, length = np.array(pairs, np.int64).reshape(-1, 2).T
    check(case, bytes(buffer), Spans(start, length))


@settings(_QUICK, max_examples=60)
@given(st.randoms(use_true_random=False))
def test_messages_as_protobuf_writes_them(rng):
    """Bytes that a real message object wrote, which drops what the writer's variants added."""
    case = Case.arbitrary(rng)
    message = GetMessageClass(case.message).FromString(case.data())
    message.DiscardUnknownFields()
    check(case, message.SerializeToString(deterministic=True))
