from typing import NamedTuple

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.analysis.records import alloc, events, free

from peakline.findings.memory_answer import explain_memory
from peakline.tables.tables import empty_columns


def found(rows, **options):
    answer = explain_memory(events(rows), empty_columns("steps"), **options)
    return [finding for finding in answer.findings if finding.kind == "deferred_frees"]


def deferred(address, returned=None, **more):
    return free(address, deferred=True, returned_sequence=returned, **more)


def bounds(rows):
    [finding] = found(rows)
    return finding.evidence["peak_bytes"], finding.evidence["upper_peak_bytes"]


def test_the_upper_bound_holds_memory_until_the_deallocation_took_effect():
    rows = [alloc(1, 10), deferred(1, returned=4), alloc(2, 20), free(2), {"sequence": 4} | free(9)]
    [finding] = found(rows)
    assert finding.severity == "info"
    assert finding.evidence == {
        "allocator": "", "deferred": 1, "completed": 1, "peak_bytes": 20, "upper_peak_bytes": 30,
    }  # fmt: skip
    assert finding.title.endswith("deferred; the peak lies between 20 and 30 bytes")


def test_memory_that_is_back_before_the_peak_is_not_worth_a_word():
    rows = [alloc(1, 10), deferred(1, returned=2), {"sequence": 3} | alloc(2, 20)]
    assert found(rows) == []


def test_another_allocators_memory_is_left_out():
    rows = [alloc(1, 10), alloc(1, 50, allocator="b"), deferred(1), alloc(2, 5)]
    assert bounds(rows) == (10, 15)


def test_no_finding_without_deferred_deallocations_of_live_buffers():
    assert found([alloc(1, 10), free(1, deferred=False), alloc(2, 20)]) == []
    assert found([alloc(1, 10), deferred(2)]) == []


def test_an_allocator_that_reports_its_use_has_no_bounds():
    assert found([alloc(1, 10, in_use_bytes=10), deferred(1, in_use_bytes=0)]) == []


class _Action(NamedTuple):
    address: int
    size: int
    deferred: bool
    wait: int | None


_ACTIONS = st.builds(
    _Action, st.integers(1, 3), st.integers(0, 50), st.booleans(), st.none() | st.integers(1, 6)
)


@settings(max_examples=200)
@given(st.lists(_ACTIONS, min_size=1, max_size=25))
def test_the_bound_equals_a_slow_one(actions):
    rows, live, held, lower, upper = [], {}, [], 0, 0
    for number, action in enumerate(actions):
        held = [(until, size) for until, size in held if until is None or until > number]
        if action.address not in live:
            live[action.address] = action.size
            rows.append(alloc(action.address, action.size))
        else:
            size = live.pop(action.address)
            until = None if action.wait is None else number + action.wait
            if action.deferred:
                held.append((until, size))
                rows.append(deferred(action.address, returned=until))
            else:
                rows.append(free(action.address))
        lower = max(lower, sum(live.values()))
        upper = max(upper, sum(live.values()) + sum(size for _, size in held))
    if upper > lower:
        assert bounds(rows) == (lower, upper)
    else:
        assert found(rows) == []
