"""Shared profiles: opened once, given up when too many, closed only when nobody uses them."""

import os
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from tests.engine.ending import DATA, EndingAt, session_of
from tests.waiting import HANG_S, EndedDeadline, until

from peakline.deadline import within
from peakline.engine import ProfileCache
from peakline.errors import DeadlineError, NotFoundError, UnknownFormatError, UsageError
from peakline.tables import Profile

MULTIHOST = DATA / "sessions/tf2_multihost/plugins/profile/2026_11_20_17_33_46"
ONE = MULTIHOST / "localhost_47507.xplane.pb"
OTHER = MULTIHOST / "localhost_56665.xplane.pb"
PLENTY = 1 << 30


@pytest.fixture
def hosts(tmp_path):
    """Three hosts with real profiles."""
    names = {"a.xplane.pb": ONE, "b.xplane.pb": OTHER, "c.xplane.pb": ONE}
    return session_of(tmp_path, names).hosts()


def is_open(profile) -> bool:
    try:
        profile.columns("planes")
    except UsageError:
        return False
    return True


def counts(cache: ProfileCache) -> tuple[int, int, int, int]:
    stats = cache.stats()
    return stats.hits, stats.misses, stats.evictions, stats.profiles


def test_the_same_content_is_opened_once(hosts):
    cache = ProfileCache(PLENTY)
    with cache.lease(hosts[0]) as first, cache.lease(hosts[0]) as second:
        assert first is second
    with cache.lease(hosts[0]) as third:
        assert third is first
    assert counts(cache) == (2, 1, 0, 1)


def test_many_at_once_open_once(hosts):
    cache = ProfileCache(PLENTY)
    start = threading.Barrier(16)

    def ask(_):
        start.wait()
        with cache.lease(hosts[0]) as profile:
            return id(profile)

    with ThreadPoolExecutor(16) as pool:
        assert len(set(pool.map(ask, range(16)))) == 1
    assert counts(cache) == (15, 1, 0, 1)


def test_it_knows_how_much_it_holds(hosts):
    cache = ProfileCache(PLENTY)
    with cache.lease(hosts[1]) as profile:
        profile.columns("events")
    assert cache.stats().bytes == profile.nbytes
    # 16 columns of 4 to 8 bytes per event, twice where the reader keeps what it was made of.
    assert 20 * profile.columns("events").rows < profile.nbytes < 1 << 24
    cache.clear()
    assert (cache.stats().bytes, cache.stats().profiles) == (0, 0)
    assert not is_open(profile)


def test_what_takes_long_to_look_at_is_looked_at_seldom(hosts, monkeypatch):
    looks = []
    real = Profile.nbytes.fget

    def slow(profile):
        looks.append(profile)
        time.sleep(0.01)
        return real(profile)

    monkeypatch.setattr(Profile, "nbytes", property(slow))
    monkeypatch.setattr("peakline.engine.profile_cache._MOST_SHARE", 1e-9)
    cache = ProfileCache(PLENTY)
    for _ in range(5):
        with cache.lease(hosts[1]):
            pass
    assert len(looks) == 1
    with cache.lease(hosts[1]) as profile:
        profile.columns("events")
    assert len(looks) == 2
    assert cache.stats().bytes == real(profile)


def test_the_least_recently_used_goes_first(hosts):
    cache = ProfileCache(PLENTY, max_profiles=2)
    opened = {}
    for number in (0, 1, 0, 2):
        with cache.lease(hosts[number]) as opened[number]:
            pass
    assert [is_open(opened[number]) for number in (0, 1, 2)] == [True, False, True]
    assert counts(cache) == (1, 3, 1, 2)


def test_bytes_are_bounded_too(hosts):
    cache = ProfileCache(1)
    with cache.lease(hosts[0]) as profile:
        profile.columns("events")
    assert not is_open(profile)
    assert (cache.stats().bytes, cache.stats().profiles) == (0, 0)


def test_nothing_in_use_is_closed(hosts):
    cache = ProfileCache(PLENTY, max_profiles=1)
    with cache.lease(hosts[0]) as first:
        with cache.lease(hosts[1]) as second:
            with cache.lease(hosts[0]) as again:
                assert again is first
            assert is_open(first)
            assert is_open(second)
            cache.clear()
            assert is_open(second)
        assert not is_open(second)
        assert is_open(first)
    assert not is_open(first)


def test_a_changed_file_is_read_anew_and_the_old_one_given_up(hosts):
    cache = ProfileCache(PLENTY)
    with cache.lease(hosts[0]) as before:
        content = OTHER.read_bytes()
        new = hosts[0].path + ".new"
        with open(new, "wb") as file:  # noqa: PTH123 (as another program would)
            file.write(content)
        os.replace(new, hosts[0].path)  # noqa: PTH105
        with cache.lease(hosts[0]) as after:
            assert after is not before
            assert after.columns("planes").rows > 0
        assert is_open(before)
    assert not is_open(before)
    assert counts(cache)[3] == 1


def test_what_is_not_kept_is_closed_and_what_is_there_is_used(hosts):
    cache = ProfileCache(PLENTY)
    with cache.lease(hosts[0], keep=False) as passing:
        assert counts(cache) == (0, 0, 0, 0)
    assert not is_open(passing)
    with cache.lease(hosts[0]) as chosen, cache.lease(hosts[0], keep=False) as same:
        assert same is chosen
    assert is_open(chosen)


def test_what_cannot_be_opened_is_an_error_each_time(tmp_path):
    (tmp_path / "text").write_text("nothing of any kind")
    (host,) = session_of(tmp_path / "logs", {"a.profile": tmp_path / "text"}).hosts()
    cache = ProfileCache(PLENTY)
    for _ in range(2):
        with pytest.raises(UnknownFormatError), cache.lease(host):
            pass
    os.unlink(host.path)  # noqa: PTH108
    with pytest.raises(NotFoundError), cache.lease(host):
        pass
    assert counts(cache) == (0, 0, 0, 0)


def test_an_opening_that_is_ended_leaves_nothing_behind(hosts):
    cache = ProfileCache(PLENTY)
    with within(EndingAt(1)), pytest.raises(DeadlineError), cache.lease(hosts[0]):
        pass
    assert counts(cache) == (0, 0, 0, 0)
    with cache.lease(hosts[0]) as profile:
        assert is_open(profile)


def test_waiting_for_a_lock_of_the_profile_ends_too(hosts):
    """One reads, or computes; the other one's deadline does not wait for it."""
    cache = ProfileCache(PLENTY)
    locked, go_on = threading.Event(), threading.Event()

    def keep_busy() -> None:
        with cache.lease(hosts[0]) as profile, profile._lock:
            locked.set()
            go_on.wait(HANG_S)

    def end() -> None:
        main = threading.main_thread().ident
        until(lambda: sys._current_frames()[main].f_code.co_name == "holding", "it waits")
        deadline.end()

    threads = [threading.Thread(target=one) for one in (keep_busy, end)]
    threads[0].start()
    assert locked.wait(HANG_S)
    deadline = EndedDeadline()
    with within(deadline), cache.lease(hosts[0]) as profile:
        threads[1].start()
        with pytest.raises(DeadlineError):
            profile.columns("events")
    go_on.set()
    for thread in threads:
        thread.join(HANG_S)
    assert profile.columns("events").rows > 0
