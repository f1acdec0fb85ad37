"""The devices of XLA on CPUs: what ran for each, and which one the others wait for."""

import gzip
from collections import defaultdict
from itertools import pairwise

import pytest
from tests.each_row import each_row

import peakline
from peakline import findings, jobs
from peakline.schema import XSpace
from peakline.timing.ops.host_devices import host_devices_of
from peakline.trace.intervals import total


@pytest.fixture
def recorded(root):
    def path(which):
        (file,) = (root / "tests/data/jobs/jax_devices" / which).rglob("*.xplane.pb.gz")
        return file

    return path


def read_plainly(path):
    """How long each ordinal runs ops, collectives apart, by the file's own stats."""
    space = XSpace.FromString(gzip.decompress(path.read_bytes()))
    spans = defaultdict(lambda: ([], []))
    for plane in space.planes:
        names = {number: entry.name for number, entry in plane.stat_metadata.items()}
        for line in plane.lines:
            for event in line.events:
                stats = {names[stat.metadata_id]: stat.int64_value for stat in event.stats}
                if {"device_ordinal", "hlo_op"} <= stats.keys():
                    begin = line.timestamp_ns * 1000 + event.offset_ps
                    name = plane.event_metadata[event.metadata_id].name
                    waits = name.startswith("psum")
                    spans[stats["device_ordinal"]][waits].append((begin, begin + event.duration_ps))
    return spans


def moments(spans):
    """The same as a set of picoseconds is too large: its length, by sweeping."""
    points = sorted([(begin, 1) for begin, _ in spans] + [(end, -1) for _, end in spans])
    length = depth = 0
    for (at, step), (until, _) in pairwise(points):
        depth += step
        length += (until - at) * (depth > 0)
    return length


def test_what_a_device_does_is_what_its_ordinal_says(recorded):
    path = recorded("faulty")
    plain = read_plainly(path)
    with peakline.open(str(path)) as profile:
        devices = host_devices_of(profile)
    assert [one.name for one in devices] == [f"/device:CPU:{n}" for n in range(4)]
    for ordinal, one in enumerate(devices):
        work, waits = plain[ordinal]
        assert one.events.size == len(work) + len(waits)
        assert total(one.communication) == pytest.approx(moments(waits), abs=2000 * len(waits))
        both = moments(work + waits) - moments(waits)
        assert total(one.computes) == pytest.approx(both, abs=2000 * len(work))


def test_the_device_with_more_work_is_named(recorded):
    with peakline.open(str(recorded("faulty"))) as profile:
        (one,) = [f for f in findings.answer_time(profile).findings if f.kind == "straggler"]
        answer = jobs.answer_of([("vm", jobs.contribution_of(profile))])
    assert one.evidence["device"] == "/device:CPU:2"
    assert one.evidence["often"] == 1
    assert one.rows[0]["device"] == "/device:CPU:2"
    (root,) = answer.roots
    assert answer.job.members[root.fault.member].title == "vm /device:CPU:2"
    assert root.cause.kind == "more_work"
    # 60 rounds of a loop where the others have 3.
    assert (root.cause.rows[0].own_count, root.cause.rows[0].peer_count) == (60, 3)
    assert abs(answer.replay.error) < 0.01


@each_row("folder", ["tests/data/jobs/jax_devices/healthy", "tests/data/sessions/jax_cpu"])
def test_no_device_is_named_where_they_do_the_same(root, folder):
    for path in (root / folder).rglob("*.xplane.pb*"):
        with peakline.open(str(path)) as profile:
            kinds = [one.kind for one in findings.answer_time(profile).findings]
            answer = jobs.answer_of([("vm", jobs.contribution_of(profile))])
        assert "straggler" not in kinds
        assert answer.roots == ()
