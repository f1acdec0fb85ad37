"""How much more than its baseline a figure may be: noise passes, regressions fail."""

import random
import statistics

from tests.each_row import each_row

from peakline.check.allowance import LEARNED, MOST_RUNS, Allowance, allowed
from peakline.check.units import BYTES, PS, SHARE

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
    found = allowed([100.0] * LEARNED, measure)
    assert (found.base, found.spread, found.runs) == (100.0, 0.0, LEARNED)
    assert abs(found.limit - limit) < 1e-9


@each_row(("measure", "limit"), [(BYTES, 105.0), (PS, 125.0), (SHARE, 100.1)])
@each_row("runs", range(1, LEARNED))
def test_noise_of_few_runs_is_not_learned(measure, limit, runs):
    assert abs(allowed([100.0] * runs, measure).limit - limit) < 1e-9


def test_a_tolerance_replaces_what_was_learned():
    assert allowed([50.0, 100.0, 150.0, 90.0, 110.0], PS, 0.5).limit == 150.0


def test_only_the_latest_runs_count():
    found = allowed([1.0] * 50 + [100.0] * MOST_RUNS, PS)
    assert (found.base, found.runs) == (100.0, MOST_RUNS)


def test_the_median_is_of_the_runs_that_have_the_figure():
    key = ("step time", "")
    may = Allowance(None, ({key: 1.0}, {}, {key: 3.0})).of(key, PS, 3.0)
    assert (may.base, may.runs, may.spread) == (2.0, 2, statistics.stdev([1.0, 3.0]))


def test_a_figure_that_is_another_one_in_the_last_run_stands_alone():
    key = ("program peak", "jit_step")
    may = Allowance(None, ({key: 100.0}, {key: 100.0})).of(key, BYTES, 10.0)
    assert (may.base, may.limit) == (10.0, 10.5)
