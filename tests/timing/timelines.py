"""Traces in a few words, and a slow, obvious tile to compare the fast one with."""

from collections import defaultdict
from itertools import pairwise

from tests.tables.fake import FakeReader

from peakline.api import Profile
from peakline.timing.timeline import timeline_of


def profile_of(*lines, counters=(), records=None):
    """A profile of one host plane; a line is a list of ``(name, start, duration)``."""
    rows = [
        {"event_id": 0, "line_id": line, "name": name, "start_ps": start, "duration_ps": length}
        for line, events in enumerate(lines)
        for name, start, length in events
    ]
    for number, row in enumerate(rows):
        row["event_id"] = number
    tables = {
        "planes": [{"plane_id": 0, "name": "/host:CPU", "kind": "host"}],
        "lines": [
            {"line_id": number, "plane_id": 0, "name": f"line {number}"}
            for number in range(len(lines))
        ],
        "events": rows,
        "event_stats": [{"event_id": 0, "name": "k", "value": "v"}] if rows else [],
    }
    if counters:
        tables["counters"] = counters
    if records is not None:
        tables["allocator_events"] = records
    return Profile(FakeReader(tables))


def timeline(*lines):
    return timeline_of(profile_of(*lines))


def slow_tile(result, start, end, bits, tracks):
    """Per track the items ``(begin, until, count, busy, longest event)``, event by event."""
    trace, nesting = result.trace, result.nesting
    drawn = defaultdict(list)
    for event in range(trace.size):
        begin, until = int(trace.start[event]), int(trace.end[event])
        if begin < end and (until > start or begin >= start):
            line = int(trace.lines_of([event])[0])
            drawn[int(result.first_track[line]) + int(nesting.row[event])].append(event)
    answer = []
    for track in tracks:
        items, before = [], None
        for event in drawn[track]:
            begin, until = int(trace.start[event]), int(trace.end[event])
            length = until - begin
            is_short = bits >= 0 and length < 2**bits
            if (
                before is not None
                and is_short
                and before[1] < 2**bits
                and begin >> bits == before[0] >> bits
            ):
                item = items[-1]
                item[1] = max(item[1], until)
                item[2] += 1
                item[3] += length
                if length > item[5]:
                    item[4], item[5] = event, length
            else:
                items.append([begin, until, 1, length, event, length])
            before = begin, length
        answer.append([tuple(item[:5]) for item in items])
    return answer


def items_of(tile):
    """Per track the items of a tile, in the form of `slow_tile`."""
    columns = (tile.begin_ps, tile.until_ps, tile.count, tile.busy_ps, tile.event)
    rows = list(zip(*(column.tolist() for column in columns), strict=True))
    return [rows[lo:hi] for lo, hi in pairwise(tile.first.tolist())]
