"""Numbers and texts as the C++ protobuf library spells them in JSON; random snapshots.

The expected spellings were printed by XProf 2.24.2 for these very values. Of random snapshots the
compiled rules say what the plain ones do, and the JSON what the proto does.
"""

import json
import math

from google.protobuf import json_format
from hypothesis import given
from hypothesis import strategies as st
from tests.each_row import each_row
from tests.tools.snapshots import alloc, profile_of, reference

from peakline.schema import MemoryProfile
from peakline.xprof.memory_profile.output import json_number, json_string


@each_row(
    ("value", "spelled"),
    [
        (0.0, "0"),
        (-0.0, "-0"),
        (1.0, "1"),
        (-1.5, "-1.5"),
        (0.1, "0.1"),
        (1e-7, "1e-07"),
        (1e-5, "1e-05"),
        (0.0001, "0.0001"),
        (0.00012345, "0.00012345"),
        (0.1 + 0.2, "0.30000000000000004"),
        (1 / 3, "0.33333333333333331"),
        (2 / 3, "0.66666666666666663"),
        (100.0, "100"),
        (1e6, "1000000"),
        (123456789.0, "123456789"),
        (1e14, "100000000000000"),
        (123456789012345.6, "123456789012345.59"),
        (1e15, "1e+15"),
        (4503599627370497.5, "4503599627370498"),
        (1e16, "1e+16"),
        (1.5e16, "1.5e+16"),
        (123456789012345678.0, "1.2345678901234568e+17"),
        (1e22, "1e+22"),
        (5e-324, "4.94065645841247e-324"),
        (1.7976931348623157e308, "1.7976931348623157e+308"),
        (math.inf, '"Infinity"'),
        (-math.inf, '"-Infinity"'),
        (math.nan, '"NaN"'),
    ],
)
def test_numbers(value, spelled):
    assert json_number(value) == spelled


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_every_number_reads_back(value):
    assert float(json_number(value)) == value


@each_row(
    ("text", "spelled"),
    [
        ("", '""'),
        ("a/b [1, 2] &='|`", '"a/b [1, 2] &=\'|`"'),
        ('"\\', '"\\"\\\\"'),
        ("\b\f\n\r\t", '"\\b\\f\\n\\r\\t"'),
        ("\x00\x01\x1f", '"\\u0000\\u0001\\u001f"'),
        ("<>", '"\\u003c\\u003e"'),
        ("\x7f\x85\x9f\xa0", '"\\u007f\\u0085\\u009f\xa0"'),
        ("\xad", '"\\u00ad"'),
        ("\u0600\u0603\u0604\u06dd\u070f", '"\\u0600\\u0603\u0604\\u06dd\\u070f"'),
        ("\u17b4\u17b5\u17b6", '"\\u17b4\\u17b5\u17b6"'),
        ("\u200a\u200b\u200f\u2010", '"\u200a\\u200b\\u200f\u2010"'),
        ("\u2027\u2028\u202e\u202f", '"\u2027\\u2028\\u202e\u202f"'),
        ("\u2060\u2064\u2065\u206a\u206f", '"\\u2060\\u2064\u2065\\u206a\\u206f"'),
        ("\ufeff\ufff8\ufff9\ufffb\ufffc", '"\\ufeff\ufff8\\ufff9\\ufffb\ufffc"'),
        ("\U0001d173\U0001d17a", '"\\ud834\\udd73\\ud834\\udd7a"'),
        ("\U000e0001\U000e0020\U000e007f", '"\\udb40\\udc01\\udb40\\udc20\\udb40\\udc7f"'),
        ("é😀\ue000", '"é😀\ue000"'),
    ],
)
def test_texts(text, spelled):
    assert json_string(text) == spelled


def test_a_lone_surrogate_becomes_the_replacement_character():
    profile = profile_of([alloc(0, 1, 8, tf_op_name="a\ud800b")])
    assert '"a\ufffdb"' in profile.tool("memory_profile").content.decode()
    assert "a\ufffdb".encode() in profile.tool("memory_profile", format="proto").content


def test_an_activity_outside_the_enum_is_its_number():
    content = profile_of([alloc(0, 1, 8, activity=9)]).tool("memory_profile").content
    assert b'"memoryActivity":9,' in content


INT64 = st.integers(-(2**63), 2**63 - 1)
SIZES = st.one_of(st.integers(0, 6), st.integers(-300, 3000), INT64)
TEXTS = st.one_of(
    st.sampled_from(["", "a", "b", "stack"]),
    st.text(st.characters(exclude_categories=["Cs"]), max_size=4),
)
ROWS = st.lists(
    st.fixed_dictionaries(
        {
            "memory_id": st.sampled_from(["", "A", "B", "é<"]),
            "time_offset_ps": st.one_of(st.integers(0, 12), INT64),
            "activity": st.one_of(st.sampled_from([1, 1, 2]), st.integers(0, 4)),
            "stack_reserved_bytes": st.one_of(st.just(0), SIZES), "heap_allocated_bytes": SIZES,
            "free_memory_bytes": SIZES, "fragmentation": st.floats(), "peak_bytes_in_use": SIZES,
            "requested_bytes": SIZES, "allocation_bytes": SIZES,
            "address": st.one_of(st.integers(0, 4), st.integers(0, 2**64 - 1)),
            "tf_op_name": TEXTS,
            "step_id": st.one_of(st.integers(-1, 2), INT64),
            "region_type": TEXTS,
            "data_type": TEXTS,
            "tensor_shape": TEXTS,
        }
    ),
    max_size=40,
)  # fmt: skip


def spelled_out(message):
    """All fields of ``message``; NaN becomes text, which is equal to itself."""
    return json_format.MessageToDict(message, always_print_fields_with_no_presence=True)


# The first example may have to compile the kernels.
@given(ROWS, st.integers(1, 12), st.sampled_from([0, 1]))
def test_equals_the_plain_rules_on_any_snapshots(rows, max_snapshots, version):
    parameters = {"max_snapshots": max_snapshots, "version": version}
    got = profile_of(rows).tool("memory_profile", **parameters).content
    assert json.loads(got) == reference(rows, **parameters)


@given(ROWS, st.sampled_from([0, 1]))
def test_both_formats_say_the_same(rows, version):
    profile = profile_of(rows)
    as_json = profile.tool("memory_profile", version=version).content
    as_proto = profile.tool("memory_profile", version=version, format="proto").content
    parsed = MemoryProfile.FromString(as_proto)
    from_json = json_format.Parse(as_json, MemoryProfile())
    assert spelled_out(parsed) == spelled_out(from_json)
