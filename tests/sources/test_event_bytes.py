"""The stats of a few events are those of the whole table, wherever the events lie."""

import numpy as np
from tests.profile.fake import FakeReader

import peakline
from peakline.tables import Profile
from reference.xspace_builder import SpaceBuilder


def whole(profile, rows):
    stats = profile.columns("event_stats")
    return stats.take(np.flatnonzero(np.isin(stats.array("event_id"), rows))).to_pylist()


def many_events(lines, events):
    builder = SpaceBuilder()
    for name in ("/host:CPU", "/device:GPU:0"):
        plane = builder.plane(name)
        for number in range(lines):
            line = plane.line(f"line {number}", timestamp_ns=number)
            for event in range(events):
                line.event("e", event, 1, {"at": event, "line": f"{name} {number}"})
    return builder.space


def test_stats_of_events_in_any_block(opened):
    with opened(many_events(3, 700)) as profile:
        rows = np.array([0, 1, 255, 256, 257, 699, 700, 1399, 1400, 2099, 2100, 4199])
        found = profile.stats_of(rows)
        assert found.to_pylist() == whole(profile, rows)
        assert sorted(set(found.array("event_id").tolist())) == rows.tolist()


def test_order_and_repetition_do_not_matter(opened):
    with opened(many_events(1, 5)) as profile:
        found = profile.stats_of(np.array([3, 1, 3, 99, -1]))
        assert found.array("event_id").tolist() == [1, 1, 3, 3]


def test_no_events(opened):
    with opened(SpaceBuilder().space.SerializeToString() or b"\x22\x01h") as profile:
        assert profile.stats_of(np.array([0, 1])).rows == 0


def test_a_cut_file_has_the_stats_of_what_is_whole(opened):
    content = many_events(2, 400).SerializeToString()
    with opened(content[: len(content) // 3]) as profile:
        rows = np.arange(profile.columns("event_stats").array("event_id").max() + 5)
        assert profile.stats_of(rows).to_pylist() == whole(profile, rows)


def test_recorded_sessions(sessions):
    for path in sorted(sessions.rglob("*.xplane.pb*")):
        with peakline.open(path) as profile:
            rows = np.arange(0, profile.columns("events").rows, 7)
            assert profile.stats_of(rows).to_pylist() == whole(profile, rows), path


def test_other_formats_look_into_the_table():
    rows = [{"event_id": 2, "name": "a", "value": "1"}, {"event_id": 0, "name": "b", "value": "2"}]
    found = Profile(FakeReader({"event_stats": rows})).stats_of(np.array([2, 0, 1]))
    assert found.array("event_id").tolist() == [0, 2]
    assert found.names("value").to_list() == ["2", "1"]
    assert Profile(FakeReader({})).stats_of(np.array([0])).rows == 0
