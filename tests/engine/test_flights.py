"""Work asked for by several at once, done once."""

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from tests.waiting import HANG_S, EndedDeadline, until

from peakline.deadline import Deadline, check_deadline, within
from peakline.engine.answers import Flights
from peakline.errors import CancelledError, DamagedError, DeadlineError


class Work:
    """Counts how often it is done; goes on only when it is told to."""

    def __init__(self, outcome=None) -> None:
        self.begun, self.go_on = threading.Semaphore(0), threading.Semaphore(0)
        self.times = 0
        self.outcome = outcome

    def __call__(self) -> int:
        self.times += 1
        self.begun.release()
        while not self.go_on.acquire(timeout=0.01):
            check_deadline()
        if isinstance(self.outcome, Exception):
            raise self.outcome
        return self.times


def several(flights, work, deadlines):
    """Everyone asks at once; returns their futures when the first has begun and all others wait."""
    pool = ThreadPoolExecutor(len(deadlines))

    def ask(deadline):
        with within(deadline):
            return flights.run("key", work)

    first = pool.submit(ask, deadlines[0])
    assert work.begun.acquire(timeout=HANG_S)
    futures = [first, *(pool.submit(ask, deadline) for deadline in deadlines[1:])]
    until(lambda: len(flights._flights["key"].waiting) == len(deadlines) - 1)
    pool.shutdown(wait=False)
    return futures


def test_all_get_what_one_made():
    flights, work = Flights(), Work()
    futures = several(flights, work, [Deadline(HANG_S) for _ in range(5)])
    work.go_on.release()
    assert [future.result(HANG_S) for future in futures] == [1] * 5
    work.go_on.release()
    assert flights.run("key", work) == 2


def test_all_get_the_error_each_its_own():
    flights, work = Flights(), Work(DamagedError("broken", 7))
    futures = several(flights, work, [Deadline(HANG_S) for _ in range(3)])
    work.go_on.release()
    errors = [future.exception(HANG_S) for future in futures]
    assert work.times == 1
    assert {(type(error), str(error), error.offset) for error in errors} == {
        (DamagedError, "broken", 7)
    }
    assert len(set(map(id, errors))) == 3


@pytest.mark.parametrize("how", ["cancelled", "late"])
def test_when_the_one_who_works_is_ended_the_next_takes_over(how):
    flights, work = Flights(), Work()
    first = EndedDeadline()
    deadlines = [first, Deadline(HANG_S), Deadline(HANG_S)]
    futures = several(flights, work, deadlines)
    if how == "cancelled":
        first.cancel()
    else:
        first.end()
    ended = CancelledError if how == "cancelled" else DeadlineError
    assert isinstance(futures[0].exception(HANG_S), ended)
    assert work.begun.acquire(timeout=HANG_S)
    # One who wakes up late finds nobody at work any more, and begins anew as well.
    work.go_on.release(2)
    assert {future.result(HANG_S) for future in futures[1:]} <= {2, 3}


def test_who_waits_does_so_no_longer_than_the_own_deadline():
    flights, work = Flights(), Work()
    futures = several(flights, work, [Deadline(HANG_S), Deadline(0.05), Deadline(HANG_S)])
    assert isinstance(futures[1].exception(HANG_S), DeadlineError)
    work.go_on.release()
    assert [futures[k].result(HANG_S) for k in (0, 2)] == [1, 1]


def test_different_keys_do_not_wait_for_each_other():
    flights = Flights()
    assert flights.run("a", lambda: flights.run("b", lambda: 1)) == 1
