from itertools import pairwise

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from tests.analysis.histories import records
from tests.figures.profiles import asked_of, profile_of

from peakline.figures import churn, growth_per_step
from peakline.figures.turnover import handed_out
from reference.memory_history import buffers, live_bytes, size_of


def steps_of(bounds):
    return [
        {"step_id": n, "name": f"train {n}", "start_ps": start, "end_ps": end}
        for n, (start, end) in enumerate(pairwise(bounds))
    ]


cuts = st.lists(st.integers(0, 40), min_size=3, max_size=6, unique=True).map(sorted)


def given_back_and_kept(rows, allocator, bounds):
    """Per step, by hand: bytes of buffers that end in it, and of all others that begin in it."""
    back, kept = [0] * (len(bounds) - 1), [0] * (len(bounds) - 1)
    followed = {one.begin: one for one in buffers(rows)}
    for number, row in enumerate(rows):
        if row["activity"] != "allocation" or (row.get("allocator") or "") != allocator:
            continue
        for step, (start, end) in enumerate(pairwise(bounds)):
            if start <= number < end:
                one = followed.get(number)
                same = one is not None and one.end is not None and one.end < end
                (back if same else kept)[step] += size_of(row)
    return back, kept


@given(records, cuts)
def test_what_the_steps_hand_out(rows, bounds):
    for asked in asked_of(rows, steps=steps_of(bounds)):
        growth = asked.details.growth
        if growth is None or growth.marks.found_by != "steps":
            continue
        marks = [growth.marks.start, *growth.marks.rows.tolist()]
        back, kept = handed_out(asked, growth)
        assert (back.tolist(), kept.tolist()) == given_back_and_kept(
            rows, asked.peak.allocator, marks
        )


@given(records, cuts)
def test_the_areas_are_what_the_steps_leave(rows, bounds):
    profile = profile_of(rows, steps_of(bounds))
    answer = profile.memory()
    for peak, details in zip(answer.allocators, answer.details, strict=True):
        drawn = growth_per_step(profile, allocator=peak.allocator, answer=answer)
        if drawn is None:
            assert details.growth is None or not details.growth.total.any()
            continue
        assert details.growth is not None
        marks = details.growth.marks.rows.tolist()
        unit = 1  # Sizes of these records stay below a KiB.
        areas = [t for t in drawn.data if t.stackgroup == "left"]
        total = np.sum([np.asarray(t.y) * unit for t in areas], axis=0)
        left = live_bytes(buffers(rows), peak.allocator, marks)
        expected = [sum(series[k] for series in left.values()) for k in range(len(marks))]
        assert np.broadcast_to(total, len(marks)).tolist() == expected
        (line,) = [t for t in drawn.data if t.name == "all in use at the step's end"]
        assert np.asarray(line.y).tolist() == details.growth.total.tolist()


def test_bars_of_many_steps_are_means():
    rows = []
    for _ in range(300):
        rows += [
            {"activity": "allocation", "address": 1, "allocated_bytes": 2048, "op": "x"},
            {"activity": "deallocation", "address": 1},
        ]
    drawn = churn(profile_of(rows, steps_of(list(range(0, 601, 2)))))
    back, kept = drawn.data
    assert len(back.x) == 100
    assert set(np.asarray(back.y).tolist()) == {2.0}
    assert not np.asarray(kept.y).any()
    assert "2.0 KiB in a step on average, 1.0 times the peak" in drawn.layout.title.subtitle.text
