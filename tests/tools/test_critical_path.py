"""The ``critical_path`` tool: its document, and that it names events as the timeline does."""

import json
from collections import Counter
from pathlib import Path

import pytest
from tests.each_row import each_row
from tests.profile.fake import FakeReader
from tests.reference.xspace_builder import SpaceBuilder
from tests.shared import shared

import peakline
from peakline.api import Profile
from peakline.errors import NotFoundError, UsageError
from peakline.timing.critical_path.path import critical_path_of

DATA = Path(__file__).parents[1] / "data"
SAMPLES = [
    *sorted((DATA / "sessions").glob("*/plugins/profile/*/*.xplane.pb*")),
    *sorted((DATA / "programs" / "time").glob("*.xplane.pb*")),
    *sorted((DATA / "run_metadata").glob("*.pb.gz")),
]
US = 10**6


def ask(profile, **parameters):
    return json.loads(profile.tool("critical_path", **parameters).content)


def details(profile, event):
    answer = profile.tool("timeline", view="event", event=event, with_step=False)
    return json.loads(answer.content)["details"]


@pytest.fixture
def gpu(opened):
    """A step of 100 us whose only kernel is launched at 10 us and runs from 30 to 100."""
    space = SpaceBuilder()
    space.plane("/device:GPU:0").line("Stream #1(Compute)").event(
        "gemm", 30 * US, 70 * US, {"correlation_id": 1}
    )
    thread = space.host().line("python")
    thread.event("train", 0, 90 * US, {"step_num": 7, "_r": 1})
    thread.event("cudaLaunchKernel", 10 * US, 5 * US, {"correlation_id": 1})
    return opened(space)


def test_the_document_of_a_step(gpu):
    thread = {"device": "/host:CPU", "line": 1, "line_name": "python"}
    stream = {"device": "/device:GPU:0", "line": 0, "line_name": "Stream #1(Compute)"}
    assert ask(gpu) == {
        "step_id": 0,
        "step_name": "train 7",
        "device": "/device:GPU:0",
        "source": "links",
        "start_ps": 0,
        "end_ps": 100 * US,
        "explained": 1.0,
        "busy_ps": 100 * US,
        "wait_ps": 0,
        "guesses": 0,
        "is_cut": False,
        "segments": [
            {
                "op": "train", "kind": "host", "why": "start", **thread, "event": 1,
                "start_ps": 0, "end_ps": 10 * US, "own_ps": 10 * US, "wait_ps": 0,
                "slack_ps": None,
            },
            {
                "op": "cudaLaunchKernel", "kind": "launch", "why": "thread", **thread, "event": 2,
                "start_ps": 10 * US, "end_ps": 30 * US, "own_ps": 20 * US, "wait_ps": 0,
                "slack_ps": None,
            },
            {
                "op": "gemm", "kind": "op", "why": "launch", **stream, "event": 0,
                "start_ps": 30 * US, "end_ps": 100 * US, "own_ps": 70 * US, "wait_ps": 0,
                "slack_ps": 0,
            },
        ],
        "ops": [
            {"op": "gemm", "kind": "op", "own_ps": 70 * US, "count": 1},
            {"op": "cudaLaunchKernel", "kind": "launch", "own_ps": 20 * US, "count": 1},
            {"op": "train", "kind": "host", "own_ps": 10 * US, "count": 1},
        ],
        "kinds": {"host": 10 * US, "launch": 20 * US, "op": 70 * US},
        "near": [],
    }  # fmt: skip


@each_row("profiled", SAMPLES)
def test_it_is_the_path_of_the_library_with_the_events_of_the_timeline(profiled):
    profile = shared(profiled)
    found = ask(profile)
    path = critical_path_of(profile, str(found["step_id"]))
    lanes = json.loads(profile.tool("timeline", view="lanes").content)
    segments = found["segments"]
    assert [(own["op"], own["kind"], own["start_ps"], own["end_ps"]) for own in segments] == [
        (piece.name, piece.kind, piece.begin_ps, piece.end_ps) for piece in path.pieces
    ]
    free = found["start_ps"]
    for own in segments:
        assert own["start_ps"] - own["wait_ps"] == free
        assert own["wait_ps"] >= 0
        assert lanes["line_name"][own["line"]] == own["line_name"]
        assert lanes["plane_name"][lanes["line_plane"][own["line"]]] == own["device"]
        free = own["end_ps"]
    assert found["busy_ps"] + found["wait_ps"] == found["end_ps"] - found["start_ps"]
    assert sum(own["own_ps"] for own in found["ops"]) == found["busy_ps"]
    assert sum(found["kinds"].values()) == found["busy_ps"]
    assert {(own["kind"], own["op"]): own["count"] for own in found["ops"]} == Counter(
        (own["kind"], own["op"]) for own in segments
    )
    for own in segments[:40]:
        if own["event"] is None:
            assert own["op"] == "(going on)"
            continue
        event = details(profile, own["event"])
        assert (event["name"], event["line"]) == (own["op"], own["line"])
        assert event["start_ps"] <= own["start_ps"] < own["end_ps"] <= event["end_ps"]


@each_row("name", ["tf1_cnn_2", "tf1_control_flow_4", "tf1_grpc"])
def test_of_a_graph_it_is_the_path_of_the_graph_tool(name):
    with peakline.open(DATA / "run_metadata" / f"{name}.pb.gz") as profile:
        found = ask(profile)
        graph = json.loads(profile.tool("graph").content)["critical_path"]
    assert found["source"] == "graph"
    for own in ("step_id", "start_ps", "end_ps", "busy_ps", "wait_ps"):
        assert found[own] == graph[own], own
    assert [
        (own["op"], own["device"], own["start_ps"], own["own_ps"], own["why"])
        for own in found["segments"]
    ] == [
        (own["name"], own["device"], own["begin_ps"], own["busy_ps"], own["why"])
        for own in graph["pieces"]
    ]


def test_work_beside_the_path_is_told_with_its_event(gpu, opened):
    space = SpaceBuilder()
    space.space.CopyFrom(type(space.space).FromString(Path(gpu.path).read_bytes()))
    other = space.space.planes[0].lines.add(name="Stream #2(Compute)", id=9)
    copied = other.events.add()
    copied.CopyFrom(space.space.planes[0].lines[0].events[0])
    copied.offset_ps, copied.duration_ps = 30 * US, 20 * US
    profile = opened(space)
    assert ask(profile)["near"] == [
        {
            "op": "gemm", "device": "/device:GPU:0", "line": 1,
            "line_name": "Stream #2(Compute)", "event": 1,
            "start_ps": 30 * US, "end_ps": 50 * US, "slack_ps": 50 * US,
        }
    ]  # fmt: skip


def test_by_default_it_is_the_median_step():
    with peakline.open(DATA / "programs/time/slow_step.xplane.pb.gz") as profile:
        steps = json.loads(profile.tool("step_breakdown").content)["steps"]
        walls = sorted(step["wall_ps"] for step in steps)
        found = ask(profile)
        assert found["end_ps"] - found["start_ps"] == walls[(len(walls) - 1) // 2]
        assert ask(profile, step="train 3")["step_id"] == 3


def test_where_nothing_ran_there_is_no_path():
    found = ask(Profile(FakeReader({})))
    assert (found["source"], found["step_id"], found["segments"]) == (None, None, [])


def test_steps_and_devices_that_are_not_there(gpu):
    with pytest.raises(NotFoundError, match="no step 'x'"):
        ask(gpu, step="x")
    with pytest.raises(NotFoundError, match="no device 'x' with work"):
        ask(gpu, device="x")
    with pytest.raises(UsageError, match="no parameter 'steps'"):
        ask(gpu, steps="x")
