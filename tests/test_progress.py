"""What long work says of itself."""

import threading
from contextvars import copy_context

import pytest

from peakline.progress import Progress, advance, current_progress, showing, stage


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
