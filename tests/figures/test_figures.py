"""Every figure of every sample profile: what it says is in the profile, and it stays small."""

import json
import subprocess
import sys
from functools import cache
from inspect import signature

import numpy as np
import plotly.graph_objects  # noqa: F401 (its import is slow, and no part of a test's time)
import pytest
from tests.each_row import each_row
from tests.figures.profiles import profile_of, texts
from tests.memory.records import alloc, free
from tests.shared import DATA, shared
from tests.sweeps import each_sample

import peakline
from peakline import figures
from peakline.errors import NotFoundError, StrictError

PROGRAMS = (
    "buffer_flushed", "cache_fill", "fragmentation", "jax_list_20", "late_slot", "leak_list",
    "leak_list_healthy", "leak_slow",
)  # fmt: skip
SAMPLES = [path for name in PROGRAMS for path in (DATA / "programs").glob(f"{name}.*")]
SAMPLES += sorted(
    path
    for folder in ("memory_log", "oom_report", "pprof", "run_metadata", "chrome_trace")
    for path in (DATA / folder).iterdir()
    if path.name.endswith((".log.gz", ".pb.gz", "trace.json.gz"))
)
SAMPLES += sorted((DATA / "sessions").glob("*/plugins/profile/*/*.xplane.pb*"))
MEMORY = [
    name for name in figures.__all__ if "allocator" in signature(getattr(figures, name)).parameters
]
MOST = 150_000
UNITS = {"bytes": 1, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30}


@cache
def told(path):
    profile = shared(path)
    answer = profile.memory()
    return answer, {name: getattr(figures, name)(profile, answer=answer) for name in MEMORY}


def largest(answer):
    return max(answer.allocators, key=lambda peak: peak.peak_bytes)


@each_sample("path", SAMPLES)
def test_figures_are_small_and_speak(path):
    _, drawn = told(path)
    for name, figure in drawn.items():
        if figure is None:
            continue
        document = figure.to_json()
        assert len(document) < MOST, name
        assert figure.layout.title.text
        assert len(figure.layout.meta["description"]) > 40
        if name != "peak_icicle":
            assert figure.layout.xaxis.title.text
            assert figure.layout.yaxis.title.text
        assert "http" not in document


@each_sample("path", SAMPLES)
def test_the_same_profile_gives_the_same_figures(path):
    _, drawn = told(path)
    with peakline.open(path) as again:
        for name, figure in drawn.items():
            other = getattr(figures, name)(again)
            assert (figure is None) == (other is None)
            assert figure is None or figure.to_json() == other.to_json()


@each_sample("path", SAMPLES)
def test_the_peak_is_drawn_to_the_byte(path):
    answer, drawn = told(path)
    figure = drawn["memory_over_time"]
    if figure is None:
        return
    unit = UNITS[figure.layout.yaxis.title.text.rpartition("(")[2].rstrip(")")]
    lines = [trace for trace in figure.data if trace.mode == "lines"]
    tops = sorted(float(np.max(line.y)) * unit for line in lines)
    peaks = sorted(peak.peak_bytes for peak in answer.allocators)
    assert tops == peaks[len(peaks) - len(tops) :]
    for line in lines:
        assert (np.diff(line.x) >= 0).all()
        assert line.line.shape == "hv"


@each_sample("path", SAMPLES)
def test_the_parts_at_the_peak_add_up(path):
    answer, drawn = told(path)
    figure = drawn["peak_icicle"]
    if figure is None:
        assert not answer.allocators or not largest(answer).peak_bytes
        return
    trace = figure.data[0]
    peak = largest(answer)
    assert trace.values[0] == sum(b.bytes for b in peak.peak_buffers if b.bytes > 0)
    if not any(buffer.bytes < 0 for buffer in peak.peak_buffers):
        assert trace.values[0] == peak.peak_bytes
    inner = set(trace.parents) - {""}
    sums = dict.fromkeys(inner, 0)
    for parent, value in zip(trace.parents[1:], trace.values[1:], strict=True):
        sums[parent] += value
    sizes = dict(zip(trace.ids, trace.values, strict=True))
    assert sums == {place: sizes[place] for place in inner}
    assert len(set(trace.ids)) == len(trace.ids)


@each_sample("path", SAMPLES)
def test_bars_lie_within_the_profile(path):
    answer, drawn = told(path)
    figure = drawn["largest_buffers"]
    if figure is None:
        return
    at_peak = [trace for trace in figure.data if trace.name == "live at the peak"]
    (line,) = [s for s in figure.layout.shapes if s.line.dash == "dot"]
    low, high = figure.layout.xaxis.range
    for trace in at_peak:
        for base, width in zip(trace.base, trace.x, strict=True):
            assert low <= line.x0 <= high
            assert base <= line.x0 <= base + width + 1e-6 * high
    assert len(figure.layout.yaxis.ticktext) <= 60
    assert largest(answer).peak_bytes


@each_sample("path", SAMPLES)
def test_shares_are_shares(path):
    _, drawn = told(path)
    figure = drawn["fragmentation"]
    if figure is None:
        return
    for trace in figure.data:
        values = np.asarray(trace.y)
        assert np.isfinite(values).all()
        if trace.yaxis != "y2":
            assert values.min() >= 0
            assert values.max() <= 100
    by_name = {trace.name: np.asarray(trace.y) for trace in figure.data}
    if "known free" in by_name:
        assert (by_name["largest free piece"] <= by_name["known free"]).all()


@each_sample("path", SAMPLES)
def test_leaks_are_red_where_the_findings_say_so(path):
    answer, drawn = told(path)
    figure = drawn["growth_per_step"]
    leaks = [finding for finding in answer.findings if finding.kind == "leak"]
    red = [] if figure is None else [t for t in figure.data if "leak:" in (t.name or "")]
    assert bool(leaks) == bool(red)
    for trace in red:
        assert np.asarray(trace.y)[-1] > 0


@each_row("name", MEMORY)
def test_an_unknown_allocator_is_not_found(name):
    draw = getattr(figures, name)
    profile = profile_of([alloc(1, 5, allocator="gpu"), free(1, allocator="gpu")])
    with pytest.raises(NotFoundError, match="no allocator 'cpu'"):
        draw(profile, allocator="cpu")
    with pytest.raises(NotFoundError, match=r"no allocator 'cpu' in the answer.* there is: gpu"):
        draw(profile, allocator="cpu", answer=profile.memory())


@each_row("name", MEMORY)
@each_row("rows", [[], [alloc(None, 5)], [alloc(1, 5, time_ps=3), alloc(2, 5, time_ps=3)]])
def test_nothing_to_show(name, rows):
    assert getattr(figures, name)(profile_of(rows)) is None or name == "peak_icicle"


def test_one_allocator_is_drawn_when_it_is_named():
    rows = [alloc(1, 5, allocator="a"), alloc(2, 9, allocator="b"), free(1, allocator="a")]
    rows += [free(2, allocator="b")]
    profile = profile_of(rows)
    both = figures.memory_over_time(profile)
    assert [t.name for t in both.data if t.mode == "lines"] == ["b, peak 9 B", "a, peak 5 B"]
    one = figures.memory_over_time(profile, allocator="a")
    assert [t.name for t in one.data if t.mode == "lines"] == ["a, peak 5 B"]
    assert figures.peak_icicle(profile).data[0].values[0] == 9
    assert figures.peak_icicle(profile, allocator="a").data[0].values[0] == 5


def test_many_allocators_and_many_records_stay_small():
    rng = np.random.default_rng(3)
    rows = [
        {
            "activity": "allocation",
            "address": k,
            "allocated_bytes": int(rng.integers(1, 10**9)),
            "allocator": f"device {rng.integers(20)}",
            "op": f"scope{rng.integers(40)}/op{rng.integers(300)}",
            "shape": f"[{rng.integers(500)}]",
            "time_ps": k * 10**7 + int(rng.integers(10**6)),
        }
        for k in range(6000)
    ]
    for row in rows[:]:
        if row["address"] % 3 == 0:
            gone = {"activity": "deallocation", "time_ps": row["time_ps"] + 10**8}
            rows.append({"address": row["address"], "allocator": row["allocator"]} | gone)
    rows.sort(key=lambda row: row["time_ps"])
    steps = [
        {"step_id": n, "name": f"train {n}", "start_ps": n * 10**8, "end_ps": (n + 1) * 10**8}
        for n in range(600)
    ]
    profile = profile_of(rows, steps)
    answer = profile.memory()
    for name in MEMORY:
        figure = getattr(figures, name)(profile, answer=answer)
        assert len(figure.to_json()) < MOST, name
        assert len(figure.layout.shapes) <= 70
        assert len(figure.layout.annotations) <= 30
    over_time = figures.memory_over_time(profile, answer=answer)
    assert sum(trace.mode == "lines" for trace in over_time.data) == 8
    assert over_time.layout.title.subtitle.text.endswith("; 12 more allocators")


def test_every_step_near_the_peak_is_marked_once():
    rows = []
    for n in range(40):
        rows += [alloc(1, 1000 - (n != 5), op="a", shape="[1]"), free(1)]
    rows += [alloc(2, 990, op="b"), free(2), alloc(3, 980, op="b"), free(3)]
    figure = figures.memory_over_time(profile_of(rows))
    (marks,) = [trace for trace in figure.data if trace.name == "near the peak"]
    assert list(marks.x) == [80, 82]
    assert list(marks.y) == [990, 980]
    assert all("most of it: b" in text for text in marks.text)


HOSTILE = '<a href="https://evil.example">$\\x$</a>\x1b[31m\n\u202e%{x}' + "y" * 5000


def test_names_from_a_file_are_shown_and_not_obeyed():
    rows, steps = [], []
    for n in range(8):
        names = {"op": f"{HOSTILE}/b", "allocator": HOSTILE, "shape": HOSTILE}
        rows += [alloc(n, 4096, data_type=HOSTILE, region_type=HOSTILE, step_id=n, **names)]
        rows += [alloc(100, 8192, **names), free(100, allocator=HOSTILE)]
        steps += [{"step_id": n, "name": f"{HOSTILE} {n}", "start_ps": 3 * n, "end_ps": 3 * n + 3}]
    profile = profile_of(rows, steps)
    answer = profile.memory()
    for name in MEMORY:
        figure = getattr(figures, name)(profile, answer=answer)
        if name == "fragmentation" and figure is None:
            continue
        assert figure is not None, name
        document = json.loads(figure.to_json())
        document["layout"]["meta"] = None  # plain text, which nothing reads as HTML
        assert len(figure.layout.meta["description"]) < 2500
        for text in texts(document):
            assert "<a" not in text, name
            assert "$" not in text, name
            # A template takes what stands in %{...} for a variable.
            assert "%{x}" not in text, name
            assert "\x1b" not in text, name
            assert "\u202e" not in text, name
            assert len(text) < 2000, name


def test_what_was_guessed_is_counted_once():
    profile = profile_of([alloc(1, 5), alloc(1, 7), free(9), free(1)])
    figures.memory_over_time(profile)
    before = profile.warnings
    assert {warning.kind for warning in before} >= {"double_allocation"}
    for name in MEMORY:
        getattr(figures, name)(profile)
    assert profile.warnings == before


def test_a_strict_profile_is_strict_about_figures():
    profile = profile_of([alloc(1, 5), alloc(1, 7)], strict=True)
    with pytest.raises(StrictError, match="double_allocation"):
        figures.memory_over_time(profile)


def test_importing_the_figures_loads_no_plotly_and_no_analysis():
    code = (
        "import sys, peakline.figures as f; print(sorted(set(sys.modules) & "
        "{'plotly', 'numpy', 'peakline.memory'})); f.peak_icicle; "
        "print('plotly' in sys.modules)"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.split("\n")[:2] == ["[]", "False"]
    with pytest.raises(AttributeError, match="no attribute 'pie'"):
        figures.pie  # noqa: B018
