"""The recorded jobs of `tests/data/jobs`, read in the simplest way: they are as planted."""

import gzip
import json
from collections import defaultdict
from pathlib import Path

import pytest

from peakline.schema import XSpace

DATA = Path(__file__).parents[1] / "data" / "jobs"
TRUTHS = {path.parent.name: json.loads(path.read_text()) for path in DATA.glob("*/truth.json")}
SLOW = sorted(set(TRUTHS) - {"ddp_fat"})


def union(intervals):
    """The length of what intervals cover."""
    total, until = 0, float("-inf")
    for begin, end in sorted(intervals):
        total += max(0, end - max(begin, until))
        until = max(until, end)
    return total


def trace_of(name, file):
    return json.loads(gzip.decompress((DATA / name / file).read_bytes()))


def in_collectives(name, variant):
    """By rank (or device), the share of its time that it is in collectives."""
    files = TRUTHS[name][variant]["files"]
    if name == "jax_devices":
        return shares(xspace_collectives(DATA / name / files["0"], "device_ordinal"))
    result = {}
    for rank, file in files.items():
        if name == "tf_workers":
            (spans,) = xspace_collectives(DATA / name / file, "group_key").values()
            result[rank] = spans
        else:
            events = trace_of(name, file)["traceEvents"]
            result[int(rank)] = [
                (event["ts"], event["ts"] + event["dur"])
                for event in events
                if event["name"].startswith("gloo:")
            ]
    return shares(result)


def xspace_collectives(path, key):
    """The collectives of an XSpace by a stat that only these have."""
    space = XSpace.FromString(gzip.decompress(path.read_bytes()))
    result = defaultdict(list)
    for plane in space.planes:
        names = {number: entry.name for number, entry in plane.stat_metadata.items()}
        for line in plane.lines:
            for event in line.events:
                name = plane.event_metadata[event.metadata_id].name
                if name.startswith("psum") or name.endswith(":CollectiveReduceV2"):
                    stats = {names[stat.metadata_id]: stat.int64_value for stat in event.stats}
                    begin = line.timestamp_ns * 1000 + event.offset_ps
                    result[stats[key]].append((begin, begin + event.duration_ps))
    return result


def shares(spans):
    spans = {int(rank): each for rank, each in spans.items()}
    length = {
        rank: max(end for _, end in each) - min(begin for begin, _ in each)
        for rank, each in spans.items()
    }
    return {rank: union(each) / length[rank] for rank, each in spans.items()}


@pytest.mark.parametrize("name", SLOW)
def test_who_has_the_cause_waits_least(name):
    truth = TRUTHS[name]
    faulty = in_collectives(name, "faulty")
    assert len(faulty) == truth["ranks"]
    root = truth["faulty"]["root"]["rank"]
    others = [share for rank, share in faulty.items() if rank != root]
    assert faulty[root] < 0.75 * min(others)
    assert truth["healthy"]["root"] is None
    assert len(in_collectives(name, "healthy")) == truth["ranks"]
    assert truth["faulty"]["step_ms"] > 1.25 * truth["without_ms"]


def test_traces_say_their_rank_and_whole_steps():
    for name, truth in TRUTHS.items():
        if truth["program"].startswith("tests/jobs/programs/torch"):
            for variant in ("faulty", "healthy"):
                for rank, file in truth[variant]["files"].items():
                    trace = trace_of(name, file)
                    info = trace["distributedInfo"]
                    assert (info["rank"], info["world_size"]) == (int(rank), truth["ranks"])
                    steps = [
                        event["dur"] / 1000
                        for event in trace["traceEvents"]
                        if event["name"].startswith("ProfilerStep")
                    ]
                    clock = truth[variant]["steps_ms"][rank]
                    assert len(steps) == len(clock)
                    assert steps[1:] == pytest.approx(clock[1:], rel=0.1)


def test_the_fat_rank_holds_more_and_the_others_the_same():
    truth = TRUTHS["ddp_fat"]
    for variant in ("faulty", "healthy"):
        peaks = dict(truth[variant]["peak_bytes"])
        first = peaks.pop("0")
        assert max(peaks.values()) - min(peaks.values()) < 0.02 * max(peaks.values())
        is_fat = first > 1.5 * max(peaks.values())
        assert is_fat == (variant == "faulty")
