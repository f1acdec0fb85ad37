"""Tables of cases as one test: every row runs, and what fails is named."""

import inspect

import pytest

from tests.each_row import each_row


def test_every_row_runs_with_the_fixtures_of_the_test():
    seen = []

    @each_row(("a", "b"), [(1, 2), (3, 4)])
    @each_row("c", "xy")
    def case(fixture, a, b, c):
        seen.append((fixture, a, b, c))

    assert list(inspect.signature(case).parameters) == ["fixture"]
    case(fixture=0)
    assert seen == [(0, 1, 2, "x"), (0, 1, 2, "y"), (0, 3, 4, "x"), (0, 3, 4, "y")]


def test_every_row_that_fails_or_skips_is_reported():
    @each_row("number", range(5))
    def case(number):
        if number == 3:
            pytest.skip("no row may")
        if number == 4:
            pytest.fail("as asked")
        assert number % 2 == 0

    with pytest.raises(BaseExceptionGroup, match="3 of 5 rows failed") as caught:
        case()
    assert not caught.group_contains(pytest.skip.Exception)
    notes = [error.__notes__ for error in caught.value.exceptions]
    assert notes == [[f"in the row {{'number': {number}}}"] for number in (1, 3, 4)]


def test_a_table_that_tests_nothing_is_refused():
    with pytest.raises(AssertionError, match="without rows"):
        each_row("a", [])
    with pytest.raises(AssertionError, match="takes no"):
        each_row("a", [1])(lambda b: b)
    with pytest.raises(ValueError, match="zip"):
        each_row("a, b", [(1, 2, 3)])
