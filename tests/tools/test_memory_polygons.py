"""The ``memory_polygons`` tool: buffers stacked one by one, on every sample, by plain replay."""

import json

from tests.analysis.records import alloc, events, free
from tests.profile.fake import FakeReader
from tests.shared import shared
from tests.sweeps import each_sample
from tests.tools.plain_replay import SAMPLES, replay

from peakline.api import Profile

WIDTH = 80


def ask(profile, **parameters):
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
            answer = ask(profile, allocator=one["allocator"], width=WIDTH, limit=limit)
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
                found = wanted.get((moment.time_ps, moment.used))
                if not found:
                    continue
                live = sorted((b.row, b.bytes) for b in moment.live.values())
                drawn = set(columns["record"])
                followed = [pair for pair in live if pair[0] in drawn]
                smaller = sum(size for row, size in live if row not in drawn)
                wanted[moment.time_ps, moment.used] = [
                    each for each in found if each != (followed, smaller)
                ]
            assert not any(wanted.values())


def test_the_smaller_ones_are_one_sum():
    rows = [
        alloc(1, 10, op="a", time_ps=0), alloc(2, 30, op="b", time_ps=10),
        alloc(3, 20, op="a", time_ps=20), free(1, time_ps=30), free(2, time_ps=99),
    ]  # fmt: skip
    answer = ask(Profile(FakeReader({"allocator_events": events(rows)})), width=4, limit=2)
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
    answer = ask(profile, width=1)
    assert answer["buffers"]["record"] == [0]
    assert (answer["others"], answer["unseen"]) == (0, 0)
    # Zoomed in, the other one is seen, and the first is gone.
    answer = ask(profile, width=1, start_ps=2, end_ps=9)
    assert answer["buffers"]["record"] == [2]
