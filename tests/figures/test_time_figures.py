"""Figures of time, and of what steps hand out."""

from itertools import pairwise
from pathlib import Path

import numpy as np
import plotly.graph_objects  # noqa: F401 (its import is slow, and no part of a test's time)
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.each_row import each_row
from tests.figures.profiles import asked_of, texts
from tests.figures.profiles import profile_of as profile_of_of_turnover
from tests.memory.records import records
from tests.reference.xspace_builder import SpaceBuilder
from tests.shared import shared
from tests.sweeps import each_sample
from tests.timing.traces import GPU, HOST_PLANE, profile_of

import peakline
from peakline import figures
from peakline.errors import NotFoundError
from peakline.figures import churn, growth_per_step
from peakline.figures.steps_growth import handed_out
from reference.memory_history import buffers, live_bytes, size_of

SESSIONS = Path(__file__).parents[1] / "data" / "sessions"
MOST = 150_000
MS = 10**9


def stacked(figure, axis="y"):
    """What the bars of a figure come to, one upon the other."""
    return np.sum([np.asarray(getattr(trace, axis), float) for trace in figure.data], axis=0)


def job(steps, *, name="train", planes=(GPU,)):
    """A loop of 10 ms; the GPU computes for the first 4 ms of a step, and copies for 2."""
    marks = [(f"{name} {n}", 10 * MS * n, (10 * n + 8) * MS) for n in range(steps)]
    python = [(name, start, end, n) for n, (_, start, end) in enumerate(marks)]
    work = [
        event
        for n, (_, start, _) in enumerate(marks)
        for event in (
            ("k", start, start + 4 * MS, n),
            ("MemcpyD2H", start + 4 * MS, start + 6 * MS, n),
        )
    ]
    devices = {plane: {"Stream #1": work} for plane in planes}
    return profile_of({**devices, HOST_PLANE: {"python": python}}, marks)


def test_the_parts_of_a_step_are_stacked_to_its_time():
    figure = figures.step_breakdown(job(3))
    assert stacked(figure).tolist() == [8, 8, 8]
    assert {trace.name: trace.y[0] for trace in figure.data} == {
        "device compute": 4, "copies to the host": 2, "idle, cause unknown": 2,
    }  # fmt: skip
    assert figure.layout.yaxis.title.text == "Time (ms)"
    assert "median step" in figure.layout.meta["description"]


@each_row(
    "name, medians, last",
    [
        (
            "tf_train_eval.xplane.pb.gz",
            "373.023 µs in the median train, 511.699 µs in the median eval",
            "eval 8",
        ),
        (
            "torch_break.pt.trace.json.gz",
            "688.031 µs in the median step",
            "ProfilerStep#6 (cut off)",
        ),
    ],
)
def test_medians_are_of_the_whole_steps_of_each_name(name, medians, last):
    figure = figures.step_breakdown(shared(f"programs/steps/{name}"))
    assert f"the host: {medians};" in figure.layout.title.subtitle.text
    assert figure.data[0].text[-1] == last


def test_many_steps_are_means_of_several():
    figure = figures.step_breakdown(job(1000))
    assert len(figure.data[0].x) == 125
    assert stacked(figure).tolist() == [8] * 125
    assert len(figure.to_json()) < MOST


def test_a_device_by_name():
    profile = job(3, planes=(GPU, "/device:GPU:1"))
    figure = figures.step_breakdown(profile, device="/device:GPU:1")
    assert "/device:GPU:1" in figure.layout.title.subtitle.text
    with pytest.raises(NotFoundError, match="no device 'TPU' with steps"):
        figures.step_breakdown(profile, device="TPU")


def test_without_steps_or_devices_there_is_nothing_to_show():
    profile = profile_of({HOST_PLANE: {"python": [("work", 0, 10)]}})
    assert figures.step_breakdown(profile) is None
    assert figures.device_time(profile) is None


def test_a_device_is_busy_or_idle():
    figure = figures.device_time(job(3))
    assert [(trace.name, list(trace.x)) for trace in figure.data] == [
        ("compute", [12]), ("communication that computation does not hide", [0]),
        ("copies that neither hides", [6]), ("idle", [8]),
    ]  # fmt: skip


def test_of_many_devices_the_idlest_are_drawn():
    planes = {f"/device:GPU:{n}": {"s": [("k", 0, 5), ("k", 9 + n, 12 + n)]} for n in range(100)}
    figure = figures.device_time(profile_of(planes))
    assert len(figure.data[0].x) == 64
    assert figure.layout.yaxis.ticktext[0] == "/device:GPU:36"


def test_names_are_shown_as_they_are():
    figure = figures.step_breakdown(job(2, name="<b>$x$"))
    assert not [text for text in texts(figure.to_plotly_json()) if "<b>" in text or "$x$" in text]


@each_sample("path", sorted(SESSIONS.rglob("*.xplane.pb*")))
def test_real_steps(path):
    with peakline.open(path) as profile:
        figure = figures.step_breakdown(profile)
        walls = profile.columns("step_breakdown").array("wall_ps")
    unit = {"ms": MS, "µs": 10**6}[figure.layout.yaxis.title.text.rpartition("(")[2].rstrip(")")]
    assert np.allclose(stacked(figure), walls / unit, atol=1e-4)
    assert len(figure.to_json()) < MOST


def opened(tmp_path, fill):
    """A profile with one thread that ``fill`` gives events."""
    space = SpaceBuilder()
    fill(space.host().line("python"))
    path = tmp_path / "host.xplane.pb"
    path.write_bytes(space.space.SerializeToString())
    return peakline.open(path)


def test_stages_with_the_one_that_is_waited_for(tmp_path):
    def fill(line):
        line.event("Iterator::Root", 0, 100_000_000).event("Iterator::Root::<b>", 0, 75_000_000)

    with opened(tmp_path, fill) as profile:
        drawn = figures.input_pipeline(profile)
    assert [list(trace.x) for trace in drawn.data] == [[25.0, 75.0], [0.0, 0.0]]
    assert "75% of the time" in drawn.layout.title.subtitle.text
    shown = drawn.to_plotly_json()
    shown["layout"].pop("meta")  # plain text, which nothing reads as HTML
    assert "<b>" not in str(shown)


def test_no_pipeline_no_figure(tmp_path):
    with opened(tmp_path, lambda line: line.event("work", 0, 5)) as profile:
        assert figures.input_pipeline(profile) is None


@pytest.fixture
def profile(opened):
    space = SpaceBuilder()
    line = space.host().line("t")
    for number in range(30):
        line.event(f"op{number}/x:Op", number * 10_000, 1000)
    line.event("a/longest:Op", 900_000, 9000)
    stream = space.plane("/device:GPU:0", {"device_vendor": "Nvidia"}).line("Stream")
    stats = {"kernel_details": "regs:1", "tf_op": "c:C"}
    stream.event("h884", 0, 5000, stats).event("<b>add</b>", 9000, 2000, stats)
    return opened(space)


def test_ops_by_self_time(profile):
    drawn = figures.op_stats(profile)
    sides = {trace.name: list(trace.x) for trace in drawn.data}
    assert sides == {"host": [9.0, *[1.0] * 18], "device": [7.0]}
    layout = drawn.layout.to_plotly_json()
    assert list(layout["yaxis"]["ticktext"][:2]) == ["a/longest", "c"]
    assert layout["title"]["subtitle"]["text"] == "20 of 32 ops, 73.9% of the time"
    assert "the first is a/longest with 19.6%" in layout["meta"]["description"]


def test_one_side(profile):
    drawn = figures.op_stats(profile, side="device")
    assert [trace.name for trace in drawn.data] == ["device"]
    assert not drawn.layout.showlegend


def test_kernels_by_their_use_of_tensor_cores(profile):
    drawn = figures.kernels(profile)
    assert [(trace.name, list(trace.x)) for trace in drawn.data] == [
        ("tensor cores", [5.0]),
        ("no tensor cores", [2.0]),
    ]
    assert "<b>" not in str(drawn.to_plotly_json())


def test_nothing_to_show(opened):
    space = SpaceBuilder()
    space.host().line("t").event("work", 0, 5)
    profile = opened(space)
    assert figures.op_stats(profile) is None
    assert figures.kernels(profile) is None


def steps_of(bounds):
    return [
        {"step_id": n, "name": f"train {n}", "start_ps": start, "end_ps": end}
        for n, (start, end) in enumerate(pairwise(bounds))
    ]


cuts = st.lists(st.integers(0, 40), min_size=3, max_size=6, unique=True).map(sorted)


def given_back_and_kept(rows, allocator, bounds):
    """Per step, by hand: bytes of buffers that end in it, and of all others that begin in it."""
    back, chosen = [0] * (len(bounds) - 1), [0] * (len(bounds) - 1)
    followed = {one.begin: one for one in buffers(rows)}
    for number, row in enumerate(rows):
        if row["activity"] != "allocation" or (row.get("allocator") or "") != allocator:
            continue
        for step, (start, end) in enumerate(pairwise(bounds)):
            if start <= number < end:
                one = followed.get(number)
                same = one is not None and one.end is not None and one.end < end
                (back if same else chosen)[step] += size_of(row)
    return back, chosen


@given(records, cuts)
def test_what_the_steps_hand_out(rows, bounds):
    for request in asked_of(rows, steps=steps_of(bounds)):
        growth = request.details.growth
        if growth is None or growth.marks.found_by != "steps":
            continue
        marks = [growth.marks.start, *growth.marks.rows.tolist()]
        back, chosen = handed_out(request, growth)
        assert (back.tolist(), chosen.tolist()) == given_back_and_kept(
            rows, request.peak.allocator, marks
        )


@given(records, cuts)
def test_the_areas_are_what_the_steps_leave(rows, bounds):
    profile = profile_of_of_turnover(rows, steps_of(bounds))
    answer = profile.memory()
    for peak, details in zip(answer.allocators, answer.details, strict=True):
        drawn = growth_per_step(profile, allocator=peak.allocator, answer=answer)
        if drawn is None:
            assert details.growth is None or not details.growth.total.any()
            continue
        assert details.growth is not None
        marks = details.growth.marks.rows.tolist()
        unit = 1  # Sizes of these records stay below a KiB.
        areas = [t for t in drawn.data if t.stackgroup == "left"]
        total = np.sum([np.asarray(t.y) * unit for t in areas], axis=0)
        left = live_bytes(buffers(rows), peak.allocator, marks)
        expected = [sum(series[k] for series in left.values()) for k in range(len(marks))]
        assert np.broadcast_to(total, len(marks)).tolist() == expected
        (line,) = [t for t in drawn.data if t.name == "all in use at the step's end"]
        assert np.asarray(line.y).tolist() == details.growth.total.tolist()


def test_bars_of_many_steps_are_means():
    rows = []
    for _ in range(300):
        rows += [
            {"activity": "allocation", "address": 1, "allocated_bytes": 2048, "op": "x"},
            {"activity": "deallocation", "address": 1},
        ]
    drawn = churn(profile_of_of_turnover(rows, steps_of(list(range(0, 601, 2)))))
    back, chosen = drawn.data
    assert len(back.x) == 100
    assert set(np.asarray(back.y).tolist()) == {2.0}
    assert not np.asarray(chosen.y).any()
    assert "2.0 KiB in a step on average, 1.0 times the peak" in drawn.layout.title.subtitle.text
