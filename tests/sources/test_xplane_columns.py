"""Columns that need no grouping are read without it, and are the same."""

from pathlib import Path

from tests.each_row import each_row

from peakline.formats import open_reader
from peakline.formats.xplane.plain_events import PLAIN
from peakline.tables.reader import Warnings

SESSIONS = Path(__file__).parent.parent / "data" / "sessions"
FILES = sorted(SESSIONS.rglob("*.xplane.pb*"))


@each_row("path", FILES)
def test_plain_columns_are_those_of_the_whole_table(path):
    plain = open_reader(str(path)).read("events", Warnings(), PLAIN - {"category"})
    whole = open_reader(str(path)).read("events", Warnings())
    assert plain.rows == whole.rows > 0
    assert set(plain) == PLAIN - {"category"}
    for name in set(plain) - {"name"}:
        assert (plain.array(name) == whole.array(name)).all()
        assert (plain.is_valid(name) == whole.is_valid(name)).all()
    assert plain.names("name").to_list() == whole.names("name").to_list()


def test_the_stats_names_need_no_values():
    path = str(FILES[0])
    some = open_reader(path).read("event_stats", Warnings(), frozenset({"event_id", "name"}))
    whole = open_reader(path).read("event_stats", Warnings())
    assert set(some) == {"event_id", "name"}
    assert some.names("name").to_list() == whole.names("name").to_list()
