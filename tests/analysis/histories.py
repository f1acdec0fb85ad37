"""Random allocator records for the analyses of memory, and steps over them."""

from itertools import pairwise

from hypothesis import strategies as st
from tests.analysis.records import events
from tests.profile.fake import columns_of

from peakline.memory.signatures import read_history
from peakline.tables.tables import check_columns

_size = st.integers(1, 9)

record = st.fixed_dictionaries(
    {
        "activity": st.sampled_from(["allocation"] * 5 + ["deallocation"] * 4 + ["reservation"]),
        "address": st.none() | st.integers(0, 24),
        "allocated_bytes": _size,
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
