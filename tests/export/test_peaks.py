"""Peaks and traced runs in the formats of others."""

import gzip
import json

import pytest
from tests.each_row import each_row
from tests.export.written import DATA, KINETO, SESSION, written, written_file
from tests.memory.records import events as records
from tests.shared import shared
from tests.tables.fake import FakeReader
from tests.tools.step_stats import random_run_metadata

import peakline
from peakline.errors import NotFoundError, UsageError
from peakline.schema import RunMetadata, message

HEAP = DATA / "pprof" / "device_memory.pprof.pb.gz"
LOGS = DATA / "memory_log"
WARNED = [LOGS / "session_default_allocator.log.gz", LOGS / "tf1_control_flow.log.gz"]
SAMPLES = [SESSION, KINETO, HEAP, DATA / "run_metadata" / "tf1_cnn_2.pb.gz",
           DATA / "programs" / "leak_list.xplane.pb.gz"]  # fmt: skip


def read(content):
    return message("perftools.profiles.Profile").FromString(gzip.decompress(content))


class TestPprof:
    @each_row("path", SAMPLES)
    def test_read_again_it_has_the_same_peaks(self, tmp_path, path):
        exported = shared(path)
        copy = tmp_path / "peak.pb.gz"
        copy.write_bytes(written(exported, "pprof"))
        peaks = {peak.allocator: peak for peak in exported.memory().allocators}
        with peakline.open(str(copy)) as again:
            assert again.format == "pprof"
            buffers = again.columns("buffers")
            result = dict.fromkeys(peaks, 0)
            for name, size in zip(
                buffers.names("allocator").to_list(),
                buffers.array("allocated_bytes").tolist(),
                strict=True,
            ):
                result[name] += size
            # What is less than nothing is in the file, but no buffer.
            negative = {
                name: sum(min(b.bytes, 0) for b in peak.peak_buffers)
                for name, peak in peaks.items()
            }
            assert result == {n: peak.peak_bytes - negative[n] for n, peak in peaks.items()}

    @each_row("path", SAMPLES)
    def test_every_reference_leads_somewhere(self, path):
        exported = shared(path)
        profile = read(written(exported, "pprof"))
        assert profile.string_table[0] == ""
        assert len(set(profile.string_table)) == len(profile.string_table)
        functions = {function.id for function in profile.function}
        locations = {place.id for place in profile.location}
        assert 0 not in functions | locations
        assert {line.function_id for place in profile.location for line in place.line} <= functions
        for one in profile.sample:
            assert set(one.location_id) <= locations
            assert len(one.value) == len(profile.sample_type) == 2
        assert sum(one.value[1] for one in profile.sample) == sum(
            peak.peak_bytes for peak in exported.memory().allocators
        )

    def test_the_stack_is_the_scope(self):
        profile = read(written_file(SESSION, "pprof"))
        texts = profile.string_table
        name_of = {f.id: texts[f.name] for f in profile.function}
        place = {p.id: name_of[p.line[0].function_id] for p in profile.location}
        stacks = {tuple(place[number] for number in one.location_id) for one in profile.sample}
        assert (
            "Conv2DBackpropFilter float [3,3,16,32]", "convolution", "conv2d_1_2", "sequential_1",
            "gradient_tape",
        ) in stacks  # fmt: skip
        assert ("(before profile)",) in stacks

    def test_the_stack_is_the_call_stack_where_there_is_one(self):
        profile = read(written_file(HEAP, "pprof"))
        before = message("perftools.profiles.Profile").FromString(
            gzip.decompress(HEAP.read_bytes())
        )

        def frames(one):
            texts = one.string_table
            return {(texts[f.name], texts[f.filename]) for f in one.function}

        assert frames(profile) <= frames(before)
        assert max(len(one.location_id) for one in profile.sample) > 3

    def test_the_same_profile_gives_the_same_bytes(self):
        assert written_file(SESSION, "pprof") == written_file(SESSION, "pprof")


class TestSpeedscope:
    @each_row("path", SAMPLES)
    def test_samples_have_weights_that_add_up_to_the_peak(self, path):
        exported = shared(path)
        document = json.loads(written(exported, "speedscope"))
        assert document["$schema"] == "https://www.speedscope.app/file-format-schema.json"
        frames = document["shared"]["frames"]
        assert all(frame["name"] for frame in frames)
        peaks = exported.memory().allocators
        assert [p["name"] for p in document["profiles"]] == [p.allocator for p in peaks]
        for profile, peak in zip(document["profiles"], peaks, strict=True):
            assert (profile["type"], profile["unit"]) == ("sampled", "bytes")
            assert len(profile["samples"]) == len(profile["weights"])
            assert {n for stack in profile["samples"] for n in stack} <= set(range(len(frames)))
            positive = peak.peak_bytes - sum(min(b.bytes, 0) for b in peak.peak_buffers)
            assert min(profile["weights"], default=1) > 0
            assert profile["startValue"] == 0
            assert sum(profile["weights"]) == profile["endValue"] == positive

    def test_less_than_nothing_is_left_out_and_told(self):
        rows = [
            {"activity": "allocation", "allocator": "a", "op": "x/y", "allocation_id": n,
             "allocated_bytes": 100, "in_use_bytes": use}
            for n, use in enumerate((100, 150))
        ]  # fmt: skip
        profile = peakline.Profile(FakeReader({"allocator_events": records(rows)}))
        (one,) = json.loads(written(profile, "speedscope"))["profiles"]
        assert one["weights"] == [200]
        assert [w.kind for w in profile.warnings] == ["negative_rows"]
        assert sum(s.value[1] for s in read(written(profile, "pprof")).sample) == 150

    def test_an_unknown_allocator(self):
        with pytest.raises(NotFoundError, match="no allocator 'x' in the profile"):
            written_file(SESSION, "speedscope", allocator="x")


@each_row("target", ["pprof", "speedscope"])
@each_row("path", WARNED)
def test_the_warnings_are_those_of_the_answer_about_memory(target, path):
    with peakline.open(str(path)) as profile:
        profile.memory()
        expected = {(w.kind, w.count, w.detail) for w in profile.warnings}
    with peakline.open(str(path)) as profile:
        written(profile, target)
        result = {(w.kind, w.count, w.detail) for w in profile.warnings}
    assert expected
    assert {warning for warning in result if warning[0] != "negative_rows"} == expected


FILES = sorted((DATA / "run_metadata").glob("*.pb.gz"))
TASK = "/job:localhost/replica:0/task:0"


@each_row("path", FILES)
def test_every_field_of_the_samples_comes_back(path):
    before = RunMetadata.FromString(gzip.decompress(path.read_bytes()))
    after = RunMetadata.FromString(written_file(path, "run-metadata"))
    assert after.step_stats == before.step_stats
    assert len(after.partition_graphs) == len(before.partition_graphs) > 0
    for ours, theirs in zip(after.partition_graphs, before.partition_graphs, strict=True):
        assert [(n.name, n.op, n.device, list(n.input)) for n in ours.node] == [
            (n.name, n.op, n.device, list(n.input)) for n in theirs.node
        ]
        assert ours.versions.producer == theirs.versions.producer


def test_every_field_of_random_runs_comes_back(tmp_path):
    path, compared = tmp_path / "run.pb", 0
    for seed in range(40):
        before = random_run_metadata(seed)
        if not any(device.node_stats for device in before.step_stats.dev_stats):
            # A run without executions has nothing to write.
            continue
        path.write_bytes(before.SerializeToString())
        after = RunMetadata.FromString(written_file(path, "run-metadata"))
        assert after.step_stats == before.step_stats, f"seed {seed}"
        compared += 1
    assert compared > 30


def test_deprecated_and_rare_fields_come_back(tmp_path):
    before = RunMetadata()
    before.session_metadata.name, before.session_metadata.version = "s", 3
    device = before.step_stats.dev_stats.add(device="/gpu:0")
    device.thread_names[4] = "four"
    node = device.node_stats.add(node_name="n", all_start_nanos=5_000_001, thread_id=4)
    node.memory_stats.temp_memory_size = 1
    node.memory_stats.device_persistent_tensor_alloc_ids.extend([1, -2])
    node.memory_stats.persistent_tensor_alloc_ids.append(7)
    node.referenced_tensor.add(ptr=2**64 - 1, has_single_reference=True)
    node.output.add(slot=-1)
    node.output.add().tensor_description.shape.unknown_rank = True
    shape = node.output.add().tensor_description.shape
    shape.dim.add(size=-1)
    shape.dim.add(size=0)
    node.memory.add(allocator_name="gpu").allocation_records.add(alloc_micros=5000, alloc_bytes=-4)
    node = device.node_stats.add(node_name="empty", all_start_nanos=6_000_000)
    node.memory_stats.SetInParent()
    before.step_stats.dev_stats.add(device="/cpu:0")
    path = tmp_path / "run.pb"
    path.write_bytes(before.SerializeToString())
    assert RunMetadata.FromString(written_file(path, "run-metadata")) == before


@pytest.fixture(scope="module")
def session():
    """The memory of a session of events, and its RunMetadata."""
    with peakline.open(str(SESSION)) as profile:
        return profile.memory(), RunMetadata.FromString(written(profile, "run-metadata"))


class TestEvents:
    def test_executions_are_what_executors_ran(self, session):
        _, metadata = session
        cpu, other = metadata.step_stats.dev_stats
        assert cpu.device == other.device == f"{TASK}/device:CPU:0"
        node = {node.node_name: node for node in cpu.node_stats}["sequential_1/conv2d_1_2/Relu"]
        assert node.timeline_label == "sequential_1/conv2d_1_2/Relu = _FusedConv2D()"
        assert node.all_start_nanos // 1000 == node.all_start_micros > 0
        assert cpu.thread_names[node.thread_id].startswith("tf_Compute/")
        starts = [node.all_start_nanos for node in cpu.node_stats]
        assert starts == sorted(starts)

    def test_no_record_of_an_allocator_is_lost(self, session):
        answer, metadata = session
        sizes = [
            record.alloc_bytes
            for device in metadata.step_stats.dev_stats
            for node in device.node_stats
            for used in node.memory
            for record in used.allocation_records
        ]
        (peak,) = answer.allocators
        assert sum(size > 0 for size in sizes) == peak.allocations
        assert sum(size < 0 for size in sizes) == peak.deallocations

    def test_an_output_has_type_shape_and_buffer(self, session):
        _, metadata = session
        (node, *_) = (
            node
            for node in metadata.step_stats.dev_stats[0].node_stats
            if node.node_name == "adam/Square_4"
        )
        (output,) = node.output
        tensor = output.tensor_description
        assert tensor.dtype == 1
        assert [dim.size for dim in tensor.shape.dim] == [32, 10]
        assert tensor.allocation_description.requested_bytes == 1280
        assert node.memory[0].total_bytes == 1280

    def test_memory_goes_to_who_allocated_it(self):
        names = ("s/a:Op", "s/b:Op", "thread pool")
        tables = {
            "planes": [
                    {"plane_id": 0, "name": "/host:CPU", "kind": "host"},
                    {"plane_id": 1, "name": "/device:GPU:0", "kind": "device"},
                    {"plane_id": 2, "name": "other", "kind": "other"},
                ],
            "lines": [
                    {"line_id": 0, "plane_id": 0, "name": "t"},
                    {"line_id": 1, "plane_id": 1, "name": "Stream #7(Compute)"},
                    {"line_id": 2, "plane_id": 1, "name": "XLA Modules"},
                    {"line_id": 3, "plane_id": 2, "name": "x"},
                ],
            "events": [
                    {"event_id": n, "line_id": line, "name": name, "start_ps": 10**7 * n,
                     "duration_ps": 5 * 10**6}
                    for n, (line, name) in enumerate(
                        [*((0, name) for name in names), (1, "kernel"), (2, "module"), (3, "no")]
                    )
                ],
            "allocator_events": records(
                [
                    {"activity": activity, "allocator": "a", "time_ps": 10**6 * time, "op": op,
                     "allocation_id": number, "allocated_bytes": size}
                    for activity, time, op, number, size in (
                        ("allocation", 1, "s/a", 1, 100),
                        ("allocation", 2, "s/a", 2, 50),
                        ("deallocation", 3, None, 2, None),
                        ("allocation", 4, "s/b", 3, 8),
                        ("allocation", 11, "s/b", 4, 30),
                        ("deallocation", 40, None, 1, None),
                        ("deallocation", 41, None, 99, 64),
                    )
                ]
            ),
        }  # fmt: skip
        profile = peakline.Profile(FakeReader(tables))
        metadata = RunMetadata.FromString(written(profile, "run-metadata"))
        result = [
            (device.device, node.node_name, [
                (used.total_bytes, used.peak_bytes, used.live_bytes,
                 [record.alloc_bytes for record in used.allocation_records])
                for used in node.memory
            ])
            for device in metadata.step_stats.dev_stats
            for node in device.node_stats
        ]  # fmt: skip
        cpu = f"{TASK}/device:CPU:0"
        assert result == [
            (cpu, "s/a", [(150, 150, 100, [100, 50, -50, -100])]),
            (cpu, "s/b", [(30, 30, 30, [30])]),
            ("/device:GPU:0/stream:7", "kernel", []),
            (cpu, "s/b", [(8, 8, 8, [8])]),
            (cpu, "(before profile)", [(0, 0, 0, [-64])]),
        ]

    def test_one_allocator_cannot_be_chosen(self):
        with pytest.raises(UsageError, match="--allocator is not for it"):
            written_file(SESSION, "run-metadata", allocator="a")
