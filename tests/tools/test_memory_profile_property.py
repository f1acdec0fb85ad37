"""Random snapshots: the compiled rules against the plain ones, and JSON against the proto."""

import json
import math

from google.protobuf import json_format
from hypothesis import given
from hypothesis import strategies as st
from tests.tools.snapshots import profile_of, reference

from peakline.schema import MemoryProfile

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
            "stack_reserved_bytes": st.one_of(st.just(0), SIZES),
            "heap_allocated_bytes": SIZES,
            "free_memory_bytes": SIZES,
            "fragmentation": st.floats(),
            "peak_bytes_in_use": SIZES,
            "requested_bytes": SIZES,
            "allocation_bytes": SIZES,
            "address": st.one_of(st.integers(0, 4), st.integers(0, 2**64 - 1)),
            "tf_op_name": TEXTS,
            "step_id": st.one_of(st.integers(-1, 2), INT64),
            "region_type": TEXTS,
            "data_type": TEXTS,
            "tensor_shape": TEXTS,
        }
    ),
    max_size=40,
)


def plain(value):
    """``value`` with NaN and infinities as protobuf's JSON spells them, to compare by ==."""
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, list):
        return [plain(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    return value


def spelled_out(message):
    """All fields of ``message``; NaN becomes text, which is equal to itself."""
    return json_format.MessageToDict(message, always_print_fields_with_no_presence=True)


# The first example may have to compile the kernels.
@given(ROWS, st.integers(1, 12), st.sampled_from([0, 1]))
def test_equals_the_plain_rules_on_any_snapshots(rows, max_snapshots, version):
    parameters = {"max_snapshots": max_snapshots, "version": version}
    got = profile_of(rows).tool("memory_profile", **parameters).content
    assert json.loads(got) == plain(reference(rows, **parameters))


@given(ROWS, st.sampled_from([0, 1]))
def test_both_formats_say_the_same(rows, version):
    profile = profile_of(rows)
    as_json = profile.tool("memory_profile", version=version).content
    as_proto = profile.tool("memory_profile", version=version, format="proto").content
    parsed = MemoryProfile.FromString(as_proto)
    from_json = json_format.Parse(as_json, MemoryProfile())
    assert spelled_out(parsed) == spelled_out(from_json)
