"""Interning byte spans equals a dict of bytes; joining them equals ``bytes.join``."""

import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.each_row import each_row

from peakline.wire import Interner, Spans, as_buffer, joined

_QUICK = settings(max_examples=60)
# Short alphabets make equal strings, prefixes of each other, and lengths around a word's eight.
_STRINGS = st.lists(st.binary(max_size=20) | st.text("ab", max_size=9).map(str.encode), max_size=40)


def laid_out(strings, gap=b""):
    """A buffer that holds ``strings``, and where."""
    starts, buffer = [], bytearray()
    for string in strings:
        starts.append(len(buffer))
        buffer += string + gap
    lengths = [len(string) for string in strings]
    return as_buffer(bytes(buffer)), Spans(np.array(starts, np.int64), np.array(lengths, np.int32))


@_QUICK
@given(st.lists(_STRINGS, max_size=4))
def test_codes_are_those_of_a_dict(batches):
    interner, seen = Interner(), {}
    for strings in batches:
        codes = interner.add(*laid_out(strings))
        assert codes.dtype == np.int32
        assert codes.tolist() == [seen.setdefault(string, len(seen)) for string in strings]
        assert interner.values == [string.decode("utf-8", "replace") for string in seen]
    assert [interner.bytes(code) for code in range(len(interner))] == list(seen)
    assert [interner.code_of(string) for string in seen] == list(range(len(seen)))


def test_many_strings_outgrow_table_and_pool():
    strings = [b"%d" % (n % 70_001) * (n % 7) for n in range(200_000)]
    interner, seen = Interner(), {}
    codes = interner.add(*laid_out(strings))
    assert codes.tolist() == [seen.setdefault(string, len(seen)) for string in strings]
    assert interner.values == [string.decode() for string in seen]


def test_one_string_larger_than_the_pool():
    interner = Interner()
    assert interner.add(*laid_out([b"a", b"x" * 100_000, b"a", b"x" * 100_000])).tolist() == [
        0, 1, 0, 1,
    ]  # fmt: skip


def test_an_unknown_string_has_no_code():
    interner = Interner()
    assert interner.add_bytes(b"known") == 0
    assert interner.code_of(b"known") == 0
    assert interner.code_of(b"know") == -2


def test_hashes_differ_from_one_interner_to_the_next():
    """The key is random, so no file can be made of names that collide."""
    assert len({Interner()._keys.tobytes() for _ in range(10)}) == 10


@each_row(("start", "length"), [(-1, 1), (0, -1), (3, 2), (5, 0)])
def test_a_span_outside_the_buffer_is_refused(start, length):
    spans = Spans(np.array([start]), np.array([length]))
    with pytest.raises(ValueError, match="outside the buffer"):
        Interner().add(as_buffer(b"abcd"), spans)


@_QUICK
@given(st.lists(_STRINGS, max_size=5))
def test_joined_is_bytes_join(families):
    parent = np.array([p for p, family in enumerate(families) for _ in family], np.int32)
    buffer, spans = laid_out([string for family in families for string in family], gap=b"!")
    out, texts = joined(buffer, spans, parent, len(families))
    assert [texts.bytes(out, row) for row in range(len(families))] == [
        b",".join(family) for family in families
    ]


@each_row("parent", [[1, 0], [0, 2], [-1, 0]])
def test_joined_wants_parents_in_order(parent):
    buffer, spans = laid_out([b"a", b"b"])
    with pytest.raises(ValueError, match="out of order"):
        joined(buffer, spans, np.array(parent), 2)


def test_threads_add_and_read_side_by_side():
    """Whoever adds gets codes of what it added, and everyone reads one string for each."""
    strings = Interner()
    texts = [f"{n % 7}/layer_{n}".encode() for n in range(6000)]

    def add(first):
        mine = texts[first::3] + texts[::5]
        result = []
        for at in range(0, len(mine), 20):
            part = mine[at : at + 20]
            codes = strings.add(*laid_out(part)).tolist()
            values = strings.values
            result.append((part, codes, [values[code] for code in codes]))
        return result

    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(3) as pool:
            result = [one for each in pool.map(add, range(3)) for one in each]
    finally:
        sys.setswitchinterval(before)
    for part, codes, values in result:
        assert [strings.bytes(code) for code in codes] == part
        assert [value.encode() for value in values] == part
    assert sorted(strings.values) == sorted(text.decode() for text in texts)
