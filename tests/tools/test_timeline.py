"""The ``timeline`` tool: its views, both formats, and the bytes as the documentation says."""

import json
import re
from pathlib import Path

import numpy as np
import pytest
from tests.each_row import each_row
from tests.memory.records import alloc, events, free
from tests.timing.gpu_jobs import Job, Work, write
from tests.timing.timelines import profile_of
from tests.web.samples import many_steps_profile

import peakline
from peakline import read_timeline
from peakline.errors import NotFoundError, UsageError
from peakline.timing.event_columns import ACTIVITIES
from peakline.tools import find_tool
from peakline.tools.timeline.views import MOST_ITEMS

LINES = ([("step", 0, 100), ("op", 10, 5), ("op", 16, 2)], [("copy", 50, 25)])


def ask(profile, view, **parameters):
    """The answer of a view, which both formats must agree on."""
    result = json.loads(profile.tool("timeline", view=view, **parameters).content)
    binary = read_timeline(profile.tool("timeline", format="bin", view=view, **parameters).content)
    assert binary.view == result.pop("view") == view
    assert {name: plain(value) for name, value in binary.columns.items()} == result
    return result


def plain(value):
    if isinstance(value, np.ndarray):
        return [None if number != number else number for number in value.tolist()]  # noqa: PLR0124
    return value


def test_a_tile():
    assert ask(profile_of(*LINES), "tile", start_ps=0, end_ps=100, width=5) == {
        "start_ps": 0, "end_ps": 100, "width": 5, "resolution_ps": 16, "events": 4,
        "track_line": [0, 0, 1],
        "track_row": [0, 1, 0],
        "track_first": [0, 1, 3, 4],
        "begin_ps": [0, 10, 16, 50],
        "duration_ps": [100, 5, 2, 25],
        "busy_ps": [100, 5, 2, 25],
        "count": [1, 1, 1, 1],
        "name": [0, 1, 1, 2],
        "event": [0, 1, 2, 3],
    }  # fmt: skip


def test_short_neighbours_are_one_item():
    result = ask(profile_of(*LINES), "tile", start_ps=-10, end_ps=118, width=4, lines="0")
    assert result["resolution_ps"] == 32
    assert result["begin_ps"] == [10, 20]
    assert result["duration_ps"] == [100, 8]
    assert result["busy_ps"] == [100, 7]
    assert result["count"] == [1, 2]
    assert result["event"] == [0, 1]


def test_lines_and_rows():
    profile = profile_of(*LINES)
    assert ask(profile, "tile", lines="1")["events"] == 1
    assert ask(profile, "tile", lines="0-1", rows=1)["track_row"] == [0, 0]
    assert ask(profile, "tile", lines="1, 0")["events"] == 4


@each_row("lines", ["2", "0-2", "1-0", "a", "", "-1", "1e3", "99999999999"])
def test_lines_that_are_not_there(lines):
    with pytest.raises(UsageError, match="timeline: "):
        profile_of(*LINES).tool("timeline", lines=lines)


def test_the_lanes_and_names():
    assert ask(profile_of(*LINES), "lanes") == {
        "start_ps": 0,
        "end_ps": 101,
        "events": 4,
        "untimed": 0,
        "plane_name": ["/host:CPU"],
        "plane_kind": ["host"],
        "line_plane": [0, 0],
        "line_name": ["line 0", "line 1"],
        "line_native_id": [None, None],
        "line_events": [3, 1],
        "line_rows": [2, 1],
        "activity_name": list(ACTIVITIES),
        "names_from": 0,
        "names_total": 3,
        "names": ["step", "op", "copy"],
    }
    assert ask(profile_of(*LINES), "lanes", names_from=2)["names"] == ["copy"]
    assert ask(profile_of(*LINES), "lanes", names_from=3)["names"] == []


def test_many_names_come_in_parts():
    profile = profile_of([(f"{k:06}" + "x" * 9994, k, 1) for k in range(1000)])
    first = ask(profile, "lanes")
    assert 0 < len(first["names"]) < first["names_total"] == 1000
    names, part = first["names"], first
    while len(names) < 1000:
        part = ask(profile, "lanes", names_from=len(names))
        names = names + part["names"]
    assert [int(name[:6]) for name in names] == list(range(1000))


def test_search():
    result = ask(profile_of(*LINES), "search", search="OP", start_ps=0, end_ps=100, width=4)
    op = {"name": "op", "line": 0, "row": 1}
    assert result["total"] == 3
    assert (result["name"], result["count"]) == ([1, 2], [2, 1])
    assert result["first"] == {"event": 1, "start_ps": 10, "duration_ps": 5} | op
    assert result["bins"] == [2, 0, 1, 0]


def test_search_from_an_event():
    profile = profile_of(*LINES)
    result = ask(profile, "search", search="^op$", pattern=True, event=1)
    assert (result["previous"], result["next"]["event"]) == (None, 2)
    result = ask(profile, "search", search="op", at_ps=11, lines="0")
    assert (result["previous"]["event"], result["next"]["event"]) == (1, 2)


def test_an_event():
    result = ask(profile_of(*LINES), "event", event=1)["details"]
    assert result["name"] == "op"
    assert (result["start_ps"], result["end_ps"], result["own_ps"]) == (10, 15, 5)
    assert [above["name"] for above in result["parents"]] == ["step"]
    assert (result["previous"], result["next"]["event"]) == (None, 2)
    assert (result["plane"], result["line_name"], result["step"]) == ("/host:CPU", "line 0", None)
    step = ask(profile_of(*LINES), "event", event=0, with_step=False)["details"]
    assert step["children"] == {
        "count": 2,
        "total_ps": 7,
        "names": [{"name": "op", "count": 2, "total_ps": 7}],
    }
    assert step["stats"] == [{"name": "k", "value": "v"}]


def test_an_event_that_is_not_there():
    with pytest.raises(NotFoundError):
        profile_of(*LINES).tool("timeline", view="event", event=4)


@each_row(
    ("parameters", "message"),
    [
        ({"view": "search"}, "needs the parameter search"),
        ({"view": "event"}, "needs the parameter event"),
        ({"start_ps": 5, "end_ps": 5}, "ends at 5 ps, not after its start 5 ps"),
        ({"width": 16385}, "width must be at most 16384"),
        ({"view": "search", "search": "(", "pattern": True}, "is no RE2 expression"),
    ],
)
def test_what_cannot_be_answered(parameters, message):
    with pytest.raises(UsageError, match=re.escape(message)):
        profile_of(*LINES).tool("timeline", **parameters)


def test_counters():
    profile = profile_of(
        [("a", 0, 8)], records=events([alloc(1, 10), alloc(2, 5), free(1), free(2)])
    )
    result = ask(profile, "counter", width=4, start_ps=-2, end_ps=6)
    assert (result["counter_group"], result["counter_name"]) == (["memory in use"], [""])
    assert result["low"] == [None, 10, 0, 0]
    assert result["high"] == [None, 15, 5, 0]
    assert result["last"] == [None, 15, 0, 0]
    assert ask(profile, "counter", width=2, lines="0")["counter"] == [0]


def test_a_profile_of_counters_alone_has_their_span():
    rows = [{"plane_id": 0, "name": "c", "series": "c", "time_ps": t, "value": t} for t in (5, 9)]
    result = ask(profile_of(counters=rows), "counter", width=1)
    assert (result["start_ps"], result["end_ps"], result["high"]) == (5, 10, [9])


def test_too_much_for_one_answer():
    profile = profile_of(
        [("a", 0, 1)],
        counters=[
            {"plane_id": 0, "name": f"c{k}", "series": "", "time_ps": 0, "value": 1}
            for k in range(MOST_ITEMS // 16384 + 1)
        ],
    )
    with pytest.raises(UsageError, match="ask for fewer"):
        profile.tool("timeline", view="counter", width=16384)


def test_a_recorded_session_adds_up(sessions):
    (path,) = (sessions / "tf2_cnn").rglob("*.xplane.pb*")
    with peakline.open(path) as profile:
        lanes = ask(profile, "lanes")
        tile = ask(profile, "tile")
        assert tile["events"] == lanes["events"] == sum(lanes["line_events"]) == 25583
        assert find_tool("timeline").supports(profile)


@each_row("cut", [0, 10, 32, 100, -1])
def test_the_reader_refuses_what_is_cut_short(cut):
    content = profile_of(*LINES).tool("timeline", format="bin").content
    with pytest.raises(ValueError, match=r"short|bytes"):
        read_timeline(content[:cut])


def test_the_reader_refuses_what_is_something_else():
    content = profile_of(*LINES).tool("timeline", format="bin").content
    with pytest.raises(ValueError, match="no timeline answer"):
        read_timeline(b"PEAKTIM0" + content[8:])


def test_columns_lie_at_multiples_of_eight():
    content = profile_of(*LINES).tool("timeline", format="bin").content
    for name, column in read_timeline(content).columns.items():
        if isinstance(column, np.ndarray):
            assert (column.__array_interface__["data"][0] - _address(content)) % 8 == 0, name


def _address(content):
    return np.frombuffer(content, np.uint8).__array_interface__["data"][0]


def test_the_documented_example_is_what_the_tool_writes(root):
    page = (root / "docs" / "timeline.md").read_text(encoding="utf-8")
    block = page.split("```hex\n")[1].split("```")[0]
    result = bytes.fromhex("".join(line[8:].partition("|")[0] for line in block.splitlines()))
    profile = profile_of([("step", 0, 100), ("op", 10, 5), ("op", 16, 2)])
    assert (
        profile.tool("timeline", format="bin", start_ps=-10, end_ps=118, width=4).content == result
    )


def test_names_behind_the_last_are_refused():
    with pytest.raises(UsageError, match="no name 99999999: there are"):
        ask(profile_of(*LINES), "lanes", names_from=99_999_999)


DATA = Path(__file__).parent.parent / "data"
SAMPLES = (
    "programs/time/slow_step.xplane.pb.gz",
    "programs/steps/tf_train_eval.xplane.pb.gz",
    "programs/steps/torch_train_eval.pt.trace.json.gz",
    "run_metadata/tf1_grpc.pb.gz",
)


def ask_of_timeline_steps(profile, **parameters):
    """The answer; the binary one has the same columns."""
    result = json.loads(profile.tool("timeline", view="steps", **parameters).content)
    binary = peakline.read_timeline(
        profile.tool("timeline", format="bin", view="steps", **parameters).content
    )
    assert set(binary.columns) == set(result) - {"view"}
    assert np.array_equal(binary["begin_ps"], result["begin_ps"])
    return result


def rows_of(profile):
    """All steps, by device and begin."""
    return profile.sql(
        "select step_id, name, device, start_ps, end_ps, wall_ps, is_cut_off from step_breakdown"
    ).to_pylist()


def items_of(result):
    """The items as objects, times from the profile's zero."""
    keys = ("device", "place", "begin_ps", "duration_ps", "longest_ps", "count", "step_id",
            "step_name", "is_cut_off")  # fmt: skip
    rows = [dict(zip(keys, row, strict=True)) for row in zip(*map(result.get, keys), strict=True)]
    return [row | {"begin_ps": row["begin_ps"] + result["start_ps"]} for row in rows]


def expected_items(rows, result):
    """The same, step by step."""
    made = []
    start, end, cell = result["start_ps"], result["end_ps"], result["resolution_ps"]
    for number, device in enumerate(result["device_name"]):
        own = sorted((row for row in rows if row["device"] == device), key=_begin)
        last = None
        for place, row in enumerate(own):
            if row["start_ps"] >= end or not (row["end_ps"] > start or row["start_ps"] >= start):
                continue
            is_short = cell > 0 and row["wall_ps"] < cell
            where = row["start_ps"] // cell if is_short else None
            if is_short and last is not None and last == where:
                item = made[-1]
                until = max(item["begin_ps"] + item["duration_ps"], row["end_ps"])
                item["duration_ps"] = until - item["begin_ps"]
                item["count"] += 1
                if row["wall_ps"] > item["longest_ps"]:
                    item |= _named(row)
            else:
                made.append(
                    {"device": number, "place": place, "begin_ps": row["start_ps"],
                     "duration_ps": row["wall_ps"], "count": 1} | _named(row)
                )  # fmt: skip
            last = where
    return made


def _begin(row):
    return row["start_ps"]


def _named(row):
    return {
        "longest_ps": row["wall_ps"],
        "step_id": row["step_id"],
        "step_name": row["name"] or "",
        "is_cut_off": int(row["is_cut_off"]),
    }


@pytest.mark.parametrize("width", [3, 50, 1000])
@pytest.mark.parametrize("name", [*SAMPLES, "many steps", "devices"])
def test_the_items_are_the_steps(name, width, tmp_path):
    profile = _open(name, tmp_path)
    rows = rows_of(profile)
    assert rows
    result = ask_of_timeline_steps(profile, width=width)
    assert result["total"] == len(rows) == sum(result["device_steps"])
    assert items_of(result) == expected_items(rows, result)
    assert sum(result["count"]) == len(rows)
    whole = result["end_ps"] - result["start_ps"]
    part = {"start_ps": result["start_ps"] + whole // 3, "end_ps": result["end_ps"] - whole // 3}
    zoomed = ask_of_timeline_steps(profile, width=width, **part)
    assert items_of(zoomed) == expected_items(rows, zoomed)


def test_an_answer_is_bounded_by_pixels(tmp_path):
    result = ask_of_timeline_steps(_open("many steps", tmp_path), width=100)
    assert result["total"] == 6400
    assert len(result["step_id"]) <= 400
    assert len(json.dumps(result)) < 60_000


@pytest.mark.parametrize("name", [*SAMPLES, "devices"])
def test_a_step_is_found_with_its_neighbours(name, tmp_path):
    profile = _open(name, tmp_path)
    rows = rows_of(profile)
    devices = ask_of_timeline_steps(profile, width=1)["device_name"]
    for device in devices:
        own = sorted((row for row in rows if row["device"] == device), key=_begin)
        for place, row in list(enumerate(own))[:: max(1, len(own) // 7)]:
            query = {} if device is None else {"device": device}
            result = ask_of_timeline_steps(profile, width=1, step=str(row["step_id"]), **query)[
                "found"
            ]
            before = own[place - 1]["step_id"] if place else None
            after = own[place + 1]["step_id"] if place + 1 < len(own) else None
            assert {key: result[key] for key in row} == row
            assert (result["previous"] or {}).get("step_id") == before
            assert (result["next"] or {}).get("step_id") == after
            at = ask_of_timeline_steps(profile, width=1, at_ps=row["end_ps"] - 1, **query)["found"]
            assert at["step_id"] == row["step_id"]
    by_name = ask_of_timeline_steps(profile, width=1, step=rows[-1]["name"])["found"]
    same = [row for row in rows if row["name"] == rows[-1]["name"]]
    assert by_name["start_ps"] == min(map(_begin, same))
    assert ask_of_timeline_steps(profile, width=1, step="no such step")["found"] is None


def test_a_profile_without_steps_has_none():
    result = ask_of_timeline_steps(profile_of([("work", 0, 100)]), width=10)
    assert (result["total"], result["device_name"], result["found"]) == (0, [], None)


def _open(name, tmp_path):
    if name == "many steps":
        content = many_steps_profile()
    elif name == "devices":
        content = write(
            Job(lambda _step, _device: [Work("gemm", 100, 5000, launched=50)], devices=3)
        )
    else:
        return peakline.open(DATA / name)
    place = tmp_path / "host.xplane.pb"
    place.write_bytes(content)
    return peakline.open(place)
