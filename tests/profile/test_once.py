"""What is made once for each profile, and who waits for whom meanwhile."""

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from tests.hanging import HANG_S
from tests.profile.fake import FakeReader

from peakline.errors import UsageError
from peakline.tables import Profile
from peakline.tables.once import once


def _reader():
    return FakeReader({"steps": []})


@pytest.fixture
def profile():
    with Profile(_reader()) as found:
        yield found


def test_it_is_made_once_for_each_profile_and_argument(profile):
    calls = []

    @once
    def made(_profile, number=0, *, word=""):
        calls.append((number, word))
        return [number]

    assert made(profile) is made(profile)
    assert made(profile, 1) is made(profile, 1)
    assert made(profile, word="a") is not made(profile)
    with Profile(_reader()) as other:
        assert made(other) is not made(profile)
    assert calls == [(0, ""), (1, ""), (0, "a"), (0, "")]


def test_after_an_error_it_is_tried_again(profile):
    errors = [ValueError("no")]

    @once
    def made(_):
        if errors:
            raise errors.pop()
        return 7

    with pytest.raises(ValueError, match="no"):
        made(profile)
    assert made(profile) == 7


def test_a_result_counts_as_retained_and_ends_with_the_profile():
    @once
    def made(_):
        return bytes(100_000)

    profile = Profile(_reader())
    before = profile.nbytes, profile.held
    made(profile)
    assert (profile.nbytes - before[0]) // 100_000 == 1
    assert profile.held > before[1]
    profile.close()
    with pytest.raises(UsageError, match="closed"):
        made(profile)


def test_who_wants_the_same_waits_and_who_wants_another_does_not(profile):
    begun, other_is_made = threading.Event(), threading.Event()
    calls = []

    @once
    def slow(_):
        calls.append("slow")
        begun.set()
        assert other_is_made.wait(HANG_S)
        return object()

    @once
    def quick(_):
        return "quick"

    with ThreadPoolExecutor(2) as threads:
        first = threads.submit(slow, profile)
        assert begun.wait(HANG_S)
        second = threads.submit(slow, profile)
        assert quick(profile) == "quick"
        assert profile.tables
        other_is_made.set()
        assert first.result(HANG_S) is second.result(HANG_S)
    assert calls == ["slow"]


def test_no_lock_is_held_that_a_table_needs(profile):
    table = next(name for name in profile.tables if name != "warnings")
    begun, is_read = threading.Event(), threading.Event()

    @once
    def slow(_):
        begun.set()
        assert is_read.wait(HANG_S)

    with ThreadPoolExecutor(1) as threads:
        waiting = threads.submit(slow, profile)
        assert begun.wait(HANG_S)
        profile.columns(table)
        is_read.set()
        waiting.result(HANG_S)
