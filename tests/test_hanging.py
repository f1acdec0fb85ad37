import re
import signal

import pytest

from tests.each_row import each_row
from tests.hanging import no_hang


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
