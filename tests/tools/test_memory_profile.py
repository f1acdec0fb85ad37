"""The tool as a whole: parameters, versions, formats, nothing to show; its rules are compared with
the slow reference, in test_memory_profile_output and tests/sources/test_xplane_reference.
"""

import json
from collections import Counter

import pytest
from google.protobuf import json_format
from tests.each_row import each_row
from tests.profile.fake import FakeReader
from tests.tools.snapshots import alloc, answer, free, profile_of

from peakline.api import Profile
from peakline.errors import NotFoundError, StrictError, UsageError
from peakline.schema import MemoryProfile
from peakline.tables.derived import DERIVED
from peakline.xprof.memory_profile import TOOL

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
        found = [
            offers(Profile(FakeReader({}))),
            offers(profile_of([])),
            offers(profile_of([FIRST])),
        ]
        assert found == [False, False, True]

    def test_strict_refuses_it(self):
        with pytest.raises(StrictError, match="no_memory_events"):
            Profile(FakeReader({}), strict=True).tool("memory_profile")
