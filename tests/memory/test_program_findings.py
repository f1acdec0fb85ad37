"""Findings in compiled programs, and in profiles with their programs."""

import json
from functools import cache
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from tests.each_row import each_row
from tests.shared import shared

import peakline
from peakline.findings.catalogue import kinds, memory_findings
from peakline.findings.context import MemoryContext
from peakline.findings.memory_answer import explain_memory
from peakline.findings.program_values import forms_of, programs_of, what_is
from peakline.memory.peak.temporaries import (
    ATTENTION,
    BROADCAST,
    ONE_HOT,
    PATCHES,
    PER_EXAMPLE,
    SPARSE,
)
from peakline.tables.tables import empty_columns
from peakline.timing.programs.answer import LiveBuffer
from reference.case import allocate
from reference.xspace_builder import SpaceBuilder

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
    result = [f for f in explain(name).findings if f.kind != "fragmentation_at_peak"]
    # What one step alone makes is both.
    alone = [f for f in result if f.kind == "peak_in_one_step"]
    assert [f.evidence["step"] for f in alone] == ALONE.get(name, [])
    result = [f for f in result if f not in alone]
    expected = faults(name)
    assert [finding.kind for finding in result] == [fault["kind"] for fault in expected]
    for finding, fault in zip(result, expected, strict=True):
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


MIB = 1 << 20
LINE = {"source_file": "/me/train.py", "source_line": 12}


def value(name, shape, mib, kind="temporary"):
    return LiveBuffer(
        instruction="fusion.1", opcode="fusion", op_name=name, bytes=int(mib * MIB),
        unpadded_bytes=None, shape=shape, kind=kind, **LINE,
    )  # fmt: skip


def program(*values, name="jit_step", number=0, need=None, run_ps=1, runs=1, advice=()):
    return SimpleNamespace(
        name=name, label=f"{name}({number})", number=number, run_ps=run_ps, run_count=runs,
        peak_bytes=sum(one.bytes for one in values) if need is None else need * MIB,
        advice=advice, largest=lambda count: values[:count], large_constants=lambda _: [],
    )  # fmt: skip


def findings_of(profile):
    return memory_findings(MemoryContext(programs=programs_of(profile)))


@pytest.fixture
def found(monkeypatch):
    """The findings of some programs, of which a device needs most for the first."""

    def find(first, *others):
        every = [first, *others]
        need = SimpleNamespace(
            device="TPU:0", program=first, bytes=first.peak_bytes, runs=first.run_count,
            is_run=bool(others),
        )  # fmt: skip
        findings, needs = "peakline.findings", [one.peak_bytes for one in every]
        monkeypatch.setattr(f"{findings}.program_values.device_needs", lambda _: (need,))
        monkeypatch.setattr(f"{findings}.lone_peaks.every_need", lambda _: (every, needs))
        constants = f"{findings}.kinds.captured_constants.programs_of"
        monkeypatch.setattr(constants, lambda _: every)
        totals = np.array([(one.run_count, one.run_ps) for one in every]).T
        monkeypatch.setattr(f"{findings}.lone_peaks.run_totals", lambda _: totals)
        listed = findings_of(SimpleNamespace(programs=lambda: every))
        for one in listed:
            said = {*one.evidence, *(name for row in one.rows for name in row)}
            assert said <= set(kinds()[one.kind].columns)
        return listed

    return find


def test_values_of_one_shape_are_together():
    live = [value("a", "f32[8]", 1), value("b", "f32[4]", 3), value("c", "f32[8]", 4)]
    live.append(value("w", "f32[8]", 9, "parameter"))
    forms = forms_of(live, "temporary")
    assert [(form.shape, form.bytes // MIB, form.sides) for form in forms] == [
        ("f32[8]", 5, (8,)), ("f32[4]", 3, (4,))
    ]  # fmt: skip
    assert forms[0].first.op_name == "a"


@each_row(
    ("name", "shape", "expected"),
    [
        ("jit(step)/jit(_one_hot)/eq", "f32[64,9]", ONE_HOT),
        ("jit(step)/conv_patches", "f32[64,9]", PATCHES),
        ("jit(step)/vmap(mul)", "f32[64,7,5]", PER_EXAMPLE),
        ("jit(step)/softmax/exp", "f32[8,64,64]", ATTENTION),
        ("jit(step)/sub", "f32[64,64,9]", BROADCAST),
        ("jit(step)/sub", "f32[8,64,64]", ATTENTION),
        ("jit(step)/scatter-add", "f32[64,64]", SPARSE),
        ("jit(step)/concatenate", "f32[8,32,32,75]", PATCHES),
        # What a model needs, or nobody says who made it.
        ("jit(step)/scatter-add", "f32[64,63,9]", BROADCAST),
        ("jit(step)/dot_general", "f32[64,64,9]", ""),
        ("", "f32[64,64,9]", ""),
        ("jit(step)/sub", "f32[7,5]", ""),
    ],
)
def test_what_a_form_is(name, shape, expected):
    live = [value(name, shape, 8), value("w", "f32[7,5]", 1, "parameter")]
    assert what_is(forms_of(live, "temporary")[0], live) == expected


def test_a_temporary_that_is_not_much_larger_than_others_is_none():
    live = [value("jit(step)/sub", "f32[64,64,9]", 8), value("w", "f32[7]", 3, "parameter")]
    assert what_is(forms_of(live, "temporary")[0], live) == ""
    # Of all pairs of a layer's outputs: a Hessian.
    live[0] = value("jit(step)/select_n", "f32[64,64]", 8)
    assert what_is(forms_of(live, "temporary")[0], live) == BROADCAST
    live[0] = value("jit(step)/dot_general", "f32[64,64]", 8)
    assert what_is(forms_of(live, "temporary")[0], live) == ""


def test_huge_temporary(found):
    big = value("jit(step)/sub", "f32[64,64,9]", 8)
    (finding,) = found(program(big, big, value("w", "f32[7]", 1, "parameter")))
    assert (finding.kind, finding.severity) == ("huge_temporary", "warning")
    assert finding.title == (
        "jit_step(0): 2 x f32[64,64,9] of jit(step)/sub (a broadcast intermediate) hold 16.0 MiB "
        "of the 17.0 MiB that the program needs, made in train.py:12"
    )
    assert finding.evidence["least_saved_bytes"] == 8 * MIB
    assert found(program(value("jit(step)/dot_general", "f32[64,9]", 8))) == []


def test_one_value_in_other_shapes_is_together(found):
    big, flat = value("jit(step)/mul", "f32[64,8,9]", 8), value("jit(step)/mul", "f32[64,72]", 8)
    (finding,) = found(program(big, flat, value("w", "f32[7]", 2, "parameter"), need=30))
    assert (
        "f32[64,8,9] of jit(step)/mul (a broadcast intermediate) and 1 of other shapes hold "
        in (finding.title)
    )
    assert finding.evidence["bytes"] == 16 * MIB


def test_gradients_of_examples_are_those_of_all_weights(found):
    weights = value("w", "f32[7,5]", 1, "parameter"), value("v", "f32[5,3]", 1, "parameter")
    made = [value("jit(step)/vmap(mul)", f"f32[64,{one}]", 8) for one in ("7,5", "5,3")]
    (finding,) = found(program(*made, *weights))
    assert finding.evidence["bytes"] == 16 * MIB
    in_pieces = [value("jit(step)/while/body/vmap(mul)", one.shape, 8) for one in made]
    assert found(program(*in_pieces, *weights)) == []


def test_float64_memory(found):
    weights = value("w", "f64[7]", 3, "parameter")
    (finding,) = found(program(weights, value("jit(step)/mul", "f32[7]", 2)))
    assert (finding.kind, finding.evidence["wide_bytes"]) == ("float64_memory", 3 * MIB)
    narrow = value("w", "f32[7]", 3, "parameter")
    assert found(program(narrow, value("jit(step)/mul", "f64[7]", 0.5))) == []


def test_what_is_not_donated_is_a_copy(found):
    def advised(size, kind="donate"):
        row = {"op_name": "params['w']", "shape": "f32[7]"}
        advice = SimpleNamespace(
            kind=kind, bytes=size * MIB, rows=[row], title="argument 0", suggestion="donate it"
        )
        return found(program(value("w", "f32[7]", 10, "parameter"), advice=[advice]))

    (finding,) = advised(4)
    assert (finding.kind, finding.evidence["op"]) == ("redundant_copy", "params['w']")
    assert finding.evidence["copy_bytes"] == 4 * MIB
    # Less than a tenth of what it needs, less than 1 MiB, other advice.
    assert advised(0.9) == advised(0.5) == advised(4, "recompute") == []


LOGITS = value("jit(f)/dot_general", "f32[9]", 30)


def test_a_program_of_evaluation_needs_most(found):
    train = program(name="jit_train", number=1, need=10, run_ps=100, runs=20)
    (finding,) = found(program(LOGITS, name="jit_evaluate", runs=10), train)
    assert finding.kind == "peak_in_evaluation"
    assert finding.title == (
        "jit_evaluate(0) needs 30.0 MiB, jit_train(1) and all others 10.0 MiB at most: f32[9] of "
        "jit(f)/dot_general, made in train.py:12"
    )
    (finding,) = found(program(LOGITS, name="jit_merge", runs=2), train)
    assert finding.kind == "peak_in_one_step"


@each_row(
    ("first", "need"),
    [
        # It runs as often, longest, or needs little more.
        ({"name": "jit_merge", "runs": 20}, 10),
        ({"name": "jit_evaluate", "run_ps": 200}, 10),
        ({"name": "jit_evaluate"}, 25),
    ],
)
def test_a_program_that_needs_most_and_is_the_step(found, first, need):
    train = program(name="jit_train", number=1, need=need, run_ps=100, runs=20)
    assert found(program(LOGITS, **first), train) == []


def test_of_a_file_of_one_program():
    # It sorts what it is given: as large as that.
    path = "hlo/module_0020.jit_lower_precision_sorted.cpu_after_optimizations.hlo.pb"
    (finding,) = findings_of(shared(path))
    assert finding.kind == "float64_memory"
    assert finding.title.endswith("are float64: f64[512,512] of given[0]")


EXECUTE = "PjRtStreamExecutorLoadedExecutable::Execute"


def opened(tmp_path, fill):
    built = SpaceBuilder()
    fill(built)
    path = tmp_path / "vm.xplane.pb"
    path.write_bytes(built.space.SerializeToString())
    return peakline.open(path)


def stacked(profile):
    answer = json.loads(profile.tool("memory_stack", group="program", width=5).content)
    layers = {(one["kind"], one["key"]): one["top_bytes"] for one in answer["layers"]}
    return layers, answer["program_events"]


def plain(profile):
    """The programs of the records in order, by looking at every pair of events."""
    events = profile.columns("events").to_pylist()
    stats = {}
    for row in profile.columns("event_stats").to_pylist():
        stats.setdefault(row["event_id"], {})[row["name"]] = row["value"]

    def inside(one, time, line):
        return (
            one["line_id"] == line
            and one["start_ps"] <= time <= one["start_ps"] + one["duration_ps"]
        )

    result = []
    for record in profile.columns("allocator_events").to_pylist():
        if record["activity"] != "allocation":
            continue
        names = set()
        for run in events:
            is_run = "Executable::Execute" in run["name"] or "::Enqueue" in run["name"]
            if not is_run or not inside(run, record["time_ps"], record["line_id"]):
                continue
            end = run["start_ps"] + run["duration_ps"]
            within = {
                stats.get(one["event_id"], {}).get("module_name")
                or stats.get(one["event_id"], {}).get("hlo_module")
                for one in events
                if one["line_id"] == run["line_id"] and run["start_ps"] <= one["start_ps"] < end
            } - {None}
            if len(within) == 1:
                names |= within
        result.append(names)
    return result


def run(line, start, name=None, *, execute=EXECUTE, key="module_name"):
    line.event(execute, start, 1000)
    line.event("PjRtStreamExecutorLoadedExecutable::EnqueueExecution", start + 10, 900)
    if name:
        line.event("GpuExecutable::ExecuteThunks", start + 500, 300, {key: name})


def test_what_lies_in_a_run_on_its_thread_is_of_its_program(tmp_path):
    def fill(space):
        line = space.host().line("a")
        run(line, 1000, "jit_one")
        run(line, 3000, "jit_two", key="hlo_module")
        allocate(line, 1100, 1, 64, in_use=64)
        allocate(line, 3100, 2, 128, in_use=224)
        allocate(line, 2500, 3, 32, in_use=96)  # between runs

    with opened(tmp_path, fill) as profile:
        layers, events = stacked(profile)
        assert layers == {("group", "jit_one"): 64, ("group", "jit_two"): 128, ("group", ""): 32}
        assert events == [EXECUTE]
        assert plain(profile) == [{"jit_one"}, set(), {"jit_two"}]


def test_another_thread_at_the_same_time_says_nothing(tmp_path):
    def fill(space):
        host = space.host()
        allocate(host.line("a"), 1100, 1, 64)
        run(host.line("b"), 1000, "jit_one")

    with opened(tmp_path, fill) as profile:
        assert plain(profile) == [set()]
        layers, events = stacked(profile)
        assert events is None
        assert ("group", "jit_one") not in layers


@pytest.mark.parametrize("name", [None, "jit_two"])
def test_a_run_that_names_none_or_several_says_nothing(tmp_path, name):
    def fill(space):
        line = space.host().line("a")
        run(line, 1000, name)
        if name:
            line.event("ThunkExecutor", 1050, 20, {"module_name": "jit_other"})
        line.event("train_loop", 0, 9000, {"module_name": "jit_far"})
        allocate(line, 1100, 1, 64)

    with opened(tmp_path, fill) as profile:
        # What names both lies in the outer runs; the inner ones name none before the record.
        layers, events = stacked(profile)
        assert (events is None) == (not any(plain(profile)))
        assert ("group", "jit_far") not in layers


def test_programs_have_their_number_where_the_profile_holds_them(sessions):
    """A recording of programs on a CPU has no records of memory: nothing is claimed."""
    with peakline.open(sessions / "jax_cpu") as profile:
        answer = json.loads(profile.tool("memory_stack", group="program").content)
        assert answer["program_events"] is None
