"""Allocator records in a few words, and a slow answer to compare the fast one with."""

from collections import defaultdict
from itertools import pairwise

from hypothesis import strategies as st
from tests.tables.fake import FakeReader, columns_of

from peakline.api import Profile
from peakline.memory.origins.stacks import Origins
from peakline.memory.signatures import read_history
from peakline.tables.tables import check_columns


def events(rows):
    """``allocator_events`` in the order given, a picosecond apart unless a row says its time."""
    timed = [{"time_ps": i, "sequence": i} | row for i, row in enumerate(rows)]
    return check_columns("allocator_events", columns_of("allocator_events", timed))


def alloc(address, size, **more):
    return {"activity": "allocation", "address": address, "allocated_bytes": size} | more


def free(address, size=None, **more):
    return {"activity": "deallocation", "address": address, "allocated_bytes": size} | more


def reference(rows):
    """Per allocator, in plain Python: the counts, the peak and the rows that explain it."""
    by_allocator = defaultdict(list)
    for number, row in enumerate(rows):
        by_allocator[row.get("allocator") or ""].append((number, row))
    return {name: _one(records) for name, records in sorted(by_allocator.items())}


def _size(row):
    size = row.get("allocated_bytes")
    return (row.get("requested_bytes") or 0) if size is None else size


def _key(row):
    if row.get("allocation_id") is not None:
        return "id", row["allocation_id"]
    if row.get("address") is not None:
        return "address", row["address"]
    return None


def _one(records):
    reported = any(row.get("in_use_bytes") is not None for _, row in records)
    counts = dict.fromkeys(("allocations", "deallocations", "unmatched", "untracked", "double"), 0)
    live, unmatched_bytes, net, before = {}, 0, 0, None
    last = None
    best = None
    for number, row in records:
        key, size, in_use = _key(row), _size(row), row.get("in_use_bytes")
        if row["activity"] == "allocation":
            counts["allocations"] += 1
            net += size
            if key is None:
                counts["untracked"] += 1
            else:
                counts["double"] += key in live
                live[key] = row
        elif row["activity"] == "deallocation":
            counts["deallocations"] += 1
            ended = live.pop(key, None) if key is not None else None
            net -= size if size > 0 else (_size(ended) if ended else 0)
            if key is None:
                counts["untracked"] += 1
            elif ended is None:
                counts["unmatched"] += 1
                if size <= 0 and in_use is not None and last is not None:
                    size = max(last - in_use, 0)
                unmatched_bytes += size
        if in_use is not None and before is None:
            before = in_use - net
        if in_use is not None:
            last = in_use
        elif row["activity"] in ("allocation", "deallocation"):
            last = None
        if reported and in_use is None:
            continue
        total = sum(map(_size, live.values()))
        used = in_use + (row.get("reserved_bytes") or 0) if reported else total
        if best is None or used > best["bytes"]:
            groups = defaultdict(lambda: [0, 0])
            for buffer in live.values():
                names = (buffer.get(n) or "" for n in ("op", "region_type", "data_type", "shape"))
                group = groups[(*names, buffer.get("step_id"))]
                group[0] += _size(buffer)
                group[1] += 1
            if reported:
                old = max(before - unmatched_bytes, 0)
                special = {
                    "(before profile)": old,
                    "(reserved)": used - in_use,
                    "(unattributed)": in_use - total - old,
                }
                groups |= {(n, "", "", "", None): [b, 0] for n, b in special.items() if b}
            best = {
                "bytes": used,
                "row": number,
                "groups": {k: tuple(v) for k, v in groups.items()},
            }
    return counts | {
        "peak": best,
        "live_at_end": sum(map(_size, live.values())),
        "lifetime_peak": max(
            (row["peak_bytes"] for _, row in records if row.get("peak_bytes") is not None),
            default=None,
        ),
    }


_size_of_histories = st.integers(1, 9)

record = st.fixed_dictionaries(
    {
        "activity": st.sampled_from(["allocation"] * 5 + ["deallocation"] * 4 + ["reservation"]),
        "address": st.none() | st.integers(0, 24),
        "allocated_bytes": _size_of_histories,
    },
    optional={
        "allocation_id": st.none() | st.integers(0, 6),
        "allocator": st.sampled_from(["a", "b"]),
        "requested_bytes": st.none() | st.integers(0, 12),
        "in_use_bytes": st.none() | st.integers(0, 60),
        "reserved_bytes": st.none() | st.integers(0, 5),
        "op": st.sampled_from([None, "", "p", "q"]),
        "region_type": st.sampled_from([None, "temp"]),
        "data_type": st.sampled_from([None, "float"]),
        "shape": st.sampled_from([None, "[1,2]", "[1, 2]", "(3,)"]),
    },
)
records = st.lists(record, min_size=1, max_size=40)


def history(rows):
    """The history of records given as dicts, a picosecond apart."""
    return read_history(events(rows))


def steps_at(*bounds):
    """Steps ``train 0`` ... between the times ``bounds``: one fewer than there are bounds."""
    rows = [
        {"step_id": n, "name": f"train {n}", "start_ps": start, "end_ps": end}
        for n, (start, end) in enumerate(pairwise(bounds))
    ]
    return check_columns("steps", columns_of("steps", rows))


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
