"""pprof and speedscope: the peak's bytes by scope, to the last one."""

import gzip
import json

import pytest
from tests.analysis.records import events as records
from tests.each_row import each_row
from tests.export.written import DATA, KINETO, SESSION, written, written_file
from tests.profile.fake import FakeReader
from tests.shared import shared

import peakline
from peakline.errors import NotFoundError
from peakline.schema import message

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
            found = dict.fromkeys(peaks, 0)
            for name, size in zip(
                buffers.names("allocator").to_list(),
                buffers.array("allocated_bytes").tolist(),
                strict=True,
            ):
                found[name] += size
            # What is less than nothing is in the file, but no buffer.
            negative = {
                name: sum(min(b.bytes, 0) for b in peak.peak_buffers)
                for name, peak in peaks.items()
            }
            assert found == {n: peak.peak_bytes - negative[n] for n, peak in peaks.items()}

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
        found = {(w.kind, w.count, w.detail) for w in profile.warnings}
    assert expected
    assert {warning for warning in found if warning[0] != "negative_rows"} == expected
