"""Patterns that a caller gives: RE2, refused in one line, never endless."""

import pytest
import re2
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
        ("((a{100}){100}){100}", "no RE2 expression"),
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
    assert isinstance(Pattern(pattern)._compiled, type(re2.compile("a")))
    with no_hang():
        assert not Pattern(pattern).is_in(["a" * 5000 + "c"]).any()


def test_half_a_character_in_a_name_is_a_character():
    assert Pattern("a.").matches(["a\ud800", "ab", "a"]).tolist() == [True, True, False]


def test_it_ends_at_the_deadline():
    with within(Deadline(0.0)), pytest.raises(DeadlineError):
        Pattern("a").matches(["a"])
