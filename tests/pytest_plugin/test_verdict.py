"""Limits held against recordings of real programs, and what the failure says."""

import gzip
from contextlib import contextmanager

import pytest

from peakline.errors import UsageError
from peakline.pytest import Recorder
from peakline.pytest.marks import Wanted
from peakline.pytest.verdict import verdict_of


class Recorded:
    """A framework whose profile was recorded before."""

    silence = "nothing was reported"

    def __init__(self, content, at_most=None):
        self._content = content
        self.at_most = at_most or {}
        self.log = []

    def start(self, folder):
        self._folder = folder / "plugins" / "profile" / "now"
        self._folder.mkdir(parents=True)

    @contextmanager
    def step(self, number):
        self.log.append(f"begin {number}")
        yield
        self.log.append("end")

    def stop(self):
        (self._folder / "host.xplane.pb").write_bytes(self._content)


@pytest.fixture
def recorded(root):
    made = []

    def record(name, at_most=None):
        file = root / "tests" / "data" / "programs" / f"{name}.xplane.pb.gz"
        recorder = Recorder()
        recorder.start(Recorded(gzip.decompress(file.read_bytes()), at_most))
        made.append(recorder)
        return recorder

    yield record
    for recorder in made:
        recorder.close()


def test_a_leak_breaks_the_limit_of_growth_and_is_named(recorded):
    verdict = verdict_of(recorded("leak_list"), Wanted(growth_bytes=100_000))
    assert len(verdict.broken) == 1
    assert verdict.broken[0].startswith("limit_growth_per_step: every step leaves ")
    assert "model/hidden/MatMul" in verdict.failure
    assert verdict.growth_bytes > 100_000


def test_its_healthy_twin_keeps_the_limit(recorded):
    verdict = verdict_of(recorded("leak_list_healthy"), Wanted(growth_bytes=100_000))
    assert (verdict.broken, verdict.failure) == ((), "")


def test_a_huge_temporary_breaks_the_limit_of_memory_and_is_named(recorded):
    verdict = verdict_of(recorded("huge_temporary"), Wanted(peak_bytes=30_000_000))
    assert verdict.broken[0].startswith("limit_device_memory: ")
    assert "distances/" in verdict.failure.splitlines()[1]
    assert verdict.peak_bytes > 30_000_000
    twin = verdict_of(recorded("huge_temporary_healthy"), Wanted(peak_bytes=30_000_000))
    assert twin.broken == ()


def test_only_the_named_allocator_is_held_to_the_limit(recorded):
    name = "bfc_cpu_allocator_for_gpu"
    verdict = verdict_of(recorded("huge_temporary"), Wanted(peak_bytes=1, peak_of=name))
    assert len(verdict.broken) == 1


def test_a_peak_that_may_have_been_higher_is_a_broken_limit(recorded):
    allocator = "bfc_cpu_allocator_for_gpu"
    wanted = Wanted(peak_bytes=10**9)
    sure = verdict_of(recorded("leak_list", {allocator: 10**9}), wanted)
    unsure = verdict_of(recorded("leak_list", {allocator: 10**9 + 1}), wanted)
    assert sure.broken == ()
    assert "limit_device_memory: cannot be measured: between " in unsure.failure


def test_a_recording_ends_at_the_first_look_and_has_steps_that_do_not_nest(recorded):
    recorder = recorded("leak_list")
    log = recorder._framework.log
    assert list(recorder.steps(2)) == [0, 1]
    with recorder.step(), pytest.raises(UsageError, match="a step is open already"):
        next(iter(recorder.steps(1)))
    for _ in recorder.steps(5):
        break
    assert log == ["begin 1", "end", "begin 2", "end", "begin 3", "end", "begin 4", "end"]
    assert recorder.steps_taken == 4
    assert recorder.memory().allocators[0].peak_bytes > 0
    with pytest.raises(UsageError, match="no step can begin"), recorder.step():
        pass
    recorder.close()
    assert not recorder._folder.exists()


def test_the_tests_own_error_leaves_the_step_and_is_the_one_seen(recorded):
    recorder = recorded("leak_list")
    with pytest.raises(ZeroDivisionError), recorder.step():
        raise ZeroDivisionError
    assert recorder._framework.log == ["begin 1", "end"]
    with recorder.step():
        recorder.stop()
    assert recorder._framework.log == ["begin 1", "end", "begin 2", "end"]


def test_what_was_never_begun_cannot_be_asked():
    with pytest.raises(UsageError, match="nothing was recorded"):
        Recorder().memory()
