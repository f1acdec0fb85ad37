"""``memory_profile``: parameters, versions, formats, hosts; its rules by the slow reference."""

import json
import math
import pickle
from collections import Counter

import pytest
from google.protobuf import json_format
from hypothesis import given
from hypothesis import strategies as st
from tests.each_row import each_row
from tests.engine.ending import DATA
from tests.tables.fake import FakeReader
from tests.tools.snapshots import alloc, answer, free, profile_of, reference

import peakline
from peakline import schema
from peakline.api import Profile
from peakline.errors import NotFoundError, StrictError, UsageError
from peakline.schema import MemoryProfile
from peakline.tables.derived import DERIVED
from peakline.tools import find_tool, run_tool
from peakline.xprof.memory_profile import TOOL
from peakline.xprof.memory_profile.output import json_number, json_string

FIRST = {
    "memory_id": "GPU_0_bfc", "time_offset_ps": 40000, "activity": 1, "stack_reserved_bytes": 2000,
    "heap_allocated_bytes": 3000, "free_memory_bytes": 5000, "peak_bytes_in_use": 8500,
    "requested_bytes": 200, "allocation_bytes": 256, "address": 222333, "tf_op_name": "foo/bar",
    "step_id": -1, "region_type": "output", "data_type": "float",
    "tensor_shape": "[3, 3, 512, 512]",
}  # fmt: skip
SECOND = FIRST | {
    "time_offset_ps": 50000, "activity": 2, "heap_allocated_bytes": 2744, "free_memory_bytes": 5256,
    "tf_op_name": "", "region_type": "", "data_type": "INVALID", "tensor_shape": "",
}  # fmt: skip
THIRD = FIRST | {
    "time_offset_ps": 70000, "heap_allocated_bytes": 5000, "free_memory_bytes": 3000,
    "peak_bytes_in_use": 9500, "requested_bytes": 300, "allocation_bytes": 300, "address": 345678,
    "tf_op_name": "mul_grad/Sum", "region_type": "temp", "data_type": "int64",
    "tensor_shape": "[1, 2]",
}  # fmt: skip
UPSTREAM = [FIRST, SECOND, THIRD]


def test_many_addresses_up_to_the_largest():
    addresses = [2**64 - 1 - 977 * number for number in range(5000)]
    rows = [alloc(n, address, 8, tf_op_name=f"op{n}") for n, address in enumerate(addresses)]
    rows += [free(5000 + n, address, 8) for n, address in enumerate(addresses)]
    result = answer(rows, max_snapshots=10_000)["memoryProfilePerAllocator"]["A"]
    names = [row["activityMetadata"]["tfOpName"] for row in result["sampledTimelineSnapshots"]]
    assert names[5000:] == [f"op{number}" for number in range(5000)]


def test_the_bytes_of_the_json():
    rows = [alloc(7, 2**64 - 1, 8, heap_allocated_bytes=8, fragmentation=0.1, tf_op_name="a<b>")]
    snapshot = (
        '{"timeOffsetPs":"7","aggregationStats":{"stackReservedBytes":"0",'
        '"heapAllocatedBytes":"8","freeMemoryBytes":"0","fragmentation":0.1,'
        '"peakBytesInUse":"0"},"activityMetadata":{"memoryActivity":"ALLOCATION",'
        '"requestedBytes":"8","allocationBytes":"8","address":"18446744073709551615",'
        '"tfOpName":"a\\u003cb\\u003e","stepId":"0","regionType":"","dataType":"",'
        '"tensorShape":""}}'
    )
    assert profile_of(rows).tool("memory_profile").content.decode() == (
        '{"memoryProfilePerAllocator":{"A":{"memoryProfileSnapshots":[' + snapshot + "],"
        '"profileSummary":{"peakBytesUsageLifetime":"0","peakStats":{"stackReservedBytes":"0",'
        '"heapAllocatedBytes":"8","freeMemoryBytes":"0","fragmentation":0.1,'
        '"peakBytesInUse":"8"},"peakStatsTimePs":"7","memoryCapacity":"8"},'
        '"activeAllocations":[{"snapshotIndex":"0","specialIndex":"-1","numOccurrences":"1"}],'
        '"specialAllocations":[],"sampledTimelineSnapshots":[' + snapshot + "]}},"
        '"numHosts":1,"memoryIds":["A"],"version":1,"hloModules":[]}'
    )


class TestVersion0:
    def test_keeps_every_snapshot_and_indexes_the_full_list(self):
        result = answer(UPSTREAM, version=0)
        assert (result["version"], result["hloModules"]) == (0, [])
        profile = result["memoryProfilePerAllocator"]["GPU_0_bfc"]
        assert [snapshot["timeOffsetPs"] for snapshot in profile["memoryProfileSnapshots"]] == [
            "40000",
            "50000",
            "70000",
        ]
        assert profile["sampledTimelineSnapshots"] == []
        assert [row["snapshotIndex"] for row in profile["activeAllocations"]] == ["-1", "-2", "2"]

    def test_has_no_limit_and_no_modules(self):
        modules = [{"name": "m", "start_ps": 0, "end_ps": 1, "plane_name": "TPU:0"}]
        profile = profile_of([alloc(n, n, 8) for n in range(40_000)], modules)
        result = json.loads(profile.tool("memory_profile", version=0, max_snapshots=1).content)
        snapshots = result["memoryProfilePerAllocator"]["A"]["memoryProfileSnapshots"]
        assert [int(snapshot["timeOffsetPs"]) for snapshot in snapshots] == list(range(40_000))
        assert result["hloModules"] == []


def test_module_runs_are_numbered_in_file_order():
    modules = [
        {"name": "jit_f(1)", "start_ps": 500, "end_ps": 700, "plane_name": "TPU:1"},
        {"name": "jit_g(2)", "start_ps": 10, "end_ps": 20, "plane_name": "TPU:0"},
    ]
    assert json.loads(profile_of([], modules).tool("memory_profile").content)["hloModules"] == [
        {
            "name": "jit_f(1)", "startTimePs": "500", "endTimePs": "700", "id": "0",
            "planeName": "TPU:1",
        },
        {
            "name": "jit_g(2)", "startTimePs": "10", "endTimePs": "20", "id": "1",
            "planeName": "TPU:0",
        },
    ]  # fmt: skip


class TestParameters:
    rows = (alloc(0, 1, 8, memory_id="A"), alloc(1, 1, 8, memory_id="B"), alloc(2, 2, 8))

    def test_memory_id_picks_one(self):
        result = answer(self.rows, memory_id="B")
        assert (result["memoryIds"], list(result["memoryProfilePerAllocator"])) == (["B"], ["B"])
        whole = answer(self.rows)["memoryProfilePerAllocator"]
        assert result["memoryProfilePerAllocator"] == {"B": whole["B"]}

    def test_an_unknown_memory_id_is_not_found_and_the_known_are_named(self):
        with pytest.raises(NotFoundError, match=r"no memory 'C' .* A, B$"):
            answer(self.rows, memory_id="C")

    def test_of_very_many_the_first_are_written_and_any_that_is_named(self, monkeypatch):
        monkeypatch.setattr("peakline.xprof.memory_profile.rules.MOST_MEMORIES", 1)
        profile = profile_of(self.rows)
        assert json.loads(profile.tool("memory_profile").content)["memoryIds"] == ["A"]
        assert [(w.kind, w.count) for w in profile.warnings] == [("memories_left_out", 1)]
        assert answer(self.rows, memory_id="B")["memoryIds"] == ["B"]

    def test_max_snapshots(self):
        result = answer(self.rows, max_snapshots=1)
        assert len(result["memoryProfilePerAllocator"]["A"]["sampledTimelineSnapshots"]) == 1

    def test_numbers_may_be_text_as_from_a_remote_caller(self):
        as_text = answer(self.rows, max_snapshots="1", version="0")
        assert as_text == answer(self.rows, max_snapshots=1, version=0)

    def test_an_enormous_limit_is_no_limit(self):
        assert answer(self.rows, max_snapshots=10**30) == answer(self.rows)

    @each_row("host", [None, "", "worker-0"])
    def test_the_profiles_own_host_is_accepted(self, host):
        assert answer(self.rows, host=host) == answer(self.rows)

    def test_another_host_is_not_found(self):
        with pytest.raises(NotFoundError, match=r"no host 'w9' in fake.pb; there is: worker-0"):
            answer(self.rows, host="w9")

    @each_row(
        ("parameters", "message"),
        [
            ({"max_snapshots": "0"}, "parameter max_snapshots must be at least 1, not '0'"),
            (
                {"max_snapshots": "many"},
                "parameter max_snapshots must be a whole number, not 'many'",
            ),
            ({"version": 2}, "parameter version must be at most 1, not 2"),
            (
                {"memory": "A"},
                "no parameter 'memory'; did you mean 'memory_id'.* there is: host, memory_id, max",
            ),
        ],
    )
    def test_a_bad_parameter_is_one_line(self, parameters, message):
        with pytest.raises(UsageError, match=message) as caught:
            answer(self.rows, **parameters)
        assert "\n" not in str(caught.value)


class TestProto:
    def test_the_bytes_parse_to_what_the_json_says(self):
        rows = [*UPSTREAM, free(80000, 345678, 300, memory_id="GPU_0_bfc"), alloc(0, 1, 8)]
        modules = [{"name": "m", "start_ps": 3, "end_ps": 4, "plane_name": "TPU:0"}]
        profile = profile_of(rows, modules)
        result = profile.tool("memory_profile", format="proto")
        assert result.format == "proto"
        parsed = MemoryProfile.FromString(result.content)
        assert parsed == json_format.Parse(profile.tool("memory_profile").content, MemoryProfile())
        assert parsed.hlo_modules[0].plane_name == "TPU:0"

    def test_more_snapshots_than_are_written_at_a_time(self):
        profile = profile_of([alloc(n, n % 7, 8) for n in range(40_000)])
        content = profile.tool("memory_profile", version=0, format="proto").content
        snapshots = MemoryProfile.FromString(content).memory_profile_per_allocator["A"]
        counted = Counter(s.time_offset_ps for s in snapshots.memory_profile_snapshots)
        assert counted == Counter(range(40_000))


@each_row(("free_bytes", "capacity"), [(None, 0), (5, 13), (0, 8)])
def test_the_capacity_is_known_only_where_free_bytes_are(free_bytes, capacity):
    event = {"time_ps": 1, "allocator": "A", "activity": "allocation", "allocation_id": 1,
             "requested_bytes": 8, "allocated_bytes": 8, "free_bytes": free_bytes}  # fmt: skip
    profile = Profile(FakeReader({"allocator_events": [event]}), derived=DERIVED)
    document = json.loads(profile.tool("memory_profile").content)
    summary = document["memoryProfilePerAllocator"]["A"]["profileSummary"]
    assert (summary["peakStats"]["peakBytesInUse"], summary["memoryCapacity"]) == (
        "8",
        str(capacity),
    )
    content = profile.tool("memory_profile", format="proto").content
    parsed = MemoryProfile.FromString(content).memory_profile_per_allocator["A"]
    assert parsed.profile_summary.memory_capacity == capacity


class TestNothingToShow:
    def test_no_memory_events(self):
        profile = profile_of([])
        assert profile.tool("memory_profile").content == (
            b'{"memoryProfilePerAllocator":{},"numHosts":1,"memoryIds":[],"version":1,'
            b'"hloModules":[]}'
        )
        parsed = MemoryProfile.FromString(profile.tool("memory_profile", format="proto").content)
        assert parsed == MemoryProfile(num_hosts=1, version=1)
        assert [warning.kind for warning in profile.warnings] == ["no_memory_events"]

    @each_row("output_format", ["json", "proto"])
    def test_no_host_threads_give_no_bytes(self, output_format):
        # As an XSpace without them: there may be no snapshots, and none are made of records.
        profile = Profile(FakeReader({"allocator_events": []}))
        assert profile.tool("memory_profile", format=output_format).content == b""
        assert [warning.kind for warning in profile.warnings] == ["no_memory_events"]

    def test_another_format_without_memory_gives_an_empty_message(self):
        profile = Profile(FakeReader({}))
        assert profile.tool("memory_profile").content == (
            b'{"memoryProfilePerAllocator":{},"numHosts":1,"memoryIds":[],"version":1,'
            b'"hloModules":[]}'
        )
        content = profile.tool("memory_profile", format="proto").content
        assert MemoryProfile.FromString(content) == MemoryProfile(num_hosts=1, version=1)
        assert [tuple(warning) for warning in profile.warnings] == [
            ("no_memory_events", 2, "the file has no memory events")
        ]

    @each_row("tables", [{}, {"allocator_events": []}])
    def test_an_allocator_asked_for_is_not_found(self, tables):
        with pytest.raises(NotFoundError, match=r"no memory 'A' .* there is: none"):
            Profile(FakeReader(tables)).tool("memory_profile", memory_id="A")

    def test_the_tool_is_offered_only_where_there_are_events(self):
        offers = TOOL.supports
        result = [
            offers(Profile(FakeReader({}))),
            offers(profile_of([])),
            offers(profile_of([FIRST])),
        ]
        assert result == [False, False, True]

    def test_strict_refuses_it(self):
        with pytest.raises(StrictError, match="no_memory_events"):
            Profile(FakeReader({}), strict=True).tool("memory_profile")


SESSIONS = DATA / "sessions"
FILES = {
    "b": SESSIONS / "tf2_multihost/plugins/profile/2026_11_20_17_33_46/localhost_47507.xplane.pb",
    "a": SESSIONS / "tf2_two_devices/plugins/profile/2026_11_20_17_20_26/vm.xplane.pb.gz",
    'odd "]},"\\ ü': DATA / "memory_log/eager_default_allocator.log.gz",
    "nothing": DATA / "text/graph.pbtxt.gz",
}
TOOL_OF_MEMORY_PROFILE_HOSTS = find_tool("memory_profile")


def answers(fmt, parameters=None):
    result = []
    for host, path in FILES.items():
        with peakline.open(path) as profile:
            result.append((host, run_tool(profile, "memory_profile", parameters, fmt).content))
    return result


def contributions(parameters=None):
    result = []
    for host, path in FILES.items():
        with peakline.open(path) as profile:
            result.append(
                (
                    host,
                    TOOL_OF_MEMORY_PROFILE_HOSTS.partial(
                        profile, TOOL_OF_MEMORY_PROFILE_HOSTS.validated(parameters or {})
                    ),
                )
            )
    return result


def merged(parts):
    """By hand, with upb messages."""
    whole = MemoryProfile(num_hosts=len(parts))
    for host, content in parts:
        message = MemoryProfile.FromString(content)
        whole.version = message.version
        for name, profile in message.memory_profile_per_allocator.items():
            whole.memory_profile_per_allocator[f"{host}/{name}"].CopyFrom(profile)
            whole.memory_ids.append(f"{host}/{name}")
        for module in message.hlo_modules:
            module.id = len(whole.hlo_modules)
            module.plane_name = f"{host}/{module.plane_name}"
            whole.hlo_modules.append(module)
    whole.memory_ids.sort()
    return whole


def join(parts, fmt, parameters=None):
    parts = pickle.loads(pickle.dumps(parts))  # noqa: S301  (as between processes)
    return TOOL_OF_MEMORY_PROFILE_HOSTS.combine(
        parts, TOOL_OF_MEMORY_PROFILE_HOSTS.validated(parameters or {}), fmt
    )


@each_row("version", [0, 1])
def test_proto_and_json_are_the_merged_messages(version):
    given = {"version": version, "max_snapshots": 50}
    right = merged(answers("proto", given))
    assert len(right.memory_ids) == 3
    assert MemoryProfile.FromString(join(contributions(given), "proto", given)) == right
    text = join(contributions(given), "json", given)
    assert json_format.Parse(text, MemoryProfile(), descriptor_pool=schema.POOL) == right
    assert json.loads(text)["memoryIds"] == list(right.memory_ids)


def test_keys_come_sorted_and_strange_names_stay():
    name = ']},"x":{"memoryProfileSnapshots":[\\"'

    profile = profile_of([alloc(0, 1, 8, memory_id=name), alloc(1, 2, 4, memory_id="z")])
    one = TOOL_OF_MEMORY_PROFILE_HOSTS.partial(profile, TOOL_OF_MEMORY_PROFILE_HOSTS.validated({}))

    wanted = sorted([f"h/{name}", "h/z", f"g/{name}", "g/z"])
    text = json.loads(join([("h", one), ("g", one)], "json"))
    assert text["memoryIds"] == list(text["memoryProfilePerAllocator"]) == wanted
    message = MemoryProfile.FromString(join([("h", one), ("g", one)], "proto"))
    assert list(message.memory_ids) == wanted


@each_row("fmt", ["json", "proto"])
def test_hosts_without_any_thread_count_and_add_nothing(fmt):
    assert join([("a", None), ("b", None)], fmt) == b""
    one = TOOL_OF_MEMORY_PROFILE_HOSTS.partial(
        profile_of([alloc(0, 1, 8)]), TOOL_OF_MEMORY_PROFILE_HOSTS.validated({})
    )
    whole = join([("a", None), ("b", one)], fmt)
    hosts = (
        json.loads(whole)["numHosts"]
        if fmt == "json"
        else MemoryProfile.FromString(whole).num_hosts
    )
    assert hosts == 2


@each_row("fmt", ["json", "proto"])
def test_modules_are_numbered_anew_and_keep_their_host(fmt):
    """Only TPUs have module runs."""
    modules = [
        {"name": f"m{number}", "start_ps": number, "end_ps": number + 1, "plane_name": "TPU:0"}
        for number in range(2)
    ]
    profile = profile_of([alloc(0, 1, 8)], modules)
    single = run_tool(profile, "memory_profile", format="proto").content
    one = TOOL_OF_MEMORY_PROFILE_HOSTS.partial(profile, TOOL_OF_MEMORY_PROFILE_HOSTS.validated({}))
    text = join([("a", one), ("b", one)], fmt)
    whole = (
        MemoryProfile.FromString(text)
        if fmt == "proto"
        else json_format.Parse(text, MemoryProfile(), descriptor_pool=schema.POOL)
    )
    assert [(m.id, m.plane_name) for m in whole.hlo_modules] == [
        (0, "a/TPU:0"), (1, "a/TPU:0"), (2, "b/TPU:0"), (3, "b/TPU:0"),
    ]  # fmt: skip
    assert whole == merged([("a", single), ("b", single)])


@each_row(
    ("value", "spelled"),
    [
        (0.0, "0"), (-0.0, "-0"), (1.0, "1"), (-1.5, "-1.5"), (0.1, "0.1"), (1e-7, "1e-07"),
        (1e-5, "1e-05"), (0.0001, "0.0001"), (0.00012345, "0.00012345"),
        (0.1 + 0.2, "0.30000000000000004"), (1 / 3, "0.33333333333333331"),
        (2 / 3, "0.66666666666666663"), (100.0, "100"), (1e6, "1000000"),
        (123456789.0, "123456789"), (1e14, "100000000000000"),
        (123456789012345.6, "123456789012345.59"), (1e15, "1e+15"),
        (4503599627370497.5, "4503599627370498"), (1e16, "1e+16"), (1.5e16, "1.5e+16"),
        (123456789012345678.0, "1.2345678901234568e+17"), (1e22, "1e+22"),
        (5e-324, "4.94065645841247e-324"), (1.7976931348623157e308, "1.7976931348623157e+308"),
        (math.inf, '"Infinity"'), (-math.inf, '"-Infinity"'), (math.nan, '"NaN"'),
    ],
)  # fmt: skip
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
