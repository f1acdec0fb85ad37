"""The figures of ops and kernels."""

import pytest
from tests.reference.xspace_builder import SpaceBuilder

from peakline import figures


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
