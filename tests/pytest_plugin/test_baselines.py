"""Baselines by test: the file, what exceeds it, and the base that PyTorch's totals leave out."""

import json

import pytest
from tests.each_row import each_row

from peakline.errors import InputError, UsageError
from peakline.pytest.baselines import Baselines, hold, read_baselines, tolerance_of
from peakline.pytest.frameworks import add_before

PEAK, GROWTH = ("peak", "cpu:0"), ("growth per step", "cpu:0")
MIB = float(1 << 20)


def test_the_file_holds_the_latest_runs_of_every_test(tmp_path):
    path = tmp_path / "figures.json"
    found = read_baselines(path)
    assert found.runs == {}
    for size in range(30):
        found.add("test_b.py::test", {PEAK: size})
    found.add("test_a.py::test", {PEAK: 1.5, GROWTH: 0})
    found.write()
    again = read_baselines(path)
    assert again == Baselines(path, found.runs)
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
