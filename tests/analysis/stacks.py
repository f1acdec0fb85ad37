"""Profiles of allocator records with call stacks, in a few words."""

from tests.analysis.records import events
from tests.profile.fake import FakeReader, columns_of

from peakline.api import Profile
from peakline.memory.origins.stacks import Origins
from peakline.memory.signatures import read_history
from peakline.tables.tables import check_columns


def stack_rows(stacks):
    """The table ``stacks``: each is a list of frames, the innermost first: ``(function, file,
    line)``, or the name of what is written in C.
    """
    return [
        {"stack_id": number, "depth": depth}
        | dict(zip(("function", "file", "line"), one if isinstance(one, tuple) else (one,),
                   strict=False))
        for number, frames in enumerate(stacks)
        for depth, one in enumerate(frames)
    ]  # fmt: skip


def origins(stacks, rows=None):
    """The origins of ``rows``: without any, of one allocation for each stack."""
    if rows is None:
        rows = [
            {"activity": "allocation", "address": n, "allocated_bytes": 8, "stack_id": n}
            for n in range(len(stacks))
        ]
    table = check_columns("stacks", columns_of("stacks", stack_rows(stacks)))
    return Origins(table, read_history(events(rows)))


def profile_with(rows, steps=(), stacks=()):
    """A profile of these records."""
    tables = {"allocator_events": events(rows), "steps": steps, "stacks": stack_rows(stacks)}
    return Profile(FakeReader(tables))


def of_kind(profile, kind):
    """The findings of memory of one kind."""
    return [finding for finding in profile.memory().findings if finding.kind == kind]
