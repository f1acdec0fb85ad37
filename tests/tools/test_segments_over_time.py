"""Segments over time of the ``address_map`` tool, against the pickle read plainly, page by page."""

import gzip
import json
import math
import pickle

import pytest
from tests.each_row import each_row
from tests.engine.ending import DATA
from tests.shared import shared

SNAPSHOTS = sorted(
    path for path in (DATA / "fit" / "torch").glob("*/snapshot_*.pickle.gz")
    if path.parent.name in {"limited", "big_blocks", "two_pools", "shifting", "three_streams"}
)  # fmt: skip
TAKES = {"segment_alloc", "segment_map"}
RETURNS = {"segment_free", "segment_unmap"}
PS = 10**6


def ask(profile, **parameters):
    return json.loads(profile.tool("address_map", view="time", **parameters).content)


def plain(path, device):
    """The pages that are reserved, each with begin and end (ps, None outside), and bytes of one."""
    content = pickle.loads(gzip.decompress(path.read_bytes()))  # noqa: S301 - a file of ours
    entries = content["device_traces"][device]
    zero = min(each[0]["time_us"] for each in content["device_traces"] if each)
    changes = [one for one in entries if one["action"] in TAKES | RETURNS]
    segments = [one for one in content["segments"] if one["device"] == device]
    sizes = [(one["address"], one["total_size"]) for one in segments]
    sizes += [(one["addr"], one["size"]) for one in changes]
    page = math.gcd(*(number for pair in sizes for number in pair))

    def pages(address, size):
        return range(address // page, (address + size) // page)

    found = set()
    # From the end, at which the snapshot says what there is, back to the begin.
    ends = {one: None for place in segments
            for one in pages(place["address"], place["total_size"])}  # fmt: skip
    for change in reversed(changes):
        at = (change["time_us"] - zero) * PS
        for one in pages(change["addr"], change["size"]):
            if change["action"] in TAKES:
                found.add((one, at, ends.pop(one)))
            else:
                assert one not in ends
                ends[one] = at
    return found | {(one, None, end) for one, end in ends.items()}, page


def spans(answer, name="segments"):
    """First address, the one behind the last, begin and end of each."""
    parts, regions = answer[name], answer["regions"]
    starts = [int(regions["address"][one], 16) for one in parts["region"]]
    columns = (starts, parts["offset"], parts["bytes"], parts["start_ps"], parts["end_ps"])
    return [
        (start + offset, start + offset + size, begin, end)
        for start, offset, size, begin, end in zip(*columns, strict=True)
    ]


@each_row("path", SNAPSHOTS)
def test_segments_come_and_go_as_the_traces_say(path):
    answer = ask(shared(path), allocator="cuda:0", limit=5000)
    wanted, page = plain(path, 0)
    found = {
        (one, begin, end)
        for first, last, begin, end in spans(answer)
        for one in range(first // page, last // page)
    }
    assert found == wanted
    assert answer["segments"]["others"] == 0
    assert (answer["segments"]["records"] == 0) == all(a is b is None for _, a, b in wanted)


@each_row("path", SNAPSHOTS)
def test_what_is_allocated_is_within_what_is_reserved(path):
    answer = ask(shared(path), allocator="cuda:0", limit=5000)
    reserved = {}
    wanted, page = plain(path, 0)
    for one, begin, end in wanted:
        reserved.setdefault(one, []).append((begin or 0, math.inf if end is None else end))
    for first, last, begin, end in spans(answer, "blocks"):
        life = begin or 0, math.inf if end is None else end
        for one in range(first // page, -(-last // page)):
            assert any(a <= life[0] and life[1] <= b for a, b in reserved[one])


def test_a_stretch_has_the_segments_that_are_reserved_in_it_the_largest_first():
    profile = shared(DATA / "fit" / "torch" / "limited" / "snapshot_oom.pickle.gz")
    everything = spans(ask(profile))
    start, end = 6_000_000_000, 7_000_000_000
    inside = [
        one for one in everything
        if (one[2] is None or one[2] < end) and (one[3] is None or one[3] > start)
    ]  # fmt: skip
    assert 0 < len(inside) < len(everything)
    assert spans(ask(profile, start_ps=start, end_ps=end)) == inside
    few = ask(profile, start_ps=start, end_ps=end, limit=2)
    assert few["segments"]["others"] == len(inside) - 2
    assert set(spans(few)) <= set(inside)


@pytest.mark.parametrize("path", ["fit/keras_cnn/65536.xplane.pb.gz"])
def test_other_files_have_no_segments(path):
    assert ask(shared(DATA / path))["segments"] is None


@each_row("path", SNAPSHOTS)
def test_a_moment_has_the_segments_of_that_moment(path):
    profile = shared(path)
    known = json.loads(profile.tool("live_memory", limit=0).content)
    start, end = known["start_ps"], known["end_ps"]
    name = known["allocators"][0]["allocator"]
    reserved, page = plain(path, 0)
    for at in (start, (start + end) // 2, start + (end - start) // 3 + 1, end):
        answer = json.loads(
            profile.tool("address_map", view="moment", allocator=name, at_ps=at).content
        )
        if answer["regions"] is None:
            continue
        is_known = any(begin is not None or stop is not None for _, begin, stop in reserved)
        assert answer["segments_of"] == ("moment" if is_known else "end")
        if not is_known:
            continue
        there = {
            one * page
            for one, begin, stop in reserved
            if (begin is None or begin <= at) and (stop is None or stop > at)
        }
        firsts = [int(one, 16) for one in answer["regions"]["address"]]
        covered = list(zip(firsts, answer["regions"]["bytes"], strict=True))
        # What is reserved is in a region, and each region begins and ends with it.
        for one in there:
            assert any(first <= one < first + size for first, size in covered)
        for first, size in covered:
            assert first in there
            assert first + size - page in there
