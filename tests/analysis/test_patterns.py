"""Patterns that a caller gives: RE2, refused in one line, never endless."""

import numpy as np
import pytest
from tests.each_row import each_row
from tests.hanging import no_hang

from peakline.deadline import Deadline, within
from peakline.errors import DeadlineError, UsageError
from peakline.patterns import Pattern


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
