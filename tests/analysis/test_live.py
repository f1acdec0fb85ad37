"""What is live at any moment, buffer by buffer: the same as the slower ways to the same answer."""

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.analysis.histories import history, records
from tests.analysis.records import alloc, events, free
from tests.analysis.timing.timelines import profile_of

from peakline.memory.live import memory_records
from peakline.memory.moments import memory_at
from peakline.memory.peak import BEFORE_PROFILE, find_peaks


def records_of(rows):
    found = memory_records(profile_of(records=events(rows)))
    assert found is not None
    return found


def without_sizes(rows):
    """The same records, with frees that do not tell how much they free."""
    none = {"allocated_bytes": None, "requested_bytes": None}
    return [row | none if row["activity"] == "deallocation" else row for row in rows]


def facts(peak):
    """What an explained peak and a moment both tell."""
    special = {one.op: one.bytes for one in peak.peak_buffers if not one.count}
    live = [one for one in peak.peak_buffers if one.count]
    return (
        peak.peak_time_ps, peak.peak_bytes, peak.peak_step, peak.fragmentation_at_peak, special,
        sum(one.bytes for one in live), sum(one.count for one in live),
    )  # fmt: skip


def told(moment):
    return (
        moment.time_ps, moment.bytes_in_use, moment.step_id, moment.fragmentation,
        moment.remainders, int(moment.buffer_bytes.sum()), moment.buffers.size,
    )  # fmt: skip


def test_a_moment_is_made_of_its_buffers():
    found = records_of([alloc(1, 10), alloc(2, 30), free(1), alloc(3, 5), free(2)])
    moment = found.at(0, 3)
    assert (moment.buffers.tolist(), moment.buffer_bytes.tolist()) == ([1, 3], [30, 5])
    assert (moment.bytes_in_use, moment.remainders) == (35, {})
    assert found.at(0, 2).buffers.tolist() == [1]
    assert found.at(0, 10**18).buffers.tolist() == [3]
    assert found.at(0, -1) is None


def test_a_free_without_its_size_is_read_off_the_reports():
    rows = [
        alloc(1, 10, in_use_bytes=110),
        free(7, in_use_bytes=70),
        {"activity": "reservation"},
        free(8, in_use_bytes=50),
        free(1),
        free(9, in_use_bytes=5),
    ]
    found = records_of(rows)
    assert [found.at(0, time).remainders for time in (0, 1, 3)] == [
        {BEFORE_PROFILE: 100},
        {BEFORE_PROFILE: 60},
        {BEFORE_PROFILE: 40},
    ]
    # Between the last two reports another buffer was freed: nobody knows what the second took.
    assert found.at(0, 5).remainders == {BEFORE_PROFILE: 40, "(unattributed)": -35}


def test_at_a_peak_that_is_not_the_last_record_of_its_time():
    found = records_of([alloc(1, 10, time_ps=5), alloc(2, 30, time_ps=5), free(2, time_ps=5)])
    assert found.at_peak(0).buffers.tolist() == [0, 1]
    assert found.at(0, 5).buffers.tolist() == [0]


def test_a_size_that_no_memory_can_have_is_unknown():
    found = records_of([alloc(1, 10), alloc(2, 2**60)])
    assert (found.implausible, found.at(0, 1).bytes_in_use) == (1, 10)


def test_the_records_are_kept_with_the_profile():
    profile = profile_of(records=events([alloc(1, 10)]))
    assert memory_records(profile) is memory_records(profile)
    assert memory_records(profile_of([("a", 0, 1)])) is None


@settings(max_examples=300)
@given(records | records.map(without_sizes), st.integers(-1, 45))
def test_a_moment_is_that_of_the_memory_answer(rows, time):
    found = records_of(rows)
    shown = {one.allocator: facts(one) for one in memory_at(history(rows), time)}
    moments = {name: found.at(number, time) for number, name in enumerate(found.allocators)}
    assert {name: told(one) for name, one in moments.items() if one is not None} == shown


@settings(max_examples=300)
@given(records)
def test_the_peak_and_memory_in_use_are_those_of_the_memory_answer(rows):
    found, made = records_of(rows), history(rows)
    peaks = {one.allocator: facts(one) for one in find_peaks(made.events)}
    own = {name: found.at_peak(number) for number, name in enumerate(found.allocators)}
    assert {name: told(one) for name, one in own.items() if one is not None} == peaks
    for number in range(len(found.allocators)):
        series = found.series(number)
        mine = made.rows_of(number)
        assert series.rows.tolist() == mine[made.measured[mine]].tolist()
        assert series.used.tolist() == made.used[series.rows].tolist()
