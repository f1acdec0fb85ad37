"""Search by name, and the details of one event."""

import pytest
from tests.analysis.timing.timelines import profile_of, timeline
from tests.each_row import each_row

import peakline
from peakline.errors import NotFoundError, UsageError
from peakline.timing.timeline import timeline_of
from peakline.timing.timeline.details import Children, details_of, place_of
from peakline.timing.timeline.search import search

LINES = (
    [("MatMul", 0, 10), ("add", 12, 2), ("matmul_2", 20, 5)],
    [("add", 1, 1), ("MatMul", 30, 4)],
)
WHOLE = {"start_ps": 0, "end_ps": 40, "width": 4}


def names(found, result):
    return {
        found.trace.name.values[code]: count
        for code, count in zip(result.names.tolist(), result.counts.tolist(), strict=True)
    }


def test_a_text_is_looked_for_in_any_case():
    found = timeline(*LINES)
    result = search(found, "matmul", **WHOLE)
    assert names(found, result) == {"MatMul": 2, "matmul_2": 1}
    assert (result.total, result.first, result.last) == (3, 0, 4)
    assert result.bins.tolist() == [1, 0, 1, 1]


def test_a_pattern_may_match_a_part():
    found = timeline(*LINES)
    assert names(found, search(found, r"\d$", is_pattern=True, **WHOLE)) == {"matmul_2": 1}
    with pytest.raises(UsageError, match="RE2"):
        search(found, "(", is_pattern=True, **WHOLE)


def test_only_the_asked_lines():
    found = timeline(*LINES)
    assert names(found, search(found, "a", lines=[1], **WHOLE)) == {"add": 1, "MatMul": 1}


@each_row(
    ("at", "previous", "following"), [(0, -1, 0), (1, 0, 2), (20, 0, 2), (21, 2, 4), (31, 4, -1)]
)
def test_next_and_previous_from_a_time(at, previous, following):
    result = search(timeline(*LINES), "matmul", at_ps=at, **WHOLE)
    assert (result.previous, result.next) == (previous, following)


def test_events_of_one_time_are_stepped_through():
    found = timeline([("a", 5, 0), ("a", 5, 0)], [("a", 5, 0)])
    result = search(found, "a", event=1, **WHOLE)
    assert (result.previous, result.next) == (0, 2)


def test_what_reaches_into_the_viewport_is_on_its_first_pixel():
    result = search(timeline(*LINES), "matmul", start_ps=5, end_ps=25, width=2)
    assert result.bins.tolist() == [1, 1]
    assert search(timeline(*LINES), "matmul", start_ps=10, end_ps=12, width=2).bins.sum() == 0


def test_a_name_that_no_event_has():
    result = search(timeline(*LINES), "conv", **WHOLE)
    assert (result.total, result.first, result.next, result.bins.sum()) == (0, -1, -1, 0)


def test_all_about_one_event():
    profile = profile_of(
        [("step", 0, 100), ("op", 10, 30), ("k", 12, 5), ("k", 20, 5), ("c", 40, 0), ("op", 50, 9)]
    )
    found = details_of(profile, timeline_of(profile), 1)
    assert (found.name, found.start_ps, found.end_ps, found.own_ps) == ("op", 10, 40, 20)
    assert (found.parents, found.previous, found.next, found.row) == ((0,), -1, 5, 1)
    assert (found.child_count, found.child_ps) == (3, 10)
    assert found.children == (Children("k", 2, 10), Children("c", 1, 0))
    assert (found.step, found.stats) == (None, ())
    first = details_of(profile, timeline_of(profile), 0)
    assert (first.stats, first.parents) == ((("k", "v"),), ())


def test_an_id_is_the_row_in_the_table():
    found = timeline([("late", 5, 1), ("early", 1, 1)])
    assert found.trace.name[place_of(found, 0)] == "late"
    with pytest.raises(NotFoundError, match="no event 2 with a time; there are 2"):
        place_of(found, 2)
    with pytest.raises(NotFoundError):
        place_of(timeline([("a", 0, 1)]), -1)


def test_the_step_of_a_recorded_event(sessions):
    (path,) = (sessions / "tf2_cnn").rglob("*.xplane.pb*")
    with peakline.open(path) as profile:
        found = timeline_of(profile)
        step = search(found, "train", start_ps=0, end_ps=1, width=1).first
        details = details_of(profile, found, step)
        assert details.step == (0, "train 0")
        assert ("step_num", "0") in details.stats
