"""Simulated sessions of hosts and snapshots of ranks, read again in the simplest way."""

import pickle
from collections import Counter

import pytest
from tests.each_row import each_row
from tests.jobs.snapshots import fat_rank_zero, pipeline, sharded, write_snapshots
from tests.jobs.xspace_hosts import CORES, xspace_hosts

from peakline.schema import XSpace

MIB = 1 << 20


def all_reduces_of(path):
    """By core, when each all-reduce began and ended: ns by the host's clock."""
    space = XSpace.FromString(path.read_bytes())
    (began,) = [
        stat.uint64_value
        for plane in space.planes
        for stat in plane.stats
        if plane.stat_metadata[stat.metadata_id].name == "profile_start_time"
    ]
    return [
        [
            (began + event.offset_ps / 1000, began + (event.offset_ps + event.duration_ps) / 1000)
            for event in line.events
            if plane.event_metadata[event.metadata_id].display_name.startswith("all-reduce")
        ]
        for plane in space.planes
        for line in plane.lines
        if line.name == "XLA Ops"
    ]


@each_row("cause, costs_ms", [("slow kernels", 2.5), ("slow input", 6.0)])
def test_hosts_leave_all_reduces_together_and_the_slow_one_comes_last(tmp_path, cause, costs_ms):
    folder = tmp_path / cause
    truth = xspace_hosts(folder, 3, slow=1, cause=cause)
    assert truth.step_ps - truth.without_ps == pytest.approx(costs_ms * 1e9, rel=0.2)
    paths = [folder / name for name in truth.files.values()]
    assert all(150_000 < path.stat().st_size < 178_000 for path in paths)
    cores = [core for path in paths for core in all_reduces_of(path)]
    assert len(cores) == 3 * CORES
    last = []
    for members in zip(*cores, strict=True):
        begins, ends = zip(*members, strict=True)
        if max(ends) - min(ends) < 10_000:
            assert max(begins) < min(ends)
            last.append(begins.index(max(begins)) // CORES)
    steps = len(truth.steps[0]) + 1
    assert len(last) >= 4 * steps, "the gradients of every step are of all cores"
    assert Counter(last).most_common(1)[0][0] == 1
    assert xspace_hosts(folder / "healthy", 3).step_ps == truth.without_ps


@each_row(
    "name, shapes, peaks_mib",
    [
        ("fat", fat_rank_zero(3), {0: 1440, 1: 1184, 2: 1184}),
        ("pipeline", pipeline(4), {0: 704, 1: 576, 2: 512, 3: 576}),
        ("sharded", sharded(4, whole=2), {0: 420, 1: 420, 2: 852, 3: 420}),
    ],
)
def test_snapshots_hold_what_their_truth_says(tmp_path, name, shapes, peaks_mib):
    truth = write_snapshots(tmp_path / name, shapes)
    assert {rank: peak // MIB for rank, peak in truth.peak_bytes.items()} == peaks_mib
    for rank, file in truth.files.items():
        snapshot = pickle.loads((tmp_path / name / file).read_bytes())  # noqa: S301
        live, peak = {}, 0
        for entry in snapshot["device_traces"][rank]:
            if entry["action"] == "alloc":
                assert entry["addr"] not in live
                live[entry["addr"]] = entry["size"]
            elif entry["action"] == "free_completed":
                assert live.pop(entry["addr"]) == entry["size"]
            peak = max(peak, sum(live.values()))
        assert peak == truth.peak_bytes[rank] == sum(truth.at_peak[rank].values())
        allocated = sum(segment["allocated_size"] for segment in snapshot["segments"])
        assert allocated == sum(live.values())
    cached = ("/srv/train/evaluate.py", 57)
    assert {rank for rank, lines in truth.at_peak.items() if cached in lines} == (
        {0} if name == "fat" else set()
    )
