import pytest
from tests.analysis.records import alloc, events, free
from tests.each_row import each_row
from tests.profile.fake import FakeReader, columns_of

from peakline.errors import NotFoundError
from peakline.findings.memory_answer import Notice, answer_memory, explain_memory
from peakline.tables import Profile

STEPS = columns_of(
    "steps",
    [
        {"step_id": 0, "name": "train 170", "start_ps": 10, "end_ps": 19},
        {"step_id": 1, "name": "train 171", "start_ps": 20, "end_ps": 29},
    ],
)
EVENTS = events(
    [
        alloc(1, 100, op="a", time_ps=5),
        free(1, time_ps=11, step_id=0),
        alloc(2, 30, op="b", time_ps=12, step_id=0),
        alloc(3, 20, op="loader", time_ps=13),
        free(3, time_ps=21),
        alloc(4, 5, op="late", time_ps=35, step_id=1),
    ]
)


def test_the_whole_profile():
    answer = explain_memory(EVENTS, STEPS)
    (peak,) = answer.allocators
    assert (peak.peak_bytes, answer.step, answer.findings, answer.notices) == (100, None, (), ())


@each_row("step", ["0", "train 170"])
def test_a_step_takes_what_ran_during_it_on_any_thread(step):
    answer = explain_memory(EVENTS, STEPS, step=step)
    (peak,) = answer.allocators
    assert answer.step == 0
    assert {buffer.op: buffer.bytes for buffer in peak.peak_buffers} == {"b": 30, "loader": 20}
    assert (peak.peak_time_ps, peak.peak_step) == (13, None)


def test_a_step_takes_its_own_records_wherever_they_are():
    (peak,) = explain_memory(EVENTS, STEPS, step="1").allocators
    assert (peak.peak_bytes, peak.peak_time_ps) == (35, 35)


@each_row("step", ["2", "train 9", "-1", ""])
def test_an_unknown_step(step):
    with pytest.raises(NotFoundError, match=r"no step .* ids 0 to 1"):
        explain_memory(EVENTS, STEPS, step=step)


def test_an_unknown_step_of_a_profile_without_steps():
    with pytest.raises(NotFoundError, match="has no steps"):
        explain_memory(EVENTS, columns_of("steps", []), step="0")


def test_no_records_no_allocators():
    assert explain_memory(events([]), STEPS).allocators == ()


def test_notices_count_what_could_not_be_followed():
    rows = [alloc(1, 1, allocator="x"), alloc(1, 1, allocator="x"), free(9, allocator="x")]
    rows += [alloc(None, 1, allocator="x"), free(None, allocator="x")]
    answer = explain_memory(events(rows), STEPS)
    assert [(n.kind, n.count) for n in answer.notices] == [
        ("untracked_allocation", 2),
        ("double_allocation", 1),
        ("unmatched_deallocation", 1),
    ]
    assert all(isinstance(n, Notice) and n.detail.startswith("x: ") for n in answer.notices)


def test_freeing_memory_from_before_the_profile_is_no_notice():
    rows = [alloc(1, 10, in_use_bytes=100), free(9, 50, in_use_bytes=50)]
    assert explain_memory(events(rows), STEPS).notices == ()


def test_what_was_guessed_is_counted_once_however_often_it_is_asked():
    rows = [row | {"allocator": name} for name in "ab" for row in (alloc(1, 5), alloc(1, 7))]
    profile = Profile(FakeReader({"allocator_events": events(rows)}))
    answer_memory(profile, allocator="a")
    assert [(w.kind, w.count) for w in profile.warnings] == [("double_allocation", 1)]
    # The other allocator's is another one.
    for _ in range(2):
        answer_memory(profile)
        assert [(w.kind, w.count) for w in profile.warnings] == [("double_allocation", 2)]
    # Each question has its own, and what it was told is not taken from those that follow.
    shared = Profile(FakeReader({"allocator_events": events(rows)}))
    for _ in range(2):
        with shared.question() as warnings:
            answer_memory(shared)
            assert [(w.kind, w.count) for w in warnings()] == [("double_allocation", 2)]
    answer_memory(shared)
    assert [(w.kind, w.count) for w in shared.warnings] == [("double_allocation", 2)]


@each_row("size", [-5, 2**48 + 1, 2**63 - 1])
def test_a_size_that_no_memory_has_is_unknown_and_told(size):
    answer = explain_memory(events([alloc(1, size, op="a"), alloc(2, 100, op="b")]), STEPS)
    (peak,) = answer.allocators
    assert (peak.peak_bytes, peak.live_at_end_bytes) == (100, 100)
    assert [(notice.kind, notice.count) for notice in answer.notices] == [("implausible_size", 1)]
