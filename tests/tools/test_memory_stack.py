"""The ``memory_stack`` tool: layers that add up to the curve, on every sample, by plain replay."""

import json

import numpy as np
import pytest
from tests.analysis.records import alloc, events, free
from tests.each_row import each_row
from tests.profile.fake import FakeReader
from tests.shared import shared
from tests.sweeps import each_sample
from tests.tools.plain_replay import SAMPLES, by_group, replay

from peakline.api import Profile
from peakline.errors import NotFoundError, UsageError
from peakline.memory.fragmentation.segments import reserved_over_time
from peakline.memory.over_time.layers import held_most

WIDTH = 150
FITS = [path for path in SAMPLES if "fit" in path.parts]


def ask(profile, **parameters):
    return json.loads(profile.tool("memory_stack", **parameters).content)


def of_rows(rows):
    return Profile(FakeReader({"allocator_events": events(rows)}))


@each_sample("path", SAMPLES)
def test_the_layers_of_every_sample_are_those_of_a_plain_replay(path):
    profile = shared(path)
    for one in json.loads(profile.tool("live_memory", limit=0).content)["allocators"]:
        for group, size in (
            ("op", "allocated"),
            ("scope", "requested"),
            ("region_type", "allocated"),
        ):
            answer = ask(profile, allocator=one["allocator"], group=group, size=size, width=WIDTH)
            for side in ("high", "low"):
                assert_replayed(profile, answer, side)
        if answer["end_ps"] - answer["start_ps"] > 1:
            assert max(filter(None, answer["high"]["used"]), default=0) == one["peak_bytes"]


def assert_replayed(profile, answer, side):
    """Every pixel's layers are what a replay finds after a record of that time and bytes."""
    columns, layers = answer[side], answer["layers"]
    wanted = {}
    for at, used, *parts in zip(columns["at_ps"], columns["used"], *columns["layers"], strict=True):
        if at is not None:
            assert sum(parts) == used
            wanted.setdefault((at, used), set()).add(tuple(parts))
    size = "bytes" if answer["size"] == "allocated" else "requested"
    for moment in replay(profile, answer["allocator"]):
        if (moment.time_ps, moment.used) not in wanted:
            continue
        live = moment.live.values()
        sums = by_group(live, answer["group"], size)
        before = sums.pop("(before profile)", 0)
        total = sum(one.bytes for one in live)
        found = []
        named = {layer["key"] for layer in layers if layer["kind"] == "group"}
        plain = {
            "rest": sum(size for key, size in sums.items() if key not in named),
            "rounding": total - before - sum(sums.values()),
        }
        for layer in layers:
            kind = layer["kind"]
            found.append(sums.get(layer["key"], 0) if kind == "group" else plain.get(kind))
        others = moment.used - sum(filter(None, found))
        for parts in list(wanted[moment.time_ps, moment.used]):
            known = [(part, own) for part, own in zip(parts, found, strict=True) if own is not None]
            outside = sum(part for part, own in zip(parts, found, strict=True) if own is None)
            if all(part == own for part, own in known) and outside == others:
                wanted[moment.time_ps, moment.used].discard(parts)
    assert not any(wanted.values())


@each_sample("path", SAMPLES)
def test_pixels_are_those_of_the_curve(path):
    profile = shared(path)
    found = json.loads(profile.tool("timeline", view="counter", width=1).content)
    for place, (group, name) in enumerate(
        zip(found["counter_group"], found["counter_name"], strict=True)
    ):
        if group != "memory in use":
            continue
        answer = ask(profile, allocator=name, width=WIDTH)
        span = {"start_ps": answer["start_ps"], "end_ps": answer["end_ps"], "width": WIDTH}
        drawn = profile.tool("timeline", view="counter", lines=str(place), **span).content
        curve = json.loads(drawn)
        assert answer["high"]["used"] == curve["high"]
        assert answer["low"]["used"] == curve["low"]


def test_the_largest_groups_of_the_highest_moment_have_a_layer():
    rows = [alloc(n, 100 + n, op=f"op{n:02}", time_ps=n) for n in range(1, 21)]
    answer = ask(of_rows(rows), width=20)
    assert [one["key"] for one in answer["layers"]] == [*(f"op{n:02}" for n in range(9, 21)), ""]
    rest = answer["layers"][-1]
    assert rest == {
        "kind": "rest", "key": "", "number": -1, "groups": 8, "top_bytes": sum(range(101, 109)),
    }  # fmt: skip
    assert answer["top_ps"] == 20
    assert answer["high"]["layers"][-1][-1] == sum(range(101, 109))


def test_a_peak_within_a_pixel_is_the_pixels():
    rows = [
        alloc(1, 10, op="a", time_ps=0), alloc(2, 90, op="b", time_ps=50), free(2, time_ps=60),
        alloc(3, 5, op="c", time_ps=99),
    ]  # fmt: skip
    answer = ask(of_rows(rows), width=1)
    assert answer["high"]["at_ps"] == [50]
    assert answer["high"]["layers"] == [[10], [90]]
    assert answer["low"]["used"] == [10]
    # Before the first record nothing is known.
    assert ask(of_rows(rows), width=2, start_ps=-100, end_ps=100)["high"]["used"] == [None, 100]


def test_what_was_requested_leaves_what_was_rounded_up():
    rows = [alloc(1, 256, op="a", requested_bytes=100, time_ps=0)]
    answer = ask(of_rows(rows), size="requested", width=1)
    assert [(one["kind"], one["top_bytes"]) for one in answer["layers"]] == [
        ("group", 100), ("rounding", 156),
    ]  # fmt: skip


def test_what_the_allocator_says_beyond_its_buffers_is_unattributed():
    rows = [
        alloc(1, 10, op="a", in_use_bytes=10, time_ps=0),
        alloc(None, 5, in_use_bytes=15, time_ps=1),
    ]
    answer = ask(of_rows(rows), width=1)
    assert [(one["kind"], one["top_bytes"]) for one in answer["layers"]] == [
        ("group", 10), ("unattributed", 5),
    ]  # fmt: skip


@each_row("path", FITS)
def test_what_is_reserved_ends_at_the_segments(path):
    profile = shared(path)
    answer = ask(profile, width=WIDTH)
    total = sum(one["total_bytes"] for one in profile.columns("segments").to_pylist())
    assert answer["reserved"][-1] >= total
    time, value = reserved_over_time(profile, answer["allocator"])
    assert value[-1] == total
    assert (np.diff(time) >= 0).all()
    assert all(used <= most for used, most in zip(answer["high"]["used"], answer["reserved"],
                                                  strict=True) if used is not None)  # fmt: skip


def test_a_value_holds_until_the_next():
    time, value = np.array([0, 10, 25]), np.array([5, 50, 7])
    assert held_most(time, value, -10, 40, 5).tolist() == [5, 5, 50, 50, 7]


def test_mistakes():
    profile = of_rows([alloc(1, 1)])
    with pytest.raises(NotFoundError, match="no allocator 'x'"):
        ask(profile, allocator="x")
    with pytest.raises(UsageError, match="an end after its start"):
        ask(profile, start_ps=5, end_ps=5)
