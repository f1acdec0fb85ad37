"""The Chrome trace: TensorFlow's own for StepStats, every event for all other profiles."""

import gzip
import json
from pathlib import Path

import pytest
from tests.profile.fake import FakeReader, columns_of

import peakline
from peakline.errors import NotFoundError, UsageError
from peakline.schema import RunMetadata

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
