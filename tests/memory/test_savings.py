"""What a change would save, and how much must be saved for a job to fit."""

import random
import statistics

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.each_row import each_row
from tests.memory.kinds import growth_findings
from tests.memory.records import alloc, events, free, history, records, steps_at

from peakline.check.allowance import LEARNED, MOST_RUNS, Allowance, allowed
from peakline.check.units import BYTES, PS, SHARE
from peakline.findings.memory_answer import explain_memory
from peakline.kernels.memory_layout import ALL, ALL_BUT_ONE, FROM_BEFORE, OF_THE_STEP
from peakline.kernels.savings import peaks_without
from peakline.memory.fragmentation.holes import find_fragmentation
from peakline.memory.growth.grown import find_grown, signatures_held
from peakline.memory.growth.series import find_growth
from peakline.memory.marks import find_marks
from peakline.memory.peak.buffers import buffers_at_peak
from peakline.memory.savings.answer import find_savings
from peakline.memory.savings.op_use import OpUse
from reference.memory_history import buffers, peak_without

MIB = 1 << 20


def savings(rows, steps=None, **options):
    made = history(rows)
    return of_history(made, None if steps is None else find_marks(made, 0, steps), **options)


def of_history(made, marks, fragmentation=None, *, counted=None, growing=None, **options):
    counted = made.measured if counted is None else made.measured & counted
    result = buffers_at_peak(made, 0, marks, counted, growing)
    return find_savings(made, 0, marks, fragmentation, counted=counted, found=result, **options)


def of(result, kind):
    return [saving for saving in result if saving.kind == kind]


def step(number, body, *, length=100):
    """Records of one step in the middle of many small ones."""
    filler = [alloc(7, 1, op="tick", shape="[1]"), free(7)] * 20
    rows = [*filler, *body, *filler]
    return [row | {"time_ps": length * number + n} for n, row in enumerate(rows)]


def test_a_temporary_is_worth_what_the_next_fullest_moment_leaves():
    body = [
        alloc(1, 40, op="weights", shape="[4]"),
        alloc(2, 100, op="big", shape="[5]"),
        free(2),
        alloc(3, 20, op="other", shape="[2]"),
        free(3),
    ]
    (saving,) = of(savings(step(0, body), steps_at(0, 99)), "temporary")
    assert saving.title == "big [5]"
    assert (saving.bytes, saving.peak_after) == (80, 60)
    (row,) = saving.rows
    assert (row["op"], row["bytes"], row["count"]) == ("big", 100, 1)


def test_what_would_save_little_is_not_told():
    body = [alloc(1, 100, op="weights"), alloc(2, 4, op="small"), free(2), free(1)]
    assert not any("small" in saving.title for saving in savings(step(0, body), steps_at(0, 99)))


def test_temporaries_of_one_shape_are_worked_out_together():
    body = [
        alloc(1, 50, op="square", shape="[5]", data_type="float"),
        alloc(2, 50, op="sub", shape="[5]", data_type="float"),
        free(1),
        free(2),
    ]
    best = of(savings(step(0, body), steps_at(0, 99)), "temporary")[0]
    assert best.title == "2 ops' float [5], 2 at once"
    assert best.bytes == 99
    assert [row["op"] for row in best.rows] == ["square", "sub"]


def test_what_is_never_freed_is_no_temporary():
    body = [alloc(1, 50, op="kept", shape="[5]")]
    assert of(savings(step(0, body), steps_at(0, 99)), "temporary") == []


def held(kind_row, *, used=()):
    """A buffer made early in a step, a peak, and its end late in it."""
    filler = [alloc(7, 1, op="tick", shape="[1]"), free(7)] * 15
    rows = [
        kind_row,
        *filler,
        alloc(2, 60, op="peak", shape="[6]"),
        free(2),
        *filler,
        free(1),
        *filler,
    ]
    timed = [row | {"time_ps": n} for n, row in enumerate(rows)]
    ops = OpUse({"early": 5000}, {"early": np.array(used, np.int64)} if len(used) else {})
    return savings(timed, steps_at(0, len(timed)), ops=ops)


def test_a_buffer_held_across_the_peak_can_be_recomputed_at_a_known_cost():
    (saving,) = of(held(alloc(1, 40, op="early", shape="[4]")), "recompute")
    assert (saving.bytes, saving.cost_ps) == (40, 5000)
    assert saving.rows[0]["since_ps"] == 0


def test_what_is_read_shortly_before_or_after_the_peak_is_not_idle():
    early = alloc(1, 40, op="early", shape="[4]")
    assert of(held(early, used=[2, 60]), "recompute")
    assert of(held(early, used=[2, 30]), "recompute") == []
    assert of(held(early, used=[2, 34]), "recompute") == []


@each_row("more", [{"region_type": "persist"}, {"is_before": True}, {"op": None}])
def test_what_was_there_or_has_no_op_can_only_be_moved_away(more):
    result = held(alloc(1, 40, op="early", shape="[4]") | more)
    assert [saving.bytes for saving in of(result, "offload")] == [40]
    assert of(result, "recompute") == []


def test_what_an_earlier_step_made_can_be_moved_away():
    rows = step(0, [alloc(1, 40, op="slot", shape="[4]")])
    rows += step(1, [alloc(2, 60, op="peak", shape="[6]"), free(2)])
    (saving,) = of(savings(rows, steps_at(0, 100, 200)), "offload")
    assert saving.bytes == 40
    assert saving.title == "slot [4] (when it is used is not recorded)"


def kept_and_new():
    """A signature of which every step keeps one buffer to the end, and makes a second one."""
    filler = [alloc(7, 1, op="tick", shape="[1]"), free(7)] * 20
    rows = []
    for number in range(3):
        rows += [
            alloc(10 + number, 10, op="out", shape="[4]"),
            alloc(20, 30, op="out", shape="[4]"),
            *filler,
            alloc(2, 60, op="peak", shape="[6]"),
            free(2),
            *filler,
            free(20),
        ]
    timed = [row | {"time_ps": n} for n, row in enumerate(rows)]
    length = len(timed) // 3
    return timed, steps_at(0, length, 2 * length, 3 * length)


def test_only_what_the_step_of_the_peak_made_can_be_made_again():
    result = savings(*kept_and_new())
    (again,), (away,) = of(result, "recompute"), of(result, "offload")
    # At the peak there are two from earlier steps, and two of its own, one of which is kept.
    assert (again.bytes, again.rows[0]["bytes"], again.rows[0]["count"]) == (40, 40, 2)
    assert (away.bytes, away.rows[0]["bytes"], away.rows[0]["count"]) == (20, 20, 2)


def test_what_has_a_finding_of_growth_is_no_saving():
    rows = []
    for number in range(12):
        rows += [
            alloc(100 + number, 4096, op="out", shape="[4]", data_type="float"),
            alloc(50, 8192, op="out", shape="[8]"),
            *[alloc(7, 1, op="tick", shape="[1]"), free(7)] * 10,
            alloc(2, 60_000, op="peak", shape="[6]"),
            free(2),
            *[alloc(7, 1, op="tick", shape="[1]"), free(7)] * 10,
            free(50),
        ]
    rows = [row | {"time_ps": n} for n, row in enumerate(rows)]
    length = len(rows) // 12
    made = history(rows)
    marks = find_marks(made, 0, steps_at(*range(0, 13 * length, length)))
    growth = find_growth(made, 0, marks)
    assert [finding.kind for finding in growth_findings(made, growth)] == ["leak"]
    result = signatures_held(made, 0, find_grown(made, growth))
    assert [made.signatures[k].shape for k in np.flatnonzero(result)] == ["[4]"]
    before, after = of_history(made, marks), of_history(made, marks, growing=result)
    assert {saving.kind for saving in before if "[4]" in saving.title} == {"offload", "older_copy"}
    leaked = {int(code) for code in np.flatnonzero(result)}
    assert [saving for saving in before if not leaked & set(saving.codes)] == list(after)
    assert {saving.kind for saving in after} == {"temporary", "recompute"}


def copies(op):
    """Three steps that each make a buffer of ``op`` and then free the last step's."""
    rows = step(0, [alloc(1, 40, op=op, shape="[4]")])
    rows += step(1, [alloc(2, 40, op=op, shape="[4]"), free(1)])
    rows += step(2, [alloc(3, 40, op=op, shape="[4]"), free(2)])
    return savings(rows, steps_at(0, 100, 200, 300))


def test_older_copies_of_one_producer():
    rows = step(0, [alloc(1, 40, op="out", shape="[4]")])
    rows += step(1, [alloc(2, 40, op="out", shape="[4]"), free(1), free(2)])
    (saving,) = of(savings(rows, steps_at(0, 100, 200)), "older_copy")
    assert (saving.title, saving.bytes) == ("2 x out [4]", 39)
    assert saving.rows[0]["count"] == 2


@each_row("op", ["out", "optimizer/ResourceApplyAdam_1"])
def test_a_variables_old_content_cannot_be_dropped_or_moved_before_it_is_replaced(op):
    result = copies(op)
    assert of(result, "older_copy") == of(result, "offload") == []


def test_slots_are_not_moved_away_while_the_optimizer_reads_them():
    def at_the_peak(op):
        rows = step(0, [alloc(1, 40, op="zeros", shape="[4]")])
        rows += step(1, [alloc(2, 60, op=op, shape="[6]"), free(2)])
        return of(savings(rows, steps_at(0, 100, 200)), "offload")

    assert at_the_peak("optimizer/ResourceApplyAdam_1") == []
    assert [saving.bytes for saving in at_the_peak("model/MatMul")] == [40]


def test_half_the_batch():
    body = [
        alloc(1, 40, op="a", shape="[8, 4]"),
        alloc(2, 60, op="b", shape="[8,6]"),
        alloc(3, 20, op="c", shape="[8, 2]"),
        alloc(4, 10, op="weights", shape="[3, 3]"),
        free(3),
        free(2),
        free(1),
    ]
    (saving,) = of(savings(step(0, body), steps_at(0, 99)), "smaller_batch")
    assert saving.title == "half of the leading dimension 8"
    assert saving.bytes == 60
    assert [row["op"] for row in saving.rows] == ["b", "a", "c"]


def test_one_shape_in_three_ops_is_no_batch():
    body = [alloc(n, 40, op=f"op{n}", shape="[8, 4]") for n in range(3)]
    assert of(savings([*step(0, body), free(0)], steps_at(0, 99)), "smaller_batch") == []


def test_a_file_of_one_moment_has_no_before_and_after():
    assert savings([alloc(n, 100, op=f"op{n}") for n in range(4)]) == ()


def test_savings_are_ranked_and_none_lacks_its_rows():
    body = [
        alloc(1, 40, op="a", shape="[8, 4]"),
        alloc(2, 60, op="b", shape="[8, 6]"),
        alloc(3, 25, op="c", shape="[8, 2]"),
        free(3),
        free(2),
        free(1),
    ]
    result = savings(step(0, body), steps_at(0, 99))
    assert [saving.bytes for saving in result] == sorted(
        (saving.bytes for saving in result), reverse=True
    )
    assert len(result) > 2
    assert all(saving.rows and saving.suggestion for saving in result)


def test_only_counted_records_can_be_the_peak():
    rows = [alloc(1, 100, op="a"), free(1), alloc(2, 20, op="b"), free(2)] * 10
    (saving,) = of(savings(rows, counted=np.array([False, False, True, True] * 10)), "temporary")
    assert saving.title == "b of 20 B"


def test_memory_lost_in_pieces_is_a_saving_with_the_pins_behind_it():
    rows, place = [], 0
    for number in range(6):
        rows += [alloc(place, 64, op="load"), alloc(place + 64, 1, op="pin")]
        place += 65
        del number
    rows += [free(65 * number) for number in range(6)]
    rows += [alloc(place, 300, op="train")]
    made = history(rows)
    (saving,) = of(of_history(made, None, find_fragmentation(made, 0)), "fragmentation")
    assert saving.rows[0]["op"] == "pin"
    assert saving.bytes > 0


def test_pieces_that_did_little_harm_are_no_saving():
    # Three holes: too few for a finding of fragmentation.
    rows = [row for n in range(3) for row in (alloc(65 * n, 64), alloc(65 * n + 64, 1, op="pin"))]
    rows += [*(free(65 * n) for n in range(3)), alloc(195, 150, op="train")]
    made = history(rows)
    result = find_fragmentation(made, 0)
    assert result.pins.holes == 3
    assert result.recoverable_bytes > 0.1 * result.peak_bytes
    assert of(of_history(made, None, result), "fragmentation") == []


def huge(size, op="sub"):
    body = [alloc(1, 2 * MIB, op="weights"), alloc(2, size, op=op, shape="[9, 9, 9]"), free(2)]
    answer = explain_memory(events(step(0, body)), steps_at(0, 99))
    return [finding for finding in answer.findings if finding.kind == "huge_temporary"]


def test_one_temporary_that_makes_the_peak():
    (finding,) = huge(8 * MIB)
    assert finding.severity == "warning"
    assert finding.evidence["what"] == "a broadcast intermediate"
    assert (finding.evidence["op"], finding.evidence["shape"]) == ("sub", "[9, 9, 9]")
    assert (finding.evidence["saved_bytes"], finding.evidence["peak_after_bytes"]) == (
        8 * MIB - 1,
        2 * MIB + 1,
    )


def test_what_a_model_needs_is_no_huge_temporary():
    # The result of a product, or not much larger than what else there is.
    assert huge(8 * MIB, op="model/MatMul") == []
    assert huge(5 * MIB) == []


def test_a_small_one_is_no_finding():
    # Of less than half of the peak a word is worth it from 4 MiB on, else from 2 MiB.
    body = [alloc(2, 2 * MIB - 1, op="sub", shape="[9, 9, 9]"), free(2)]
    assert explain_memory(events(step(0, body)), steps_at(0, 99)).findings == ()
    assert len(small(3 * MIB, weights=5 * MIB // 2)) == 1
    assert small(3 * MIB, weights=7 * MIB // 2) == []


def small(size, *, weights):
    """The findings of one temporary, among weights of which none is a quarter of it."""
    body = [alloc(10 + n, weights // 10, op=f"w{n}", shape=f"[{n}]") for n in range(10)]
    body += [alloc(2, size, op="sub", shape="[9, 9, 9]"), free(2)]
    answer = explain_memory(events(step(0, body)), steps_at(0, 99))
    return [finding for finding in answer.findings if finding.kind == "huge_temporary"]


WHICH = {
    "all": ALL,
    "all but one": ALL_BUT_ONE,
    "of the step": OF_THE_STEP,
    "from before": FROM_BEFORE,
}


@settings(max_examples=200)
@given(records, st.sets(st.integers(0, 45), max_size=4).map(sorted), st.data())
def test_what_would_be_left_equals_the_slow_answer(rows, starts, data):
    there = data.draw(st.sets(st.integers(0, len(rows) - 1), max_size=4))
    rows = [row | ({"is_before": True} if n in there else {}) for n, row in enumerate(rows)]
    made = history(rows)
    keys = sorted({one.signature for one in buffers(rows)}, key=str)
    if not keys:
        return
    codes = {}
    for one in buffers(rows):
        codes[one.signature] = int(made.signatures.codes[one.begin])
    number = data.draw(st.integers(0, len(made.lifetimes.allocators) - 1))
    groups = data.draw(
        st.lists(
            st.tuples(
                st.sets(st.sampled_from(keys), min_size=1),
                st.integers(0, 3),
                st.sampled_from(sorted(WHICH)),
            ),
            min_size=1,
            max_size=4,
        )
    )
    in_group = np.zeros((len(made.signatures), len(groups)), np.bool_)
    for place, (chosen, _, _) in enumerate(groups):
        in_group[[codes[key] for key in chosen], place] = True
    peaks = np.zeros(len(groups), np.int64)
    peaks_without(
        made.rows_of(number),
        made.lifetimes.kind,
        made.lifetimes.begin,
        made.signatures.codes,
        made.allocated,
        made.used,
        made.was_there,
        np.array(starts, np.int64),
        made.measured,
        in_group,
        np.array([numerator for _, numerator, _ in groups], np.int64),
        np.full(len(groups), 3, np.int64),
        np.array([WHICH[which] for _, _, which in groups], np.int8),
        peaks,
        *np.zeros((3, len(groups)), np.int64),
    )
    allocator = made.lifetimes.allocators[number]
    for place, (chosen, numerator, which) in enumerate(groups):
        slow = peak_without(
            rows, allocator, chosen, numerator=numerator, denominator=3, which=which, starts=starts
        )
        assert peaks[place] == slow


@each_row(
    ("op", "programs", "kind"),
    [
        ("jit_step", {"jit_step"}, "program"),
        ("", {"jit_step"}, "program"),
        ("jit_step", (), "temporary"),
        ("", (), "temporary"),
        ("cluster_0_1/xla_run", (), "program"),
        ("MatMul", {"jit_step"}, "temporary"),
    ],
)
def test_a_compiled_program_is_not_computed_in_pieces(op, programs, kind):
    body = [alloc(1, 300, op=op), alloc(2, 300, op=op), free(1), free(2)]
    (best,) = savings(step(0, body), steps_at(0, 99), programs=programs)
    assert (best.kind, best.peak_after) == (kind, 1)
    assert best.title == f"2 x {op or '(no op)'} of 300 B"
    assert ("in pieces" in best.suggestion) == (kind == "temporary")
    assert ("buffer assignment" in best.suggestion) == (kind == "program")


def test_no_saving_is_more_than_what_lies_under_the_peak():
    # The newest is the largest, so that dropping the older ones saves less than two thirds.
    sizes = {"first": 100, "second": 100, "third": 1000}
    rows = [
        alloc(n, size, op="copy", shape="[?]", time_ps=100 * n)
        for n, size in enumerate(sizes.values())
    ]
    rows += [alloc(9, 1, op="x", time_ps=250), free(9, time_ps=260)]
    result = of(savings(rows, steps_at(0, 100, 200, 300)), "older_copy")
    assert [(one.title, one.bytes, one.peak_after) for one in result] == [
        ("3 x copy [?]", 200, 1001)
    ]


RUNS = 4000


def gates(runs, measure, noise, shift=1.0, outlier=None):
    """Of so many gates, each after ``runs`` with noise, the share in which the next run fails."""
    draw = random.Random(7)
    failed = 0
    for _ in range(RUNS):
        past = [draw.gauss(100.0, noise) for _ in range(runs)]
        if outlier is not None:
            past[draw.randrange(runs)] = outlier
        failed += draw.gauss(100.0 * shift, noise) > allowed(past, measure).limit
    return failed / RUNS


@each_row("runs", [LEARNED, 8, MOST_RUNS, MOST_RUNS + 10])
@each_row("noise", [0.1, 2.0, 15.0])
def test_noise_fails_less_than_one_gate_in_a_hundred(runs, noise):
    assert gates(runs, PS, noise) < 0.01


@each_row(("runs", "noise"), [(LEARNED, 0.5), (8, 1.0), (10, 1.5), (MOST_RUNS, 2.0)])
def test_a_step_a_tenth_longer_fails(runs, noise):
    assert gates(runs, PS, noise, shift=1.1) > 0.9


def test_a_step_six_deviations_longer_fails_even_where_noise_is_large():
    assert gates(MOST_RUNS, PS, 8.0, shift=1.48) > 0.98


def test_one_bad_run_widens_little():
    assert gates(12, PS, 1.0, outlier=300.0) < 0.01
    assert gates(MOST_RUNS, PS, 1.0, shift=1.1, outlier=300.0) > 0.9


@each_row(("measure", "limit"), [(BYTES, 101.0), (PS, 105.0), (SHARE, 100.02)])
def test_equal_runs_leave_a_floor(measure, limit):
    result = allowed([100.0] * LEARNED, measure)
    assert (result.base, result.spread, result.runs) == (100.0, 0.0, LEARNED)
    assert abs(result.limit - limit) < 1e-9


@each_row(("measure", "limit"), [(BYTES, 105.0), (PS, 125.0), (SHARE, 100.1)])
@each_row("runs", range(1, LEARNED))
def test_noise_of_few_runs_is_not_learned(measure, limit, runs):
    assert abs(allowed([100.0] * runs, measure).limit - limit) < 1e-9


def test_a_tolerance_replaces_what_was_learned():
    assert allowed([50.0, 100.0, 150.0, 90.0, 110.0], BYTES, 0.5).limit == 150.0
    assert allowed([99.0, 100.0, 101.0, 99.0, 101.0], PS, 0.5).limit == 150.0
    # But a time may be what the runs vary by.
    assert allowed([50.0, 100.0, 150.0, 90.0, 110.0], PS, 0.5).limit > 250.0


def test_only_the_latest_runs_count():
    result = allowed([1.0] * 50 + [100.0] * MOST_RUNS, PS)
    assert (result.base, result.runs) == (100.0, MOST_RUNS)


def test_the_median_is_of_the_runs_that_have_the_figure():
    key = ("step time", "")
    may = Allowance(None, ({key: 1.0}, {}, {key: 3.0})).of(key, PS, 3.0)
    assert (may.base, may.runs, may.spread) == (2.0, 2, statistics.stdev([1.0, 3.0]))


def test_a_figure_that_is_another_one_in_the_last_run_stands_alone():
    key = ("program peak", "jit_step")
    may = Allowance(None, ({key: 100.0}, {key: 100.0})).of(key, BYTES, 10.0)
    assert (may.base, may.limit) == (10.0, 10.5)
