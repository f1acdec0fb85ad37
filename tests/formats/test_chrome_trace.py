"""Tables of Chrome traces: one tiny trace per question."""

import gzip
import json

import pytest
from tests.each_row import each_row
from tests.formats.chrome_traces import event, opened, rows, warned

import peakline
from peakline.errors import DamagedError, InputError
from peakline.formats.chrome_trace.reader import ChromeTraceReader
from peakline.formats.common.files import SourceFile

_US = 10**6


def test_processes_are_planes_and_threads_lines(tmp_path):
    trace = [
        {"ph": "M", "pid": 7, "tid": 0, "name": "process_name", "args": {"name": "python"}},
        {"ph": "M", "pid": 0, "tid": 0, "name": "process_name", "args": {"name": "python"}},
        {"ph": "M", "pid": 0, "tid": 0, "name": "process_labels", "args": {"labels": "GPU 0"}},
        {"ph": "M", "pid": 7, "tid": 3, "name": "thread_name", "args": {"name": "main"}},
        {"ph": "M", "pid": 7, "tid": 3, "name": "thread_name", "args": {"name": "loop "}},
        {"ph": "M", "pid": 9, "name": "process_name", "args": {"name": "Counters"}},
        {"ph": "X", "pid": 7, "tid": 3, "ts": 1, "dur": 1, "name": "a"},
        {"ph": "X", "pid": 0, "tid": "stream 7", "ts": 1, "dur": 1, "name": "k"},
        {"ph": "X", "pid": 8, "tid": 4, "ts": 1, "dur": 1, "name": "b"},
        {"ph": "i", "pid": "Spans", "tid": "Profiler", "ts": 1, "name": "c"},
        {"ph": "i", "ts": 1, "name": "nobody's"},
    ]
    with opened(tmp_path, trace) as profile:
        assert rows(profile, "planes", "plane_id", "name", "kind", "native_id") == [
            (0, "python", "host", 7),
            (1, "python (GPU 0)", "device", 0),
            (2, "Counters", "other", 9),
            (3, "process 8", "host", 8),
            (4, "Spans", "other", None),
            (5, "", "other", None),
        ]
        assert rows(profile, "lines", "line_id", "plane_id", "name", "start_ps", "native_id") == [
            (0, 0, "loop", 0, 3),
            (1, 1, "stream 7", 0, None),
            (2, 3, "thread 4", 0, 4),
            (3, 4, "Profiler", 0, None),
            (4, 5, "", 0, None),
        ]


def test_a_thread_id_is_the_same_with_and_without_quotes(tmp_path):
    trace = [
        event("X", 1, dur=1, tid="4093687616"),
        event("X", 2, dur=1, tid=4093687616),
        event("X", 3, dur=1, tid=4093687616, pid="1"),
    ]
    with opened(tmp_path, trace) as profile:
        assert rows(profile, "events", "line_id") == [(0,), (0,), (0,)]


@each_row(
    ("base", "starts"), [("0", (2, 0, 2)), ("1606910596297023", (2, 0, 2)), ("-5", (0, 2, 0))]
)
def test_times_are_exact_picoseconds_from_the_earliest_event(tmp_path, base, starts):
    text = (
        '[{"ph":"M","ts":0,"name":"process_name","pid":1,"args":{"name":"p"}},'
        '{"ph":"X","ts":BASE.000003,"dur":0.000001,"name":"a"},'
        '{"ph":"X","ts":"BASE.000001","dur":"1e3","name":"b"},'
        '{"ph":"i","ts":BASE.0000026,"name":"c"}]'
    ).replace("BASE", base)
    with opened(tmp_path, text.encode()) as profile:
        assert rows(profile, "events", "name", "start_ps", "duration_ps") == [
            ("a", starts[0], 1),
            ("b", starts[1], 1000 * _US),
            ("c", starts[2], 0),
        ]
        assert warned(profile) == {}


def test_events_that_overlap_on_one_thread_are_all_kept(tmp_path):
    trace = [event("X", 0, "a", dur=10), event("X", 5, "b", dur=10), event("X", 5, "c", dur=10)]
    with opened(tmp_path, trace) as profile:
        assert rows(profile, "events", "event_id", "name", "start_ps", "duration_ps") == [
            (0, "a", 0, 10 * _US),
            (1, "b", 5 * _US, 10 * _US),
            (2, "c", 5 * _US, 10 * _US),
        ]
        assert profile.duration_ps == 15 * _US


def test_begins_are_paired_with_ends_by_thread_time_and_name(tmp_path):
    trace = [
        event("E", 9, ""),
        event("B", 1, "a"),
        event("B", 2, "b", tid=2),
        event("B", 3, "c"),
        event("E", 4, "c"),
        event("E", 5, "b", tid=2),
    ]
    del trace[0]["name"]
    with opened(tmp_path, trace) as profile:
        assert rows(profile, "events", "event_id", "name", "start_ps", "duration_ps") == [
            (0, "a", 0, 8 * _US),
            (1, "b", 1 * _US, 3 * _US),
            (2, "c", 2 * _US, 1 * _US),
        ]
        assert warned(profile) == {}


def test_what_never_ends_lasts_until_its_line_does_and_is_counted(tmp_path):
    trace = [
        event("E", 0, "lost"),
        event("B", 1, "open"),
        event("B", 2, "closed"),
        event("X", 3, "last", dur=4),
        event("E", 4, "closed"),
        event("X", 100, "elsewhere", dur=1, tid=2),
    ]
    with opened(tmp_path, trace) as profile:
        assert rows(profile, "events", "name", "start_ps", "duration_ps") == [
            ("open", 1 * _US, 6 * _US),
            ("closed", 2 * _US, 2 * _US),
            ("last", 3 * _US, 4 * _US),
            ("elsewhere", 100 * _US, 1 * _US),
        ]
        assert warned(profile) == {"unmatched_begins": 1, "unmatched_ends": 1}


def test_asynchronous_events_are_paired_by_category_scope_and_id(tmp_path):
    trace = [
        event("b", 0, "r", cat="net", id=1),
        event("b", 1, "r", cat="net", id="2"),
        event("n", 2, "r", cat="net", id=1),
        event("b", 2, "r", cat="disk", id=1),
        event("b", 3, "r", cat="net", id=1, scope="s"),
        event("e", 4, "r", cat="net", id=2, tid=5),
        event("e", 5, "r", cat="net", id=1),
        event("e", 6, "r", cat="disk", id=1),
        event("e", 7, "r", cat="net", id=1, scope="s"),
        event("S", 8, "old", cat="net", id=1),
        event("F", 9, "old", cat="net", id=1),
    ]
    with opened(tmp_path, trace) as profile:
        assert rows(
            profile, "events", "line_id", "name", "category", "start_ps", "duration_ps"
        ) == [
            (0, "r", "net", 0, 5 * _US),
            (0, "r", "net", 1 * _US, 3 * _US),
            (0, "r", "net", 2 * _US, 0),
            (1, "r", "disk", 2 * _US, 4 * _US),
            (0, "r", "net", 3 * _US, 4 * _US),
            (0, "old", "net", 8 * _US, 1 * _US),
        ]
        assert rows(profile, "lines", "name") == [("async net",), ("async disk",)]


def test_a_local_id_belongs_to_its_process_and_a_global_one_to_all(tmp_path):
    trace = [
        event("b", 0, pid=1, id2={"local": "x"}),
        event("b", 1, pid=2, id2={"local": "x"}),
        event("e", 2, pid=1, id2={"local": "x"}),
        event("e", 4, pid=2, id2={"local": "x"}),
        event("b", 5, pid=1, id2={"global": "x"}),
        event("e", 9, pid=2, id2={"global": "x"}),
    ]
    with opened(tmp_path, trace) as profile:
        assert rows(profile, "events", "start_ps", "duration_ps") == [
            (0, 2 * _US),
            (1 * _US, 3 * _US),
            (5 * _US, 4 * _US),
        ]


def test_instants_marks_and_samples_are_events_without_a_duration(tmp_path):
    trace = [event(phase, number, phase) for number, phase in enumerate("iIRP")]
    with opened(tmp_path, trace) as profile:
        assert rows(profile, "events", "name", "start_ps", "duration_ps") == [
            ("i", 0, 0),
            ("I", 1 * _US, 0),
            ("R", 2 * _US, 0),
            ("P", 3 * _US, 0),
        ]


def test_records_without_a_table_are_counted(tmp_path):
    trace = [event("X", 0, dur=1), event("N", 1), event("O", 2), event("D", 3), event("?", 4), {}]
    with opened(tmp_path, trace) as profile:
        assert len(rows(profile, "events", "name")) == 1
        assert warned(profile) == {"skipped_records": 3, "unknown_phase": 1}
        # They are told once, however much is read.
        profile.columns("lines")
        assert warned(profile) == {"skipped_records": 3, "unknown_phase": 1}


def test_events_with_odd_times_keep_their_place(tmp_path):
    trace = [
        event("X", 5, "good", dur=1),
        {"ph": "X", "name": "none", "dur": 3},
        event("X", "soon", "text", dur=3),
        event("X", 5 + 2e14, "far", dur=3),
        event("X", 6, "endless"),
        event("X", 7, "backwards", dur=-1),
    ]
    with opened(tmp_path, trace) as profile:
        assert rows(profile, "events", "name", "start_ps", "duration_ps") == [
            ("good", 0, 1 * _US),
            ("none", None, 3 * _US),
            ("text", None, 3 * _US),
            ("far", None, 3 * _US),
            ("endless", 1 * _US, 0),
            ("backwards", 2 * _US, 0),
        ]
        assert warned(profile) == {"bad_times": 3, "bad_durations": 2}
        assert profile.duration_ps == 2 * _US


def test_arguments_are_name_and_text(tmp_path):
    trace = [
        event("X", 0, dur=1, args={"n": 1.50, "t": 'a"\u00e9\n', "u": None, "f": True}),
        event("B", 1, "b", args={"from": 1}),
        event("X", 2, dur=1, args={"list": [1, {"x": "a b"}], "o": {}}),
        event("E", 3, "b", args={"to": 2}),
        event("X", 4, dur=1, args=[1]),
    ]
    text = json.dumps(trace, indent=3).replace("1.5", "1.50")
    with opened(tmp_path, text.encode()) as profile:
        assert rows(profile, "event_stats", "event_id", "name", "value") == [
            (0, "n", "1.50"),
            (0, "t", 'a"\u00e9\n'),
            (0, "u", None),
            (0, "f", "true"),
            (1, "from", "1"),
            (1, "to", "2"),
            (2, "list", '[1,{"x":"a b"}]'),
            (2, "o", "{}"),
        ]


def test_names_are_read_with_their_escapes(tmp_path):
    text = rb'[{"ph":"X","ts":0,"dur":1,"name":"\u0061\\b\ud83d\ude00","cat":"c\/d"},'
    text += rb'{"ph":"X","ts":1,"dur":1,"name":"a\\b\ud83d\ude00"},{"ph":"X","ts":2,"dur":1}]'
    with opened(tmp_path, text) as profile:
        assert rows(profile, "events", "name", "category") == [
            ("a\\b\U0001f600", "c/d"),
            ("a\\b\U0001f600", None),
            ("", None),
        ]
        codes = profile.columns("events").names("name").codes.tolist()
        assert codes[0] == codes[1]


def test_counters_have_a_row_per_series(tmp_path):
    trace = [
        event("C", 0, "memory", args={"used": 1, "free": 2.5}),
        event("C", 1, "memory", id=3, args={"used": "7", "note": "text"}),
        event("C", 2, "big", args={"n": 2**60, "x": 1e300}),
        event("C", 3, "none"),
    ]
    with opened(tmp_path, trace) as profile:
        assert rows(profile, "counters", "plane_id", "name", "series", "time_ps", "value") == [
            (0, "memory", "used", 0, 1.0),
            (0, "memory", "free", 0, 2.5),
            (0, "memory[3]", "used", 1 * _US, 7.0),
            (0, "big", "n", 2 * _US, float(2**60)),
            (0, "big", "x", 2 * _US, 1e300),
        ]
        assert warned(profile) == {"bad_counters": 2}


def test_arrows_are_numbered_and_a_begin_after_an_end_is_a_new_one(tmp_path):
    trace = [
        event("f", 5, "go", id=8, tid=2, cat="c", bp="e"),
        event("s", 1, "go", id=8, cat="c"),
        event("s", 2, "go", id=9, cat="c"),
        event("t", 3, "go", id=9, cat="c", tid=2),
        event("s", 6, "go", id=8, cat="c"),
        event("f", 7, "go", id=8, cat="c", tid=2),
        event("s", 6, "go", id=8, cat="other"),
    ]
    with opened(tmp_path, trace) as profile:
        columns = ("flow_id", "name", "phase", "line_id", "time_ps", "binds_enclosing")
        assert rows(profile, "flows", *columns) == [
            (0, "go", "f", 0, 4 * _US, True),
            (0, "go", "s", 1, 0, False),
            (1, "go", "s", 1, 1 * _US, False),
            (1, "go", "t", 0, 2 * _US, False),
            (2, "go", "s", 1, 5 * _US, False),
            (2, "go", "f", 0, 6 * _US, False),
            (3, "go", "s", 1, 5 * _US, False),
        ]


def test_steps_of_pytorch_and_what_belongs_to_them(tmp_path):
    trace = [
        event("X", 0, "before", dur=20),
        event("X", 1, "ProfilerStep#12", cat="user_annotation", dur=9),
        event("X", 2, "op", cat="cpu_op", dur=1, tid=2),
        event("s", 2, "launch", cat="ac2g", id=4),
        event("X", 11, "ProfilerStep#13", cat="user_annotation", dur=9),
        event("X", 10, "between", dur=0),
        # Launched in the first step, run in the time of the second.
        event("X", 12, "kernel", cat="kernel", pid=0, dur=1, tid="stream 7"),
        event("f", 12, "launch", cat="ac2g", id=4, pid=0, tid="stream 7", bp="e"),
        event("X", 12, "ProfilerStep#12", cat="gpu_user_annotation", pid=0, tid=1, dur=2),
    ]
    with opened(tmp_path, trace) as profile:
        assert rows(profile, "steps", "step_id", "name", "start_ps", "end_ps") == [
            (0, "ProfilerStep#12", 1 * _US, 10 * _US),
            (1, "ProfilerStep#13", 11 * _US, 20 * _US),
        ]
        assert rows(profile, "events", "name", "step_id") == [
            ("before", None),
            ("ProfilerStep#12", 0),
            ("op", 0),
            ("ProfilerStep#13", 1),
            ("between", None),
            ("kernel", 0),
            ("ProfilerStep#12", None),
        ]


def test_steps_of_jax_have_a_number_among_their_arguments(tmp_path):
    trace = [
        event("X", 4, "train", dur=2, args={"step_num": "1"}),
        event("X", 0, "train", dur=2, args={"step_num": 0}),
        event("X", 5, "op", dur=1),
    ]
    with opened(tmp_path, trace) as profile:
        assert rows(profile, "steps", "step_id", "name", "start_ps") == [
            (0, "train 0", 0),
            (1, "train 1", 4 * _US),
        ]
        assert rows(profile, "events", "step_id") == [(1,), (0,), (1,)]


@each_row("text", [b"[]", b"[", b'{"traceEvents": []}', b'{"traceEvents": [{}]}'])
def test_a_trace_without_events_is_empty(tmp_path, text):
    with opened(tmp_path, text) as profile:
        for table in ("events", "lines", "steps", "flows", "counters", "event_stats", "buffers"):
            assert profile.columns(table).rows == 0
        assert profile.duration_ps == 0
        assert warned(profile) == {}


def test_objects_without_a_phase_are_no_trace(tmp_path):
    with opened(tmp_path, [{"a": 1}, {"b": 2}]) as profile, pytest.raises(InputError, match="ph"):
        profile.columns("events")


def test_a_trace_of_which_nothing_is_whole_is_refused(tmp_path):
    with (
        opened(tmp_path, b'{"traceEvents": [{"ph": "X", "name') as profile,
        pytest.raises(DamagedError, match="offset 17"),
    ):
        profile.columns("events")


@each_row("name", ["t.json", "t.json.gz"])
def test_a_trace_cut_off_is_read_up_to_the_cut(tmp_path, name):
    events = [event("X", number, f"e{number}", dur=1) for number in range(1000)]
    text = json.dumps({"traceEvents": events}).encode()[:40_000]
    path = tmp_path / name
    path.write_bytes(gzip.compress(text) if name.endswith("gz") else text)
    with peakline.open(str(path)) as profile:
        result = rows(profile, "events", "name")
        assert [(f"e{number}",) for number in range(len(result))] == result
        assert len(result) == text.count(b"}")
        [warning] = profile.warnings
        offset = text.rindex(b"{")
        assert (warning.kind, warning.count) == ("truncated", 1)
        assert f"offset {offset}" in warning.detail


def test_a_damaged_event_is_counted_and_the_others_kept(tmp_path):
    text = b'[{"ph":"X","ts":0,"dur":1,"name":"a},{"ph":"X","ts":1,"dur":1,"name":"b"},'
    text += b'{"ph":"X","ts":2,"dur":1,"name":"c"}]'
    with opened(tmp_path, text) as profile:
        assert rows(profile, "events", "name", "start_ps") == [("b", 0), ("c", 1 * _US)]
        assert warned(profile) == {"damaged": 1}


def test_objects_one_per_line_are_a_trace(tmp_path):
    text = b"\n".join(json.dumps(event("X", n, f"e{n}", dur=1)).encode() for n in range(3))
    with opened(tmp_path, text) as profile:
        assert rows(profile, "events", "name") == [("e0",), ("e1",), ("e2",)]


def test_the_file_tells_its_host_and_when_it_began(tmp_path):
    trace = {
        "baseTimeNanoseconds": 1790857026000000000,
        "host_name": "worker\u0030",
        "traceEvents": [event("X", 4338434822628.006, dur=1)],
    }
    path = tmp_path / "trace.json"
    path.write_text(json.dumps(trace), "utf-8")
    reader = ChromeTraceReader(SourceFile(str(path)))
    assert reader.host == "worker0"
    assert reader.start_ns == 1790857026000000000 + 4338434822628006
    reader.close()
