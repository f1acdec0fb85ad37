"""Memory replayed record by record in plain Python: the second computation of the tools that show
memory over time. It shares no code with them.
"""

from collections import defaultdict
from dataclasses import dataclass, field

from tests.engine.ending import DATA

SAMPLES = sorted(
    path
    for folder in ("sessions", "programs", "run_metadata", "memory_log", "oom_report", "pprof",
                   "chrome_trace", "fit/torch")
    for path in (DATA / folder).glob("**/*")
    if path.is_file() and path.suffix in {".pb", ".gz"}
)  # fmt: skip


@dataclass
class Buffer:
    """One buffer; ``row`` is the record that begins it, ``end_row`` the one that ends it."""

    row: int
    record: dict
    bytes: int
    requested: int
    start_ps: int
    end_ps: int | None = None
    end_row: int | None = None

    @property
    def op(self):
        return self.record["op"] or ""

    @property
    def was_there(self):
        return bool(self.record["is_before"])


@dataclass
class Moment:
    """After a record: what was in use as reported, and the buffers that are live."""

    row: int
    time_ps: int
    reported: int | None
    live: dict = field(default_factory=dict)

    @property
    def used(self):
        live = sum(one.bytes for one in self.live.values())
        return live if self.reported is None else self.reported


def replay(profile, allocator):
    """All moments of an allocator, one per record; ``live`` is the same dictionary for all."""
    rows = profile.columns("allocator_events").to_pylist()
    live = {}
    for row, one in enumerate(rows):
        if (one["allocator"] or "") != allocator:
            continue
        number, address = one["allocation_id"], one["address"]
        key = ("id", number) if number is not None else ("at", address)
        kind, is_known = one["activity"], number is not None or address is not None
        if kind in {"allocation", "deallocation"} and is_known:
            ended = live.pop(key, None)
            if ended is not None:
                ended.end_ps, ended.end_row = one["time_ps"], row
        if kind == "allocation" and is_known:
            requested, allocated = one["requested_bytes"], one["allocated_bytes"]
            size = (requested or 0) if allocated is None else allocated
            stated = requested if requested and requested <= size else size
            live[key] = Buffer(row, one, size, stated, one["time_ps"])
        reported = one["in_use_bytes"]
        if reported is not None:
            reported += one["reserved_bytes"] or 0
        yield Moment(row, one["time_ps"], reported, live)


def buffers(profile, allocator):
    """All buffers of an allocator, in order of allocation."""
    result = {}
    for moment in replay(profile, allocator):
        for one in moment.live.values():
            result.setdefault(one.row, one)
    return [result[row] for row in sorted(result)]


def group_of(buffer, group):
    """The group that a buffer is in; what was there before the profile is one of its own."""
    if buffer.op == "(before profile)":
        return buffer.op
    if group == "scope":
        return buffer.op.rpartition("/")[0]
    return buffer.record[group] or ""


def by_group(live, group, size="bytes"):
    """Live bytes of every group."""
    sums = defaultdict(int)
    for one in live:
        sums[group_of(one, group)] += getattr(one, size)
    return sums
