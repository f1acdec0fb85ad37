from collections import Counter, defaultdict

import pytest
from hypothesis import given
from tests.analysis.histories import records
from tests.analysis.records import alloc, free
from tests.figures.profiles import asked_of

from peakline.figures import lifetimes
from peakline.figures.lifetimes import largest_bars, window_of
from reference.memory_history import buffers


def lives(rows, allocator):
    """Every life of a buffer with a size: (bytes, begin, end, row), a begin of None is older."""
    last = len(rows) - 1
    found = [
        (one.allocated, one.begin, one.end, one.begin, one.signature)
        for one in buffers(rows)
        if one.allocator == allocator and one.allocated > 0
    ]
    ends = {one.end for one in buffers(rows) if one.end is not None}
    for number, row in enumerate(rows):
        followed = row.get("allocation_id") is not None or row.get("address") is not None
        if (
            row["activity"] == "deallocation"
            and followed
            and number not in ends
            and (row.get("allocator") or "") == allocator
            and (row.get("allocated_bytes") or 0) > 0
        ):
            found.append((row["allocated_bytes"], None, number, number, None))
    return sorted(
        found,
        key=lambda one: (
            -one[0],
            -((last if one[2] is None else one[2]) - (one[1] or 0)),
            one[3],
        ),
    )


def at_peak(one, row):
    _, begin, end, _, _ = one
    return (begin is None or begin <= row) and (end is None or end > row)


def by_hand(rows, allocator, row):
    found = lives(rows, allocator)
    chosen = [one for one in found if at_peak(one, row)][: lifetimes.AT_PEAK]
    by_signature = defaultdict(list)
    for one in found:
        if not at_peak(one, row):
            by_signature[one[4]].append(one)
    return chosen, [one for same in by_signature.values() for one in same[: lifetimes.EACH]]


@given(rows=records)
def test_all_bars_of_a_small_profile(rows):
    for asked in asked_of(rows):
        chosen, others = by_hand(rows, asked.peak.allocator, asked.peak_row)
        expected = Counter((size, begin, end) for size, begin, end, _, _ in chosen + others)
        found = largest_bars(asked)
        assert Counter((b.bytes, b.start_ps, b.end_ps) for b in found) == expected
        assert [b.at_peak for b in found].count(True) == len(chosen)
        order = [-1 if b.start_ps is None else b.start_ps for b in found]
        assert order == sorted(order)


@given(rows=records)
def test_the_largest_bars_are_taken(rows):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lifetimes, "AT_PEAK", 3)
        patch.setattr(lifetimes, "OTHERS", 4)
        for asked in asked_of(rows):
            chosen, others = by_hand(rows, asked.peak.allocator, asked.peak_row)
            found = largest_bars(asked)
            peak = sorted((b.bytes for b in found if b.at_peak), reverse=True)
            rest = sorted((b.bytes for b in found if not b.at_peak), reverse=True)
            assert peak == [one[0] for one in chosen]
            assert rest == sorted((one[0] for one in others), reverse=True)[:4]


def test_where_a_buffer_comes_from_and_goes():
    rows = [
        alloc(1, 4096, op="model/W", shape="[32, 32]", data_type="float", region_type="persist"),
        alloc(2, 1024, op="act", step_id=7),
        free(9, 512),
        free(2),
    ]
    (asked,) = asked_of(rows, steps=[{"step_id": 7, "name": "train 7", "start_ps": 1, "end_ps": 3}])
    older, kept, passing = largest_bars(asked)
    assert (older.signature.op, older.start_ps, older.end_ps) == ("(before profile)", None, 2)
    assert (kept.signature.title, kept.start_ps, kept.end_ps) == (
        "model/W float [32, 32]",
        0,
        None,
    )
    assert (passing.step, passing.start_ps, passing.end_ps, passing.at_peak) == (7, 1, 3, True)


def test_buffers_too_small_to_matter_are_left_out():
    rows = [alloc(n, 100_000 - n, op=f"big{n}") for n in range(lifetimes.FEW)]
    rows += [alloc(100 + n, 1, op=f"small{n}") for n in range(5)]
    (asked,) = asked_of([*rows, free(1)])
    assert [bar.signature.op for bar in largest_bars(asked)] == [
        f"big{n}" for n in range(lifetimes.FEW)
    ]
    (asked,) = asked_of([*rows[:2], *rows[-5:]])
    assert len(largest_bars(asked)) == 7


def test_the_window_is_around_the_short_lives_at_the_peak():
    rows = [alloc(1, 100, op="weights", time_ps=0)]
    for n in range(50):
        at = 1000 * n + 10
        rows += [
            alloc(2, 500 + (n == 30), op="act", time_ps=at),
            free(2, time_ps=at + 40),
            alloc(3, 300, op=f"other{n}", time_ps=at + 50),
            free(3, time_ps=at + 60),
        ]
    (asked,) = asked_of(rows)
    found = largest_bars(asked)
    window = window_of(found, 0, 49_070)
    assert window == (30_010 - 21, 30_050 + 21)
    around = largest_bars(asked, window)
    assert [bar.signature.op for bar in around] == ["weights", "act", "other30"]
    assert {bar.signature.op for bar in found} > {"other0", "other1"}
    # Where what lives long has most of the bytes, all of the time is drawn.
    rows[0] = alloc(1, 5000, op="weights", time_ps=0)
    (asked,) = asked_of(rows)
    assert window_of(largest_bars(asked), 0, 49_070) == (0, 49_070)
