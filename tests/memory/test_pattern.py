"""Patterns that repeat from step to step, and the user's patterns of names."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.each_row import each_row
from tests.hanging import no_hang

from peakline.deadline import Deadline, within
from peakline.errors import DeadlineError, UsageError
from peakline.memory.growth import pattern
from peakline.memory.growth.pattern import CACHE, LEAK, SAWTOOTH, STEADY, STEP_UP, WARM_UP, classify
from peakline.patterns import Pattern
from reference.memory_history import concordance, slope


def of(*values):
    return classify(np.array(values, np.int64))


def test_growth_in_every_step_is_a_leak_from_the_first_one():
    result = of(*range(8, 8 * 11, 8))
    assert (result.kind, result.since, result.until, result.rises) == (LEAK, 0, 9, 10)
    assert (result.bytes_per_step, result.bytes) == (8.0, 80)
    assert result.confidence == 1 - 2.0**-9


def test_a_leak_that_begins_late():
    result = of(5, 5, 5, 5, 5, 5, 12, 19, 26, 33, 40, 47)
    assert (result.kind, result.since, result.bytes_per_step, result.bytes) == (LEAK, 6, 7.0, 42)


def test_a_leak_every_third_step_counts_from_the_first_and_per_step():
    result = of(*(9 * (1 + step // 3) for step in range(21)))
    assert (result.kind, result.since, result.rises) == (LEAK, 0, 7)
    assert result.bytes_per_step == pytest.approx(3, rel=0.15)
    assert result.confidence > 0.8


def test_noise_larger_than_a_step_of_growth_does_not_hide_a_leak():
    noise = [0, 30, 5, 25, 0, 10, 0, 30, 0, 20, 5, 0, 15, 0, 25, 0, 5, 0, 0, 10]
    result = of(*(10 * step + more for step, more in enumerate(noise)))
    assert result.kind == LEAK
    assert result.bytes_per_step == pytest.approx(10, rel=0.2)


def test_a_large_first_step_before_a_leak_is_no_part_of_it():
    result = of(1000, 1004, 1008, 1012, 1016, 1020, 1024)
    assert (result.kind, result.since, result.bytes, result.bytes_per_step) == (LEAK, 1, 24, 4.0)


def test_four_rises_are_too_few():
    assert of(0, 0, 1, 2, 3, 4).kind == STEP_UP
    assert of(0, 0, 1, 2, 3, 4, 5).kind == LEAK


def test_as_much_more_after_each_of_a_few_marked_steps_is_a_leak():
    def marked(*values):
        return classify(np.array(values, np.int64), is_marked=True)

    result = marked(4, 8, 12)
    assert (result.kind, result.since, result.until, result.rises) == (LEAK, 0, 2, 3)
    assert (result.bytes_per_step, result.bytes, result.confidence) == (4.0, 12, 0.75)
    assert marked(20, 24, 28, 32).confidence == 0.875
    assert of(4, 8, 12).kind != LEAK
    for series in ((4, 8), (4, 4, 4), (0, 4, 8), (4, 8, 8), (4, 8, 13), (4, 8, 12, 8), (12, 8, 4)):
        assert marked(*series).kind != LEAK


def test_a_cache_fills_with_pauses_and_stops():
    entries = [1, 2, 2, 3, 4, 4, 5, 6, 6, 7, 7, 8, *[8] * 12]
    result = of(*(10 * count for count in entries))
    assert (result.kind, result.since, result.until, result.bytes) == (CACHE, 0, 11, 80)
    assert result.bytes_per_step == pytest.approx(10 * 7 / 11, rel=0.2)


def test_growth_that_slows_down_is_a_cache_before_it_has_stopped():
    assert of(0, 40, 60, 70, 75, 78, 80, 80, 81, 81, 81, 82).kind == CACHE


def test_a_rise_that_stays():
    result = of(3, 3, 3, 3, 3, 9, 9, 9, 9)
    assert (result.kind, result.since, result.until, result.bytes) == (STEP_UP, 5, 5, 6)


def test_a_rise_in_the_first_steps_is_warm_up():
    assert of(3, 9, 9, 9, 9).kind == WARM_UP


def test_a_sawtooth_that_ends_in_a_rise_is_no_leak():
    result = of(*(10 * (1 + step % 5) for step in range(28)))
    assert (result.kind, result.bytes_per_step, result.bytes, result.period) == (
        SAWTOOTH,
        10.0,
        40,
        5,
    )
    assert result.confidence == 1.0


def test_a_sawtooth_with_irregular_teeth_has_its_rate_and_no_period():
    # The short teeth count, and so do the steps that release what the one before left.
    chosen = [1, 1, 1, 1, 1, 1, 2, 3, 1, 1, 2, 3, 4, 1, 1, 1, 2, 3, 1, 1, 2, 1, 1, 2, 3]
    chosen += [4, 5, 6, 1, 1, 2, 1, 1, 1, 2, 3, 4, 5, 6, 1, 1, 2, 3, 1, 1, 1, 1, 2, 3, 1]
    result = of(*(768 * count for count in chosen))
    assert (result.kind, result.bytes_per_step, result.bytes) == (SAWTOOTH, 768.0, 5 * 768)
    assert result.period == 0
    assert result.confidence == 0.9  # all but the first five steps


def test_a_sawtooth_that_is_now_and_then_released_a_step_late_keeps_its_period():
    lengths = [5, 5, 6, 5, 4, 5, 5, 5]
    result = of(*(10 * step for length in lengths for step in range(length)))
    assert (result.kind, result.bytes_per_step, result.period) == (SAWTOOTH, 10.0, 5)


def test_a_leak_of_every_tenth_step_has_its_mean_rate():
    result = of(*(200 * (1 + step // 10) for step in range(44)))
    assert (result.kind, result.bytes_per_step, result.rises, result.sparse) == (
        LEAK,
        20.0,
        5,
        True,
    )
    assert not of(*(200 * (1 + step // 2) for step in range(44))).sparse
    # Where every step changes something, the floor's few rises do not tell how many bring it.
    noisy = of(*(10 * step + 35 * (step % 4 == 3) for step in range(40)))
    assert (noisy.kind, noisy.sparse) == (LEAK, False)


def test_a_sawtooth_on_a_leak_is_a_leak():
    result = of(*(10 * step + 8 * (step % 4) for step in range(32)))
    assert result.kind == LEAK
    assert result.bytes_per_step == pytest.approx(10, rel=0.1)


@each_row(
    "series",
    [
        (),
        (7,),
        (7, 7, 7, 7),
        (7, 9, 7, 9, 7, 9, 7, 9),
        (90, 50, 20, 10, 5, 0),
        (0, 0, 30, 0, 0, 30, 0, 30, 0),
    ],
)
def test_what_stays_falls_or_comes_and_goes_is_steady(series):
    result = of(*series)
    assert (result.kind, result.bytes_per_step, result.bytes) == (STEADY, 0.0, 0)


def test_noise_alone_is_never_a_leak_of_which_one_is_sure():
    random = np.random.default_rng(3)
    sure = 0
    for length in (6, 10, 20, 50, 200):
        for _ in range(400):
            result = classify(random.integers(0, 1000, length))
            sure += result.kind == LEAK and result.confidence >= 0.7
    assert sure <= 4  # of 2000, where every byte comes and goes


def test_ten_thousand_steps_take_little_time_and_give_the_slope_per_step():
    result = classify(np.arange(10_000) * 3)
    assert (result.kind, result.bytes_per_step) == (LEAK, 3.0)


@settings(max_examples=200)
@given(st.lists(st.integers(-50, 50), max_size=25))
def test_slope_and_concordance_equal_the_slow_ones(values):
    array = np.array(values, np.int64)
    assert pattern.median_slope(array) == pytest.approx(slope(values))
    assert pattern.concordance(array) == pytest.approx(concordance(values))


@settings(max_examples=300)
@given(st.lists(st.integers(0, 40), min_size=2, max_size=30), st.integers(1, 7))
def test_the_pattern_does_not_depend_on_the_unit(values, unit):
    one, other = of(*values), of(*(unit * value for value in values))
    assert (one.kind, one.since, one.until, one.rises) == (
        other.kind,
        other.since,
        other.until,
        other.rises,
    )
    assert unit * one.bytes == other.bytes
    assert 0 <= one.confidence <= 1
    if one.kind == LEAK:
        assert one.bytes_per_step >= 0
        assert one.bytes > 0


@each_row(
    ("pattern", "whole", "part"),
    [
        ("b", [False, False, True, False], [True, False, True, False]),
        ("a.*", [True, False, False, False], [True, False, False, False]),
        ("", [False, False, False, True], [True, True, True, True]),
        ("^.$", [False, True, True, False], [False, True, True, False]),
        (r"\pL+", [True, True, True, False], [True, True, True, False]),
        ("a|b", [False, False, True, False], [True, False, True, False]),
        ("(?i)B", [False, False, True, False], [True, False, True, False]),
        (r"\Qb", [False, False, True, False], [True, False, True, False]),
    ],
)
def test_whole_names_and_parts(pattern, whole, part):
    names = ["ab", "ü", "b", ""]
    assert Pattern(pattern).matches(names).tolist() == whole
    assert Pattern(pattern).is_in(names).tolist() == part


@each_row(
    ("pattern", "reason"),
    [
        ("(", r"'\(' is no RE2 expression: missing \)"),
        ("(?=a)b", "invalid perl operator: .* no lookaround, backreference"),
        (r"(a)\1", "invalid escape sequence: .* no lookaround, backreference"),
        ("a++", "bad repetition operator: .* possessive"),
        ("((a{100}){100}){100}", "invalid repetition size"),
        (r"(\pL{100}){10}", "pattern too large"),
        ("a)|(b", "unexpected \\)"),
        (r"a)\z|\A(?:b", "unexpected \\)"),
        ("x" * 1001, "a pattern of 1001 characters; at most 1000"),
        ("\ud800", "no RE2 expression"),
        ("a\n(", "no RE2 expression"),
    ],
)
def test_a_bad_one_is_refused_in_one_line(pattern, reason):
    with pytest.raises(UsageError, match=reason) as caught:
        Pattern(pattern)
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 300


@each_row("pattern", ["(a+)+$", "(a|aa)*b", "(.*)*(.*)*(.*)*x", "(a?){900}b"])
def test_one_that_would_explode_elsewhere_returns(pattern):
    # RE2 takes time in proportion to the name, whatever the pattern.
    with no_hang():
        assert not Pattern(pattern).is_in(["a" * 5000 + "c"]).any()


def test_many_names_are_matched_in_several_batches():
    names = [f"op_{number}" for number in range(40_000)]
    assert np.flatnonzero(Pattern("op_3999.").matches(names)).tolist() == [*range(39_990, 40_000)]
    assert Pattern(r"_\d{5}$").is_in(names).tolist() == [False] * 10_000 + [True] * 30_000


def test_a_line_break_and_a_zero_are_characters():
    names = ["a\nb", "a\x00b", "b\n"]
    assert Pattern("(?s)a.b").matches(names).tolist() == [True, True, False]
    assert Pattern("a.b").matches(names).tolist() == [False, True, False]
    assert Pattern("b$").is_in(names).tolist() == [True, True, False]
    assert Pattern("(?m)a$").matches(names).tolist() == [False, False, False]
    assert Pattern("a\x00b").matches(names).tolist() == [False, True, False]


def test_half_a_character_in_a_name_is_a_character():
    assert Pattern("a.").matches(["a\ud800", "ab", "a"]).tolist() == [True, True, False]


def test_it_ends_at_the_deadline():
    with within(Deadline(0.0)), pytest.raises(DeadlineError):
        Pattern("a").matches(["a"])
