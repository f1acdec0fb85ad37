"""No signal is lost, whichever thread the system gives it to and whatever the main thread does."""

import os
import signal
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import pytest
from tests.waiting import HANG_S, until

from peakline.service.foreground import END, RELOAD, EndedBySignal, Signals, leave

_ENDS = (signal.SIGINT, signal.SIGTERM)
_ALL = (*_ENDS, signal.SIGHUP)


@contextmanager
def _saved(signals):
    """A word that does not come fails the test instead of hanging it."""
    saved = threading.Timer(HANG_S, signals._words.put, ("none came",))
    saved.start()
    try:
        yield
    finally:
        saved.cancel()
        saved.join()


def _word(signals):
    """The next word."""
    with _saved(signals):
        return signals.wait()


@contextmanager
def _other_thread():
    """A thread that waits in a call of the system, and may be given signals."""
    over = threading.Event()
    thread = threading.Thread(target=over.wait)
    thread.start()
    yield thread
    over.set()
    thread.join()


@pytest.mark.parametrize("number", _ENDS)
def test_a_signal_is_a_word(number):
    with Signals() as signals:
        os.kill(os.getpid(), signal.SIGHUP)
        assert _word(signals) == RELOAD
        os.kill(os.getpid(), number)
        assert _word(signals) == END


@pytest.mark.parametrize(("number", "word"), [(signal.SIGTERM, END), (signal.SIGHUP, RELOAD)])
def test_the_main_thread_is_woken_by_a_signal_that_another_thread_gets(number, word):
    """Nothing interrupts the wait of the main thread then."""
    with Signals() as signals, _other_thread() as other, ThreadPoolExecutor(1) as pool:

        def send():
            # Before, the main thread would see the signal by itself.
            until(_main_thread_waits, "the wait below has begun")
            signal.pthread_kill(other.ident, number)

        sent = pool.submit(send)
        assert _word(signals) == word
        sent.result()


def _main_thread_waits():
    return sys._current_frames()[threading.main_thread().ident].f_code is Signals.wait.__code__


def test_a_burst_of_signals_hides_no_end():
    with Signals() as signals, _saved(signals):
        for _ in range(5000):
            os.kill(os.getpid(), signal.SIGHUP)
        os.kill(os.getpid(), signal.SIGTERM)
        words = [signals.wait()]
        while words[-1] == RELOAD:
            words.append(signals.wait())
    assert words[-1] == END
    assert 2 <= len(words) <= 5001


def test_everything_is_as_before_afterwards():
    mine = []
    woken, writing = os.pipe()
    os.set_blocking(writing, False)
    former = signal.signal(signal.SIGHUP, lambda number, _: mine.append(number))
    former_wakeup = signal.set_wakeup_fd(writing)
    handlers = [signal.getsignal(number) for number in _ALL]
    try:
        with Signals() as signals:
            os.kill(os.getpid(), signal.SIGHUP)
            assert _word(signals) == RELOAD
            assert mine == []
        assert [signal.getsignal(number) for number in _ALL] == handlers
        assert not any(thread.name == "signals" for thread in threading.enumerate())
        for end in (signals._numbers, signals._wakeup):
            with pytest.raises(OSError, match="Bad file descriptor"):
                os.fstat(end)
        os.kill(os.getpid(), signal.SIGHUP)
        assert mine == [signal.SIGHUP]
        assert os.read(woken, 10) == bytes([signal.SIGHUP])
        assert signal.set_wakeup_fd(former_wakeup) == writing
    finally:
        signal.set_wakeup_fd(former_wakeup)
        signal.signal(signal.SIGHUP, former)
        os.close(woken)
        os.close(writing)


_STUCK = """
import threading
from peakline.service.foreground import leave
from peakline.service.foreground import Signals
with Signals() as signals:
    print("ready", flush=True)
    print(signals.wait(), flush=True)
    STUCK
"""


@pytest.mark.parametrize("stuck", ["while True: pass", "threading.Event().wait()"])
@pytest.mark.parametrize("second", _ENDS)
def test_a_second_end_ends_a_process_whose_main_thread_is_stuck(stuck, second):
    code = _STUCK.replace("STUCK", stuck)
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as child:
        try:
            assert child.stdout.readline() == "ready\n"
            child.send_signal(signal.SIGTERM)
            assert child.stdout.readline() == "end\n"
            child.send_signal(second)
            assert child.wait(HANG_S) == 130
        finally:
            child.kill()


def test_a_second_end_cleans_up_and_ends_also_when_that_fails(tmp_path):
    kept = tmp_path / "kept"
    kept.touch()
    code = _STUCK.replace("STUCK", "threading.Event().wait()").replace(
        "Signals()", "Signals(clean)"
    )
    code = f"import os\ndef clean():\n    os.remove({str(kept)!r})\n    1 / 0\n{code}"
    command = [sys.executable, "-c", code]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as child:
        try:
            assert child.stdout.readline() == "ready\n"
            child.send_signal(signal.SIGINT)
            assert child.stdout.readline() == "end\n"
            child.send_signal(signal.SIGINT)
            assert child.wait(HANG_S) == 130
        finally:
            child.kill()
    assert not kept.exists()


def test_a_process_is_left_at_once_only_where_a_thread_has_not_ended(monkeypatch):
    codes = []
    monkeypatch.setattr(os, "_exit", codes.append)
    leave(ended=True)
    assert codes == []
    leave(ended=False)
    assert codes == [0]


def _end_the_block(numbers):
    """What the block ends with, and whether signals that come while it cleans up do nothing."""
    cleaned = False
    try:
        with EndedBySignal() as signals:
            try:
                for number in numbers:
                    os.kill(os.getpid(), number)
            finally:
                signals.armed = False
                for number in _ALL:
                    os.kill(os.getpid(), number)
                cleaned = True
    except (KeyboardInterrupt, SystemExit) as error:
        return type(error), error.args, cleaned
    return None, (), cleaned


@pytest.mark.parametrize(
    ("number", "kind", "words"),
    [
        (signal.SIGINT, KeyboardInterrupt, ()),
        (signal.SIGTERM, SystemExit, (143,)),
        (signal.SIGHUP, SystemExit, (129,)),
    ],
)
def test_a_signal_ends_a_block_and_none_its_cleaning_up(number, kind, words):
    handlers = [signal.getsignal(each) for each in _ALL]
    assert _end_the_block([number]) == (kind, words, True)
    assert _end_the_block([]) == (None, (), True)
    assert [signal.getsignal(each) for each in _ALL] == handlers
