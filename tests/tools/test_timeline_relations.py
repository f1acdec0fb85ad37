"""The ``timeline`` tool on several events at once: areas, activities, arrows, what a link means.

Compared with loops over the rows of the table ``events``, one event at a time.
"""

import json
from collections import defaultdict
from pathlib import Path

import numpy as np
import pytest
from tests.each_row import each_row
from tests.timing.timelines import profile_of

import peakline
from peakline.errors import UsageError
from peakline.timing.event_columns import ACTIVITIES
from peakline.timing.timeline import arrows, draw_tile, timeline_of
from peakline.timing.timeline.activities import activity_of_items, sum_activities
from peakline.timing.timeline.arrows import arrows_between, arrows_of
from peakline.timing.timeline.details import facts_of
from peakline.tools.timeline import relations

DATA = Path(__file__).parent.parent / "data"
SAMPLES = (
    "programs/time/slow_step.xplane.pb.gz",
    "programs/steps/torch_train_eval.pt.trace.json.gz",
    "chrome_trace/noleak.pt.trace.json.gz",
    "run_metadata/tf1_grpc.pb.gz",
)
LINES = ([("step", 0, 100), ("op", 10, 5), ("op", 16, 2)], [("copy", 50, 25)])


def ask(profile, view, **parameters):
    """The answer of a view; the binary one has the same columns."""
    result = json.loads(profile.tool("timeline", view=view, **parameters).content)
    binary = peakline.read_timeline(
        profile.tool("timeline", format="bin", view=view, **parameters).content
    )
    assert set(binary.columns) == set(result) - {"view"}
    return result


def rows_of(profile, start, end, lines=None):
    """The events that are in the stretch, as rows of the table."""
    table = profile.sql(
        "select event_id, line_id, name, start_ps, duration_ps, parent_id, activity from events "
        "where start_ps is not null"
    ).to_pylist()
    for row in table:
        row["end_ps"] = row["start_ps"] + row["duration_ps"]
    return [
        row
        for row in table
        if row["start_ps"] < end
        and (row["end_ps"] > start or row["start_ps"] >= start)
        and (lines is None or row["line_id"] in lines)
    ]


def slow_area(rows, start, end):
    """Per name the count, time and self time within the stretch; per chain of names the time."""
    names, chains = defaultdict(lambda: [0, 0, 0]), defaultdict(lambda: [0, 0, 0])
    by_id = {row["event_id"]: row for row in rows}
    children = defaultdict(list)
    for row in rows:
        children[row["parent_id"]].append(row)
    for row in rows:
        begin, stop = max(row["start_ps"], start), min(row["end_ps"], end)
        own, reached = stop - begin, begin
        for child in sorted(children[row["event_id"]], key=lambda one: one["start_ps"]):
            low = max(child["start_ps"], reached)
            high = min(child["end_ps"], stop)
            if high > low:
                own -= high - low
                reached = high
        chain, above = [], row
        while above is not None:
            chain.append(above["name"])
            above = by_id.get(above["parent_id"])
        for place in (names[row["name"]], chains[tuple(reversed(chain))]):
            place[0] += 1
            place[1] += stop - begin
            place[2] += own
    return dict(names), dict(chains)


def areas(profile):
    start, end = timeline_of(profile).trace.span()
    third = (end - start) // 3
    return [(start, end + 1), (start + third, start + 2 * third), (start + 1, start + 2)]


@each_row("sample", SAMPLES[:3])
def test_an_area_is_what_a_loop_over_the_events_finds(sample):
    with peakline.open(DATA / sample) as profile:
        for start, end in areas(profile):
            result = ask(profile, "area", start_ps=start, end_ps=end)
            names, chains = slow_area(rows_of(profile, start, end), start, end)
            answer = zip(*(result[key] for key in ("count", "total_ps", "self_ps")), strict=True)
            assert dict(zip(result["name"], map(list, answer), strict=True)) == names
            assert result["self_ps"] == sorted(result["self_ps"], reverse=True)
            assert result["events"] == sum(own[0] for own in names.values())
            assert result["self_total_ps"] == sum(own[2] for own in names.values())
            paths = []
            for parent, name in zip(result["frame_parent"], result["frame_name"], strict=True):
                paths.append((*(paths[parent] if parent >= 0 else ()), name))
            answer = zip(
                *(result[f"frame_{key}"] for key in ("count", "total_ps", "self_ps")), strict=True
            )
            frames = dict(zip(paths, map(list, answer), strict=True))
            assert len(frames) == len(paths)
            assert frames.items() <= chains.items()
            hidden = sum(own[0] for path, own in chains.items() if path not in frames)
            assert result["frames_hidden"] == hidden


def test_an_area_of_some_lines():
    profile = profile_of(*LINES)
    result = ask(profile, "area", start_ps=12, end_ps=60, lines="0")
    assert result["name"] == ["step", "op"]
    assert result["count"] == [1, 2]
    assert result["total_ps"] == [48, 5]
    assert result["self_ps"] == [43, 5]
    assert result["longest"] == [0, 1]
    assert (result["lines"], result["events"], result["self_total_ps"]) == (1, 3, 48)
    assert result["frame_parent"] == [-1, 0]
    assert ask(profile, "area", start_ps=200, end_ps=300)["name"] == []


def test_events_that_overlap_in_part_count_each():
    result = ask(profile_of([("a", 0, 10), ("b", 5, 10)]), "area", start_ps=6, end_ps=12)
    assert dict(zip(result["name"], result["self_ps"], strict=True)) == {"a": 4, "b": 6}


@each_row("sample", SAMPLES[:3])
def test_a_merged_item_has_the_activity_that_takes_most_of_it(sample):
    with peakline.open(DATA / sample) as profile:
        timeline = timeline_of(profile)
        does = {
            row["event_id"]: ACTIVITIES.index(row["activity"])
            for row in rows_of(profile, -(10**18), 10**18)
        }
        for width in (7, 300):
            for start, end in areas(profile)[:2]:
                tile = ask(
                    profile, "tile", start_ps=start, end_ps=end, width=width, activities=True
                )
                expected = slow_activities(timeline, tile, does, start, end)
                assert tile["activity"] == expected


def slow_activities(timeline, tile, does, start, end):
    """Per item of a tile what most of its time goes to, event by event."""
    trace, nesting = timeline.trace, timeline.nesting
    events = defaultdict(list)
    for event in range(trace.size):
        begin, until = int(trace.start[event]), int(trace.end[event])
        if begin < end and (until > start or begin >= start):
            events[int(trace.lines_of(np.array([event]))[0]), int(nesting.row[event])].append(event)
    result, place = [], 0
    for track, first in enumerate(tile["track_first"][:-1]):
        own = events[tile["track_line"][track], tile["track_row"][track]]
        place = 0
        for item in range(first, tile["track_first"][track + 1]):
            some = own[place : place + tile["count"][item]]
            place += len(some)
            time = defaultdict(int)
            for event in some:
                row = int(trace.rows(np.array([event]))[0])
                time[does[row]] += int(trace.end[event] - trace.start[event])
            most = max(time.values())
            longest = does[tile["event"][item]]
            result.append(min(a for a, own in time.items() if own == most) if most else longest)
    return result


@each_row("seed", range(6))
def test_activities_of_long_runs(seed):
    rng = np.random.default_rng(seed)
    starts = np.cumsum(rng.integers(1, 4, 3000)) * 10
    timeline = timeline_of(
        profile_of([("x", int(start), int(rng.integers(0, 10))) for start in starts])
    )
    does = rng.integers(0, 5, timeline.trace.size).astype(np.uint8)
    first, last = timeline.trace.span()
    begin = int(rng.integers(first, last))
    tile = draw_tile(timeline, begin, last + 1, int(rng.integers(1, 40)))
    result = activity_of_items(sum_activities(timeline, does), tile)
    place = int(np.flatnonzero((timeline.trace.end > begin) | (timeline.trace.start >= begin))[0])
    length = timeline.trace.end - timeline.trace.start
    for item, count in enumerate(tile.count.tolist()):
        own = slice(place, place + count)
        sums = np.bincount(does[own], length[own], 5)
        expected = int(sums.argmax()) if sums.any() else int(does[tile.event[item]])
        assert result[item] == expected
        place += count


def test_what_a_link_means():
    profile = profile_of(*LINES)
    assert ask(profile, "find", search="op")["found"]["event"] == 1
    assert ask(profile, "find", search="op")["how"] == ["longest"]
    assert ask(profile, "find", search="op")["count"] == 2
    begins = ask(profile, "find", search="op", at_ps=16)
    assert (begins["found"]["event"], begins["how"]) == (2, ["begins"])
    holds = ask(profile, "find", search="op", at_ps=17)
    assert (holds["found"]["event"], holds["how"]) == (2, ["holds"])
    assert ask(profile, "find", at_ps=50)["found"]["name"] == "copy"
    assert ask(profile, "find", at_ps=0, until_ps=100)["found"]["name"] == "step"


@each_row(
    "parameters",
    [
        {"search": "op", "at_ps": 30},
        {"search": "o"},
        {"search": "opera", "at_ps": 10},
        {"search": "op", "at_ps": 10, "until_ps": 16},
        {"search": "op", "lines": "1"},
        {"at_ps": 99},
    ],
)
def test_a_link_never_means_another_event(parameters):
    result = ask(profile_of(*LINES), "find", **parameters)
    assert (result["found"], result["how"]) == (None, ["none"])


def test_a_moment_at_which_several_threads_begin_means_none_of_them():
    profile = profile_of([("a", 5, 9), ("b", 5, 3)], [("c", 5, 1), ("d", 7, 1)])
    assert ask(profile, "find", at_ps=5)["found"] is None
    assert ask(profile, "find", at_ps=5, lines="0")["found"]["name"] == "b"
    assert ask(profile, "find", at_ps=7)["found"]["name"] == "d"


def test_an_op_is_known_by_the_names_of_its_events():
    profile = profile_of([("a/MatMul:MatMul", 0, 9), ("%fusion.3 = f32[2]{0} fusion(%a)", 20, 3)])
    assert ask(profile, "find", search="a/MatMul")["found"]["start_ps"] == 0
    assert ask(profile, "find", search="fusion.3")["found"]["start_ps"] == 20
    assert ask(profile, "find", search="fusion")["found"] is None


def test_a_link_needs_something_to_go_by():
    with pytest.raises(UsageError, match="needs a name"):
        profile_of(*LINES).tool("timeline", view="find")


def test_arrows_from_a_start_to_its_done():
    started = "%copy-start.1 = (f32[4]{0}, f32[4]{0}) copy-start(f32[4]{0} %a)"
    done = "%copy-done.7 = f32[4]{0} copy-done((f32[4]{0}, f32[4]{0}) %copy-start.1)"
    profile = profile_of([(started, 0, 1), (done, 5, 2), (started, 10, 1), (done, 15, 2)])
    result = ask(profile, "arrows")
    assert result["total"] == 2
    assert result["kind"] == ["asynchronous"] * 2
    assert [one["event"] for one in result["from"]] == [0, 2]
    assert [one["event"] for one in result["to"]] == [1, 3]
    assert [one["event"] for one in ask(profile, "arrows", event=2)["to"]] == [3]
    assert ask(profile, "arrows", start_ps=0, end_ps=4)["total"] == 1
    assert ask(profile, "arrows", lines="0")["total"] == 2


def test_arrows_of_memory_are_the_lifetimes_of_buffers():
    with peakline.open(DATA / SAMPLES[0]) as profile:
        arrows = [
            (kind, one["start_ps"], other["start_ps"])
            for event in rows_of(profile, -(10**18), 10**18)
            if event["name"] == "MemoryAllocation"
            for result in [ask(profile, "arrows", event=event["event_id"])]
            for kind, one, other in zip(result["kind"], result["from"], result["to"], strict=True)
        ]
        lives = profile.sql(
            "select start_ps, end_ps from buffers where start_ps is not null and end_ps is not null"
        ).to_pylist()
    result = sorted(times for kind, *times in arrows if kind == "allocation")
    assert result == sorted([own["start_ps"], own["end_ps"]] for own in lives)


def test_messages_lead_from_the_op_whose_tensor_they_carry():
    with peakline.open(DATA / SAMPLES[3]) as profile:
        result = ask(profile, "arrows")
    pairs = {
        (one["name"], other["name"])
        for one, other in zip(result["from"], result["to"], strict=True)
    }
    assert ("w1/read", "RecvTensor") in pairs
    assert set(result["kind"]) == {"message"}
    assert result["total"] == 8


@each_row(
    ("name", "stats", "facts"),
    [
        ("x", [("tf_op", "a/b:MatMul"), ("bytes_accessed", "12")], ("a/b:MatMul", 12, None)),
        ("Memcpy", [("memcpy_details", "kind:D2H size:256 async:1")], (None, 256, None)),
        ("%d.1 = f32[2,3]{1,0} dot(%a, %b)", [], ("d.1", None, "f32[2,3]")),
        ("aten::mm", [("Input Dims", "[[2, 3], [3, 4]]")], (None, None, "[[2, 3], [3, 4]]")),
        ("x", [("Bytes", "many"), ("op", "")], (None, None, None)),
    ],
)
def test_facts_of_an_event(name, stats, facts):
    result = facts_of(name, stats)
    assert (result.op, result.bytes, result.shape) == facts


@each_row("sample", SAMPLES[:3])
def test_arrows_of_a_stretch_are_those_of_all(sample):
    with peakline.open(DATA / sample) as profile:
        trace = timeline_of(profile).trace
        start, end = trace.span()
        everything = arrows_of(profile)
        for begin, stop in ((start, end + 1), (start, start + (end - start) // 2)):
            near = arrows_between(profile, begin, stop, memory=True)
            inside = np.ones(everything.size, np.bool_)
            for event in (everything.cause, everything.target):
                inside &= (trace.start[event] >= begin) & (trace.start[event] < stop)
            wanted = set(
                zip(
                    everything.cause[inside].tolist(),
                    everything.target[inside].tolist(),
                    strict=True,
                )
            )
            assert wanted <= set(zip(near.cause.tolist(), near.target.tolist(), strict=True))


def test_a_large_profile_is_looked_at_near_the_event(monkeypatch):
    monkeypatch.setattr(relations, "_LARGE", 100)
    with peakline.open(DATA / SAMPLES[0]) as profile:
        event = ask(profile, "find", search="MemoryAllocation")["found"]["event"]
        near = ask(profile, "arrows", event=event)
        monkeypatch.setattr(relations, "_LARGE", 10**6)
        assert near == ask(profile, "arrows", event=event)
        monkeypatch.setattr(relations, "_LARGE", 100)
        monkeypatch.setattr(arrows, "MOST_EVENTS", 50)
        assert ask(profile, "arrows")["total"] == -1


def test_a_function_is_found_as_findings_call_it():
    frame = "$train.py:29 free_kilobytes"
    profile = profile_of([("step", 0, 100), (frame, 10, 5), (frame, 20, 7)])
    result = ask(profile, "find", search="free_kilobytes (train.py:29)")
    assert (result["found"]["start_ps"], result["count"]) == (20, 2)
    assert not ask(profile, "find", search="free_kilobytes (train.py:30)")["found"]
