"""Chrome trace and Perfetto: the same events, arrows and counters as the profile's tables."""

import json
from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.each_row import each_row
from tests.export.timelines import ChromeEvents, PerfettoEvents
from tests.export.written import DATA, KINETO, SESSION, written, written_file
from tests.memory.records import events as records
from tests.shared import shared
from tests.tables.fake import FakeReader

import peakline
from peakline.errors import NotFoundError

GRPC = DATA / "run_metadata" / "tf1_grpc.pb.gz"
LOG = DATA / "memory_log" / "eager_default_allocator.log.gz"
SAMPLES = [SESSION, KINETO, GRPC, DATA / "sessions" / "jax_captured",
           DATA / "programs" / "leak_list.xplane.pb.gz"]  # fmt: skip


def made(**tables):
    return peakline.Profile(FakeReader(tables))


def one_line(events, **more):
    return made(
        planes=[{"plane_id": 0, "name": "/host:CPU", "kind": "host"}],
        lines=[{"line_id": 0, "plane_id": 0, "name": "main"}],
        events=[{"event_id": n, "line_id": 0, **event} for n, event in enumerate(events)],
        **more,
    )


@cache
def as_chrome(path):
    return written(shared(path), "chrome-trace")


@cache
def chrome_events(path):
    return ChromeEvents(as_chrome(path))


@cache
def perfetto_events(path):
    return PerfettoEvents(written(shared(path), "perfetto"))


class TestChromeTrace:
    @each_row("path", SAMPLES)
    def test_it_keeps_the_rules_of_the_format(self, path):
        for row in chrome_events(path).rows:
            assert row["ph"] in "XiMstfC"
            assert isinstance(row["pid"], int)
            if row["ph"] in "Xistf":
                assert isinstance(row["tid"], int)
            assert isinstance(row["name"], str)
            assert (row["ph"] == "M") != ("ts" in row)
            if row["ph"] == "X":
                assert float(row["dur"]) > 0
            if row["ph"] in "stf":
                assert isinstance(row["id"], int)
            if row["ph"] == "i":
                assert row["s"] == "t"

    @each_row("path", SAMPLES)
    def test_read_again_it_is_the_same_timeline(self, path, tmp_path):
        profile, copy = shared(path), tmp_path / "out.json"
        copy.write_bytes(as_chrome(path))
        with peakline.open(str(copy)) as again:
            assert again.format == "chrome_trace"
            ours = again.columns("events")
            if "op_runs" in profile.tables:
                theirs = profile.columns("op_runs")
            else:
                theirs = profile.columns("events")
                theirs = theirs.take(theirs.is_valid("start_ps"))
            assert ours.rows == theirs.rows > 0
            shift = ours.array("start_ps")[0] - theirs.array("start_ps")[0]
            assert (ours.array("start_ps") - shift == theirs.array("start_ps")).all()
            assert (ours.array("duration_ps") == theirs.array("duration_ps")).all()
            assert ours.names("name").to_list() == theirs.names("name").to_list()
            if "flows" in profile.tables:
                before, after = profile.columns("flows"), again.columns("flows")
                assert before.rows == after.rows
                for name in ("name", "phase"):
                    assert after.names(name).to_list() == before.names(name).to_list()
                assert (after.array("flow_id") == before.array("flow_id")).all()
                assert (after.array("time_ps") - shift == before.array("time_ps")).all()
                assert (after.array("binds_enclosing") == before.array("binds_enclosing")).all()
            if "event_stats" in profile.tables:
                stats = again.columns("event_stats")
                pairs = zip(
                    stats.names("name").to_list(), stats.names("value").to_list(), strict=True
                )
                result = [(name, value or "") for name, value in pairs]
                before = profile.columns("event_stats")
                timed = profile.columns("events").is_valid("start_ps")
                before = before.take(timed[before.array("event_id")])
                assert result == [
                    (name, value or "")
                    for name, value in zip(
                        before.names("name").to_list(), before.names("value").to_list(), strict=True
                    )
                ]

    @each_row("path", SAMPLES)
    def test_steps_come_back_as_steps(self, path, tmp_path):
        profile, copy = shared(path), tmp_path / "out.json"
        assert profile.columns("steps").rows
        copy.write_bytes(as_chrome(path))
        with peakline.open(str(copy)) as again:
            before, after = profile.columns("steps"), again.columns("steps")
            assert after.names("name").to_list() == before.names("name").to_list()
            assert (after.array("step_id") == before.array("step_id")).all()
            length = before.array("end_ps") - before.array("start_ps")
            assert (after.array("end_ps") - after.array("start_ps") == length).all()
            theirs = profile.columns("op_runs" if "op_runs" in profile.tables else "events")
            theirs = theirs.take(theirs.is_valid("start_ps"))
            ours = again.columns("events")
            shift = ours.array("start_ps")[0] - theirs.array("start_ps")[0]
            assert (after.array("start_ps") - shift == before.array("start_ps")).all()
            known = theirs.is_valid("step_id")
            assert known.any()
            assert (ours.is_valid("step_id") == known).all()
            assert (ours.array("step_id")[known] == theirs.array("step_id")[known]).all()
            # The process that the file has for the steps is none of the profile's.
            assert again.columns("planes").names("name").to_list()[-1] != "Steps"
            assert written(again, "chrome-trace").count(b'"peakline.step') == before.rows

    def test_numbers_are_names_of_steps_too(self, tmp_path):
        steps = [
            {
                "step_id": number,
                "name": str(number),
                "start_ps": 10 * n,
                "end_ps": 10 * n + 10,
                "found_by": found_by,
                "is_cut_off": is_cut_off,
            }
            for n, (number, found_by, is_cut_off) in enumerate(
                [(7, "mark", False), (3, "function", True), (12, None, False)]
            )
        ]
        events = [
            {"name": "a", "start_ps": 1, "duration_ps": 2, "step_id": 3},
            {"name": "peakline.step", "start_ps": 4, "duration_ps": 2},
        ]
        path = tmp_path / "out.json"
        path.write_bytes(written(one_line(events, steps=steps), "chrome-trace"))
        with peakline.open(str(path)) as again:
            assert again.columns("steps").to_pylist() == steps
            result = [(e["name"], e["step_id"]) for e in again.columns("events").to_pylist()]
            assert result == [("a", 3), ("peakline.step", None)]
            assert again.columns("event_stats").rows == 0
        # Without the arguments the order is all that numbers the steps.
        path.write_bytes(written(one_line(events, steps=steps), "chrome-trace", args=False))
        with peakline.open(str(path)) as again:
            assert again.columns("steps").names("name").to_list() == ["7", "3", "12"]
            assert again.columns("steps").array("step_id").tolist() == [0, 1, 2]
            assert again.columns("events").rows == 2

    def test_events_of_the_category_are_events_where_others_wrote_them(self, tmp_path):
        path = tmp_path / "other.json"
        row = {"ph": "X", "cat": "peakline.step", "name": "n", "pid": 1, "tid": 1, "ts": 0}
        path.write_text(json.dumps({"traceEvents": [row | {"dur": 1, "args": {"group_id": 1}}]}))
        with peakline.open(str(path)) as profile:
            assert (profile.columns("events").rows, profile.columns("steps").rows) == (1, 0)
            assert profile.columns("event_stats").names("name").to_list() == ["group_id"]

    def test_memory_is_a_counter_that_reaches_the_peak(self):
        (peak,) = shared(SESSION).memory().allocators
        events = shared(SESSION).columns("allocator_events")
        ((key, values),) = chrome_events(SESSION).counters().items()
        assert key == (f"Memory {peak.allocator}", "bytes_in_use")
        assert max(value for _, value in values) == peak.peak_bytes
        assert len(values) == events.rows

    def test_a_memory_log_has_counters_and_steps_only(self):
        content = ChromeEvents(written_file(LOG, "chrome-trace"))
        with peakline.open(str(LOG)) as profile:
            names = set(profile.columns("steps").names("name").to_list())
        assert {row["name"] for row in content.of("X", "i")} == names
        assert content.of("C")

    def test_without_arguments(self):
        content = ChromeEvents(written_file(SESSION, "chrome-trace", args=False))
        assert {key for row in content.of("X", "i") for key in row["args"]} == set()

    def test_counters_of_the_profile_itself(self):
        values = [1.0, 0.1, float("nan")]
        profile = made(
            planes=[{"plane_id": 0, "name": "p", "kind": "host", "native_id": 7}],
            lines=[],
            events=[],
            counters=[
                {"plane_id": 0, "name": 'c"', "series": "s", "time_ps": n, "value": v}
                for n, v in enumerate(values)
            ],
        )
        rows = json.loads(written(profile, "chrome-trace"))["traceEvents"]
        result = [(r["name"], r["ts"], r["args"]) for r in rows if r.get("ph") == "C"]
        assert result == [
            ('c"', 0.0, {"s": 1.0}), ('c"', 1e-6, {"s": 0.1}), ('c"', 2e-6, {"s": "nan"}),
        ]  # fmt: skip
        result = PerfettoEvents(written(profile, "perfetto")).counters
        assert [value for _, value in result['c" s']][:2] == values[:2]


class TestPerfetto:
    @each_row("path", SAMPLES)
    def test_the_same_events_as_the_chrome_trace(self, path):
        assert perfetto_events(path).slices == chrome_events(path).slices()

    @each_row("path", SAMPLES)
    def test_the_same_counters(self, path):
        expected = {name: values for (name, _), values in chrome_events(path).counters().items()}
        assert perfetto_events(path).counters == expected

    def test_every_arrow_has_both_ends(self):
        flows, result = shared(KINETO).columns("flows"), perfetto_events(KINETO).flows
        assert flows.rows
        assert len(result) == np.unique(flows.array("flow_id")).size
        assert sum(map(len, result.values())) == flows.rows

    def test_processes_own_their_tracks(self):
        tracks = perfetto_events(SESSION).tracks.values()
        processes = {track.uuid: track.process.process_name for track in tracks}
        owners = {track.name: processes.get(track.parent_uuid) for track in tracks if track.name}
        assert owners["python"] == "/host:CPU"
        assert owners["Steps"] == "Steps"
        (memory,) = (track for track in tracks if track.HasField("counter"))
        assert memory.counter.unit == memory.counter.UNIT_SIZE_BYTES

    def test_what_overlaps_lies_on_another_track(self):
        profile = one_line(
            [
                {"name": "a", "start_ps": 0, "duration_ps": 10_000},
                {"name": "b", "start_ps": 5_000, "duration_ps": 10_000},
                {"name": "inside", "start_ps": 6_000, "duration_ps": 1_000},
                {"name": "next", "start_ps": 15_000, "duration_ps": 1_000},
                {"name": "no time", "duration_ps": 1_000},
            ]
        )
        result = PerfettoEvents(written(profile, "perfetto"))
        assert sorted((name, start, end) for _, name, start, end, *_ in result.slices) == [
            ("a", 0, 10), ("b", 5, 15), ("inside", 6, 7), ("next", 15, 16),
        ]  # fmt: skip
        assert [track.name for track in result.tracks.values()].count("main") == 2
        assert [(w.kind, w.count) for w in profile.warnings] == [("untimed_events", 1)]

    @settings(max_examples=60)
    @given(
        st.lists(
            st.tuples(st.integers(0, 1), st.integers(-20, 20), st.integers(-1, 12)), max_size=24
        )
    )
    def test_no_event_is_lost_however_they_overlap(self, rows):
        profile = made(
            planes=[{"plane_id": 0, "name": "p", "kind": "host"}],
            lines=[{"line_id": n, "plane_id": 0, "name": f"t{n}"} for n in range(2)],
            events=[
                {"event_id": n, "line_id": line, "name": f"e{n}", "start_ps": 1000 * start,
                 "duration_ps": 1000 * length}
                for n, (line, start, length) in enumerate(rows)
            ],
        )  # fmt: skip
        if not rows:
            with pytest.raises(NotFoundError):
                written(profile, "perfetto")
            return
        zero = min(start for _, start, _ in rows)
        expected = {
            (f"t{line}", f"e{n}", start - zero, start - zero + max(length, 0), "", ())
            for n, (line, start, length) in enumerate(rows)
        }
        result = PerfettoEvents(written(profile, "perfetto"))
        assert dict(result.slices) == dict.fromkeys(expected, 1)

    def test_ends_of_arrows_bind_as_the_format_says(self):
        def end(phase, time, *, binds):
            return {"flow_id": 0, "name": "f", "phase": phase, "line_id": 0, "time_ps": time,
                    "binds_enclosing": binds}  # fmt: skip

        events = [
            {"name": "outer", "start_ps": 0, "duration_ps": 50_000},
            {"name": "inner", "start_ps": 10_000, "duration_ps": 10_000},
            {"name": "later", "start_ps": 60_000, "duration_ps": 10_000},
        ]
        flows = [
            end("s", 15_000, binds=False),
            end("t", 30_000, binds=True),
            end("f", 31_000, binds=False),
            end("f", 90_000, binds=True),
        ]
        result = PerfettoEvents(written(one_line(events, flows=flows), "perfetto"))
        assert sorted(result.flows[1]) == [
            ("main", 0, "outer"), ("main", 10, "inner"), ("main", 60, "later"), ("main", 90, "f"),
        ]  # fmt: skip


class TestWhatThereIsNot:
    def test_one_allocator(self):
        rows = [
            {"allocator": name, "activity": "allocation", "allocation_id": 1, "allocated_bytes": 8}
            for name in ("a", "b")
        ]
        profile = peakline.Profile(FakeReader({"allocator_events": records(rows)}))
        result = ChromeEvents(written(profile, "chrome-trace", allocator="b")).counters()
        assert list(result) == [("Memory b", "bytes_in_use")]
        with pytest.raises(NotFoundError, match="no allocator 'c' in the profile; there is: a, b"):
            written(profile, "perfetto", allocator="c")

    @each_row("target", ["chrome-trace", "perfetto"])
    def test_a_moment_has_no_timeline(self, target):
        with pytest.raises(NotFoundError, match="which is made from rows of events, or"):
            written_file(DATA / "pprof" / "device_memory.pprof.pb.gz", target)

    @each_row("target", ["chrome-trace", "perfetto", "pprof", "run-metadata"])
    def test_a_graph_has_nothing(self, target):
        with pytest.raises(NotFoundError, match=f"nothing to write as {target}, which is made"):
            written_file(DATA / "graph_def" / "frozen.pb", target)
