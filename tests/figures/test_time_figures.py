"""Figures of time, ops, kernels and input pipelines: what they draw adds up, and stays small."""

from pathlib import Path

import numpy as np
import plotly.graph_objects  # noqa: F401 (its import is slow, and no part of a test's time)
import pytest
from tests.analysis.timing.traces import GPU, HOST_PLANE, profile_of
from tests.each_row import each_row
from tests.figures.profiles import texts
from tests.reference.xspace_builder import SpaceBuilder
from tests.shared import shared
from tests.sweeps import each_sample

import peakline
from peakline import figures
from peakline.errors import NotFoundError

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
