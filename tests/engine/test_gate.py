"""How many are let in, how many wait, and who gives up."""

import threading
from contextlib import ExitStack

import pytest
from tests.waiting import HANG_S, until

from peakline.deadline import Deadline, within
from peakline.engine import Gate
from peakline.errors import BusyError, CancelledError, DeadlineError


def waiting(
    gate: Gate, results: list[object], name: object, deadline: Deadline
) -> threading.Thread:
    """A thread that waits at ``gate`` and tells how that went."""

    def run() -> None:
        try:
            with within(deadline), gate.enter():
                results.append(name)
        except (BusyError, DeadlineError, CancelledError) as error:
            results.append((name, type(error)))

    before = gate.waiting
    thread = threading.Thread(target=run)
    thread.start()
    until(lambda: gate.waiting == before + 1 or not thread.is_alive())
    return thread


def test_nobody_more_than_allowed():
    gate = Gate(2, 0)
    with gate.enter(), gate.enter():
        assert (gate.running, gate.waiting) == (2, 0)
        with pytest.raises(BusyError, match="2 requests are being answered and 0 wait"):
            gate.enter().__enter__()
    with gate.enter():
        assert gate.running == 1
    assert gate.running == 0


def test_those_who_wait_come_in_their_order():
    gate, order = Gate(1, 8), []
    with gate.enter():
        threads = [waiting(gate, order, k, Deadline(HANG_S)) for k in range(8)]
        with pytest.raises(BusyError, match="8 wait"):
            gate.enter().__enter__()
    for thread in threads:
        thread.join(HANG_S)
    assert order == list(range(8))
    assert (gate.running, gate.waiting) == (0, 0)


def test_who_gives_up_leaves_the_line():
    gate, results = Gate(1, 4), []
    with gate.enter():
        cancelled = Deadline(HANG_S)
        threads = [
            waiting(gate, results, "first", cancelled),
            waiting(gate, results, "second", Deadline(0.05)),
            waiting(gate, results, "third", Deadline(HANG_S)),
        ]
        cancelled.cancel()
        until(lambda: len(results) == 2)
        assert set(results) == {("first", CancelledError), ("second", DeadlineError)}
        assert gate.waiting == 1
    for thread in threads:
        thread.join(HANG_S)
    assert results[-1] == "third"
    assert (gate.running, gate.waiting) == (0, 0)


def test_a_place_given_to_one_who_just_gave_up_goes_on():
    """Cancelled and called at the same moment, over and over: no place is lost."""
    gate, results = Gate(1, 100), []
    for round_number in range(100):
        deadline = Deadline(HANG_S)
        with ExitStack() as inside:
            inside.enter_context(gate.enter())
            thread = waiting(gate, results, round_number, deadline)
            canceller = threading.Thread(target=deadline.cancel)
            canceller.start()
        thread.join(HANG_S)
        canceller.join(HANG_S)
    assert len(results) == 100
    assert (gate.running, gate.waiting) == (0, 0)


def test_one_whose_time_is_over_does_not_come_in():
    with within(Deadline(0.0)), pytest.raises(DeadlineError), Gate(1, 1).enter():
        pytest.fail("nobody may be here")


def test_an_error_inside_frees_the_place():
    gate = Gate(1, 0)
    with pytest.raises(ZeroDivisionError), gate.enter():
        _ = 1 / 0
    with gate.enter():
        assert gate.running == 1


@pytest.mark.parametrize(("concurrent", "queued"), [(0, 1), (1, -1)])
def test_a_gate_for_nobody_is_refused(concurrent, queued):
    with pytest.raises(ValueError, match="a gate for"):
        Gate(concurrent, queued)
