"""Deadlines: when they are over, whom they wake, and whom they interrupt."""

import threading

import pytest

from peakline.deadline import (
    Deadline,
    check_deadline,
    current_deadline,
    holding,
    interrupting,
    wait_for,
    within,
)
from peakline.errors import CancelledError, DeadlineError
from tests.waiting import HANG_S, EndedDeadline


def test_without_a_deadline_nothing_ends():
    assert current_deadline() is None
    check_deadline()
    with within(Deadline()) as deadline:
        check_deadline()
        assert (deadline.remaining(), deadline.is_over()) == (None, False)


def test_the_deadline_is_that_of_the_block():
    outer, inner = Deadline(HANG_S), Deadline(HANG_S)
    with within(outer):
        with within(inner):
            assert current_deadline() is inner
        assert current_deadline() is outer
    assert current_deadline() is None


def test_it_ends_when_the_time_is_over():
    with within(Deadline(0.0)) as deadline:
        assert deadline.is_over()
        with pytest.raises(DeadlineError, match="the time for this answer is over"):
            check_deadline()


def test_cancelled_counts_more_than_late():
    deadline = Deadline(0.0)
    deadline.cancel()
    assert deadline.remaining() == 0.0
    with pytest.raises(CancelledError, match="went away"):
        deadline.check()


class TestOnCancel:
    def test_it_calls_within_the_block_only(self):
        calls = []
        deadline = Deadline()
        with deadline.on_cancel(lambda: calls.append("before")):
            pass
        with deadline.on_cancel(lambda: calls.append("within")):
            deadline.cancel()
        assert calls == ["within"]

    def test_what_is_cancelled_already_calls_at_once(self):
        calls = []
        deadline = Deadline()
        deadline.cancel()
        with deadline.on_cancel(lambda: calls.append(1)):
            assert calls == [1]


class TestWaiting:
    def test_for_what_happens(self):
        event = threading.Event()
        threading.Timer(0.01, event.set).start()
        with within(Deadline(HANG_S)):
            wait_for(event)
        assert event.is_set()

    def test_no_longer_than_the_deadline(self):
        with within(Deadline(0.01)), pytest.raises(DeadlineError):
            wait_for(threading.Event())

    def test_until_it_is_cancelled(self):
        event = threading.Event()
        with within(Deadline(HANG_S)) as deadline:
            threading.Timer(0.01, deadline.cancel).start()
            with pytest.raises(CancelledError):
                wait_for(event)
        # It was woken.
        assert event.is_set()


class TestHolding:
    @pytest.mark.parametrize("deadline", [None, HANG_S])
    def test_a_free_lock(self, deadline):
        lock = threading.Lock()
        with within(Deadline(deadline)), holding(lock):
            assert lock.locked()
        assert not lock.locked()

    def test_a_lock_that_somebody_else_keeps(self):
        lock = threading.Lock()
        with lock, within(Deadline(0.01)), pytest.raises(DeadlineError), holding(lock):
            pytest.fail("nobody may be here")
        assert not lock.locked()

    def test_a_lock_that_is_given_back_in_time(self):
        lock = threading.Lock()
        lock.acquire()
        threading.Timer(0.01, lock.release).start()
        with within(Deadline(HANG_S)), holding(lock):
            assert lock.locked()

    def test_cancelled_while_waiting(self):
        lock = threading.Lock()
        with lock, within(Deadline()) as deadline:
            threading.Timer(0.01, deadline.cancel).start()
            with pytest.raises(CancelledError), holding(lock):
                pytest.fail("nobody may be here")

    def test_a_lock_is_not_even_tried_when_it_is_over(self):
        lock = threading.Lock()
        with within(Deadline(0.0)), pytest.raises(DeadlineError), holding(lock):
            pytest.fail("nobody may be here")


class TestInterrupting:
    def test_it_interrupts_until_the_block_ends(self):
        interrupted = []
        enough = threading.Event()

        def interrupt() -> None:
            interrupted.append(1)
            if len(interrupted) == 3:
                enough.set()

        def work() -> None:
            deadline.end()
            assert enough.wait(HANG_S)
            raise RuntimeError("what the interrupted work says of it")

        before = set(threading.enumerate())
        with within(EndedDeadline()) as deadline:
            with pytest.raises(DeadlineError), interrupting(interrupt):
                work()
            assert enough.is_set()
            # Whoever interrupted is gone.
            assert set(threading.enumerate()) <= before

    def test_work_that_ends_in_time_is_left_alone(self):
        with within(Deadline(HANG_S)), interrupting(lambda: pytest.fail("interrupted")):
            pass

    def test_an_error_of_its_own_stays_what_it_is(self):
        def work() -> None:
            raise ValueError("mine")

        interrupt = interrupting(lambda: pytest.fail("interrupted"))
        with within(Deadline(HANG_S)), pytest.raises(ValueError, match="mine"), interrupt:
            work()

    def test_nothing_begins_after_the_end(self):
        with within(Deadline(0.0)), pytest.raises(DeadlineError), interrupting(lambda: None):
            pytest.fail("nobody may be here")

    def test_without_a_deadline(self):
        with interrupting(lambda: pytest.fail("interrupted")):
            assert current_deadline() is None
