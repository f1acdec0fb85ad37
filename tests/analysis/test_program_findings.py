"""The recorded programs: each fault is found and named, and no healthy run raises a finding."""

import json
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from tests.each_row import each_row

import peakline
from peakline.findings.memory_answer import explain_memory
from peakline.tables.tables import empty_columns

TESTS = Path(__file__).resolve().parents[1]
TRUTH = json.loads((TESTS / "programs" / "truth.json").read_text())
MEMORY = sorted(name for name, truth in TRUTH.items() if "xplane" in str(truth.get("file")))
LEAKS = [name for name in MEMORY if any(f["kind"] == "leak" for f in TRUTH[name]["faults"])]
ALONE = {"huge_temporary_once": ["step 9 (train 9)"]}
KINDS = {"leak", "cache", "step_up", "sawtooth", "huge_temporary", "fragmentation"}


def normal(shape):
    return "" if shape is None else shape.replace(",", ", ")


@cache
def tables(name):
    with peakline.open(str(TESTS / "data" / "programs" / TRUTH[name]["file"])) as profile:
        return profile.columns("allocator_events"), profile.columns("steps")


def explain(name, *, start=0.0, end=1.0, marked=True):
    """The answer for a recording, or for the part of it between two shares of its time."""
    events, steps = tables(name)
    times = events.array("time_ps")
    # The last step ends after the last record.
    first, last = start * times[-1], times[-1] * end if end < 1 else np.inf
    events = events.take((times >= first) & (times <= last))
    steps = steps.take((steps.array("start_ps") >= first) & (steps.array("end_ps") <= last))
    return explain_memory(events, steps if marked else empty_columns("steps"))


def faults(name):
    return [fault for fault in TRUTH[name]["faults"] if fault["kind"] in KINDS]


@each_row("name", MEMORY)
def test_every_fault_is_found_and_named_and_nothing_else(name):
    found = [f for f in explain(name).findings if f.kind != "fragmentation_at_peak"]
    # What one step alone makes is both.
    alone = [f for f in found if f.kind == "peak_in_one_step"]
    assert [f.evidence["step"] for f in alone] == ALONE.get(name, [])
    found = [f for f in found if f not in alone]
    expected = faults(name)
    assert [finding.kind for finding in found] == [fault["kind"] for fault in expected]
    for finding, fault in zip(found, expected, strict=True):
        assert finding.evidence["op"] == fault["op"]
        assert finding.evidence["shape"] == normal(fault["shape"])
        assert finding.evidence["data_type"] == fault["data_type"]
        assert finding.table
        json.dumps(finding.as_json())


def test_only_the_fragmented_run_is_called_fragmented():
    said = {
        name
        for name in MEMORY
        if any(f.kind == "fragmentation_at_peak" for f in explain(name).findings)
    }
    assert said == {"fragmentation"}


@each_row("name", LEAKS)
def test_a_leak_has_its_exact_rate_and_first_step(name):
    (fault,) = faults(name)
    (finding,) = explain(name).findings
    evidence = finding.evidence
    assert evidence["bytes_per_step"] == fault["bytes_per_step"]
    # A tensor that is made anew is seen to grow from its second size on.
    assert evidence["since_step"] - fault["first_step"] in ({1} if fault["shape"] is None else {0})
    assert evidence["confidence"] >= 0.8
    assert evidence["steps_left"] > 1000
    number = TRUTH[name]["first_step_number"] + evidence["since_step"]
    named = f"train {number}" if TRUTH[name]["marked"] else str(number)
    assert evidence["since_step_name"] == named


@each_row("name", [name for name in LEAKS if TRUTH[name]["marked"]])
def test_a_leak_is_found_without_the_step_marks(name):
    (fault,) = faults(name)
    (finding,) = explain(name, marked=False).findings
    assert (finding.kind, finding.evidence["op"]) == ("leak", fault["op"])
    assert finding.evidence["steps_found_by"] == "period"
    assert finding.evidence["bytes_per_step"] == pytest.approx(fault["bytes_per_step"], rel=0.05)


def test_what_is_held_at_every_step_is_what_the_program_held():
    for name in ("leak_list", "leak_late", "buffer_flushed", "cache_fill"):
        growth = explain(name).details[0].growth
        (fault,) = faults(name)
        series = next(
            group.series
            for group in growth.groups
            if (group.signature.op, group.signature.shape) == (fault["op"], normal(fault["shape"]))
        )
        assert series.tolist() == TRUTH[name]["held_bytes"]


def test_the_truth_about_the_other_faults():
    (finding,) = explain("cache_fill").findings
    (fault,) = faults("cache_fill")
    assert finding.evidence["kept_bytes"] == fault["total_bytes"]
    (finding,) = explain("late_slot").findings
    (fault,) = faults("late_slot")
    assert finding.evidence["since_step"] == fault["step"]
    # The step compiles its function anew; the constants that are made again are no growth.
    assert finding.evidence["kept_bytes"] == fault["total_bytes"]
    assert [row["kept_bytes"] for row in finding.rows] == [fault["total_bytes"]]
    assert "4.0 MiB" in finding.title
    (finding,) = explain("buffer_flushed").findings
    (fault,) = faults("buffer_flushed")
    assert finding.evidence["period_steps"] == fault["period_steps"]
    assert finding.evidence["bytes_per_step"] == fault["bytes_per_step"]
    assert finding.evidence["height_bytes"] == fault["high_bytes"] - fault["low_bytes"]
    for name in ("huge_temporary", "huge_temporary_once"):
        finding = next(f for f in explain(name).findings if f.kind == "huge_temporary")
        assert finding.evidence["bytes"] >= faults(name)[0]["bytes"]
    finding = explain("fragmentation").findings[-1]
    (fault,) = faults("fragmentation")
    # The first and the last of them have a hole on one side only.
    assert fault["pins"] - 2 <= finding.evidence["pins"] <= fault["pins"]
    assert finding.evidence["largest_hole_bytes"] < finding.evidence["asked_bytes"]


@each_row("name", MEMORY)
def test_no_saving_repeats_a_finding_of_growth_and_pieces_need_a_finding(name):
    answer = explain(name)
    grown = {
        (row["op"], row["data_type"], row["shape"])
        for finding in answer.findings
        if finding.kind in {"leak", "cache", "sawtooth"}
        for row in finding.rows
    }
    pieces = any(finding.kind == "fragmentation" for finding in answer.findings)
    for saving in answer.details[0].savings:
        assert saving.kind != "fragmentation" or pieces
        for row in saving.rows:
            assert (row["op"], row["data_type"], row["shape"]) not in grown


@each_row("name", [name for name in MEMORY if not faults(name)])
def test_no_part_of_a_healthy_run_raises_a_finding(name):
    for marked in (True, False):
        for start in (0.0, 0.3):
            for end in (start + 0.2, start + 0.45, 0.9):
                answer = explain(name, start=start, end=end, marked=marked)
                assert [finding.kind for finding in answer.findings] == []


@each_row("name", LEAKS)
def test_a_leak_is_named_rightly_in_every_part_of_the_run_or_not_at_all(name):
    (fault,) = faults(name)
    for end in (0.25, 0.5, 0.75):
        for finding in explain(name, end=end).findings:
            assert finding.evidence["op"] == fault["op"]
