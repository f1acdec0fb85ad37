"""Memory over time, by plain replay of every sample: layers, polygons, differences, lifetimes."""

import json
import random
from collections import defaultdict

import numpy as np
import pytest
from tests.each_row import each_row
from tests.memory.records import alloc, events, free
from tests.shared import shared
from tests.sweeps import each_sample
from tests.tables.fake import FakeReader
from tests.tools.plain_replay import SAMPLES, buffers, by_group, group_of, replay

from peakline.api import Profile
from peakline.errors import NotFoundError, UsageError
from peakline.memory.fragmentation.segments import reserved_over_time
from peakline.memory.over_time.layers import held_most


def ask(profile, **parameters):
    return json.loads(profile.tool("memory_between", **parameters).content)


def amount(result):
    result = list(result)
    count = sum(1 if one.record["count"] is None else one.record["count"] for one in result)
    return {"bytes": sum(one.bytes for one in result), "buffers": count}


@each_sample("path", SAMPLES)
def test_every_sample_says_what_a_loop_over_its_buffers_says(path):
    profile = shared(path)
    result = json.loads(profile.tool("live_memory", limit=0).content)
    rng = random.Random(path.name)
    for one in result["allocators"]:
        every = buffers(profile, one["allocator"])
        for group in ("op", "scope"):
            a, b = sorted(rng.randint(result["start_ps"], result["end_ps"]) for _ in range(2))
            answer = ask(profile, allocator=one["allocator"], start_ps=a, end_ps=b, group=group,
                         tree="scope", tree_of="allocated", limit=5000)  # fmt: skip
            assert_equal(answer, every, a, b, group)


def assert_equal(answer, every, a, b, group):
    made = [one for one in every if a <= one.start_ps <= b and not one.was_there]
    live = [one for one in made if one.end_ps is None or one.end_ps > b]
    end = [one for one in made if one.end_ps is None]
    assert answer["allocated"] == amount(made)
    assert answer["live"] == amount(live)
    assert answer["live_at_end"] == amount(end)
    assert answer["freed"] == amount(one for one in made if one not in live)
    older = (one for one in every if one.was_there or one.start_ps < a)
    assert answer["freed_older"] == amount(
        one for one in older if one.end_ps is not None and a <= one.end_ps <= b
    )
    rows = {}
    for place, chosen in enumerate((made, live, end)):
        for one in chosen:
            row = rows.setdefault(group_of(one, group), [0] * 6)
            size = amount([one])
            row[2 * place] += size["bytes"]
            row[2 * place + 1] += size["buffers"]
    assert {row["key"]: list(row.values())[1:] for row in answer["rows"]} == rows
    tree = answer["tree"]
    if tree["id"]:
        assert tree["bytes"][0] == answer["allocated"]["bytes"]
        for place, name in enumerate(tree["id"]):
            parts = [
                size for size, parent in zip(tree["bytes"], tree["parent"], strict=True)
                if parent == name
            ]  # fmt: skip
            assert not parts or sum(parts) == tree["bytes"][place]


ROWS = [
    alloc(1, 10, op="net/a", stack_id=1, time_ps=0),
    alloc(2, 30, op="net/b", stack_id=2, time_ps=10),
    alloc(3, 20, op="net/a", stack_id=2, time_ps=20),
    free(1, time_ps=25),
    free(2, time_ps=30),
    free(3, time_ps=90),
]
STACKS = [
    {"stack_id": stack, "depth": depth, "function": function, "file": "dir/train.py", "line": line}
    for stack, frames in ((1, [("leaf", 3), ("main", 9)]), (2, [("other", 5), ("main", 9)]))
    for depth, (function, line) in enumerate(frames)
]


def test_a_range_in_words():
    profile = Profile(FakeReader({"allocator_events": events(ROWS), "stacks": STACKS}))
    answer = ask(profile, start_ps=5, end_ps=30, tree="stack")
    assert answer["allocated"] == {"bytes": 50, "buffers": 2}
    assert answer["live"] == {"bytes": 20, "buffers": 1}
    assert answer["freed"] == {"bytes": 30, "buffers": 1}
    assert answer["live_at_end"] == {"bytes": 0, "buffers": 0}
    assert answer["freed_older"] == {"bytes": 10, "buffers": 1}
    assert (answer["used_at_start_bytes"], answer["used_at_end_bytes"]) == (10, 20)
    assert [row["key"] for row in answer["rows"]] == ["net/a", "net/b"]
    tree = answer["tree"]
    assert tree["label"] == ["", "main train.py:9", "other train.py:5"]
    assert tree["bytes"] == [20, 20, 20]
    answer = ask(profile, start_ps=0, end_ps=30, tree="stack", tree_of="allocated", group="stack")
    assert answer["tree"]["bytes"] == [60, 60, 50, 10]
    assert {row["key"]: row["allocated_bytes"] for row in answer["rows"]} == {
        "other train.py:5": 50, "leaf train.py:3": 10,
    }  # fmt: skip


def test_an_end_before_the_start():
    profile = Profile(FakeReader({"allocator_events": events(ROWS)}))
    with pytest.raises(UsageError, match="end_ps is before start_ps"):
        ask(profile, start_ps=5, end_ps=4)


WIDTH = 150
FITS = [path for path in SAMPLES if "fit" in path.parts]


def ask_of_memory_stack(profile, **parameters):
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
            answer = ask_of_memory_stack(
                profile, allocator=one["allocator"], group=group, size=size, width=WIDTH
            )
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
        result = []
        named = {layer["key"] for layer in layers if layer["kind"] == "group"}
        plain = {
            "rest": sum(size for key, size in sums.items() if key not in named),
            "rounding": total - before - sum(sums.values()),
        }
        for layer in layers:
            kind = layer["kind"]
            result.append(sums.get(layer["key"], 0) if kind == "group" else plain.get(kind))
        others = moment.used - sum(filter(None, result))
        for parts in list(wanted[moment.time_ps, moment.used]):
            known = [
                (part, own) for part, own in zip(parts, result, strict=True) if own is not None
            ]
            outside = sum(part for part, own in zip(parts, result, strict=True) if own is None)
            if all(part == own for part, own in known) and outside == others:
                wanted[moment.time_ps, moment.used].discard(parts)
    assert not any(wanted.values())


@each_sample("path", SAMPLES)
def test_pixels_are_those_of_the_curve(path):
    profile = shared(path)
    result = json.loads(profile.tool("timeline", view="counter", width=1).content)
    for place, (group, name) in enumerate(
        zip(result["counter_group"], result["counter_name"], strict=True)
    ):
        if group != "memory in use":
            continue
        answer = ask_of_memory_stack(profile, allocator=name, width=WIDTH)
        span = {"start_ps": answer["start_ps"], "end_ps": answer["end_ps"], "width": WIDTH}
        drawn = profile.tool("timeline", view="counter", lines=str(place), **span).content
        curve = json.loads(drawn)
        assert answer["high"]["used"] == curve["high"]
        assert answer["low"]["used"] == curve["low"]


def test_the_largest_groups_of_the_highest_moment_have_a_layer():
    rows = [alloc(n, 100 + n, op=f"op{n:02}", time_ps=n) for n in range(1, 21)]
    answer = ask_of_memory_stack(of_rows(rows), width=20)
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
    answer = ask_of_memory_stack(of_rows(rows), width=1)
    assert answer["high"]["at_ps"] == [50]
    assert answer["high"]["layers"] == [[10], [90]]
    assert answer["low"]["used"] == [10]
    # Before the first record nothing is known.
    assert ask_of_memory_stack(of_rows(rows), width=2, start_ps=-100, end_ps=100)["high"][
        "used"
    ] == [None, 100]


def test_what_was_requested_leaves_what_was_rounded_up():
    rows = [alloc(1, 256, op="a", requested_bytes=100, time_ps=0)]
    answer = ask_of_memory_stack(of_rows(rows), size="requested", width=1)
    assert [(one["kind"], one["top_bytes"]) for one in answer["layers"]] == [
        ("group", 100), ("rounding", 156),
    ]  # fmt: skip


def test_what_the_allocator_says_beyond_its_buffers_is_unattributed():
    rows = [
        alloc(1, 10, op="a", in_use_bytes=10, time_ps=0),
        alloc(None, 5, in_use_bytes=15, time_ps=1),
    ]
    answer = ask_of_memory_stack(of_rows(rows), width=1)
    assert [(one["kind"], one["top_bytes"]) for one in answer["layers"]] == [
        ("group", 10), ("unattributed", 5),
    ]  # fmt: skip


@each_row("path", FITS)
def test_what_is_reserved_ends_at_the_segments(path):
    profile = shared(path)
    answer = ask_of_memory_stack(profile, width=WIDTH)
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
    # All pixels within one picosecond show the most of it.
    assert held_most(np.array([0, 0]), np.array([9, 3]), 0, 1, 3).tolist() == [9, 9, 9]


def test_mistakes():
    profile = of_rows([alloc(1, 1)])
    with pytest.raises(NotFoundError, match="no allocator 'x'"):
        ask_of_memory_stack(profile, allocator="x")
    with pytest.raises(UsageError, match="an end after its start"):
        ask_of_memory_stack(profile, start_ps=5, end_ps=5)


WIDTH_OF_MEMORY_POLYGONS = 80


def ask_of_memory_polygons(profile, **parameters):
    return json.loads(profile.tool("memory_polygons", **parameters).content)


def stacks_of(answer):
    """Per pixel the buffers that are live at its moment, from the lowest: record and bytes."""
    columns = answer["buffers"]
    pixels = [[] for _ in answer["at_ps"]]
    for record, size, first, last in zip(
        *(columns[name] for name in ("record", "bytes", "first", "last")), strict=True
    ):
        for pixel in range(first, last):
            pixels[pixel].append((record, size))
    return pixels


@each_sample("path", SAMPLES)
def test_the_heights_of_every_sample_are_those_of_a_plain_replay(path):
    profile = shared(path)
    for one in json.loads(profile.tool("live_memory", limit=0).content)["allocators"]:
        for limit in (2000, 10):
            answer = ask_of_memory_polygons(
                profile, allocator=one["allocator"], width=WIDTH_OF_MEMORY_POLYGONS, limit=limit
            )
            columns = answer["buffers"]
            assert columns["record"] == sorted(columns["record"])
            assert len(columns["record"]) <= limit
            wanted = {}
            for pixel, stack in enumerate(stacks_of(answer)):
                if answer["at_ps"][pixel] is None:
                    continue
                names = ("at_ps", "used", "below", "smaller", "unattributed")
                at, used, below, smaller, rest = (answer[name][pixel] for name in names)
                assert used == below + sum(size for _, size in stack) + smaller + rest
                wanted.setdefault((at, used), []).append((stack, smaller))
            for moment in replay(profile, one["allocator"]):
                result = wanted.get((moment.time_ps, moment.used))
                if not result:
                    continue
                live = sorted((b.row, b.bytes) for b in moment.live.values())
                drawn = set(columns["record"])
                followed = [pair for pair in live if pair[0] in drawn]
                smaller = sum(size for row, size in live if row not in drawn)
                wanted[moment.time_ps, moment.used] = [
                    each for each in result if each != (followed, smaller)
                ]
            assert not any(wanted.values())


def test_the_smaller_ones_are_one_sum():
    rows = [
        alloc(1, 10, op="a", time_ps=0), alloc(2, 30, op="b", time_ps=10),
        alloc(3, 20, op="a", time_ps=20), free(1, time_ps=30), free(2, time_ps=99),
    ]  # fmt: skip
    answer = ask_of_memory_polygons(
        Profile(FakeReader({"allocator_events": events(rows)})), width=4, limit=2
    )
    assert answer["at_ps"] == [20, 20, 30, 30]
    assert answer["smaller"] == [10, 10, 0, 0]
    assert answer["others"] == 1
    columns = answer["buffers"]
    assert (columns["record"], columns["bytes"]) == ([1, 2], [30, 20])
    assert [columns["ops"][code] for code in columns["op"]] == ["b", "a"]
    assert (columns["start_ps"], columns["end_ps"]) == ([10, 20], [99, None])


def test_what_lives_at_no_pixels_moment_is_counted():
    rows = [
        alloc(1, 50, time_ps=0),
        free(1, time_ps=1),
        alloc(2, 10, time_ps=2),
        free(2, time_ps=9),
    ]
    profile = Profile(FakeReader({"allocator_events": events(rows)}))
    answer = ask_of_memory_polygons(profile, width=1)
    assert answer["buffers"]["record"] == [0]
    assert (answer["others"], answer["unseen"]) == (0, 0)
    # Zoomed in, the other one is seen, and the first is gone.
    answer = ask_of_memory_polygons(profile, width=1, start_ps=2, end_ps=9)
    assert answer["buffers"]["record"] == [2]


def ask_of_memory_lifetimes(profile, **parameters):
    return json.loads(profile.tool("memory_lifetimes", **parameters).content)


@each_sample("path", SAMPLES)
def test_every_buffer_is_in_the_bin_of_its_lifetime(path):
    profile = shared(path)
    known = json.loads(profile.tool("live_memory", limit=0).content)
    rng = random.Random(path.name)
    for one in known["allocators"]:
        a = rng.randint(known["start_ps"], known["end_ps"])
        answer = ask_of_memory_lifetimes(
            profile, allocator=one["allocator"], start_ps=a, end_ps=known["end_ps"] + 1
        )
        made = [
            b for b in buffers(profile, one["allocator"]) if b.start_ps >= a and not b.was_there
        ]
        for row in answer["rows"]:
            if row["from_ps"] is None:
                mine = [b for b in made if b.end_ps is None]
            else:
                mine = [
                    b for b in made if b.end_ps is not None
                    and row["from_ps"] <= b.end_ps - b.start_ps < row["to_ps"]
                ]  # fmt: skip
            assert row["bytes"] == sum(b.bytes for b in mine)
            counts = [1 if b.record["count"] is None else b.record["count"] for b in mine]
            assert row["buffers"] == sum(counts)
            by_op = defaultdict(int)
            for b in mine:
                by_op[b.op] += b.bytes
            if mine:
                assert row["largest_op_bytes"] == max(by_op.values()) == by_op[row["largest_op"]]
        assert sum(row["bytes"] for row in answer["rows"]) == sum(b.bytes for b in made)


def test_bins_run_from_the_shortest_to_what_is_not_freed():
    rows = [
        alloc(1, 5, op="a", time_ps=0), free(1, time_ps=2_000_000),
        alloc(2, 7, op="b", time_ps=3_000_000), free(2, time_ps=43_000_000),
        alloc(3, 9, op="c", time_ps=50_000_000),
    ]  # fmt: skip
    profile = Profile(FakeReader({"allocator_events": events(rows)}))
    result = ask_of_memory_lifetimes(profile)["rows"]
    assert [(row["from_ps"], row["to_ps"], row["bytes"], row["largest_op"]) for row in result] == [
        (10**6, 3 * 10**6, 5, "a"), (3 * 10**6, 10**7, 0, ""), (10**7, 3 * 10**7, 0, ""),
        (3 * 10**7, 10**8, 7, "b"), (None, None, 9, "c"),
    ]  # fmt: skip
    with pytest.raises(UsageError, match="not after start_ps"):
        ask_of_memory_lifetimes(profile, start_ps=5, end_ps=5)
