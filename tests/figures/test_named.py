"""Figures by name as strict JSON, for light and dark pages."""

import json
import re
from pathlib import Path

import numpy as np
import pytest
from tests.analysis.records import alloc, free
from tests.analysis.timing.traces import GPU
from tests.each_row import each_row
from tests.figures.profiles import profile_of
from tests.figures.test_time_figures import job
from tests.shared import shared
from tests.sweeps import each_sample

from peakline import figures
from peakline.errors import NotFoundError, UsageError
from peakline.figures import drawings
from peakline.figures.look import Drawing
from peakline.figures.named import (
    FigureQuestion,
    dark,
    figure_json,
    figure_kind,
    figure_names,
)

DATA = Path(__file__).parents[1] / "data"
SAMPLES = [
    DATA / "sessions/tf2_cnn/plugins/profile/2026_11_20_16_57_05/vm.xplane.pb.gz",
    DATA / "sessions/jax_cpu/plugins/profile/2026_11_20_17_20_28/vm.xplane.pb.gz",
    DATA / "programs/leak_list.xplane.pb.gz",
    DATA / "programs/fragmentation.xplane.pb.gz",
    DATA / "run_metadata/tf1_cnn_2.pb.gz",
]
COLOUR = re.compile(r"#[0-9A-Fa-f]{6}|white|black|rgba?\(.*\)")


def refuse(word):
    raise ValueError(f"{word} is no JSON")


def ask(profile, name, **more):
    return json.loads(figure_json(profile, FigureQuestion(name, **more)), parse_constant=refuse)


def leaves(value, keys=()):
    """Every value of a document with the keys that lead to it, places in arrays left out."""
    if isinstance(value, dict):
        for key, part in value.items():
            yield from leaves(part, (*keys, key))
    elif isinstance(value, list):
        for part in value:
            yield from leaves(part, keys)
    else:
        yield keys, value


def test_every_figure_has_a_name_a_line_and_its_parameters():
    kinds = {name: figure_kind(name) for name in figure_names()}
    assert list(kinds) == sorted(figures.__all__)
    assert {name: list(kind.parameters) for name, kind in kinds.items()} == {
        "churn": ["allocator"],
        "device_time": [],
        "fragmentation": ["allocator"],
        "growth_per_step": ["allocator"],
        "input_pipeline": [],
        "kernels": [],
        "largest_buffers": ["allocator"],
        "memory_over_time": ["allocator"],
        "op_stats": ["side"],
        "peak_icicle": ["allocator"],
        "step_breakdown": ["device"],
    }
    assert all(kind.doc.endswith(".") for kind in kinds.values())


@each_sample("path", SAMPLES)
@each_row("name", figure_names())
def test_it_is_the_figure_of_the_library(path, name):
    profile = shared(path)
    drawn = getattr(figures, name)(profile)
    found = ask(profile, name)
    if drawn is None:
        assert found is None
        return
    assert found["layout"]["title"] == drawn.to_plotly_json()["layout"]["title"]
    assert [(one["type"], len(one.get("x", ()))) for one in found["data"]] == [
        (one.type, 0 if one.type == "icicle" or one.x is None else len(one.x)) for one in drawn.data
    ]
    for one, other in zip(found["data"], drawn.data, strict=True):
        if "y" in one:
            assert one["y"] == [None if y != y else y for y in list(other.y)]  # noqa: PLR0124


def test_what_is_no_number_is_null(monkeypatch):
    y = np.array([1.5, np.nan, np.inf, -np.inf])
    drawn = Drawing(({"type": "bar", "y": y, "x0": float("nan")},), {})
    monkeypatch.setattr(drawings, "kernels", lambda _profile: drawn)
    (trace,) = ask(None, "kernels")["data"]
    assert trace == {"type": "bar", "y": [1.5, None, None, None], "x0": None}


def test_where_there_is_nothing_to_show_it_is_null():
    assert ask(profile_of([alloc(1, 5)]), "kernels") is None


def test_parameters_choose_what_is_drawn():
    profile = job(3, planes=(GPU, "/device:GPU:1"))
    subtitle = ask(profile, "step_breakdown", device="/device:GPU:1")["layout"]["title"]["subtitle"]
    assert subtitle["text"].startswith("/device:GPU:1: ")
    rows = [alloc(1, 100, allocator="a"), free(1, allocator="a"), alloc(2, 70, allocator="b")]
    drawn = ask(profile_of([*rows, free(2, allocator="b")]), "peak_icicle", allocator="b")
    assert drawn["data"][0]["values"][0] == 70


@each_row(
    ("asked", "error", "message"),
    [
        (FigureQuestion("pie"), NotFoundError, "no figure 'pie'; there is: churn, "),
        (FigureQuestion("kernels", device="x"), UsageError, "kernels takes no device"),
        (FigureQuestion("op_stats", side="left"), UsageError, "side is device or host, not 'left'"),
        (FigureQuestion("churn", theme="pink"), UsageError, "no theme 'pink'"),
        (FigureQuestion("churn", allocator="x"), NotFoundError, "no allocator 'x'"),
    ],
)
def test_what_cannot_be_drawn(asked, error, message):
    with pytest.raises(error, match=message):
        figure_json(profile_of([alloc(1, 5), free(1)]), asked)


def test_an_answer_held_for_the_next_figure_tells_its_warnings_again():
    profile = profile_of([alloc(1, 5), alloc(1, 7), free(9), free(1)])
    told = []
    for name in ("peak_icicle", "memory_over_time"):
        with profile.question() as warnings:
            ask(profile, name)
            told.append([warning.kind for warning in warnings()])
    assert told[0] == told[1] != []


@each_sample("path", SAMPLES)
def test_a_dark_page_changes_every_colour_and_nothing_else(path):
    profile = shared(path)
    for name in figure_names():
        light, night = ask(profile, name), ask(profile, name, theme="dark")
        if light is None:
            assert night is None
            continue
        for (keys, value), (others, shaded) in zip(leaves(light), leaves(night), strict=True):
            assert keys == others
            is_colour = isinstance(value, str) and COLOUR.fullmatch(value)
            kept = value in {"#FDAE6B", "#FDD0A2", "#E6550D", "#FD8D3C"}
            assert (value != shaded) == (bool(is_colour) and not kept), (name, keys, value)


def test_a_name_that_is_a_colour_stays():
    document = {"text": ["white"], "name": "#222222", "line": {"color": "white"}}
    assert dark(document) == {
        "text": ["white"], "name": "#222222", "line": {"color": "#1A2029"},
    }  # fmt: skip
