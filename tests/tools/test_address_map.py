"""The ``address_map`` tool: blocks of a plain replay and of the tables, which never overlap."""

import gzip
import json
import math
import pickle
import random
from itertools import pairwise

import pytest
from tests.each_row import each_row
from tests.engine.ending import DATA
from tests.memory.records import alloc, events, free
from tests.shared import shared
from tests.sweeps import each_sample
from tests.tables.fake import FakeReader
from tests.tools.plain_replay import SAMPLES, buffers, replay

from peakline.api import Profile
from peakline.errors import UsageError

CNN = DATA / "fit" / "keras_cnn" / "65536.xplane.pb.gz"
LIMITED = DATA / "fit" / "torch" / "limited" / "snapshot_oom.pickle.gz"
REPORT = DATA / "oom_report" / "tf_bfc_oom.log.gz"


def ask(profile, **parameters):
    return json.loads(profile.tool("address_map", **parameters).content)


def of_rows(rows):
    return Profile(FakeReader({"allocator_events": events(rows)}))


def ranges(answer, name="blocks"):
    """First address and the one behind the last, of each block or hole."""
    regions, parts = answer["regions"], answer[name]
    starts = [int(regions["address"][one], 16) for one in parts["region"]]
    return [
        (start + offset, start + offset + size)
        for start, offset, size in zip(starts, parts["offset"], parts["bytes"], strict=True)
    ]


def assert_apart(parts):
    parts = sorted(parts)
    assert all(one[1] <= other[0] for one, other in pairwise(parts))


@each_sample("path", SAMPLES)
def test_a_moment_of_every_sample_is_that_of_a_plain_replay(path):
    profile = shared(path)
    known = json.loads(profile.tool("live_memory", limit=0).content)
    rng = random.Random(path.name)
    for one in known["allocators"]:
        at = rng.randint(known["start_ps"], known["end_ps"])
        moments = replay(profile, one["allocator"])
        has_reports = any(moment.reported is not None for moment in moments)
        live = None
        for moment in replay(profile, one["allocator"]):
            if moment.time_ps > at:
                break
            if moment.reported is not None or not has_reports:
                live = list(moment.live.values())
        answer = ask(profile, allocator=one["allocator"], at_ps=at, limit=5000)
        wanted = sorted(
            (b.record["address"], b.record["address"] + b.bytes)
            for b in live or []
            if b.record["address"] is not None and b.bytes > 0
        )
        if answer["blocks"] is None:
            assert answer["reason"]
            assert not wanted
            continue
        result = ranges(answer)
        assert result == wanted
        assert_apart(result)
        holes = ranges(answer, "holes")
        assert_apart(result + holes)
        used = sum(end - begin for begin, end in result)
        assert used + answer["holes"]["total_bytes"] == sum(answer["regions"]["bytes"])
        assert answer["holes"]["count"] == len(holes)


@each_sample("path", SAMPLES)
def test_over_time_all_buffers_that_live_in_the_stretch_are_there(path):
    profile = shared(path)
    known = json.loads(profile.tool("live_memory", limit=0).content)
    rng = random.Random(path.name)
    for one in known["allocators"]:
        a, b = sorted(rng.randint(known["start_ps"], known["end_ps"] + 1) for _ in range(2))
        b = max(b, a + 1)
        answer = ask(
            profile, view="time", allocator=one["allocator"], start_ps=a, end_ps=b, limit=40
        )
        wanted = {
            each.row: (each.record["address"], each.record["address"] + each.bytes)
            for each in buffers(profile, one["allocator"])
            if each.record["address"] is not None and each.bytes > 0
            and (each.was_there or each.start_ps < b) and (each.end_ps is None or each.end_ps > a)
        }  # fmt: skip
        if answer["blocks"] is None:
            assert not wanted
            continue
        records = answer["blocks"]["record"]
        assert len(records) == min(len(wanted), 40)
        assert [wanted[row] for row in records] == ranges(answer)
        assert answer["others"] == len(wanted) - len(records)
        assert bool(answer["touched"]["row"]) == bool(answer["others"])


def test_gaps_are_left_out():
    far = 1 << 40
    rows = [alloc(4096, 1000, op="a", time_ps=0), alloc(far, 500, op="b", time_ps=5)]
    answer = ask(of_rows(rows), at_ps=9)
    assert answer["regions"] == {"address": ["0x1000", hex(far)], "bytes": [1000, 500]}
    assert answer["blocks"]["region"] == [0, 1]
    assert answer["blocks"]["offset"] == [0, 0]
    assert answer["holes"]["count"] == 0


def test_what_is_freed_leaves_a_hole():
    rows = [alloc(100, 5, time_ps=0), alloc(110, 20, time_ps=1), alloc(130, 5, time_ps=2),
            free(110, time_ps=3)]  # fmt: skip
    answer = ask(of_rows(rows), at_ps=3)
    assert ranges(answer, "holes") == [(105, 130)]
    assert answer["holes"]["largest_bytes"] == 25
    answer = ask(of_rows(rows), view="time", limit=1)
    assert answer["others"] == 2
    rows, columns = answer["touched"]["rows"], answer["touched"]["columns"]
    cells = {(row, x) for row, first, last in zip(*(answer["touched"][name] for name in
             ("row", "first", "last")), strict=True) for x in range(first, last)}  # fmt: skip
    # Of equal areas the first is drawn: here that of 20 bytes for 2 ps is the largest.
    assert answer["blocks"]["record"] == [1]
    assert {(0, 0), (0, columns - 1)} <= cells
    # The third lies in the upper seventh, from the middle on.
    assert min(x for row, x in cells if row > rows / 2) == columns // 2


@pytest.mark.parametrize(("path", "report"), [(REPORT, 0), (LIMITED, None)])
def test_the_listed_blocks_are_those_of_the_table(path, report):
    profile = shared(path)
    answer = ask(profile, view="listed", report=report, limit=5000)
    table = profile.columns("blocks").to_pylist()
    wanted = sorted((one["address"], one["address"] + one["bytes"]) for one in table
                    if one["report_id"] == report)  # fmt: skip
    assert ranges(answer) == wanted
    assert_apart(wanted)
    states = sorted((one["address"], one["state"]) for one in table)
    assert answer["blocks"]["state"] == [state for _, state in states]
    free = [one["bytes"] for one in table if one["state"] == "free"]
    assert answer["holes"]["total_bytes"] == sum(free)
    assert answer["holes"]["largest_bytes"] == max(free)
    assert (answer["failed"] or {}).get("rounded_bytes") == (None if report is None else 2097152)


@pytest.mark.parametrize("path", [CNN, LIMITED])
def test_a_replay_under_the_largest_limit_that_fails(path):
    profile = shared(path)
    (fit,) = json.loads(profile.tool("fit").content)["allocators"]
    answer = ask(profile, view="replayed", limit=5000)
    deciding = fit["deciding_request"]
    assert answer["limit_bytes"] == deciding["limit_bytes"]
    assert answer["failed"]["rounded_bytes"] == deciding["fails_at"]["rounded_bytes"]
    used = [size for size, state in zip(answer["blocks"]["bytes"], answer["blocks"]["state"],
                                        strict=True) if state == "in_use"]  # fmt: skip
    assert sum(used) == deciding["in_use_bytes"]
    assert answer["holes"]["total_bytes"] == deciding["free_bytes"]
    assert answer["holes"]["largest_bytes"] == deciding["largest_free_bytes"]
    assert_apart(ranges(answer))


def test_other_settings_and_limits():
    profile = shared(CNN)
    answer = ask(profile, view="replayed", limit_bytes="1GiB", settings=["allow_growth=false"])
    assert answer["regions"]["bytes"] == [1 << 30]
    assert answer["failed"] is None
    assert answer["settings"]["allow_growth"] is False
    with pytest.raises(UsageError, match="allow_groth"):
        ask(profile, view="replayed", settings=["allow_groth=1"])


def test_what_cannot_be_shown_has_a_reason():
    without = of_rows([alloc(None, 5, allocation_id=1)])
    assert ask(without)["reason"] == "no buffer has an address"
    assert ask(without, view="listed")["reason"] == "the file lists no blocks of this"
    assert "cannot be replayed" in ask(without, view="replayed")["reason"]
    with pytest.raises(UsageError, match="an end after its start"):
        ask(of_rows([alloc(1, 1)]), view="time", start_ps=5, end_ps=5)


def test_the_only_moment_of_a_report_has_the_regions_that_it_lists():
    profile = shared(REPORT)
    moment, listed = ask(profile), ask(profile, view="listed", report=0)
    assert moment["regions"] == listed["regions"]
    assert moment["failed"] == listed["failed"]
    assert moment["holes"]["total_bytes"] == listed["holes"]["total_bytes"]
    assert all(record is not None for record in moment["blocks"]["record"])


SNAPSHOTS = sorted(
    path for path in (DATA / "fit" / "torch").glob("*/snapshot_*.pickle.gz")
    if path.parent.name in {"limited", "big_blocks", "two_pools", "shifting", "three_streams"}
)  # fmt: skip
TAKES = {"segment_alloc", "segment_map"}
RETURNS = {"segment_free", "segment_unmap"}
PS = 10**6


def ask_of_segments_over_time(profile, **parameters):
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

    result = set()
    # From the end, at which the snapshot says what there is, back to the begin.
    ends = {one: None for place in segments
            for one in pages(place["address"], place["total_size"])}  # fmt: skip
    for change in reversed(changes):
        at = (change["time_us"] - zero) * PS
        for one in pages(change["addr"], change["size"]):
            if change["action"] in TAKES:
                result.add((one, at, ends.pop(one)))
            else:
                assert one not in ends
                ends[one] = at
    return result | {(one, None, end) for one, end in ends.items()}, page


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
    answer = ask_of_segments_over_time(shared(path), allocator="cuda:0", limit=5000)
    wanted, page = plain(path, 0)
    result = {
        (one, begin, end)
        for first, last, begin, end in spans(answer)
        for one in range(first // page, last // page)
    }
    assert result == wanted
    assert answer["segments"]["others"] == 0
    assert (answer["segments"]["records"] == 0) == all(a is b is None for _, a, b in wanted)


@each_row("path", SNAPSHOTS)
def test_what_is_allocated_is_within_what_is_reserved(path):
    answer = ask_of_segments_over_time(shared(path), allocator="cuda:0", limit=5000)
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
    everything = spans(ask_of_segments_over_time(profile))
    start, end = 6_000_000_000, 7_000_000_000
    inside = [
        one for one in everything
        if (one[2] is None or one[2] < end) and (one[3] is None or one[3] > start)
    ]  # fmt: skip
    assert 0 < len(inside) < len(everything)
    assert spans(ask_of_segments_over_time(profile, start_ps=start, end_ps=end)) == inside
    few = ask_of_segments_over_time(profile, start_ps=start, end_ps=end, limit=2)
    assert few["segments"]["others"] == len(inside) - 2
    assert set(spans(few)) <= set(inside)


@pytest.mark.parametrize("path", ["fit/keras_cnn/65536.xplane.pb.gz"])
def test_other_files_have_no_segments(path):
    assert ask_of_segments_over_time(shared(DATA / path))["segments"] is None


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
