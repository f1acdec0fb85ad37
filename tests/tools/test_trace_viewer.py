"""XProf's trace viewers: the whole trace, and what a viewport shows of it."""

import gzip
import json
from pathlib import Path

import pytest
from tests.each_row import each_row
from tests.tables.fake import FakeReader, columns_of

import peakline
from peakline.errors import NotFoundError, UsageError
from peakline.schema import RunMetadata, TraceDataResponse
from peakline.tools import find_tool
from reference.xspace_builder import SpaceBuilder, Uint

DATA = Path(__file__).parent.parent / "data"
CNN = DATA / "run_metadata" / "tf1_cnn_2.pb.gz"
PEER = DATA / "run_metadata" / "tf1_cnn_2.timeline_show_memory.json.gz"


def trace_of(path, **parameters):
    with peakline.open(str(path)) as profile:
        return profile.tool("trace_viewer", **parameters).content


def written(tmp_path, metadata):
    path = tmp_path / "run_metadata.pb"
    path.write_bytes(metadata.SerializeToString())
    return path


def events(content, *phases):
    return [event for event in json.loads(content)["traceEvents"] if event.get("ph") in phases]


class TestStepStats:
    def test_it_is_what_tensorflow_wrote_for_the_same_run(self):
        assert (
            trace_of(CNN, show_memory=True).decode() == gzip.decompress(PEER.read_bytes()).decode()
        )

    def test_lanes_arrows_and_types(self, tmp_path):
        metadata = RunMetadata()
        cpu = metadata.step_stats.dev_stats.add(device="/job:x/device:CPU:0")
        node = cpu.node_stats.add(node_name="p", all_start_micros=10, all_end_rel_micros=5)
        node.timeline_label = "p = Const()"
        node.output.add().tensor_description.dtype = 1
        node = cpu.node_stats.add(node_name="c", all_start_micros=12, all_end_rel_micros=9)
        node.timeline_label = "c = Neg(p, ^z)"
        content = trace_of(written(tmp_path, metadata))
        assert [
            (e["ph"], e["name"], e["tid"], e["ts"]) for e in events(content, "X", "s", "t")
        ] == [("X", "Const", 0, 10), ("X", "Neg", 1, 12), ("s", "p", 0, 15), ("t", "p", 1, 12)]
        assert events(content, "X")[1]["args"] == {
            "name": "c", "op": "Neg", "input0": "p", "input1": "^z",
        }  # fmt: skip
        assert not events(trace_of(written(tmp_path, metadata), show_dataflow="false"), "s")

    def test_the_time_of_the_kernels(self, tmp_path):
        metadata = RunMetadata()
        gpu = metadata.step_stats.dev_stats.add(device="/job:x/device:GPU:0")
        gpu.node_stats.add(node_name="mm", all_start_micros=10, all_end_rel_micros=5)
        kernels = metadata.step_stats.dev_stats.add(device="/device:GPU:0/stream:all")
        for start in (30, 40):
            kernels.node_stats.add(
                node_name="mm:MatMul", all_start_micros=start, all_end_rel_micros=2
            )
        path = written(tmp_path, metadata)

        def first(op_time):
            event = events(trace_of(path, op_time=op_time), "X")[0]
            return event["ts"], event["dur"]

        assert [first(choice) for choice in ("schedule", "gpu", "all")] == [
            (10, 5),
            (30, 12),
            (10, 32),
        ]

    def test_an_output_may_have_the_name_of_another_execution(self, tmp_path):
        metadata = RunMetadata()
        device = metadata.step_stats.dev_stats.add(device="/job:x/device:CPU:0")
        node = device.node_stats.add(node_name="a", all_start_micros=10, all_end_rel_micros=5)
        node.output.add()
        node.output.add()
        device.node_stats.add(node_name="a:1", all_start_micros=20).output.add()
        content = trace_of(written(tmp_path, metadata), show_memory=True)
        assert [(e["ph"], e["name"], e["id"], e["ts"]) for e in events(content, "N", "D")] == [
            ("N", "a", 0, 10),
            ("N", "a:1", 1, 10),
            ("N", "a:1", 2, 20),
            ("D", "a", 0, 15),
            ("D", "a:1", 2, 20),
        ]

    def test_more_memory_than_a_number_of_64_bits_holds(self, tmp_path):
        metadata = RunMetadata()
        device = metadata.step_stats.dev_stats.add(device="/job:x/device:CPU:0")
        for name in ("a", "b"):
            node = device.node_stats.add(node_name=name, all_start_micros=10, all_end_rel_micros=1)
            place = node.output.add().tensor_description.allocation_description
            place.allocator_name, place.requested_bytes = "cpu", 2**63 - 1
        content = trace_of(written(tmp_path, metadata), show_memory=True)
        most = 2**63 - 1
        assert [e["args"]["cpu"] for e in events(content, "C")] == [most, 2 * most, most, 0]

    def test_a_device_without_executions_is_announced(self, tmp_path):
        metadata = RunMetadata()
        metadata.step_stats.dev_stats.add(device="/gpu:0")
        assert [e["args"]["name"] for e in events(trace_of(written(tmp_path, metadata)), "M")] == [
            "Allocators",
            "/gpu:0 Compute",
            "/gpu:0 Tensors",
        ]

    def test_an_unknown_step_is_refused_with_those_there_are(self):
        with pytest.raises(NotFoundError, match="no step '7' in the profile; there is: 0"):
            trace_of(CNN, step="7")

    def test_an_unknown_op_time_is_refused(self):
        with pytest.raises(UsageError, match="op_time"):
            trace_of(CNN, op_time="cpu")


class TestEvents:
    def make(self, **more):
        tables = {
            "planes": [
                    {"plane_id": 0, "name": "/device:GPU:0", "kind": "device", "native_id": 4},
                    {"plane_id": 1, "name": "/host:CPU", "kind": "host", "native_id": 9},
                    {"plane_id": 2, "name": "extra", "kind": "other"},
                ],
            "lines": [
                    {"line_id": 0, "plane_id": 0, "name": "Stream #1", "native_id": 1},
                    {"line_id": 1, "plane_id": 1, "name": 'a "thread"', "native_id": 2**40 + 3},
                ],
            "events": [
                    {"event_id": 0, "line_id": 0, "name": "k\n", "start_ps": 1_500_001,
                     "duration_ps": 2_000_000, "step_id": 3},
                    {"event_id": 1, "line_id": 1, "name": "mark", "start_ps": -7},
                    {"event_id": 2, "line_id": 1, "name": "sum", "duration_ps": 5},
                ],
        } | more  # fmt: skip
        return peakline.Profile(FakeReader(tables))

    def test_every_timed_event_exactly_to_the_picosecond(self):
        content = self.make().tool("trace_viewer").content
        assert b'"ts":1.500001,"dur":2.000000,' in content
        assert b'"ts":-0.000007,' in content
        assert [
            (e["ph"], e["pid"], e["tid"], e["name"], e["args"]) for e in events(content, "X", "i")
        ] == [("X", 5, 1, "k\n", {"group_id": "3"}), ("i", 701, 3, "mark", {})]

    def test_processes_and_threads_have_names(self):
        names = [
            (e["name"], e["pid"], e.get("tid"), e["args"]["name"])
            for e in events(self.make().tool("trace_viewer").content, "M")
            if "name" in e["args"]
        ]
        assert names == [
            ("process_name", 5, None, "/device:GPU:0"),
            ("process_name", 701, None, "/host:CPU"),
            ("process_name", 501, None, "extra"),
            ("thread_name", 5, 1, "Stream #1"),
            ("thread_name", 701, 3, 'a "thread"'),
        ]

    def test_stats_are_the_arguments(self):
        stats = columns_of(
            "event_stats",
            [
                {"event_id": 0, "name": "flops", "value": "12"},
                {"event_id": 0, "name": 'q"', "value": None},
                {"event_id": 2, "name": "n", "value": "1"},
            ],
        )
        profile = self.make(event_stats=stats)
        arguments = [e["args"] for e in events(profile.tool("trace_viewer").content, "X", "i")]
        assert arguments == [{"group_id": "3", "flops": "12", 'q"': ""}, {}]
        without = profile.tool("trace_viewer", show_args=False).content
        assert [e["args"] for e in events(without, "X")] == [{"group_id": "3"}]

    def test_memory_in_use_is_a_counter(self):
        path = DATA / "sessions" / "tf2_cnn"
        counters = events(trace_of(path, show_memory=True), "C")
        with peakline.open(str(path)) as profile:
            snapshots = profile.columns("memory_snapshots")
        assert len(counters) == snapshots.rows > 1000
        assert max(c["args"]["bytes_in_use"] for c in counters) == int(
            snapshots.array("heap_allocated_bytes").max()
        )

    def test_a_profile_without_events(self):
        profile = peakline.Profile(FakeReader({"steps": []}))
        assert profile.tool("trace_viewer").content == (
            b'{"displayTimeUnit":"ns","metadata":{"highres-ticks":true},"traceEvents":[{}]}\n'
        )
        assert [tuple(warning) for warning in profile.warnings] == [
            ("no_events", 1, "no events in this profile")
        ]
        with pytest.raises(NotFoundError, match="no step '3' in the profile; there is: none"):
            profile.tool("trace_viewer", step="3")

    def test_tables_without_rows_are_told_too(self):
        names = ("planes", "lines", "events")
        profile = peakline.Profile(FakeReader(dict.fromkeys(names, ())))
        assert json.loads(profile.tool("trace_viewer").content)["traceEvents"] == [{}]
        assert [warning.kind for warning in profile.warnings] == ["no_events"]


MS = 10**9


def opened(tmp_path, builder, name="host"):
    path = tmp_path / f"{name}.xplane.pb"
    path.write_bytes(builder.space.SerializeToString())
    return peakline.open(str(path))


def answer(tmp_path, builder, **parameters):
    with opened(tmp_path, builder) as profile:
        return json.loads(profile.tool("trace_viewer@", **parameters).content)


def events_of_streaming_trace(trace, *keys):
    shown = [event for event in trace["traceEvents"] if event["ph"] != "M"]
    return [tuple(event.get(key) for key in keys) for event in shown] if keys else shown


def thread(**metadata):
    builder = SpaceBuilder()
    return builder, builder.host().line("main", **metadata)


class TestShape:
    def test_all_of_a_small_trace(self, tmp_path):
        builder, line = thread(timestamp_ns=5)
        line.event("outer", 0, 2_500_000).event("inner", 1, 0)
        assert answer(tmp_path, builder) == {
            "displayTimeUnit": "ns",
            "metadata": {"highres-ticks": True},
            "codeLink": "",
            "useNewBackend": False,
            "details": [{"name": "mpmd_pipeline_view", "value": False}],
            "returnedEventsSize": 2,
            "filteredByVisibility": False,
            "fullTimespan": [5e-06, 0.002505],
            "stackFrames": {},
            "traceEvents": [
                {"args": {"name": "host /host:CPU"}, "name": "process_name", "ph": "M",
                 "pid": 1701, "thread_count": 1},
                {"args": {"sort_index": 1701}, "name": "process_sort_index", "ph": "M",
                 "pid": 1701},
                {"args": {"name": "main"}, "name": "thread_name", "ph": "M", "pid": 1701, "tid": 1},
                {"args": {"sort_index": 1}, "name": "thread_sort_index", "ph": "M", "pid": 1701,
                 "tid": 1},
                {"pid": 1701, "tid": 1, "name": "outer", "ts": 0.005, "dur": 2.5, "ph": "X",
                 "args": {"uid": 0}},
                {"pid": 1701, "tid": 1, "name": "inner", "ts": 0.005001, "dur": 1e-06, "ph": "X",
                 "args": {"uid": 0}},
            ],
            "showCounterMessage": "",
            "totalCounterEvents": 0,
        }  # fmt: skip

    def test_what_the_runtime_tells_the_profiler_is_not_shown(self, tmp_path):
        builder, line = thread()
        line.event("MemoryAllocation", 1, 0).event("work", 2, 3)
        assert events_of_streaming_trace(answer(tmp_path, builder), "name") == [("work",)]

    def test_events_that_begin_together_are_numbered(self, tmp_path):
        builder, line = thread()
        line.event("a", 7, 9).event("b", 7, 5)
        builder.space.planes[0].lines[0].events.sort(key=lambda event: -event.duration_ps)
        shown = events_of_streaming_trace(answer(tmp_path, builder))
        assert [(e["name"], e.get("z"), e["args"]["uid"]) for e in shown] == [
            ("a", None, 0),
            ("b", 1, 1),
        ]

    def test_flows_have_small_numbers(self, tmp_path):
        builder, line = thread()
        line.event("from", 0, 1, {"_pt": 12, "_p": 2**62}).event(
            "to", 5, 1, {"_ct": 12, "_c": 2**62}
        )
        line.event("alone", 9, 1)
        keys = ("name", "bind_id", "cat", "flow_out", "flow_in")
        assert events_of_streaming_trace(answer(tmp_path, builder), *keys) == [
            ("from", 1, "tpu_launch", True, None),
            ("to", 1, "tpu_launch", None, True),
            ("alone", None, None, None, None),
        ]
        assert (
            events_of_streaming_trace(answer(tmp_path, builder, links=False), "bind_id")
            == [(None,)] * 3
        )

    def test_a_step_names_its_event(self, tmp_path):
        builder, line = thread()
        line.event("train", 0, 9, {"_r": 1, "step_num": 41}).event("work", 2, 3)
        shown = events_of_streaming_trace(answer(tmp_path, builder))
        assert [(e["name"], e["args"]["group_id"]) for e in shown] == [("train 41", 0), ("work", 0)]

    def test_counters_of_a_name_are_one_object(self, tmp_path):
        builder = SpaceBuilder()
        line = builder.host().line("_counters_")
        line.event("power", 1_000_000, 0, {"watt": 1.5}).event(
            "clock", 1_500_000, 0, {"hz": Uint(3)}
        )
        line.event("power", 2_000_000, 0, {"watt": 0.1})
        trace = answer(tmp_path, builder)
        assert events_of_streaming_trace(trace) == [
            {"pid": 1701, "name": "power", "ph": "C", "event_stats": "watt",
             "entries": [[1.0, 1.5], [2.0, 0.1]]},
            {"pid": 1701, "name": "clock", "ph": "C", "event_stats": "hz", "entries": [[1.5, 3]]},
        ]  # fmt: skip
        assert trace["totalCounterEvents"] == 3


class TestViewport:
    @each_row(
        ("begin", "end", "shown"),
        [
            (0, 0, ["a", "b", "c"]),
            (2, 3, ["a", "b"]),
            (4.5, 0, ["a", "c"]),
            (0, 1, ["a"]),
            (11, 12, []),
        ],
    )
    def test_what_lies_in_it(self, begin, end, shown, tmp_path):
        builder, line = thread()
        line.event("a", 0, 10 * MS).event("b", 2 * MS, 1 * MS).event("c", 5 * MS, 1 * MS)
        trace = answer(tmp_path, builder, start_time_ms=begin, end_time_ms=end)
        assert [name for (name,) in events_of_streaming_trace(trace, "name")] == shown

    def test_what_has_no_room_is_left_out(self, tmp_path):
        builder, line = thread()
        line.event("whole", 0, 100 * MS)
        for number in range(100):
            line.event(f"{number}", number * MS + 1, MS // 2)
        trace = answer(tmp_path, builder, resolution="10")
        names = [name for (name,) in events_of_streaming_trace(trace, "name")]
        assert trace["filteredByVisibility"] is True
        assert names == ["whole", "0", *(str(number) for number in range(11, 100, 11))]
        assert len(answer(tmp_path, builder, resolution=0)["traceEvents"]) == 4 + 101

    def test_every_depth_is_judged_by_itself(self, tmp_path):
        builder, line = thread()
        line.event("long", 0, 100 * MS).event("short", 1 * MS, 1 * MS).event("deep", 1 * MS, 1)
        line.event("next", 3 * MS, 1 * MS)
        trace = answer(tmp_path, builder, resolution=10)
        assert [name for (name,) in events_of_streaming_trace(trace, "name")] == [
            "long",
            "short",
            "deep",
        ]

    def test_the_upstream_rule_shows_small_traces_whole(self, tmp_path):
        builder, line = thread()
        line.event("a", 0, 100 * MS).event("b", 1 * MS, 1).event("c", 2 * MS, 1)
        names = events_of_streaming_trace(
            answer(tmp_path, builder, resolution=2, compatible="xprof"), "name"
        )
        assert names == [("a",), ("b",), ("c",)]

    def test_a_viewport_that_is_no_number_is_told(self, tmp_path):
        builder, line = thread()
        line.event("a", 0, 1)
        with pytest.raises(UsageError, match="parameter start_time_ms"):
            answer(tmp_path, builder, start_time_ms="soon")


class TestSearch:
    def test_names_that_begin_so(self, tmp_path):
        builder, line = thread()
        line.event("train", 0, 1, {"loss": 0.5}).event("trace", 2, 1).event("strain", 4, 1)
        assert events_of_streaming_trace(
            answer(tmp_path, builder, search_prefix="tra"), "name"
        ) == [("train",), ("trace",)]
        result = answer(tmp_path, builder, search_prefix="train", search_metadata="true")
        assert events_of_streaming_trace(result, "args") == [({"loss": 0.5},)]

    def test_all_of_one_event(self, tmp_path):
        builder, line = thread()
        stats = {"text": "x", "large": 2**60, "_p": 5, "half": 0.5, "bytes": b"x"}
        line.event("%fusion.1 = f32[8] fusion(...)", 3 * MS, 2 * MS, stats)
        kind = builder.space.planes[0].event_metadata[1]
        kind.display_name = "fusion.1"
        result = answer(
            tmp_path, builder, event_name="fusion.1", start_time_ms=3, duration_ms=2, unique_id=0
        )
        (event,) = events_of_streaming_trace(result)
        assert event["args"] == {"text": "x", "large": str(2**60), "half": 0.5}
        assert result["stackFrames"] == {"1": {"name": "%fusion.1 = f32[8] fusion(...)"}}
        assert event["sf"] == 1

    def test_one_that_is_not_there(self, tmp_path):
        builder, line = thread()
        line.event("a", 0, 1)
        with pytest.raises(NotFoundError, match="no event 'b'"):
            answer(tmp_path, builder, event_name="b")


class TestThreads:
    def test_most_threads_are_those_with_most_events(self, tmp_path):
        builder = SpaceBuilder()
        plane = builder.host()
        plane.line("few").event("a", 0, 1)
        plane.line("many").event("b", 0, 1).event("c", 5, 1)
        with opened(tmp_path, builder) as profile:
            trace = json.loads(profile.tool("trace_viewer@", max_threads=1).content)
            assert [w.kind for w in profile.warnings] == ["threads_cut"]
        assert events_of_streaming_trace(trace, "name") == [("b",), ("c",)]

    def gpu(self):
        builder = SpaceBuilder()
        stats = {"kernel_details": "regs:8", "hlo_module": "jit_f", "program_id": 7,
                 "hlo_op": "while.1::dot.2"}  # fmt: skip
        line = builder.plane("/device:GPU:0").line("Stream #3(Compute)")
        line.event("gemm", 0, 5000, stats).event("gemm", 7000, 5000, stats)
        return builder

    def names(self, trace):
        return [e["args"]["name"] for e in trace["traceEvents"] if e.get("name") == "thread_name"]

    def test_lines_are_derived_for_a_stream(self, tmp_path):
        trace = answer(tmp_path, self.gpu())
        assert self.names(trace) == [
            "Stream #3(Compute)", "XLA Modules - from #1", "XLA Ops - from #1",
        ]  # fmt: skip
        assert events_of_streaming_trace(trace, "tid", "name", "dur") == [
            (1, "gemm", 0.005), (1, "gemm", 0.005), (4, "jit_f(7)", 0.012),
            (5, "while.1", 0.012), (5, "dot.2", 0.012),
        ]  # fmt: skip

    @each_row("tool", ["trace_viewer", "trace_viewer@"])
    @each_row("compatible", ["", "xprof"])
    def test_a_file_that_was_grouped_is_shown_as_it_is(self, tool, compatible, tmp_path):
        """Streams keep their numbers, and no line, step or flow is made for those it has."""
        builder = SpaceBuilder()
        plane = builder.plane("/device:GPU:0")
        stream = plane.line("Stream #134(Compute)")
        stream.message.id = 134
        stats = {"kernel_details": "regs:8", "tf_op": "a/b:B", "correlation_id": 5, "group_id": 2}
        stream.event("gemm", 0, 5000, stats).event("copy", 7000, 2000, {"correlation_id": 6})
        steps = plane.line("Steps")
        steps.message.id = 0xDEADBEEF - 2**32
        steps.event("2", 0, 9000, {"group_id": 2})
        with opened(tmp_path, builder) as profile:
            trace = json.loads(profile.tool(tool, compatible=compatible).content)
        shown = [e for e in trace["traceEvents"] if e.get("ph") == "X"]
        assert sorted((e["tid"], e["name"]) for e in shown) == [
            (134, "copy"), (134, "gemm"), (0xDEADBEEF, "2"),
        ]  # fmt: skip
        assert sorted(self.names(trace)) == ["Steps", "Stream #134(Compute)"]
        assert not any("bind_id" in e or "flow" in e.get("args", {}) for e in shown)

    def test_a_program_can_have_any_number(self, tmp_path):
        builder = SpaceBuilder()
        stats = {"kernel_details": "regs:8", "hlo_module": "jit_f", "program_id": Uint(2**64 - 1),
                 "hlo_op": "dot.2"}  # fmt: skip
        builder.plane("/device:GPU:0").line("Stream #3(Compute)").event("gemm", 0, 5000, stats)
        assert ("jit_f(18446744073709551615)",) in events_of_streaming_trace(
            answer(tmp_path, builder), "name"
        )

    def test_either_kind_of_lines_can_be_left_out(self, tmp_path):
        plain = answer(tmp_path, self.gpu(), derived_timeline="false")
        assert self.names(plain) == ["Stream #3(Compute)"]
        derived = answer(tmp_path, self.gpu(), raw_gpu_streams="false")
        assert self.names(derived) == ["XLA Modules - from #1", "XLA Ops - from #1"]


def test_the_compact_form_says_the_same(tmp_path):
    import pyarrow as pa

    builder, line = thread()
    line.event("from", 5, 3, {"_pt": 12, "_p": 8}).event("to", 300, 0, {"_ct": 12, "_c": 8})
    with opened(tmp_path, builder) as profile:
        packed = profile.tool("trace_viewer@", format="pb").content
    unpacked = pa.CompressedInputStream(pa.BufferReader(packed), "zstd").read()
    result = TraceDataResponse.FromString(unpacked)
    (series,) = result.complete_events
    assert (series.metadata.process_id, series.metadata.thread_id) == (1701, 1)
    assert (list(series.deltas), list(series.durations)) == ([5, 295], [3, 0])
    assert [result.interned_strings[ref] for ref in series.name_refs] == ["from", "to"]
    assert [m.flow_id for m in series.event_metadata] == [1, 1]
    assert result.interned_strings[series.event_metadata[0].flow_category] == "tpu_launch"
    assert (result.full_timespan_start_ps, result.full_timespan_end_ps) == (5, 300)
    assert [thread.name for thread in result.metadata.processes[0].threads] == ["main"]


def test_hosts_are_numbered_and_keep_their_flows_apart(tmp_path):
    tool = find_tool("trace_viewer@")
    parameters = tool.validated({})
    parts = []
    for name in ("a", "b"):
        builder, line = thread()
        line.event("from", 0, 1, {"_pt": 12, "_p": 8}).event("to", 5, 1, {"_ct": 12, "_c": 8})
        with opened(tmp_path, builder, name) as profile:
            parts.append((name, tool.partial(profile, parameters)))
    trace = json.loads(tool.combine(parts, parameters, "json"))
    assert events_of_streaming_trace(trace, "pid", "bind_id") == [
        (1701, 1),
        (1701, 1),
        (2701, 2),
        (2701, 2),
    ]
    shown = [e["args"]["name"] for e in trace["traceEvents"] if e["name"] == "process_name"]
    assert shown == ["a /host:CPU", "b /host:CPU"]


def test_a_profile_without_events_has_an_empty_trace(tmp_path):
    builder = SpaceBuilder()
    builder.plane("/host:metadata")
    trace = answer(tmp_path, builder)
    assert (trace["traceEvents"], trace["fullTimespan"]) == ([], [0.0, 0.0])


class TestExtremes:
    """Numbers that no viewer sends, and times that no profiler writes."""

    @each_row("value", ["nan", "inf", "-inf", "1e999"])
    @each_row("name", ["start_time_ms", "end_time_ms", "resolution", "duration_ms", "unique_id"])
    def test_what_is_no_number_is_refused(self, tmp_path, name, value):
        builder, line = thread()
        line.event("a", 0, MS)
        with pytest.raises(UsageError, match=name):
            answer(tmp_path, builder, **{name: value})

    @each_row("compatible", ["", "xprof"])
    @each_row("value", [1e17, 1e300, -1e300, 2.0**63, -(2.0**63)])
    def test_huge_viewports_hold_all_or_nothing(self, tmp_path, value, compatible):
        builder, line = thread()
        line.event("a", 0, MS).event("b", 2 * MS, MS)
        edge = {"start_time_ms": value} if value < 0 else {"end_time_ms": value}
        trace = answer(tmp_path, builder, **edge, compatible=compatible)
        assert events_of_streaming_trace(trace, "name") == [("a",), ("b",)]
        if not compatible:
            edge = {"end_time_ms": value} if value < 0 else {"start_time_ms": value}
            assert events_of_streaming_trace(answer(tmp_path, builder, **edge)) == []

    def test_no_event_has_a_huge_time_or_number(self, tmp_path):
        builder, line = thread()
        line.event("a", 0, MS)
        for name in ("start_time_ms", "duration_ms", "unique_id"):
            with pytest.raises(NotFoundError):
                answer(tmp_path, builder, event_name="a", **{name: 1e300})

    @each_row("compatible", ["", "xprof"])
    def test_times_of_1970_are_told_from_the_start_of_the_profile(self, tmp_path, compatible):
        builder, line = thread(timestamp_ns=1_790_000_000 * 10**9)
        line.event("a", 0, MS).event("b", 2 * MS, MS)
        trace = answer(tmp_path, builder, compatible=compatible)
        assert events_of_streaming_trace(trace, "name", "ts", "dur") == [
            ("a", 0.0, 1000.0),
            ("b", 2000.0, 1000.0),
        ]

    @each_row("tool", ["trace_viewer", "trace_viewer@"])
    @each_row("form", ["json", "pb"])
    @each_row("compatible", ["", "xprof"])
    def test_times_at_the_limits_are_told_somehow(self, tmp_path, tool, form, compatible):
        most = 2**63 - 1
        builder = SpaceBuilder()
        host = builder.host()
        for time in (0, most // 1000, most, -most):
            line = host.line(f"t{time}", timestamp_ns=time)
            for offset in (0, most, -most):
                line.event("a", offset, most).event("b", offset, -most)
        with opened(tmp_path, builder) as profile:
            content = profile.tool(tool, format=form, compatible=compatible).content
        assert content
        if form == "json" and tool == "trace_viewer@":
            shown = events_of_streaming_trace(json.loads(content), "name", "dur")
            assert len(shown) == 24 or compatible
            assert min(dur for _, dur in shown if dur is not None) >= 0
