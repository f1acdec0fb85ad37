"""Small helpers of tests and texts."""

import inspect
import re
import signal
import threading
from contextvars import copy_context

import pytest

from peakline.progress import Progress, advance, current_progress, showing, stage
from peakline.suggest import near, there_is
from tests.each_row import each_row
from tests.hanging import no_hang


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


def endless_expression():
    re.match("(a*)*b", "a" * 1000)


def endless_loop():
    while True:
        pass


@each_row("endless", [endless_expression, endless_loop])
def test_what_never_ends_is_a_failure(endless):
    before = signal.getsignal(signal.SIGALRM)
    with pytest.raises(AssertionError, match="it goes on"), no_hang(0.1):
        endless()
    assert signal.getsignal(signal.SIGALRM) == before
    assert signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0)


def test_what_ends_is_none():
    with no_hang():
        assert signal.getitimer(signal.ITIMER_REAL)[0] > 0
    assert signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0)


TOOLS = ["graph", "memory_profile", "memory_findings", "op_stats", "trace_viewer"]


@each_row(
    ("name", "found"),
    [
        ("memory_profil", "memory_profile"),
        ("Memory_Profile", "memory_profile"),
        ("opstats", "op_stats"),
        ("viewer", "trace_viewer"),
        ("grpah", "graph"),
    ],
)
def test_the_nearest_name_comes_first(name, found):
    assert near(name, TOOLS)[0] == found


@each_row("name", ["", "zzz", "xy"])
def test_nothing_is_near_to_what_is_unlike_all(name):
    assert near(name, TOOLS) == []
    assert there_is(name, TOOLS) == f"; there is: {', '.join(TOOLS)}"


VERBS = (
    "summary memory steps ops programs fit trace demo diff check view report export sql tool graph"
    " sessions capture serve"
).split()


@each_row(
    ("name", "found"),
    [
        ("s", []), ("slq", ["sql"]), ("pos", ["ops"]), ("op", ["ops"]), ("fti", ["fit"]),
        ("opss", ["ops"]), ("dif", ["diff"]), ("step", ["steps"]), ("mem", ["memory"]),
        ("summry", ["summary"]), ("top", []), ("sum", ["summary"]), ("log", []), ("run", []),
        ("peak", []), ("time", []), ("stat", [])],
)  # fmt: skip
def test_a_short_name_is_near_to_its_misspellings_alone(name, found):
    assert near(name, VERBS) == found


def test_a_suggestion_stands_before_the_list():
    assert there_is("lss", ["loss", "rate"]) == "; did you mean 'loss'? there is: loss, rate"
    assert there_is("loss", []) == "; there is: none"


def test_of_many_names_the_near_ones_are_enough():
    many = [f"op_{number}" for number in range(100)] + ["loss"]
    assert there_is("los", many) == "; did you mean 'loss'?"
    assert there_is("zzz", many).endswith(", op_19 and 81 more")


def test_foreign_names_are_fit_for_a_line():
    assert there_is("b\x1bad", ["b\x1bad\n"]) == (
        "; did you mean 'b\\x1bad\\n'? there is: b\\x1bad\\n"
    )
    assert there_is("é", ["", "größe"]) == '; there is: "", größe'
    assert near("x" * 10**6, ["x" * 10**6]) == ["x" * 10**6]


def test_nobody_has_to_listen():
    advance(5)
    with stage("reading", 10):
        advance(5)
    assert current_progress() is None


def test_a_stage_counts_what_is_done_and_the_one_around_it_goes_on():
    with showing(Progress()) as progress:
        with stage("reading events", 100):
            advance(30)
            with stage("", 8, "hosts"):
                advance(2)
                assert (progress.stage, progress.done, progress.total) == ("reading events", 2, 8)
                assert progress.unit == "hosts"
            assert (progress.done, progress.total, progress.unit) == (30, 100, "bytes")
        assert (progress.stage, progress.done) == ("", 0)
    assert current_progress() is None


def test_a_stage_ends_with_an_error_too():
    with showing(Progress()) as progress:
        with pytest.raises(KeyError), stage("reading", 1):
            raise KeyError
        assert progress.stage == ""


def test_threads_in_a_copy_of_the_context_say_it_to_the_same():
    with showing(Progress()) as progress:
        thread = threading.Thread(target=copy_context().run, args=(advance, 7))
        thread.start()
        thread.join()
        assert progress.done == 7
        with showing(None):
            advance(1)
        assert progress.done == 7


def test_what_is_left_is_known_only_where_the_total_is():
    progress = Progress()
    assert progress.left_s() is None
    progress.begin("reading", 100)
    assert progress.left_s() is None
    progress.began -= 10
    progress.advance(50)
    assert progress.left_s() == pytest.approx(10, rel=0.5)
    progress.advance(60)
    assert progress.left_s() is None
