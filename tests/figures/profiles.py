"""Profiles of records made by hand, and what a figure draws as plain lists."""

from tests.memory.records import events
from tests.tables.fake import FakeReader, columns_of

from peakline.api import Profile
from peakline.figures.drawn import drawn_allocators
from peakline.tables.tables import check_columns


def profile_of(rows, steps=(), *, strict=False, **more):
    """A profile of allocator records (dicts, a picosecond apart) and steps."""
    tables = {"allocator_events": events(list(rows))}
    if steps:
        tables["steps"] = check_columns("steps", columns_of("steps", steps))
    return Profile(FakeReader(tables, **more), strict=strict)


def asked_of(rows, allocator=None, steps=()):
    """What a figure of these records is about."""
    return drawn_allocators(profile_of(rows, steps), allocator, None)


def texts(value):
    """Every text in a figure's document."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for entry in value.values():
            yield from texts(entry)
    elif isinstance(value, (list, tuple)):
        for entry in value:
            yield from texts(entry)
