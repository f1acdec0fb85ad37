"""A trace as columns: order, nesting, threads and intervals."""

import gzip
from itertools import pairwise, permutations
from pathlib import Path

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.each_row import each_row
from tests.reference.xspace_builder import SpaceBuilder
from tests.sweeps import each_sample
from tests.tables.fake import FakeReader

import peakline
from peakline.kernels.trace_layout import MOST_ROWS
from peakline.kernels.trace_nesting import ends
from peakline.tables import Profile
from peakline.tables.columns import Names
from peakline.tables.derived import DERIVED
from peakline.timing.steps.slow import own_in
from peakline.trace.events import Nesting, Trace, TraceLine, TracePlane, nesting_of, trace_of
from peakline.trace.intervals import covered, intersection, total, union, within, without
from peakline.trace.nesting import nest_lines, self_times
from peakline.trace.steps import step_places_of
from reference.odd_traces import odd_trace

DATA = Path(__file__).parents[1] / "data"
LAST = np.iinfo(np.int64).max


def names_of(trace):
    return trace.name.to_list()


class TestOrder:
    def test_events_stand_by_line_and_time_the_longest_first(self, opened):
        space = SpaceBuilder()
        plane = space.host()
        plane.line("a", 1).event("late", 9, 1).event("short", 2, 1).event("long", 2, 5)
        plane.line("b", 1).event("other", 0, 1)
        trace = trace_of(opened(space))
        assert names_of(trace) == ["long", "short", "late", "other"]
        assert trace.rows(slice(None)).tolist() == [2, 1, 0, 3]
        assert trace.places(np.array([0, 1, 2, 3])).tolist() == [2, 1, 0, 3]
        assert [(line.name, line.first, line.last) for line in trace.lines] == [
            ("a", 0, 3), ("b", 3, 4),
        ]  # fmt: skip
        assert trace.lines_of(np.array([0, 2, 3])).tolist() == [0, 0, 1]

    def test_no_time_is_so_far_away_that_a_span_has_no_room(self, opened):
        space = SpaceBuilder()
        space.host().line("a", 1).event("never", -LAST, 5).event("ever", LAST, LAST)
        trace = trace_of(opened(space))
        assert trace.span() == (1 - 2**62 + 2**60, 2**62 - 1)
        assert (trace.end - trace.start).tolist() == [5, 2**60]

    def test_events_without_a_time_are_left_out_and_counted(self, opened):
        space = SpaceBuilder()
        space.host().line("a").event("sum", num_occurrences=3).event("real", 5, 2)
        trace = trace_of(opened(space))
        assert (names_of(trace), trace.untimed) == (["real"], 1)
        assert trace.rows(np.array([0])).tolist() == [1]

    def test_a_negative_length_is_none_and_an_endless_one_is_as_long_as_any_may_be(self, opened):
        space = SpaceBuilder()
        space.host().line("a").event("back", 5, -3).event("endless", 7, LAST)
        assert trace_of(opened(space)).end.tolist() == [5, 7 + 2**60]

    def test_a_profile_without_events_has_an_empty_trace(self, opened):
        space = SpaceBuilder()
        space.host().line("a")
        profile = opened(space)
        assert trace_of(profile).size == 0
        assert trace_of(profile).span() == (0, 0)
        assert nesting_of(profile).row.size == step_places_of(profile).size == 0


class TestNesting:
    def test_each_part_may_be_read_first(self, opened):
        space = SpaceBuilder()
        space.host().line("a").event("a", 0, 10).event("b", 5, 10).event("in b", 12, 2)
        trace = trace_of(opened(space))
        for names in permutations(("parent", "row", "own_ps")):
            nesting = Nesting(trace)
            assert {name: getattr(nesting, name).tolist() for name in names} == {
                "parent": [-1, -1, 1], "row": [0, 1, 2], "own_ps": [10, 8, 2],
            }  # fmt: skip

    def test_more_events_at_once_than_there_are_rows_share_the_last(self):
        count = MOST_ROWS + 5
        start = np.arange(count, dtype=np.int64)
        end = start + count
        parent, row = np.empty(count, np.int32), np.empty(count, np.uint16)
        own = np.empty(count, np.int64)
        nest_lines(start, end, np.array([0, count]), np.array([True]), parent, row, own)
        assert row.tolist() == [*range(MOST_ROWS), *[MOST_ROWS - 1] * 5]


def slow_nesting(events):
    """Parent, row and self time of sorted ``(start, end)``, by looking at all events before."""
    parents, rows, own = [], [], []
    for number, (start, end) in enumerate(events):
        chain, open_events = -1, []
        for before in range(number):
            b, e = events[before]
            if e > b and e >= end and e >= start and not _closed(events, before, number):
                chain, open_events = before, [*open_events, before]
        parents.append(chain)
        row = 0 if chain < 0 else rows[chain] + 1
        while any(
            rows[before] == row and events[before][1] > start and before != chain
            for before in range(number)
        ):
            row += 1
        rows.append(row)
    for number, (start, end) in enumerate(events):
        inside = set()
        for child, parent in enumerate(parents):
            if parent == number:
                inside |= set(range(*events[child]))
        own.append(end - start - len(inside))
    return parents, rows, own


def _closed(events, before, number):
    """Whether an event in between ended the reach of ``before``: it began and outlasted it."""
    return any(events[k][1] > events[before][1] for k in range(before + 1, number))


@settings(max_examples=300)
@given(st.lists(st.tuples(st.integers(0, 30), st.integers(0, 20)), max_size=14))
def test_nesting_is_that_of_a_slow_reference(pairs):
    events = sorted(((b, b + n) for b, n in pairs), key=lambda e: (e[0], -e[1]))
    start = np.array([b for b, _ in events], np.int64)
    end = np.array([e for _, e in events], np.int64)
    parent, row = np.empty(start.size, np.int32), np.empty(start.size, np.uint16)
    own = np.empty(start.size, np.int64)
    nest_lines(start, end, np.array([0, start.size]), np.array([True]), parent, row, own)
    assert (parent.tolist(), row.tolist(), own.tolist()) == slow_nesting(events)
    # Of the same events, every second place of a longer trace, alone.
    event = np.arange(0, 2 * start.size, 2, dtype=np.int32)
    places, total, alone = np.repeat(start, 2), np.empty_like(own), np.empty_like(own)
    line = np.array([0, start.size]), np.array([True])
    self_times(places, np.repeat(end, 2), event, *line, total, alone)
    assert (total.tolist(), alone.tolist()) == ((end - start).tolist(), own.tolist())


@settings(max_examples=200)
@given(
    st.lists(st.lists(st.tuples(st.integers(0, 30), st.integers(0, 20)), max_size=9), max_size=3),
    st.lists(st.integers(0, 32), max_size=6, unique=True),
)
def test_self_time_in_windows_is_that_of_a_slow_reference(lines, edges):
    lines = [sorted(((b, b + n) for b, n in line), key=lambda e: (e[0], -e[1])) for line in lines]
    windows = list(zip(sorted(edges)[::2], sorted(edges)[1::2], strict=False))
    expected, first = [], 0
    for line in lines:
        own = slow_nesting(line)[2]
        expected += [
            (first + at, own[at])
            for at, (start, _) in enumerate(line)
            if any(begin <= start < end for begin, end in windows)
        ]
        first += len(line)
    flat = np.array([event for line in lines for event in line], np.int64).reshape(-1, 2)
    bounds = np.cumsum([0, *map(len, lines)]).tolist()
    trace = Trace(
        "events", (TracePlane(0, "", "host", None),),
        tuple(TraceLine(n, 0, "", n, lo, hi) for n, (lo, hi) in enumerate(pairwise(bounds))),
        flat[:, 0].copy(), flat[:, 1].copy(), Names.constant("e", len(flat)), None, 0,
    )  # fmt: skip
    begin, end = np.array(windows, np.int64).reshape(-1, 2).T
    events, own = own_in(Nesting(trace), begin, end)
    assert list(zip(events.tolist(), own.tolist(), strict=True)) == expected


def test_own_times_of_a_deep_stack_and_of_a_line_that_does_not_nest():
    start, end = np.arange(600), 2000 - np.arange(600)
    event, total, own = np.arange(600, dtype=np.int32), np.empty(600, int), np.empty(600, int)
    nests = np.array([True, False])
    self_times(start, end, event, np.array([0, 500, 600]), nests, total, own)
    assert own.tolist() == [2] * 499 + [1002] + total[500:].tolist()


def test_ends_of_events_and_which_lines_are_out_of_order():
    start, length = np.array([5, 7, 3, 3, 1, 2]), np.array([-3, LAST, 4, 5, 9, 1])
    end = np.empty(6, np.int64)
    odd = np.empty(3, np.bool_)
    least, most = ends(start, length, np.array([0, 2, 4, 6]), 1000, end, odd)
    assert end.tolist() == [5, 1000, 7, 8, 10, 3]
    assert (odd.tolist(), least, most) == ([False, True, False], 0, 1000)


class TestSteps:
    def test_every_event_has_the_row_of_its_step(self, opened):
        space = SpaceBuilder()
        line = space.host().line("a", 1)
        for number in range(2):
            line.event("train", 100 * number, 50, {"_r": 1, "step_num": 7 + number})
            line.event("work", 100 * number + 10, 5)
        line.event("after", 500, 1)
        assert step_places_of(opened(space)).tolist() == [0, 0, 1, 1, -1]

    @each_row("steps_first", [False, True])
    def test_a_real_profile_gives_the_same_whatever_is_asked_first(self, tmp_path, steps_first):
        source = next(DATA.glob("sessions/tf2_cnn/**/*.xplane.pb.gz"))
        path = tmp_path / "vm.xplane.pb"
        path.write_bytes(gzip.decompress(source.read_bytes()))
        with peakline.open(path) as profile:
            places = step_places_of(profile) if steps_first else None
            trace = trace_of(profile)
            places = step_places_of(profile) if places is None else places
            events = profile.columns("events")
            rows = trace.rows(slice(None))
            assert trace.size == events.rows == 25_583
            assert (trace.start == events.array("start_ps")[rows]).all()
            assert (trace.end - trace.start == events.array("duration_ps")[rows]).all()
            ids = profile.columns("steps").array("step_id")
            known = events.is_valid("step_id")[rows]
            assert ((places >= 0) == known).all()
            assert (ids[places[known]] == events.array("step_id")[rows][known]).all()


def test_executions_without_a_thread_do_not_nest():
    with peakline.open(DATA / "run_metadata" / "tf1_cnn_2.pb.gz") as profile:
        trace, nesting = trace_of(profile), nesting_of(profile)
        assert [line.nests for line in trace.lines] == [False]
        assert (nesting.parent == -1).all()
        assert (nesting.own_ps == trace.end - trace.start).all()
        # What ran at once is drawn side by side.
        assert nesting.row.max() > 0


def test_executions_of_ops_are_a_trace_too():
    with peakline.open(DATA / "run_metadata" / "tf1_grpc.pb.gz") as profile:
        trace = trace_of(profile)
        assert (trace.source, trace.size, len(trace.planes)) == ("op_runs", 47, 3)
        assert {plane.kind for plane in trace.planes} == {"host"}
        assert (step_places_of(profile) == 0).all()
        runs = profile.columns("op_runs")
        assert (runs.array("start_ps")[trace.rows(slice(None))] == trace.start).all()


US = 10**6


def rows_of(opened, space):
    return opened(space).columns("thread_time").to_pylist()


def test_busy_idle_waiting_and_the_longest_name(opened):
    space = SpaceBuilder()
    space.plane("/device:GPU:0").line("Stream #1(Compute)").event("kernel", 0, US)
    host = space.host()
    host.line("quiet")
    python = host.line("python", timestamp_ns=1000)
    python.event("step", 0, 10 * US)
    python.event("inner", 2 * US, 3 * US)
    python.event("cudaStreamSynchronize", 6 * US, 2 * US)
    python.event("inner", 20 * US, 4 * US)
    assert rows_of(opened, space) == [
        {
            "line_id": 2,
            "plane_id": 1,
            "thread": "python",
            "events": 4,
            "busy_ps": 14 * US,
            "idle_ps": 10 * US,
            "wait_ps": 2 * US,
            "longest_op": "inner",
            "longest_op_ps": 7 * US,
        }
    ]


def test_overlapping_events_are_covered_once(opened):
    space = SpaceBuilder()
    line = space.host().line("thread")
    line.event("a", 0, 6 * US)
    line.event("b", 4 * US, 6 * US)
    (row,) = rows_of(opened, space)
    assert (row["busy_ps"], row["idle_ps"], row["longest_op"]) == (10 * US, 0, "a")


def test_sums_beyond_what_a_double_holds_are_exact(opened):
    space = SpaceBuilder()
    line = space.host().line("thread")
    line.event("a", 0, 2**59 + 1)
    line.event("a", 2**61, 2**59 + 1)
    (row,) = rows_of(opened, space)
    assert row["longest_op_ps"] == 2**60 + 2


def test_a_profile_without_host_threads_has_no_rows(opened):
    space = SpaceBuilder()
    space.plane("/device:GPU:0").line("Stream #1(Compute)").event("kernel", 0, US)
    assert rows_of(opened, space) == []


FARTHEST = 2**62 - 1
MADE = ["parent_id", "depth", "self_ps", "activity"]


def slowly(events):
    """(parent_id, depth, self_ps) per row of the table, from what the row and its line say.

    The parent is the last event before it, by start and the longest first, that ends no sooner.
    """
    lines = {}
    for row, event in enumerate(events):
        if event["start_ps"] is None:
            continue
        begin = min(max(event["start_ps"], -FARTHEST), FARTHEST)
        end = max(event["start_ps"], event["start_ps"] + event["duration_ps"])
        end = min(max(end, -FARTHEST), FARTHEST)
        key = (event["start_ps"], -event["duration_ps"], row)
        lines.setdefault(event["line_id"], []).append((key, begin, end, row))
    result = [(None, None, None)] * len(events)
    for line in lines.values():
        line.sort()
        ends = np.array([end if end > begin else -FARTHEST - 1 for _, begin, end, _ in line])
        children = [[] for _ in line]
        for place, (_, begin, end, row) in enumerate(line):
            holding = np.flatnonzero(ends[:place] >= end)
            if not holding.size:
                result[row] = (None, 0, None)
                continue
            parent = int(holding[-1])
            children[parent].append((begin, end))
            above = line[parent][3]
            result[row] = (above, result[above][1] + 1, None)
        for place, (_, begin, end, row) in enumerate(line):
            inside, covered_to = 0, begin
            for first, last in children[place]:
                inside += max(0, last - max(first, covered_to))
                covered_to = max(covered_to, last)
            result[row] = (*result[row][:2], end - begin - inside)
    return result


def check(profile):
    events = profile.columns("events", frozenset(("line_id", "start_ps", "duration_ps")))
    expected = slowly(events.to_pylist())
    made = profile.columns("events", frozenset(MADE)).to_pylist()
    assert [(e["parent_id"], e["depth"], e["self_ps"]) for e in made] == expected
    # Where there is no time there is no word.
    assert [e["activity"] is None for e in made] == [e["start_ps"] is None for e in made]


def samples():
    for path in sorted(DATA.rglob("*.gz")):
        if path.name.endswith((".xplane.pb.gz", ".json.gz")):
            yield str(path.relative_to(DATA))


@each_sample("name", samples())
def test_samples(name):
    with peakline.open(DATA / name) as profile:
        if "events" in profile.tables:
            check(profile)


def test_odd_traces(tmp_path):
    path = tmp_path / "odd.json"
    for seed in range(60):
        path.write_text(odd_trace(seed).text)
        with peakline.open(path) as profile:
            check(profile)


def made_by_hand(*rows):
    """A profile of two threads with events (line, name, start, duration)."""
    return {
        "planes": [{"plane_id": 0, "name": "/host:CPU", "kind": "host"}],
        "lines": [{"line_id": line, "plane_id": 0} for line in (0, 1)],
        "events": [
            {"event_id": n, "line_id": line, "name": name, "start_ps": at, "duration_ps": ps}
            for n, (line, name, at, ps) in enumerate(rows)
        ],
    }


def rows_of_event_columns(tables, query):
    with Profile(FakeReader(tables), derived=DERIVED) as profile:
        return [tuple(row.values()) for row in profile.sql(query).to_pylist()]


def test_rows_stand_in_the_order_of_the_table():
    tables = made_by_hand(
        (1, "inner", 30, 10),
        (0, "step", 0, 100),
        (1, "aggregated", None, 5),
        (1, "outer", 20, 60),
        (0, "overlaps", 90, 20),
        (0, "instant", 0, 0),
        (1, "innermost", 35, 5),
    )
    assert rows_of_event_columns(tables, "select name, parent_id, depth, self_ps from events") == [
        ("inner", 3, 1, 5),
        ("step", None, 0, 100),
        ("aggregated", None, None, None),
        ("outer", None, 0, 50),
        ("overlaps", None, 0, 20),
        ("instant", 1, 1, 0),
        ("innermost", 0, 2, 5),
    ]


def test_words():
    tables = made_by_hand(
        (0, "Iterator::Prefetch::Generator", 0, 10),
        (0, "XlaCompile", 10, 10),
        (0, "MatMul:MatMul", 20, 10),
        (0, "cudaLaunchKernel", 30, 10),
        (0, "cudaStreamSynchronize", 40, 10),
        (0, "whatever", None, 10),
    )
    words = [word for (word,) in rows_of_event_columns(tables, "select activity from events")]
    assert words == ["input_work", "compile", "host_op", "launch", "wait", None]


def test_waits_are_those_of_thread_time():
    with peakline.open(DATA / "chrome_trace" / "noleak.pt.trace.json.gz") as profile:
        waits = profile.sql(
            "select line_id, start_ps, start_ps + duration_ps from events"
            " where activity in ('wait', 'input_wait') order by 1, 2"
        )
        result = {}
        covered_to = {}
        for line, begin, end in (tuple(row.values()) for row in waits.to_pylist()):
            uncovered = end - max(begin, covered_to.get(line, begin))
            result[line] = result.get(line, 0) + max(0, uncovered)
            covered_to[line] = max(end, covered_to.get(line, end))
        threads = profile.sql("select line_id, wait_ps from thread_time").to_pylist()
    assert threads
    for row in threads:
        assert row["wait_ps"] == result.get(row["line_id"], 0)


class Watched(FakeReader):
    """Remembers which columns of ``events`` were read."""

    def read(self, table, warnings, columns=None):
        if table == "events":
            self.wanted = [*getattr(self, "wanted", []), columns]
        return super().read(table, warnings, columns)


def test_nothing_is_made_for_who_names_none():
    reader = Watched(made_by_hand((0, "a", 0, 2), (0, "b", 1, 1)))
    with Profile(reader, derived=DERIVED) as profile:
        profile.sql("select name, sum(duration_ps) from events group by name")
        assert reader.wanted == [{"name", "duration_ps"}]
        assert not set(MADE) & profile.columns("events").keys()
        assert reader.reads["lines"] == 0
        assert not set(MADE) & profile.columns("events", {"event_id", "step_id"}).keys()
        assert set(MADE) <= set(profile.sql("from events").column_names)
        assert profile.sql("select depth from events").to_pylist() == [{"depth": 0}, {"depth": 1}]
        assert profile.table("events")["self_ps"].to_pylist() == [1, 1]


def test_one_read_brings_what_is_needed():
    reader = Watched(made_by_hand((0, "a", 0, 2), (0, "b", 1, 1)))
    with Profile(reader, derived=DERIVED) as profile:
        profile.sql("select step_id, activity, self_ps from events")
    placed = {"line_id", "name", "start_ps", "duration_ps"}
    assert reader.wanted == [{"step_id", "category", "type_id", *placed}]


def test_a_later_read_loses_nothing():
    tables = made_by_hand((0, "a", 0, 2), (0, "b", 1, 1))

    class Projecting(FakeReader):
        def read(self, table, warnings, columns=None):
            whole = super().read(table, warnings)
            names = [name for name in whole if columns is None or name in columns]
            valid = {name: whole.valid[name] for name in names if name in whole.valid}
            return type(whole)({name: whole[name] for name in names}, valid)

    with Profile(Projecting(tables), derived=DERIVED) as profile:
        assert profile.columns("events", {"depth"}).array("depth").tolist() == [0, 1]
        later = profile.columns("events", {"event_id", "type_id"})
        assert {"event_id", "type_id", "depth"} <= later.keys()
        assert later.array("depth").tolist() == [0, 1]


PAIRS = st.lists(st.tuples(st.integers(-20, 60), st.integers(-3, 15)), max_size=12)


def intervals(pairs):
    begin = np.array([begin for begin, _ in pairs], np.int64)
    return union(begin, begin + np.array([length for _, length in pairs], np.int64))


def moments(pairs):
    return {moment for begin, length in pairs for moment in range(begin, begin + length)}


def held(result):
    """The moments of a set, and that it is as sets are: sorted, disjoint, nothing empty."""
    begin, end = (part.tolist() for part in result)
    assert all(b < e for b, e in zip(begin, end, strict=True))
    assert all(e < b for e, b in zip(end, begin[1:], strict=False))
    return {moment for b, e in zip(begin, end, strict=True) for moment in range(b, e)}


@given(PAIRS)
def test_a_union_holds_what_its_intervals_hold(pairs):
    result = intervals(pairs)
    assert held(result) == moments(pairs)
    assert total(result) == len(moments(pairs))


@given(PAIRS, PAIRS)
def test_two_sets(one, other):
    first, second = intervals(one), intervals(other)
    assert held(without(first, second)) == moments(one) - moments(other)
    assert held(intersection(first, second)) == moments(one) & moments(other)


@given(PAIRS, PAIRS)
def test_how_much_of_windows_is_covered(pairs, windows):
    begin = np.array([begin for begin, _ in windows], np.int64)
    end = begin + np.array([length for _, length in windows], np.int64)
    expected = [
        len(moments(pairs) & set(range(begin, begin + length))) for begin, length in windows
    ]
    assert covered(intervals(pairs), begin, end).tolist() == expected


@given(PAIRS, st.integers(-25, 80), st.integers(0, 50))
def test_the_part_between_two_moments(pairs, begin, length):
    result = within(intervals(pairs), begin, begin + length)
    assert held(result) == moments(pairs) & set(range(begin, begin + length))
