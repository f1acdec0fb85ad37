"""The ``memory_lifetimes`` tool against a loop over the buffers of every sample."""

import json
import random
from collections import defaultdict

import pytest
from tests.analysis.records import alloc, events, free
from tests.profile.fake import FakeReader
from tests.shared import shared
from tests.sweeps import each_sample
from tests.tools.plain_replay import SAMPLES, buffers

from peakline.api import Profile
from peakline.errors import UsageError


def ask(profile, **parameters):
    return json.loads(profile.tool("memory_lifetimes", **parameters).content)


@each_sample("path", SAMPLES)
def test_every_buffer_is_in_the_bin_of_its_lifetime(path):
    profile = shared(path)
    known = json.loads(profile.tool("live_memory", limit=0).content)
    rng = random.Random(path.name)
    for one in known["allocators"]:
        a = rng.randint(known["start_ps"], known["end_ps"])
        answer = ask(profile, allocator=one["allocator"], start_ps=a, end_ps=known["end_ps"] + 1)
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
    found = ask(profile)["rows"]
    assert [(row["from_ps"], row["to_ps"], row["bytes"], row["largest_op"]) for row in found] == [
        (10**6, 3 * 10**6, 5, "a"), (3 * 10**6, 10**7, 0, ""), (10**7, 3 * 10**7, 0, ""),
        (3 * 10**7, 10**8, 7, "b"), (None, None, 9, "c"),
    ]  # fmt: skip
    with pytest.raises(UsageError, match="not after start_ps"):
        ask(profile, start_ps=5, end_ps=5)
