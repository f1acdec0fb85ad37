"""Questions at once: flights, the gate, and answers."""

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack

import pytest
from tests.waiting import HANG_S, EndedDeadline, until

from peakline.deadline import Deadline, check_deadline, within
from peakline.engine import Gate
from peakline.engine.answers import Answer, Answers, Flights
from peakline.engine.gate import Ticket
from peakline.errors import BusyError, CancelledError, DamagedError, DeadlineError


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


def _never():
    raise AssertionError("it is held")


def _ask(answers, key, content=b"", make=None):
    return answers.get(key, make or (lambda: Answer(content, "json")), lambda _: True)


def test_what_was_made_of_an_answer_is_held_with_it():
    answers = Answers(10_000)
    made = _ask(answers, "a", b"content").forms.get("gzip", lambda: b"packed")
    assert _ask(answers, "a", make=_never).forms.get("gzip", _never) is made


def test_it_counts_and_the_least_used_go():
    answers = Answers(10_500)
    for key in "abc":
        _ask(answers, key, bytes(1000))
    before = answers.nbytes
    _ask(answers, "a", make=_never).forms.get("gzip", lambda: bytes(3000))
    _ask(answers, "a", make=_never)
    assert answers.nbytes == before + 3000
    _ask(answers, "c", make=_never).forms.get("gzip", lambda: bytes(2000))
    _ask(answers, "c", make=_never)
    assert _ask(answers, "b", b"new").content == b"new"
    assert _ask(answers, "a", make=_never)
    assert answers.nbytes <= 10_500


def test_what_becomes_too_large_is_not_held():
    answers = Answers(10_000)
    _ask(answers, "a", bytes(1000)).forms.get("gzip", lambda: bytes(20_000))
    assert _ask(answers, "a", make=_never).content == bytes(1000)
    assert answers.nbytes == 0
    assert _ask(answers, "a", b"new").content == b"new"


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


def lined_up(gate: Gate, *callers: tuple[str, ...]) -> list[Ticket]:
    return [gate.join(lambda: None, caller) for caller in callers]


def turns(gate: Gate, inside: Ticket, waiting: list[Ticket]) -> Iterator[tuple[str, ...]]:
    """Who comes in, one after the other, at a gate for one."""
    while inside is not None:
        gate.leave(inside)
        inside = next((ticket for ticket in waiting if ticket.is_inside), None)
        if inside is not None:
            waiting.remove(inside)
            yield inside.caller


MANY, FEW, NEW = ("", "many"), ("", "few"), ("", "new")


def test_a_caller_with_a_thousand_requests_delays_another_by_one():
    gate = Gate(1, 1010)
    (inside,) = lined_up(gate, MANY)
    order = turns(gate, inside, lined_up(gate, *[MANY] * 1000, FEW, FEW, NEW))
    assert [next(order) for _ in range(6)] == [MANY, FEW, NEW, MANY, FEW, MANY]
    assert len(list(order)) == 997
    assert (gate.running, gate.waiting) == (0, 0)


def test_a_place_goes_to_who_has_the_fewest():
    gate = Gate(3, 9)
    first, second, third = lined_up(gate, MANY, MANY, FEW)
    waiting = lined_up(gate, MANY, FEW)
    gate.leave(first)
    # Both have one inside, and the turn of MANY was before.
    assert [ticket.is_inside for ticket in waiting] == [True, False]
    gate.leave(second)
    assert waiting[1].is_inside
    for ticket in (third, *waiting):
        gate.leave(ticket)
    assert gate.running == 0


def test_one_token_has_no_more_from_many_addresses():
    gate = Gate(1, 99)
    (inside,) = lined_up(gate, ("token", "10.0.0.1"))
    waiting = lined_up(
        gate, *(("token", f"10.0.0.{number}") for number in range(2, 9)), *[("other", "x")] * 3
    )
    assert [caller[0] for caller in turns(gate, inside, waiting)][:6] == ["token", "other"] * 3


def test_in_a_full_line_who_has_the_most_loses_the_newest():
    gate, woken = Gate(1, 4), []
    lined_up(gate, MANY)
    waiting = [gate.join(lambda n=n: woken.append(n), MANY) for n in range(4)]
    with pytest.raises(BusyError, match="1 requests are being answered and 4 wait; try again"):
        gate.join(lambda: None, MANY)
    (few,) = lined_up(gate, FEW)
    assert woken == [3]
    with pytest.raises(BusyError, match="4 wait"):
        waiting[3].check()
    lined_up(gate, NEW)
    assert woken == [3, 2]
    few.check()
    # Two, one and one: nobody has so much more that another one could come.
    with pytest.raises(BusyError):
        gate.join(lambda: None, FEW)
    assert (gate.running, gate.waiting) == (1, 4)


def test_what_was_let_in_enters_without_a_second_place():
    gate = Gate(1, 0)
    (ticket,) = lined_up(gate, FEW)
    with gate.held(), gate.enter():
        assert gate.running == 1
    with pytest.raises(BusyError):
        gate.enter().__enter__()
    gate.leave(ticket)
    gate.leave(ticket)
    assert gate.running == 0


def test_nothing_is_kept_of_those_who_left():
    gate = Gate(2, 3)
    tickets = lined_up(gate, *(("", str(number)) for number in range(5)))
    with pytest.raises(BusyError):
        gate.join(lambda: None, ("", "6"))
    for ticket in reversed(tickets):
        gate.leave(ticket)
    assert (gate.running, gate.waiting) == (0, 0)
    assert not gate._shares
    assert not gate._lines
