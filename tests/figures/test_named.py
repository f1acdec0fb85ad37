"""Figures by name: their look, bars, and thinning of many points."""

import json
import re
from collections import Counter, defaultdict
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.each_row import each_row
from tests.figures.profiles import asked_of, profile_of
from tests.figures.test_time_figures import job
from tests.memory.records import alloc, free, records
from tests.shared import shared
from tests.sweeps import each_sample
from tests.timing.traces import GPU

from peakline import figures
from peakline.document.wording import PAGE
from peakline.errors import NotFoundError, UsageError
from peakline.figures import drawings, lifetimes
from peakline.figures.lifetimes import largest_bars, window_of
from peakline.figures.look import ALARM, COLOURS, DARK, Drawing
from peakline.figures.named import FigureQuestion, dark, figure_json, figure_kind, figure_names
from peakline.figures.over_time import places_to_draw, read_usage
from peakline.timing.steps.facts import PARTS
from reference.memory_history import buffers, in_use

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
    result = ask(profile, name)
    if drawn is None:
        assert result is None
        return
    assert result["layout"]["title"] == drawn.to_plotly_json()["layout"]["title"]
    assert [(one["type"], len(one.get("x", ()))) for one in result["data"]] == [
        (one.type, 0 if one.type == "icicle" or one.x is None else len(one.x)) for one in drawn.data
    ]
    for one, other in zip(result["data"], drawn.data, strict=True):
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
    result = []
    for name in ("peak_icicle", "memory_over_time"):
        with profile.question() as warnings:
            ask(profile, name)
            result.append([warning.kind for warning in warnings()])
    assert result[0] == result[1] != []


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
            chosen = value in {"#FDAE6B", "#FDD0A2", "#E6550D", "#FD8D3C"}
            assert (value != shaded) == (bool(is_colour) and not chosen), (name, keys, value)


def test_a_name_that_is_a_colour_stays():
    document = {"text": ["white"], "name": "#222222", "line": {"color": "white"}}
    assert dark(document) == {
        "text": ["white"], "name": "#222222", "line": {"color": "#1A2029"},
    }  # fmt: skip


def variables(css, selector):
    block = css[css.index(selector) :].partition("}")[0]
    return {name: value.upper() for name, value in re.findall(r"--([\w-]+): (#\w+);", block)}


def test_colours_are_those_of_the_page(root):
    css = (root / "src/peakline/web/static/styles/base.css").read_text()
    light, dark = variables(css, ":root {"), variables(css, ':root[data-theme="dark"] {')
    series = [f"series-{place}" for place in range(1, len(COLOURS) + 1)]
    assert [light[name] for name in series] == list(COLOURS)
    assert [dark[name] for name in series] == [DARK[colour].upper() for colour in COLOURS]
    assert (light["bad"], dark["bad"]) == (ALARM, DARK[ALARM])


def test_parts_of_a_step_are_called_as_on_the_page(root):
    script = (root / "src/peakline/web/static/js/core/parts.js").read_text()
    result = re.findall(r'name: "(\w+)", text: WORDING.parts.(\w+)', script)
    assert {f"{name}_ps": PAGE["parts"][part] for name, part in result} == PARTS


def test_every_colour_is_its_own_on_either_page():
    assert len(set(COLOURS)) == len(COLOURS)
    assert len({DARK[colour] for colour in COLOURS}) == len(COLOURS)


points = st.lists(st.tuples(st.integers(0, 60), st.integers(-3, 9)), min_size=1, max_size=80)


def drawn(time, value, edges):
    """Per slice of time, every value that a step line takes in it."""
    slices = []
    for start, end in zip(edges, [*edges[1:], time[-1] + 1], strict=True):
        before = [v for t, v in zip(time, value, strict=True) if t < start]
        within = [v for t, v in zip(time, value, strict=True) if start <= t < end]
        taken = [*before[-1:], *within]
        slices.append((min(taken), max(taken), taken[-1]) if taken else None)
    return slices


@given(points, st.integers(1, 12))
def test_fewer_points_draw_the_same_picture(values, buckets):
    values.sort(key=lambda point: point[0])
    time, value = [t for t, _ in values], [v for _, v in values]
    chosen = places_to_draw(np.array(time), np.array(value), buckets).tolist()
    assert len(chosen) <= 4 * buckets
    assert chosen == sorted(set(chosen))
    assert (chosen[0], chosen[-1]) == (0, len(time) - 1)
    edges = [time[0] + (time[-1] - time[0]) * k // buckets for k in range(buckets)]
    # The first value of a slice that repeats the one before needs no point of its own.
    few = drawn([time[k] for k in chosen], [value[k] for k in chosen], edges)
    assert few == drawn(time, value, edges)
    # The first of the largest values is kept, where it is the largest for the first time.
    assert value.index(max(value)) in chosen


def test_times_at_the_ends_of_their_range():
    time = np.array([-(2**62), *range(50), 2**62], np.int64)
    assert places_to_draw(time, np.arange(52), 4).tolist() == [0, 1, 50, 51]
    assert places_to_draw(np.zeros(0, np.int64), np.zeros(0, np.int64), 4).tolist() == []


def test_shares_are_thinned_like_bytes():
    time = np.arange(100)
    share = np.linspace(0, 1, 100)
    chosen = places_to_draw(time, share, 5)
    assert share[chosen].max() == 1.0
    assert chosen.size <= 20


@given(records)
def test_the_course_is_the_memory_in_use(rows):
    for request in asked_of(rows):
        name = request.peak.allocator
        used = in_use(rows, name)
        reports = any(
            r.get("in_use_bytes") is not None and (r.get("allocator") or "") == name for r in rows
        )
        own = [
            k
            for k, row in enumerate(rows)
            if (row.get("allocator") or "") == name
            and (not reports or row.get("in_use_bytes") is not None)
        ]
        course = read_usage(request, 1000)
        if len(own) < 2:
            assert course is None
            continue
        result = dict(zip(course.time_ps.tolist(), course.used.tolist(), strict=True))
        assert result.items() <= {k: used[k] for k in own}.items()
        assert result[request.peak.peak_time_ps] == request.peak.peak_bytes
        # What is left out repeats what stands before it.
        last = None
        for k in own:
            assert k in result or used[k] == last
            last = used[k]


@each_row("buckets", [1, 7, 400])
def test_the_peak_is_never_lost(buckets):
    size = 10_000
    value = np.random.default_rng(7).integers(0, 10**9, size)
    value[6_543] = 10**12
    time = np.sort(np.random.default_rng(8).integers(0, 10**13, size))
    chosen = places_to_draw(time, value, buckets)
    assert 6_543 in chosen
    assert chosen.size <= 4 * buckets


def test_the_course_begins_with_all_that_is_from_before_the_profile():
    rows = [alloc(n, 1000, is_before=True, time_ps=5) for n in range(6)]
    rows += [free(0, time_ps=7), alloc(9, 300, time_ps=8)]
    course = read_usage(asked_of(rows)[0], 100)
    assert course.time_ps.tolist() == [5, 7, 8]
    assert course.used.tolist() == [6000, 5000, 5300]
    # A later one, as of a second run, hides nothing of the first.
    rows += [alloc(20, 50, is_before=True, time_ps=9), free(9, time_ps=12)]
    assert read_usage(asked_of(rows)[0], 100).used.tolist() == [6000, 5000, 5300, 5350, 5050]


def lives(rows, allocator):
    """Every life of a buffer with a size: (bytes, begin, end, row), a begin of None is older."""
    last = len(rows) - 1
    result = [
        (one.allocated, one.begin, one.end, one.begin, one.signature)
        for one in buffers(rows)
        if one.allocator == allocator and one.allocated > 0
    ]
    ends = {one.end for one in buffers(rows) if one.end is not None}
    for number, row in enumerate(rows):
        followed = row.get("allocation_id") is not None or row.get("address") is not None
        if (
            row["activity"] == "deallocation"
            and followed
            and number not in ends
            and (row.get("allocator") or "") == allocator
            and (row.get("allocated_bytes") or 0) > 0
        ):
            result.append((row["allocated_bytes"], None, number, number, None))
    return sorted(
        result,
        key=lambda one: (-one[0], -((last if one[2] is None else one[2]) - (one[1] or 0)), one[3]),
    )


def at_peak(one, row):
    _, begin, end, _, _ = one
    return (begin is None or begin <= row) and (end is None or end > row)


def by_hand(rows, allocator, row):
    result = lives(rows, allocator)
    chosen = [one for one in result if at_peak(one, row)][: lifetimes.AT_PEAK]
    by_signature = defaultdict(list)
    for one in result:
        if not at_peak(one, row):
            by_signature[one[4]].append(one)
    return chosen, [one for same in by_signature.values() for one in same[: lifetimes.EACH]]


@given(rows=records)
def test_all_bars_of_a_small_profile(rows):
    for request in asked_of(rows):
        chosen, others = by_hand(rows, request.peak.allocator, request.peak_row)
        expected = Counter((size, begin, end) for size, begin, end, _, _ in chosen + others)
        result = largest_bars(request)
        assert Counter((b.bytes, b.start_ps, b.end_ps) for b in result) == expected
        assert [b.at_peak for b in result].count(True) == len(chosen)
        order = [-1 if b.start_ps is None else b.start_ps for b in result]
        assert order == sorted(order)


@given(rows=records)
def test_the_largest_bars_are_taken(rows):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lifetimes, "AT_PEAK", 3)
        patch.setattr(lifetimes, "OTHERS", 4)
        for request in asked_of(rows):
            chosen, others = by_hand(rows, request.peak.allocator, request.peak_row)
            result = largest_bars(request)
            peak = sorted((b.bytes for b in result if b.at_peak), reverse=True)
            rest = sorted((b.bytes for b in result if not b.at_peak), reverse=True)
            assert peak == [one[0] for one in chosen]
            assert rest == sorted((one[0] for one in others), reverse=True)[:4]


def test_where_a_buffer_comes_from_and_goes():
    rows = [
        alloc(1, 4096, op="model/W", shape="[32, 32]", data_type="float", region_type="persist"),
        alloc(2, 1024, op="act", step_id=7),
        free(9, 512),
        free(2),
    ]
    (request,) = asked_of(
        rows, steps=[{"step_id": 7, "name": "train 7", "start_ps": 1, "end_ps": 3}]
    )
    older, chosen, passing = largest_bars(request)
    assert (older.signature.op, older.start_ps, older.end_ps) == ("(before profile)", None, 2)
    assert (chosen.signature.title, chosen.start_ps, chosen.end_ps) == (
        "model/W float [32, 32]",
        0,
        None,
    )
    assert (passing.step, passing.start_ps, passing.end_ps, passing.at_peak) == (7, 1, 3, True)


def test_buffers_too_small_to_matter_are_left_out():
    rows = [alloc(n, 100_000 - n, op=f"big{n}") for n in range(lifetimes.FEW)]
    rows += [alloc(100 + n, 1, op=f"small{n}") for n in range(5)]
    (request,) = asked_of([*rows, free(1)])
    assert [bar.signature.op for bar in largest_bars(request)] == [
        f"big{n}" for n in range(lifetimes.FEW)
    ]
    (request,) = asked_of([*rows[:2], *rows[-5:]])
    assert len(largest_bars(request)) == 7


def test_the_window_is_around_the_short_lives_at_the_peak():
    rows = [alloc(1, 100, op="weights", time_ps=0)]
    for n in range(50):
        at = 1000 * n + 10
        rows += [
            alloc(2, 500 + (n == 30), op="act", time_ps=at),
            free(2, time_ps=at + 40),
            alloc(3, 300, op=f"other{n}", time_ps=at + 50),
            free(3, time_ps=at + 60),
        ]
    (request,) = asked_of(rows)
    result = largest_bars(request)
    window = window_of(result, 0, 49_070)
    assert window == (30_010 - 21, 30_050 + 21)
    around = largest_bars(request, window)
    assert [bar.signature.op for bar in around] == ["weights", "act", "other30"]
    assert {bar.signature.op for bar in result} > {"other0", "other1"}
    # Where what lives long has most of the bytes, all of the time is drawn.
    rows[0] = alloc(1, 5000, op="weights", time_ps=0)
    (request,) = asked_of(rows)
    assert window_of(largest_bars(request), 0, 49_070) == (0, 49_070)
