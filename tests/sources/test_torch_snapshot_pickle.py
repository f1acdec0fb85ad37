"""Pickles that ask for code, are damaged, or would take more memory than they are worth."""

import contextlib
import copyreg
import os
import pickle
import pickletools

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.each_row import each_row

from peakline.errors import DamagedError, InputError
from peakline.formats.common.files import SourceFile
from peakline.formats.torch_snapshot.unpickle import ARGUMENT, load_plain, scanned
from peakline.kernels import pickle_layout as layout
from peakline.wire import as_buffer

CONTENT = {"segments": [{"address": 1 << 47, "pool": (0, 0), "x": [1.5, None, True, "é", "x"]}]}


FILE = SourceFile(__file__)


@pytest.fixture
def load():
    return lambda data: load_plain(FILE.translated(data))


class Code:
    def __reduce__(self):
        return os.system, ("exit 1",)


@each_row("protocol", range(6))
def test_plain_containers(load, protocol):
    assert load(pickle.dumps(CONTENT, protocol)) == (CONTENT, 0)


@each_row("protocol", range(6))
def test_code_is_refused_by_name(load, protocol):
    with pytest.raises(InputError, match=r"needs (posix|nt)\.system: refused"):
        load(pickle.dumps({"segments": [Code()]}, protocol))


@each_row(
    ("data", "wanted"),
    [
        (b"cos\nsystem\n.", "os.system"),
        (b"(S'x'\nios\nsystem\n.", "os.system"),
        (b"Pabc\n.", "a persistent object abc"),
        (b"\x80\x02K\x01Q.", "a persistent object"),
        (b"\x80\x02\x82\x05.", "extension code 5"),
        (b"\x80\x05\x97.", "a buffer that is not in the file"),
        (b"\x80\x05C\x01x\x98.", "a buffer that is not in the file"),
        (b"\x80\x02N)R.", "an object to be built, at byte 4"),
        (b"\x80\x02N}b.", "an object to be built, at byte 4"),
    ],
)
def test_what_is_refused(load, data, wanted):
    with pytest.raises(InputError) as error:
        load(data)
    assert f"needs {wanted}: refused" in str(error.value)


def test_an_extension_code_is_no_way_around(load):
    copyreg.add_extension("os", "system", 77)
    try:
        # The standard unpickler remembers what a code stood for, and asks nobody again.
        assert pickle.loads(b"\x80\x02\x82M.") is os.system  # noqa: S301
        with pytest.raises(InputError, match=r"needs os\.system: refused"):
            load(b"\x80\x02\x82M.")
    finally:
        copyreg.remove_extension("os", "system", 77)
        copyreg.clear_extension_cache()


@each_row(
    "data",
    [
        b"\x80\x02K\x01r\xff\xff\xff\x7f.",  # an array of 16 GiB for one value
        b"K\x01p2147483647\n.",
        b"\x80\x02})" + b"\x85" * 100_000 + b"K\x01s.",  # hashing recurses
        b"\x80\x02})" + b"\x85" * 100_000 + b"q\x000(h\x00K\x01u.",
        b"\x80\x04\x8f(]\x90.",
        pickle.dumps({1 << 64: None}, 4),  # as many as one likes have the same hash
        pickle.dumps({1 << 70: None}, 0),
        pickle.dumps({-1 << 70}, 4),
        b"\x80\x02h\x05.",
        b"g7\n.",
        b"gx\n.",
        b"a.",
        b"0.",
        b"\x80\x02]q\x00h\x00.",
        b"(K\x01.",
        b"\x80\x02\x8b\xff\xff\xff\xff.",
        b"\xfe.",
        b"I" + b"9" * 10000 + b"\n.",
        b"Lx\n.",
        b"F1.5x\n.",
        b"\x80\x09K\x01.",
    ],
)
def test_damage_is_one_line(load, data):
    with pytest.raises(DamagedError, match="the pickle is damaged") as error:
        load(data)
    assert "\n" not in str(error.value)


@each_row(
    "data",
    [
        b"\x80\x02]",
        b"\x80\x02X\xff\xff\xff\x7fabc.",
        b"\x80\x04\x8d\xff\xff\xff\xff\xff\xff\xff\x7f.",
        b"\x80\x04\x8e\xff\xff\xff\xff\xff\xff\xff\xff.",
        b"\x80\x02\x8b\xff\xff\xff\x7f.",
        b"V never ends",
        b"\x80",
    ],
)
def test_a_cut_is_one_line(load, data):
    with pytest.raises(DamagedError, match="the pickle is cut off at byte"):
        load(data)


@each_row("protocol", [0, 2, 4])
def test_numbers_of_64_bits_may_be_keys_and_others_values(load, protocol):
    content = {(1 << 64) - 1: 1 << 80, -(1 << 63): -1 << 99}
    assert load(pickle.dumps(content, protocol))[0] == content


def test_every_cut_is_told(load):
    data = pickle.dumps(CONTENT, 4)
    for end in range(1, len(data)):
        with pytest.raises(DamagedError, match="is cut off"):
            load(data[:end])


def test_bytes_after_the_end_are_counted(load):
    assert load(pickle.dumps(5, 4) + b"more")[1] == 4


def test_deep_nesting_is_no_problem(load):
    content, _ = load(b"\x80\x02" + b"]" * 100_000 + b"a" * 99_999 + b".")
    assert isinstance(content, list)


def test_the_opcodes_are_those_of_the_library():
    for opcode in pickletools.opcodes:
        assert ARGUMENT[ord(opcode.code)] != layout.A_NO_OPCODE
    assert (ARGUMENT != layout.A_NO_OPCODE).sum() == len(pickletools.opcodes)


plain = st.recursive(
    st.none() | st.booleans() | st.integers(-(1 << 80), 1 << 80) | st.floats(allow_nan=False)
    | st.text() | st.binary(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner) | st.tuples(inner, inner),
    max_leaves=30,
)  # fmt: skip


@given(content=plain, protocol=st.integers(0, 5), python=st.booleans())
def test_every_plain_pickle_passes_the_scan(content, protocol, python):
    data = pickle._dumps(content, protocol) if python else pickle.dumps(content, protocol)
    if protocol < 3 and (b"_codecs\nencode" in data or b"__builtin__\nbytes" in data):
        # Bytes are code before protocol 3.
        assert scanned(as_buffer(data))[0] == layout.S_NAME
    else:
        assert scanned(as_buffer(data)) == (layout.S_WHOLE, len(data))


@given(data=st.binary(max_size=60), cut=st.integers(0, 60), flip=st.binary(max_size=8))
def test_no_bytes_are_too_strange(data, cut, flip):
    whole = pickle.dumps(CONTENT, 4)
    for candidate in (data, whole[:cut] + flip + whole[cut + len(flip) :], data + b"."):
        if candidate:
            with contextlib.suppress(InputError):
                load_plain(FILE.translated(candidate))
