"""Captures that end before their time, and those that wait for each other."""

import signal
import sys
import threading

import grpc
import pytest
from tests.capture.peers import BUSY, peer, profile_of, waiting_peer
from tests.capture.requests import LONG_MS, good, request_for, session_directory
from tests.waiting import HANG_S, EndedDeadline, growing, until

from peakline.capture import WorkerLocks, capture
from peakline.deadline import Deadline, within
from peakline.errors import CancelledError, DeadlineError, RemoteError
from peakline.repository import Repository


def test_a_hang_ends_with_the_timeout(repository):
    server, _, ended = waiting_peer()
    with server as hung:
        for seconds in growing():
            with pytest.raises(RemoteError, match="no answer within"):
                capture(request_for(hung.address, timeout_ms=round(1000 * seconds)), repository)
            if hung.requests:
                break
        assert ended.wait(HANG_S)
    assert not session_directory(repository).exists()


def test_cancelling_frees_the_profiler(repository):
    server, begun, ended = waiting_peer()
    deadline = Deadline()

    def cancel():
        begun.wait(HANG_S)
        deadline.cancel()

    with server as worker, within(deadline):
        thread = threading.Thread(target=cancel)
        thread.start()
        with pytest.raises(CancelledError):
            capture(request_for(worker.address), repository)
        thread.join()
        assert ended.wait(HANG_S)
    assert not session_directory(repository).exists()


def test_the_callers_deadline_ends_the_calls(repository):
    server, begun, ended = waiting_peer()
    deadline = EndedDeadline()

    def end():
        begun.wait(HANG_S)
        deadline.end()

    thread = threading.Thread(target=end)
    thread.start()
    with server as worker, within(deadline):
        with pytest.raises(DeadlineError):
            capture(request_for(worker.address), repository)
        assert ended.wait(HANG_S)
    thread.join()
    assert not session_directory(repository).exists()


def test_what_is_there_by_the_callers_deadline_is_kept(repository):
    server, begun, ended = waiting_peer()
    deadline = EndedDeadline()

    def progress(_host, state, _detail):
        if state == "stored":
            assert begun.wait(HANG_S)
            deadline.end()

    with server as slow, peer(good) as worker, within(deadline):
        request = request_for(slow.address, worker.address, names=["s", "w"])
        result = capture(request, repository, progress=progress)
        assert ended.wait(HANG_S)
    assert [outcome.state for outcome in result.outcomes] == ["failed", "stored"]
    assert "no answer within" in result.outcomes[0].error


def test_a_keyboard_interrupt_while_waiting(repository):
    server, begun, ended = waiting_peer()

    def interrupt(_host, state, _detail):
        if state == "recording":
            begun.wait(HANG_S)
            raise KeyboardInterrupt

    with server as worker:
        with pytest.raises(KeyboardInterrupt):
            capture(request_for(worker.address), repository, progress=interrupt)
        assert ended.wait(HANG_S)
    assert not session_directory(repository).exists()
    assert not [t for t in threading.enumerate() if t.name.startswith("capture ")]


def test_a_keyboard_interrupt_that_wakes_nobody(repository):
    """The system may give the signal to any thread: it does not end the wait of the main thread."""
    server, begun, ended = waiting_peer()

    def interrupt():
        begun.wait(HANG_S)
        main = threading.main_thread().ident
        until(lambda: sys._current_frames()[main].f_code.co_name == "wait_for", "it waits again")
        signal.pthread_kill(threading.get_ident(), signal.SIGINT)

    with server as worker:
        thread = threading.Thread(target=interrupt)
        thread.start()
        with pytest.raises(KeyboardInterrupt):
            capture(request_for(worker.address, timeout_ms=LONG_MS), repository)
        thread.join()
        assert ended.wait(HANG_S)
    assert not session_directory(repository).exists()


def test_captures_of_one_profiler_wait_for_each_other(tmp_path):
    running = threading.Lock()
    states = []

    def behave(_, context, number):
        if not running.acquire(blocking=False):
            context.abort(grpc.StatusCode.INTERNAL, BUSY)
        if number == 1:
            until(lambda: states.count("waiting") == 2, "the others wait")
        running.release()
        return profile_of()

    with peer(behave) as worker:

        def run(number):
            capture(
                request_for(
                    worker.address, session_id=f"s{number}", attempts=1, timeout_ms=LONG_MS
                ),
                Repository(tmp_path),
                progress=lambda _, state, __: states.append(state),
            )

        threads = [threading.Thread(target=run, args=(number,)) for number in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(HANG_S)
    assert len(Repository(tmp_path).sessions()) == 3
    assert states.count("stored") == 3


def test_locks_time_out_and_are_freed():
    locks = WorkerLocks()
    with (
        locks.hold("a:1", 1),
        pytest.raises(RemoteError, match="still running"),
        locks.hold("A:1", 0.1),
    ):
        pass
    assert not locks.is_held("a:1")
    with locks.hold("a:1", 1), locks.hold("a:2", 1):
        assert locks.is_held("a:1")
