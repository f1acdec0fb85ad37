"""A stretch of a trace in a few rows."""

from tests.analysis.timing.timelines import timeline

from peakline.timing.timeline.excerpt import excerpt_of


def excerpt(found, start, end, **more):
    return excerpt_of(found.trace, found.nesting, start, end, **more)


def rows(line):
    return [(row.name or "-", row.depth, row.start_ps, row.end_ps, row.hidden) for row in line.rows]


def test_events_are_nested_and_gaps_told():
    found = timeline([("a", 0, 40), ("b", 5, 10), ("c", 6, 2), ("d", 60, 30)])
    (line,) = excerpt(found, 0, 100).lines
    assert rows(line) == [
        ("a", 0, 0, 40, 0),
        ("b", 1, 5, 15, 0),
        ("c", 2, 6, 8, 0),
        ("-", 0, 40, 60, 0),
        ("d", 0, 60, 90, 0),
        ("-", 0, 90, 100, 0),
    ]
    assert (line.events, line.busy_ps, line.hidden) == (4, 70, 0)


def test_what_is_not_shown_is_counted_where_it_lies():
    found = timeline(
        [("a", 0, 400), ("b", 5, 100), ("c", 6, 20), ("c", 7, 2), ("e", 200, 3), ("f", 500, 1)]
    )
    answer = excerpt(found, 0, 1000, limit=2)
    (line,) = answer.lines
    assert [row for row in rows(line) if row[0] != "-"] == [
        ("a", 0, 0, 400, 1),
        ("b", 1, 5, 105, 2),
    ]
    assert (line.hidden, answer.events, answer.shown) == (1, 6, 2)


def test_only_events_of_a_length():
    answer = excerpt(timeline([("a", 0, 400), ("b", 5, 100), ("c", 6, 20)]), 0, 400, min_ps=100)
    assert [row.name for row in answer.lines[0].rows] == ["a", "b"]


def test_every_line_gets_its_share_and_a_quiet_one_leaves_its_own():
    busy = [("x", 10 * k, 5 + k % 3) for k in range(50)]
    answer = excerpt(timeline(busy, [("y", 0, 1)], busy), 0, 500, limit=9)
    assert [sum(row.event >= 0 for row in line.rows) for line in answer.lines] == [4, 1, 4]


def test_of_too_many_lines_the_busiest_are_shown():
    answer = excerpt(timeline([("x", 0, 1)], [("y", 0, 50)], [("z", 0, 2)]), 0, 100, limit=1)
    assert [len([r for r in line.rows if r.event >= 0]) for line in answer.lines] == [0, 1, 0]


def test_of_equal_ones_the_outer_is_shown():
    answer = excerpt(
        timeline([("outer", 0, 10), ("inner", 0, 10), ("last", 0, 10)]), 0, 10, limit=2
    )
    assert [(row.name, row.depth, row.hidden) for row in answer.lines[0].rows] == [
        ("outer", 0, 0),
        ("inner", 1, 1),
    ]


def test_lines_without_events_in_the_stretch_are_left_out():
    answer = excerpt(timeline([("a", 0, 5)], [("b", 50, 5)]), 40, 60)
    assert [(line.line, line.busy_ps) for line in answer.lines] == [(1, 5)]
    assert excerpt(timeline([("a", 0, 5)]), 40, 60).lines == ()


def test_only_the_asked_lines():
    answer = excerpt(timeline([("a", 0, 5)], [("b", 0, 5)]), 0, 5, lines=[1])
    assert [line.line for line in answer.lines] == [1]
