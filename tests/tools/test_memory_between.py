"""The ``memory_between`` tool against a loop over the buffers of every sample."""

import json
import random

import pytest
from tests.analysis.records import alloc, events, free
from tests.each_row import each_row
from tests.profile.fake import FakeReader
from tests.shared import shared
from tests.tools.plain_replay import SAMPLES, buffers, group_of

from peakline.api import Profile
from peakline.errors import UsageError


def ask(profile, **parameters):
    return json.loads(profile.tool("memory_between", **parameters).content)


def amount(found):
    found = list(found)
    count = sum(1 if one.record["count"] is None else one.record["count"] for one in found)
    return {"bytes": sum(one.bytes for one in found), "buffers": count}


@each_row("path", SAMPLES)
def test_every_sample_says_what_a_loop_over_its_buffers_says(path):
    profile = shared(path)
    found = json.loads(profile.tool("live_memory", limit=0).content)
    rng = random.Random(path.name)
    for one in found["allocators"]:
        every = buffers(profile, one["allocator"])
        for group in ("op", "scope"):
            a, b = sorted(rng.randint(found["start_ps"], found["end_ps"]) for _ in range(2))
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
