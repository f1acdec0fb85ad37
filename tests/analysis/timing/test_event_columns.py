"""The made columns of the table ``events``, against loops over its rows."""

from pathlib import Path

import numpy as np
from tests.profile.fake import FakeReader
from tests.sweeps import each_sample

import peakline
from peakline.tables import Profile
from peakline.tables.derived import DERIVED
from reference.odd_traces import odd_trace

DATA = Path(__file__).resolve().parents[2] / "data"
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
    found = [(None, None, None)] * len(events)
    for line in lines.values():
        line.sort()
        ends = np.array([end if end > begin else -FARTHEST - 1 for _, begin, end, _ in line])
        children = [[] for _ in line]
        for place, (_, begin, end, row) in enumerate(line):
            holding = np.flatnonzero(ends[:place] >= end)
            if not holding.size:
                found[row] = (None, 0, None)
                continue
            parent = int(holding[-1])
            children[parent].append((begin, end))
            above = line[parent][3]
            found[row] = (above, found[above][1] + 1, None)
        for place, (_, begin, end, row) in enumerate(line):
            inside, covered_to = 0, begin
            for first, last in children[place]:
                inside += max(0, last - max(first, covered_to))
                covered_to = max(covered_to, last)
            found[row] = (*found[row][:2], end - begin - inside)
    return found


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


def rows_of(tables, query):
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
    assert rows_of(tables, "select name, parent_id, depth, self_ps from events") == [
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
    words = [word for (word,) in rows_of(tables, "select activity from events")]
    assert words == ["input_work", "compile", "host_op", "launch", "wait", None]


def test_waits_are_those_of_thread_time():
    with peakline.open(DATA / "chrome_trace" / "noleak.pt.trace.json.gz") as profile:
        waits = profile.sql(
            "select line_id, start_ps, start_ps + duration_ps from events"
            " where activity in ('wait', 'input_wait') order by 1, 2"
        )
        found = {}
        covered_to = {}
        for line, begin, end in (tuple(row.values()) for row in waits.to_pylist()):
            uncovered = end - max(begin, covered_to.get(line, begin))
            found[line] = found.get(line, 0) + max(0, uncovered)
            covered_to[line] = max(end, covered_to.get(line, end))
        threads = profile.sql("select line_id, wait_ps from thread_time").to_pylist()
    assert threads
    for row in threads:
        assert row["wait_ps"] == found.get(row["line_id"], 0)


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
