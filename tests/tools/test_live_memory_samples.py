"""The ``live_memory`` tool on every sample: to the byte what ``peakline memory --at`` says."""

import json
import random
from collections import Counter
from itertools import pairwise

from tests.engine.ending import DATA
from tests.shared import shared
from tests.sweeps import each_sample
from tests.tools.live_scopes import assert_adds_up

from peakline.findings.memory_answer import answer_memory
from peakline.memory.peak.moments import memory_at
from peakline.memory.signatures import normal_shape
from peakline.tools.live_memory import MOST_ROWS

SPECIAL = {"(before profile)", "(reserved)", "(unattributed)"}
SAMPLES = sorted(
    path
    for folder in ("sessions", "programs", "run_metadata", "memory_log", "oom_report", "pprof",
                   "chrome_trace")
    for path in (DATA / folder).glob("**/*")
    if path.is_file() and path.suffix in {".pb", ".gz"}
)  # fmt: skip


def ask(profile, **parameters):
    return json.loads(profile.tool("live_memory", **parameters).content)


@each_sample("path", SAMPLES)
def test_every_sample_adds_up_and_is_the_memory_answer(path):
    profile = shared(path)
    answer = answer_memory(profile)
    if answer.history is None:
        assert ask(profile)["allocators"] == []
        return
    told = ask(profile)
    for one, peak in zip(told["allocators"], answer.allocators, strict=True):
        assert one.items() <= peak.as_json().items()
    rng = random.Random(path.name)
    for peak in answer.allocators:
        assert_equal(profile, peak, allocator=peak.allocator)
        for _ in range(3):
            at = rng.randint(told["start_ps"], told["end_ps"])
            expected = memory_at(answer.history, at, allocator=peak.allocator)
            if expected:
                assert_equal(profile, expected[0], allocator=peak.allocator, at_ps=at)


def assert_equal(profile, expected, **parameters):
    found = ask(profile, limit=MOST_ROWS, scopes=True, **parameters)
    assert found["bytes_in_use"] == expected.peak_bytes
    assert found["record_ps"] == expected.peak_time_ps
    assert found["step_id"] == expected.peak_step
    assert found["fragmentation"] == expected.fragmentation_at_peak
    rows = found["rows"]
    assert found["rows_total"] == len(rows)
    assert sum(row["bytes"] for row in rows) == found["rows_bytes"] == expected.peak_bytes
    assert summed((labels(row), row["bytes"]) for row in rows) == summed(
        (labels({name: getattr(one, name) for name in one.__slots__}), one.bytes)
        for one in expected.peak_buffers
    )
    by_op = summed((row["op"], row["bytes"]) for row in rows)
    positive = sum(size for size in by_op.values() if size > 0)
    if positive:
        assert_adds_up(found["scopes"], positive)
    for group in ("op", "scope", "region_type", "data_type", "shape", "step"):
        grouped = ask(profile, group=group, limit=MOST_ROWS, **parameters)
        assert sum(row["bytes"] for row in grouped["rows"]) == expected.peak_bytes


def labels(row):
    """What the memory answer groups buffers by; what was there before is one row of it."""
    if row["op"] in SPECIAL:
        return row["op"]
    return (
        row["op"], row["region_type"], row["data_type"], normal_shape(row["shape"]),
        row["start_step"],
    )  # fmt: skip


def summed(pairs):
    total = Counter()
    for key, size in pairs:
        total[key] += size
    return {key: size for key, size in total.items() if size}


@each_sample("path", SAMPLES)
def test_records_come_in_the_order_of_time_and_sequence(path):
    profile = shared(path)
    if "allocator_events" not in profile.tables:
        return
    events = profile.columns("allocator_events")
    keys = list(
        zip(events.array("time_ps").tolist(), events.array("sequence").tolist(), strict=True)
    )
    assert all(one < other for one, other in pairwise(keys))
