"""The recordings of programs under limits are whole, and agree with what really happened."""

import gzip
import itertools
import json
from pathlib import Path

from peakline.schema import XSpace
from tests.each_row import each_row
from tests.fit.record import (
    ALLOCATION,
    COUNT,
    DATA,
    DEALLOCATION,
    OUTCOMES,
    REQUEST,
    WITHOUT_LIMIT,
    names,
    rows_of,
)

PROGRAMS = Path(__file__).with_name("programs")
KNOWN = json.loads(OUTCOMES.read_text())
FILES = [(name, file) for name in KNOWN for file in KNOWN[name]["recordings"]]
FAILED = [(name, file) for name, file in FILES if not KNOWN[name]["recordings"][file]["fits"]]
WAIT_PS = 9_900 * 10**9
"""A request that does not fit waits for 10 s before the program fails."""


def rows(name: str, file: str) -> list[dict]:
    packed = (DATA / name / f"{file}.xplane.pb.gz").read_bytes()
    return list(rows_of(XSpace.FromString(gzip.decompress(packed))))


def test_every_program_has_outcomes_and_recordings_and_they_are_small():
    assert sorted(KNOWN) == names()
    stored = {path for name in KNOWN for path in (DATA / name).iterdir()}
    expected = {DATA / name / f"{file}.xplane.pb.gz" for name, file in FILES}
    expected |= {DATA / name / f"failed_{file}.log.gz" for name, file in FAILED}
    assert stored == expected
    assert sum(path.stat().st_size for path in stored) < 2_500_000
    assert len(FAILED) >= 3


@each_row("name", KNOWN)
def test_a_program_was_run_on_both_sides_of_its_smallest_limit(name):
    runs = KNOWN[name]["runs"]
    assert len(runs) >= 6
    assert {run["fits"] for tried in runs.values() for run in tried} == {False, True}
    assert min(map(len, runs.values())) >= (5 if KNOWN[name]["threads"] > 1 else 1)


@each_row(("name", "file"), FILES)
def test_a_recording_begins_before_the_first_allocation_and_misses_nothing(name, file):
    known, held, in_use, peak = KNOWN[name]["recordings"][file], {}, 0, 0
    result = rows(name, file)
    assert len(result) == known["events"]
    assert {row["name"] for row in result} <= {ALLOCATION, DEALLOCATION}
    for row in result:
        if row["name"] == ALLOCATION:
            assert row["addr"] not in held
            held[row["addr"]] = row["allocation_bytes"]
            in_use += row["allocation_bytes"]
            peak = max(peak, in_use)
        else:
            in_use -= held.pop(row["addr"])
        assert (row["bytes_allocated"], row["peak_bytes_in_use"]) == (in_use, peak)
        assert row["bytes_allocated"] + row["bytes_available"] == known["limit"] << 20
    if known["fits"]:
        allocations = sum(row["name"] == ALLOCATION for row in result)
        assert (allocations, peak) == (known["allocations"], known["peak_bytes"])


@each_row(("name", "file"), FAILED)
def test_a_failed_recording_waits_where_its_log_says(name, file):
    known = KNOWN[name]["recordings"][file]
    log = gzip.decompress((DATA / name / f"failed_{file}.log.gz").read_bytes()).decode()
    assert int(REQUEST.search(log)[1]) == known["failing_bytes"]
    assert int(COUNT.search(log)[1]) == known["allocations"]
    result = rows(name, file)
    pauses = itertools.pairwise([row["time_ps"] for row in result])
    before = next(number for number, (a, b) in enumerate(pauses, 1) if b - a > WAIT_PS)
    assert sum(row["name"] == ALLOCATION for row in result[:before]) == known["allocations"]


@each_row("name", KNOWN)
def test_the_number_of_threads_is_what_the_program_declares(name):
    source = (PROGRAMS / f"{name}.py").read_text()
    assert f"\nTHREADS = {KNOWN[name]['threads']}\n" in source


def test_without_a_limit_every_program_was_recorded():
    assert [name for name in KNOWN if str(WITHOUT_LIMIT) not in KNOWN[name]["recordings"]] == []
