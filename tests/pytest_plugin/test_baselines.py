"""Baselines and verdicts."""

import gzip
import json
from contextlib import contextmanager

import pytest
from tests.each_row import each_row

from peakline.errors import InputError, UsageError
from peakline.pytest import Recorder
from peakline.pytest.baselines import Baselines, hold, read_baselines, tolerance_of
from peakline.pytest.frameworks import add_before
from peakline.pytest.marks import Wanted
from peakline.pytest.verdict import verdict_of

PEAK, GROWTH = ("peak", "cpu:0"), ("growth per step", "cpu:0")
MIB = float(1 << 20)


def test_the_file_holds_the_latest_runs_of_every_test(tmp_path):
    path = tmp_path / "figures.json"
    result = read_baselines(path)
    assert result.runs == {}
    for size in range(30):
        result.add("test_b.py::test", {PEAK: size})
    result.add("test_a.py::test", {PEAK: 1.5, GROWTH: 0})
    result.write()
    again = read_baselines(path)
    assert again == Baselines(path, result.runs)
    assert list(json.loads(path.read_bytes())["peakline_tests"]) == [
        "test_a.py::test",
        "test_b.py::test",
    ]
    assert [run[PEAK] for run in again.runs["test_b.py::test"]] == list(range(10, 30))
    again.add("test_b.py::test", {PEAK: 7}, anew=True)
    assert again.runs["test_b.py::test"] == [{PEAK: 7}]


@each_row(
    "content",
    ["", "[]", "{}", '{"peakline_tests": []}', '{"peakline_tests": {"t": [[{"name": 1}]]}}',
     '{"peakline_tests": {"t": [[{"name": "", "of": "", "value": true}]]}}'],
)  # fmt: skip
def test_another_file_is_refused(tmp_path, content):
    path = tmp_path / "figures.json"
    path.write_text(content)
    with pytest.raises(InputError, match="is no file of --peakline-update-baseline"):
        read_baselines(path)


@each_row(
    ("run", "before", "tolerance", "line"),
    [
        ({PEAK: 104 * MIB}, [{PEAK: 100 * MIB}], None, ""),
        ({PEAK: 106 * MIB}, [{PEAK: 100 * MIB}], None,
         "baseline: peak 106.0 MiB, baseline 100.0 MiB (1 run), 105.0 MiB allowed (cpu:0)"),
        ({PEAK: 102 * MIB}, [{PEAK: 100 * MIB}] * 5, None,
         "baseline: peak 102.0 MiB, baseline 100.0 MiB ± 0 B (5 runs), 101.0 MiB allowed (cpu:0)"),
        ({PEAK: 106 * MIB}, [{PEAK: 100 * MIB}] * 5, 0.1, ""),
        ({PEAK: 1 * MIB, GROWTH: 1000}, [{PEAK: 1 * MIB, GROWTH: 0}], None, ""),
        ({PEAK: 1 * MIB, GROWTH: 2048}, [{PEAK: 1 * MIB, GROWTH: 0}], None,
         "baseline: growth per step 2.0 KiB, baseline 0 B (1 run), 1.0 KiB allowed (cpu:0)"),
        ({PEAK: 1 * MIB}, [{PEAK: 1 * MIB, GROWTH: 0}], None,
         "baseline: growth per step: cannot be measured in this run (cpu:0)"),
        ({PEAK: 1 * MIB}, [{PEAK: 1 * MIB, GROWTH: 0}, {PEAK: 1 * MIB}], None, ""),
        ({PEAK: 1}, [], None,
         "baseline: has no entry of this test; --peakline-update-baseline adds it (t)"),
    ],
)  # fmt: skip
def test_what_exceeds_the_runs_before_is_a_line(run, before, tolerance, line):
    assert hold("t", run, before, tolerance) == ([line] if line else [])


def test_the_tolerance_of_a_mark():
    assert (tolerance_of(None), tolerance_of("5%"), tolerance_of(0.05)) == (None, 0.05, 0.05)
    with pytest.raises(UsageError, match="is no share"):
        tolerance_of("5")
    with pytest.raises(UsageError, match=r"not \[0.05\]"):
        tolerance_of([0.05])


def test_what_lived_before_is_in_every_total_of_the_cpu():
    def record(kind, total):
        return {"name": "[memory]", "args": {"Device Type": kind, "Total Allocated": total}}

    trace = {"traceEvents": [record(0, 5), record(1, 5), {"name": "aten::add"}]}
    add_before(trace, 100)
    assert [event["args"]["Total Allocated"] for event in trace["traceEvents"][:2]] == [105, 5]


def test_where_nothing_was_allocated_what_lived_before_is_a_record(tmp_path):
    import peakline

    trace = {"traceEvents": [
        {"ph": "X", "cat": "cpu_op", "name": "aten::add", "pid": 1, "tid": 1, "ts": 5.0, "dur": 1.0}
    ]}  # fmt: skip
    add_before(trace, 4096)
    path = tmp_path / "test.pt.trace.json"
    path.write_text(json.dumps({"schemaVersion": 1} | trace))
    with peakline.open(path) as profile:
        (peak,) = profile.memory().allocators
    assert peak.peak_bytes == 4096


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
