"""What is said first of a profile, against a plain look at its tables."""

import json
import statistics
from collections import defaultdict

import pytest
from tests.shared import DATA

import peakline
from peakline.findings.memory_answer import memory_of
from peakline.text import population_of, size_text, time_text
from peakline.tools.headline import WIDTH

_PROGRAMS = DATA / "programs"


@pytest.fixture(params=["", "time", "steps"], ids=["memory", "time", "steps"])
def programs(request):
    """The recorded programs of one folder that have steps."""
    return sorted((_PROGRAMS / request.param).glob("*.xplane.pb.gz"))


def headline(profile, about):
    return json.loads(profile.tool("headline", about=about).content)


def of_kind(answer, kind):
    return [one for one in answer["sentences"] if one["kind"] == kind]


def test_a_sentence_is_its_phrases(sample):
    with peakline.open(sample) as profile:
        for about in ("memory", "time", "savings"):
            for one in headline(profile, about)["sentences"]:
                assert one["text"] == "".join(phrase["text"] for phrase in one["phrases"])
                assert one["phrases"][0]["text"].strip()


def test_the_peak_is_that_of_the_memory_answer(sample):
    with peakline.open(sample) as profile:
        found = headline(profile, "memory")
        peaks = {peak.allocator: peak for peak in memory_of(profile).allocators}
        assert len(of_kind(found, "peak")) == bool(peaks)
        for one in of_kind(found, "peak"):
            links = [
                phrase["params"] for phrase in one["phrases"] if phrase.get("view") == "memory"
            ]
            for params in (link for link in links if link):
                peak = peaks[params["allocator"]]
                assert size_text(peak.peak_bytes) in one["text"]
                assert params.get("at", peak.peak_time_ps) == peak.peak_time_ps
            picture = found["picture"]
            if picture is not None:
                assert len(picture["high"]) == len(picture["low"]) == WIDTH
                assert max(picture["high"]) == peaks[picture["allocator"]].peak_bytes


def slow_steps(profile):
    """The longest window of each step by plain loops: name, length, times the median of its name,
    and whether it is one of the first two of that name.
    """
    longest = {}
    for row in profile.table("step_breakdown").to_pylist():
        if row["is_cut_off"]:
            continue
        known = longest.get(row["step_id"])
        if known is None or row["wall_ps"] > known["wall_ps"]:
            longest[row["step_id"]] = row
    steps = sorted(longest.values(), key=lambda row: row["start_ps"])
    by_name = defaultdict(list)
    for row in steps:
        by_name[population_of(row["name"] or str(row["step_id"]))].append(row)
    found = []
    for rows in by_name.values():
        if len(rows) < 5:
            continue
        median = statistics.median(row["wall_ps"] for row in rows)
        found += [
            (row["name"], row["wall_ps"], median, place < 2)
            for place, row in enumerate(rows)
            if row["wall_ps"] >= 2 * max(median, 1)
        ]
    return found


def with_steps(programs):
    """The profiles among them that have steps, open."""
    for path in programs:
        with peakline.open(path) as profile:
            if profile.table("step_breakdown").num_rows:
                yield profile


def test_the_slow_step_is_the_one_that_loses_most_time(programs):
    for profile in with_steps(programs):
        slow = slow_steps(profile)
        found = headline(profile, "time")
        for kind, is_first in (("slow_step", False), ("first_step", True)):
            chosen = [one for one in slow if one[3] == is_first]
            sentences = of_kind(found, kind)
            assert len(sentences) == bool(chosen)
            if not chosen:
                continue
            name, wall, median, _ = max(chosen, key=lambda one: one[1] - one[2])
            (one,) = sentences
            assert one["is_notable"] == (kind == "slow_step")
            assert one["phrases"][1]["params"]["name"] == name
            assert f"took {time_text(wall)}, {wall / median:.1f} times the median" in one["text"]
            if kind == "slow_step" and len(chosen) > 1:
                more = len(chosen) - 1
                assert f"; {more} more slow step{'s' if more > 1 else ''}" in one["text"]


def test_a_bar_is_the_longest_of_its_steps(programs):
    for profile in with_steps(programs):
        strip = headline(profile, "time")["picture"]
        rows = [row for row in profile.table("step_breakdown").to_pylist() if not row["is_cut_off"]]
        assert sum(strip["steps"]) == len({row["step_id"] for row in rows})
        assert max(strip["wall_ps"]) == max(row["wall_ps"] for row in rows)
        assert len(strip["wall_ps"]) <= WIDTH
        assert {len(column) for column in strip.values()} == {len(strip["name"])}
        slow = {(name, is_first) for name, _, _, is_first in slow_steps(profile)}
        for name, *marks in zip(strip["name"], strip["is_slow"], strip["is_warm_up"], strict=True):
            assert marks == [(name, False) in slow, (name, True) in slow]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("graph_def/frozen.pb", "GraphDef of 70 nodes and 1 function"),
        ("graph_def/saved_model.pb.gz", "MetaGraph of 431 nodes and 1 function"),
        ("xla_dump/module_0000.jit_flow.cpu_after_optimizations.hlo.pb", None),
        ("programs/leak_list.xplane.pb.gz", None),
    ],
)
def test_a_graph_alone_is_said_by_its_size(name, text):
    with peakline.open(DATA / name) as profile:
        found = of_kind(headline(profile, "memory"), "graph")
        assert [one["text"] for one in found] == ([] if text is None else [text])


def test_without_steps_the_op_with_most_self_time_is_said(sample):
    with peakline.open(sample) as profile:
        found = headline(profile, "time")
        rows = profile.table("op_stats").to_pylist() if "op_stats" in profile.tables else []
    if of_kind(found, "steps"):
        assert not of_kind(found, "op")
        return
    rows = [row for row in rows if row["side"] == "device"] or rows
    most = max((row["self_ps"] for row in rows), default=0)
    whole = sum(row["self_ps"] for row in rows)
    assert len(of_kind(found, "op")) == (most >= 0.005 * whole > 0)
    for one in of_kind(found, "op"):
        assert one["text"].startswith(f"{most / whole:.0%} of the self time of the ")
        op = one["phrases"][1]["params"]["op"]
        assert most in [row["self_ps"] for row in rows if row["op"] == op]


def test_nothing_stands_out_is_not_said_beside_a_saving_of_half_the_peak():
    with peakline.open(DATA / "memory_log" / "session_default_allocator.log.gz") as profile:
        (saving,) = of_kind(headline(profile, "savings"), "saving")
        document = json.loads(profile.tool("summary").content)
    assert "instead of 33.0 MiB (51% less)" in saving["text"]
    assert saving["is_notable"]  # nothing says how much memory there is
    assert document["first"] == []
    assert document["notable"] == [saving]


def test_a_failure_comes_first():
    with peakline.open(DATA / "oom_report" / "tf_bfc_oom.log.gz") as profile:
        first, peak = headline(profile, "memory")["sentences"]
    assert first["kind"] == "failure"
    assert first["text"].endswith("ran out of memory: 2.0 MiB requested by AddV2")
    assert "97% of the capacity" in peak["text"]


def test_rounding_is_said_from_a_fifth_of_the_peak_on():
    path = DATA / "programs" / "huge_temporary.xplane.pb.gz"
    with peakline.open(path) as profile:
        (one,) = of_kind(headline(profile, "memory"), "rounding")
        moment = json.loads(profile.tool("live_memory", limit="5000").content)
    known = [row for row in moment["rows"] if row["requested_bytes"] is not None]
    wasted = sum(row["bytes"] - row["requested_bytes"] for row in known)
    assert wasted >= moment["bytes_in_use"] / 5
    assert one["text"].startswith(f"rounding takes {size_text(wasted)} of the ")
